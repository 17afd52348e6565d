//! A file that is read again after it has changed.
//!
//! In: a path and a function that parses the text. Out: the value of the last valid text. If the file becomes invalid
//! or is removed, the last good value stays in force, and the log says so once. If there is no file at first, and an
//! invalid file appears later, [`Watched::is_there`] returns true, but there is no value.

use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

use crate::server::access::passwords::UsersError;
use crate::server::access::tokens::EntriesError;

/// Minimum time between two checks of the file.
const PAUSE: Duration = Duration::from_secs(1);

/// Maximum size of the file in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// Modification time, length and inode of a file, by which a change is noticed.
type Stamp = (SystemTime, u64, u64);

/// Reason why a file of tokens or users is not usable.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("there is no such file")]
    Missing,
    #[error("the file is longer than {} MiB", MAX_BYTES >> 20)]
    Length,
    #[error(transparent)]
    Tokens(#[from] EntriesError),
    #[error(transparent)]
    Users(#[from] UsersError),
}

pub(super) struct Watched<T, E> {
    path: PathBuf,
    parse: fn(&str) -> Result<T, E>,
    state: Mutex<State<T>>,
}

struct State<T> {
    last_check: Instant,
    /// Stamp of the file at the last check, if there was a file, or the kind of error of that check.
    stamp: Result<Option<Stamp>, ErrorKind>,
    value: Option<Arc<T>>,
}

impl<T, E: Into<FileError>> Watched<T, E> {
    /// Reads the file, if there is one. Fails if the file is unusable.
    pub(super) fn open(path: &Path, parse: fn(&str) -> Result<T, E>) -> Result<Self, FileError> {
        let last_check = Instant::now();
        let stamp = stamp(path)?;
        let value = stamp.map(|stamp| load(path, stamp, parse)).transpose()?.map(Arc::new);
        Ok(Self {
            path: path.to_owned(),
            parse,
            state: Mutex::new(State {
                last_check,
                stamp: Ok(stamp),
                value,
            }),
        })
    }

    /// Returns the value in force, or `None` if no usable file has existed so far.
    pub(super) fn current(&self) -> Option<Arc<T>> {
        let mut state = self.state.lock();
        if state.last_check.elapsed() < PAUSE {
            return state.value.clone();
        }
        state.last_check = Instant::now();
        let new_stamp = stamp(&self.path);
        let stamp = new_stamp.as_ref().map(|stamp| *stamp).map_err(io::Error::kind);
        if stamp == state.stamp {
            return state.value.clone();
        }
        state.stamp = stamp;
        let path = self.path.display();
        let loaded = new_stamp.map_err(FileError::Io);
        let loaded = loaded.and_then(|stamp| stamp.map(|stamp| load(&self.path, stamp, self.parse)).transpose());
        match loaded {
            Ok(Some(value)) => {
                state.value = Some(Arc::new(value));
                tracing::info!(%path, "the changed file is in force");
            }
            Ok(None) => tracing::error!(%path, "the file is gone, its last content stays in force"),
            Err(error) => {
                tracing::error!(%path, %error, "cannot use the changed file, its last valid content stays in force");
            }
        }
        state.value.clone()
    }

    /// Returns true if there is a file, even an unusable one, or if there was a usable file. Also returns true if the
    /// check of the path failed.
    pub(super) fn is_there(&self) -> bool {
        let has_value = self.current().is_some();
        has_value || self.state.lock().stamp != Ok(None)
    }
}

/// Returns the stamp of the file, or `None` if there is no such file. After an error, it is unknown whether the file
/// exists.
fn stamp(path: &Path) -> io::Result<Option<Stamp>> {
    let read = std::fs::metadata(path).and_then(|data| Ok((data.modified()?, data.len(), data.ino())));
    match read {
        Ok(stamp) => Ok(Some(stamp)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

fn load<T, E: Into<FileError>>(
    path: &Path,
    (_, length, _): Stamp,
    parse: fn(&str) -> Result<T, E>,
) -> Result<T, FileError> {
    if length > MAX_BYTES {
        return Err(FileError::Length);
    }
    parse(&std::fs::read_to_string(path)?).map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Result<u32, FileError> {
        let number = text.trim().parse();
        number.map_err(|error| FileError::Io(io::Error::other(error)))
    }

    /// Moves the time of the last check back, so that the next call checks the file again.
    fn expire<T, E>(watched: &Watched<T, E>) {
        watched.state.lock().last_check = Instant::now().checked_sub(2 * PAUSE).unwrap();
    }

    #[test]
    fn a_changed_file_is_read_again_and_a_wrong_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("number");
        let watched = Watched::open(&path, number).unwrap();
        assert_eq!(watched.current(), None);
        let write = |text: &str| {
            alluvium_base::file::replace(&path, text.as_bytes()).unwrap();
            expire(&watched);
            watched.current().map(|value| *value)
        };
        assert_eq!(write("1"), Some(1));
        assert_eq!(write("22"), Some(22));
        assert_eq!(write("none"), Some(22));
        assert_eq!(write("333"), Some(333));
        std::fs::remove_file(&path).unwrap();
        expire(&watched);
        assert_eq!(watched.current().as_deref(), Some(&333));
        std::fs::write(&path, "none").unwrap();
        assert!(Watched::open(&path, number).is_err());
    }

    #[test]
    fn a_file_that_cannot_be_used_or_looked_at_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("number");
        let watched = Watched::open(&path, number).unwrap();
        assert!(!watched.is_there());
        std::fs::write(&path, "none").unwrap();
        expire(&watched);
        assert!(watched.is_there() && watched.current().is_none());
        std::fs::write(&path, "55555").unwrap();
        expire(&watched);
        assert_eq!(watched.current().as_deref(), Some(&55555));
        // A path below a file does not exist. The check of a file with a too long name fails.
        assert!(!Watched::open(&path.join("number"), number).unwrap().is_there());
        assert!(Watched::open(&folder.path().join("n".repeat(300)), number).is_err());
    }
}
