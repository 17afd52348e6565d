//! Files that are there whole or not at all, also when the power fails, and the modes of what we write.
//!
//! A file that takes the place of another is written beside it under a name of its own, synced, renamed, and its folder
//! is synced. What is to be done when a step fails is the caller's business.

use std::fs::{self, File};
use std::io::{Result, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Does a step, or fails it: for tests.
pub(crate) type Run<'a> = &'a mut dyn FnMut(&mut dyn FnMut() -> Result<()>) -> Result<()>;

/// Writes a file of which readers see the old or the new contents, never a part; only its owner may read it.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> Result<()> {
    replace_by(path, contents, &mut |step| step())
}

/// As [`replace`]. Each step (write, sync, rename, sync of the folder) is done by `run`.
pub(crate) fn replace_by(path: &Path, contents: &[u8], run: Run<'_>) -> Result<()> {
    let staged = Staged::new(path);
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(staged.temporary())?;
    run(&mut || file.write_all(contents))?;
    run(&mut || file.sync_all())?;
    run(&mut || staged.replace())?;
    run(&mut || sync_parent(path))
}

/// A file that is written under a temporary name and gets its own when it is whole. What is left under the temporary
/// name is removed when this is dropped.
pub(crate) struct Staged {
    path: PathBuf,
    temporary: PathBuf,
}

impl Staged {
    /// For the file at `path`; nothing is written yet.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            temporary: temporary_name(path),
            path: path.to_owned(),
        }
    }

    /// Where it is to be written.
    pub(crate) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Syncs what was written to it.
    pub(crate) fn sync(&self) -> Result<()> {
        File::open(&self.temporary)?.sync_all()
    }

    /// Gives it its name, in the place of whatever has that.
    pub(crate) fn replace(&self) -> Result<()> {
        fs::rename(&self.temporary, &self.path)
    }

    /// Gives it its name; fails when another writer was first.
    pub(crate) fn link(&self) -> Result<()> {
        fs::hard_link(&self.temporary, &self.path)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // It is gone when it has been renamed.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Syncs the folder that holds `path`, and so the name of the file.
pub(crate) fn sync_parent(path: &Path) -> Result<()> {
    match path.parent() {
        // A relative path of one part lies in the current folder.
        Some(folder) if folder.as_os_str().is_empty() => File::open(".")?.sync_all(),
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// A name under which a file is written before it gets its own. It starts with a dot, which the readers of tables' logs
/// skip. No two calls give the same, in any process: another writer of the same file must not write into ours between
/// its sync and its link.
pub(crate) fn temporary_name(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{}.tmp", uuid::Uuid::new_v4().simple()))
}

/// From now on this process makes folders and files for its user alone (0700 and 0600), also where a library makes
/// them. An ACL for new files that a folder has (`setfacl -d`) goes before it.
#[allow(unsafe_code, reason = "the standard library has no umask(2)")]
pub(crate) fn keep_new_files_private() {
    // SAFETY: umask(2) takes any number, cannot fail and touches no memory of ours.
    unsafe { libc::umask(0o077) };
}

/// Warns when other users may read a folder.
pub(crate) fn warn_of_open_folder(folder: &Path) -> Result<()> {
    let mode = fs::metadata(folder)?.permissions().mode() & 0o7777;
    if mode & 0o007 != 0 {
        tracing::warn!(
            folder = %folder.display(), mode = format!("{mode:o}"),
            "other users of this machine may look into this folder, which holds profiles; `chmod o-rwx` takes that away"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_only_its_owner_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        replace(&path, b"first").unwrap();
        // Made by an older version, or by an administrator.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        replace(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(replace(&folder.path().join("no/folder"), b"").is_err());
    }

    #[test]
    fn a_link_in_the_place_of_the_file_is_replaced_and_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (path, target) = (folder.path().join("a"), folder.path().join("target"));
        fs::write(&target, "theirs").unwrap();
        for name in ["a", "a.new"] {
            std::os::unix::fs::symlink(&target, folder.path().join(name)).unwrap();
        }
        replace(&path, b"ours").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"theirs");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
    }

    #[test]
    fn whichever_step_fails_the_file_is_the_old_or_the_new_one_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        replace(&path, b"old").unwrap();
        for failing in 0..4 {
            let mut at = 0;
            let done = replace_by(&path, b"new", &mut |step| {
                at += 1;
                if at > failing {
                    return Err(std::io::ErrorKind::StorageFull.into());
                }
                step()
            });
            assert!(done.is_err());
            let expected: &[u8] = if failing < 3 { b"old" } else { b"new" };
            assert_eq!(fs::read(&path).unwrap(), expected, "step {failing}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}
