//! Standard output of commands, and the files that they write.
//!
//! If the reader closes the pipe early (`| head`), that is not an error. A failed command leaves no partial file.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;

use anyhow::Context;

use crate::cli::common::plain;
use alluvium_base::file::Staged;

/// Writes all of `bytes` to standard output.
pub(in crate::cli) fn write(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}

/// Writes text to standard output. The text may contain names from profiles, files or servers, so control characters
/// are replaced on a terminal.
pub(in crate::cli) fn write_text(text: &[u8]) -> anyhow::Result<()> {
    write(&shown(text, io::stdout().is_terminal()))
}

fn shown(text: &[u8], is_terminal: bool) -> Cow<'_, [u8]> {
    if is_terminal {
        plain::lines(&String::from_utf8_lossy(text)).into_bytes().into()
    } else {
        text.into()
    }
}

/// Writes a file completely or not at all.
pub(in crate::cli) fn write_file(path: &Path, contents: &[u8]) -> anyhow::Result<()> {
    let written = WholeFile::create(path).and_then(|mut whole_file| {
        whole_file.file().write_all(contents)?;
        whole_file.finish()
    });
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// A file that appears completely or not at all: until it is finished, an existing file stays unchanged. Links and
/// permissions are kept.
pub(in crate::cli) struct WholeFile {
    file: File,
    /// `None` for a pipe or a device, which has no contents that could be lost.
    staged: Option<Staged>,
}

impl WholeFile {
    pub(in crate::cli) fn create(path: &Path) -> io::Result<Self> {
        let before = fs::metadata(path);
        if before.as_ref().is_ok_and(|before| !before.is_file()) {
            let file = File::options().write(true).open(path)?;
            return Ok(Self { file, staged: None });
        }
        let staged = Staged::new(&path.canonicalize().unwrap_or_else(|_| path.to_owned()));
        let file = File::options().write(true).create_new(true).open(staged.temporary())?;
        if let Ok(before) = before {
            file.set_permissions(before.permissions())?;
        }
        let staged = Some(staged);
        Ok(Self { file, staged })
    }

    pub(in crate::cli) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Moves the finished file into its place.
    pub(in crate::cli) fn finish(self) -> io::Result<()> {
        let Some(staged) = self.staged else { return Ok(()) };
        self.file.sync_all()?;
        staged.replace()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn only_a_terminal_is_shown_another_text() {
        let text = b"a \x1b[2J b\r\n\tc\xff\n";
        assert_eq!(shown(text, false), &text[..]);
        assert_eq!(
            String::from_utf8_lossy(&shown(text, true)),
            "a \u{fffd}[2J b\n\tc\u{fffd}\n"
        );
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_keeps_links_and_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("link"));
        write_file(&path, b"old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&path, &link).unwrap();
        let mut whole_file = WholeFile::create(&link).unwrap();
        whole_file.file().write_all(b"a part").unwrap();
        drop(whole_file);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        write_file(&link, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(link.is_symlink());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        assert!(write_file(folder.path(), b"new").is_err());
        // Writing to a device does not replace the device.
        write_file(Path::new("/dev/null"), b"new").unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }
}
