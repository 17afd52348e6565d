//! Detection of file changes: the arguments `detector` and `poll_frequency`, and a bounded reader of text files.

use std::io;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;

use alluvium_lang::attribute::{Interval, choices};
use alluvium_lang::body::arguments;

/// Maximum size of a file in bytes. Its text is kept in memory, exported and compared.
pub(crate) const MAX_FILE: u64 = 16 << 20;

choices! {
    /// Detection of file changes.
    pub(crate) enum Watch {
        System = "fsnotify",
        Poll = "poll",
    }
}

arguments! {
    /// Arguments of a component that follows a file.
    pub(crate) struct Detector {
        /// Detection of changes: fsnotify (notifications of the system) or poll.
        detector: Option<Watch> = "fsnotify",
        /// Time between two checks of the file, with either detector.
        poll_frequency: Interval = "1m",
    }
}

impl Detector {
    /// Returns true if the folder of the file is watched. An empty `detector` means the default, as in Alloy.
    pub(crate) fn watches(&self) -> bool {
        self.detector != Some(Watch::Poll)
    }
}

/// Returns the folder of a file; `.` if the path contains no folder.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The reason why a file contains no usable text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TextError {
    #[error("cannot read {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("cannot read {}: it is longer than {} MiB", .0.display(), MAX_FILE >> 20)]
    TooLong(PathBuf),
    #[error("{} is not UTF-8 text: bad byte at offset {}", path.display(), source.utf8_error().valid_up_to())]
    Encoding { path: PathBuf, source: FromUtf8Error },
}

/// Returns the text of a file of at most [`MAX_FILE`] bytes.
pub(crate) fn read_text(path: &Path) -> Result<String, TextError> {
    let owned = || path.to_owned();
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes))
        .map_err(|source| TextError::File { path: owned(), source })?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(TextError::TooLong(owned()));
    }
    String::from_utf8(bytes).map_err(|source| TextError::Encoding { path: owned(), source })
}
