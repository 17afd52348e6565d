//! Writes files atomically, even if the power fails, and sets the permissions of new files.
//!
//! To replace a file, the module writes a new file beside it under a temporary name, syncs and renames the new file,
//! and syncs the folder. The caller handles the failure of a step.

use std::fs::{self, File};
use std::io::{Result, Write as _};
use std::os::fd::FromRawFd as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// A function that executes a step. Tests pass a function that makes a step fail.
pub(crate) type StepRunner<'a> = &'a mut dyn FnMut(&mut dyn FnMut() -> Result<()>) -> Result<()>;

/// Writes a file atomically: readers see either the old or the new contents. Only the owner may read the file.
pub fn replace(path: &Path, contents: &[u8]) -> Result<()> {
    replace_by(path, contents, &mut |step| step())
}

/// Like [`replace`], but `run` executes each step (write, sync, rename, sync of the folder).
pub fn replace_by(path: &Path, contents: &[u8], run: StepRunner<'_>) -> Result<()> {
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

/// A file that is written under a temporary name and renamed once it is complete. Drop removes the temporary file if
/// it still exists.
pub struct Staged {
    path: PathBuf,
    temporary: PathBuf,
}

impl Staged {
    /// Prepares the file at `path`, without writing anything.
    pub fn new(path: &Path) -> Self {
        Self {
            temporary: temporary_name(path),
            path: path.to_owned(),
        }
    }

    /// Returns the path of the temporary file.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Syncs the contents of the temporary file.
    pub fn sync(&self) -> Result<()> {
        File::open(&self.temporary)?.sync_all()
    }

    /// Renames the file to its final name and replaces an existing file.
    pub fn replace(&self) -> Result<()> {
        fs::rename(&self.temporary, &self.path)
    }

    /// Links the file under its final name. Fails if a file of that name exists.
    pub fn link(&self) -> Result<()> {
        fs::hard_link(&self.temporary, &self.path)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // If the file was renamed, no temporary file exists, and the error is ignored.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Creates a folder and its missing parents, and makes their names durable. The name of `folder` itself is synced
/// even if the folder exists, because an earlier process may have been killed right after creating it.
pub fn create_folders(folder: &Path) -> Result<()> {
    let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let missing: Vec<&Path> = folder.ancestors().skip(1).take_while(is_missing).collect();
    fs::create_dir_all(folder)?;
    sync_parent(folder)?;
    missing.into_iter().try_for_each(sync_parent)
}

/// Syncs the folder that contains `path`, so that the name of the file is durable.
pub fn sync_parent(path: &Path) -> Result<()> {
    match path.parent() {
        // A relative path with a single part is in the current folder.
        Some(folder) if folder.as_os_str().is_empty() => File::open(".")?.sync_all(),
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// Returns a temporary name in the folder of `path`. The name starts with a dot, so readers of a Delta table's log skip
/// the file. The name is unique across processes. Otherwise, another writer of `path` could change the temporary file
/// between its sync and its link.
pub fn temporary_name(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{}.tmp", uuid::Uuid::new_v4().simple()))
}

/// Creates a file in memory that disappears with its last handle. The file can hold data even if the disk is full.
#[allow(unsafe_code, reason = "the standard library has no memfd_create(2)")]
pub fn in_memory() -> Result<File> {
    // SAFETY: the name is a constant that ends with a zero byte, and the call accesses no other memory.
    let descriptor = unsafe { libc::memfd_create(c"alluvium".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, so nothing else owns it.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

/// Makes the process create folders and files that only its user may access (0700 and 0600), including those that
/// libraries create. A default ACL of a folder (`setfacl -d`) takes precedence.
#[allow(unsafe_code, reason = "the standard library has no umask(2)")]
pub fn keep_new_files_private() {
    // SAFETY: umask(2) accepts any number, cannot fail and accesses no memory of this process.
    unsafe { libc::umask(0o077) };
}

/// Logs a warning when other users may read a folder.
pub fn warn_of_open_folder(folder: &Path) -> Result<()> {
    let mode = fs::metadata(folder)?.permissions().mode() & 0o7777;
    if mode & 0o007 != 0 {
        tracing::warn!(
            folder = %folder.display(), mode = format!("{mode:o}"),
            "other users of this machine can read this folder, which holds profiles; run `chmod o-rwx` on it"
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
        // An older version or an administrator may have left this mode.
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
            let mut steps = 0;
            let done = replace_by(&path, b"new", &mut |step| {
                steps += 1;
                if steps > failing {
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
