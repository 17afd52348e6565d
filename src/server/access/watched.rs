//! A file that is read again when it has changed.
//!
//! In: a path and a way to read its text. Out: the value of the last text that could be read. A file that becomes wrong
//! or goes away leaves the last good value in force, and the log says so once.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

/// How long the file is not looked at again.
const PAUSE: Duration = Duration::from_secs(1);

/// Largest file that is read.
const MAX_BYTES: u64 = 4 << 20;

/// Modification time, length and inode.
type Stamp = (SystemTime, u64, u64);

pub(super) struct Watched<T> {
    path: PathBuf,
    read: fn(&str) -> Result<T, String>,
    state: Mutex<State<T>>,
}

struct State<T> {
    looked: Instant,
    stamp: Option<Stamp>,
    value: Option<Arc<T>>,
}

impl<T> Watched<T> {
    /// Reads the file. It may be absent; an error when it is there and cannot be used.
    pub(super) fn open(path: &Path, read: fn(&str) -> Result<T, String>) -> Result<Self, String> {
        let (looked, stamp) = (Instant::now(), stamp(path));
        let value = match stamp {
            Some(stamp) => Some(Arc::new(load(path, stamp, read)?)),
            None => None,
        };
        Ok(Self {
            path: path.to_owned(),
            read,
            state: Mutex::new(State { looked, stamp, value }),
        })
    }

    /// The value in force; `None` while there was no file yet.
    pub(super) fn current(&self) -> Option<Arc<T>> {
        let mut state = self.state.lock();
        if state.looked.elapsed() < PAUSE {
            return state.value.clone();
        }
        state.looked = Instant::now();
        let now = stamp(&self.path);
        if now == state.stamp {
            return state.value.clone();
        }
        state.stamp = now;
        let path = self.path.display();
        match now.map(|stamp| load(&self.path, stamp, self.read)) {
            Some(Ok(value)) => {
                state.value = Some(Arc::new(value));
                tracing::info!(%path, "the file has changed and is in force");
            }
            Some(Err(error)) => {
                tracing::error!(%path, error, "the changed file cannot be used; the last good one stays in force");
            }
            None => tracing::error!(%path, "the file is gone; what it said stays in force until the end"),
        }
        state.value.clone()
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let data = std::fs::metadata(path).ok()?;
    Some((data.modified().ok()?, data.len(), data.ino()))
}

fn load<T>(path: &Path, (_, length, _): Stamp, read: fn(&str) -> Result<T, String>) -> Result<T, String> {
    if length > MAX_BYTES {
        return Err(format!("the file is longer than {} MiB", MAX_BYTES >> 20));
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    read(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Result<u32, String> {
        text.trim().parse().map_err(|_| format!("`{text}` is no number"))
    }

    /// Forgets when the file was looked at.
    fn again<T>(watched: &Watched<T>) {
        watched.state.lock().looked = Instant::now().checked_sub(2 * PAUSE).unwrap();
    }

    #[test]
    fn a_changed_file_is_read_again_and_a_wrong_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("number");
        let watched = Watched::open(&path, number).unwrap();
        assert_eq!(watched.current(), None);
        let write = |text: &str| {
            crate::base::file::replace(&path, text.as_bytes()).unwrap();
            again(&watched);
            watched.current().map(|value| *value)
        };
        assert_eq!(write("1"), Some(1));
        assert_eq!(write("22"), Some(22));
        assert_eq!(write("none"), Some(22));
        assert_eq!(write("333"), Some(333));
        std::fs::remove_file(&path).unwrap();
        again(&watched);
        assert_eq!(watched.current().as_deref(), Some(&333));
        std::fs::write(&path, "none").unwrap();
        assert!(Watched::open(&path, number).is_err());
    }
}
