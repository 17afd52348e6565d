//! A value that is read from certificate files, and read again after one of them has changed, because a certificate may
//! be renewed while its listener is open.
//!
//! In: the files and a function that reads them. Out: the value of the last successful read. The caller receives the
//! error of the first read. A later error leaves the last good value in force and is logged once for each change.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::SystemTime;

use parking_lot::Mutex;

pub struct ReloadedFiles<T> {
    files: Vec<PathBuf>,
    current: Mutex<(FileTimes, T)>,
}

/// Modification times of the files.
type FileTimes = Vec<Option<SystemTime>>;

impl<T: Clone> ReloadedFiles<T> {
    /// Reads the files for the first time.
    pub fn read<E>(files: Vec<PathBuf>, read: impl FnOnce() -> Result<T, E>) -> Result<Self, E> {
        // The times are taken before the read, so that a file that is replaced during the read is read again.
        let stamp = stamp(&files);
        let current = Mutex::new((stamp, read()?));
        Ok(Self { files, current })
    }

    /// Returns the value, after reading the files again if one of them has changed.
    pub fn current<E: Display>(&self, read: impl FnOnce() -> Result<T, E>) -> T {
        let now = stamp(&self.files);
        let mut current = self.current.lock();
        if current.0 != now {
            // If only some of the files have been replaced so far, the read may fail, and the old value stays. The
            // files are read again when the other files change.
            current.0 = now;
            match read() {
                Ok(read) => current.1 = read,
                Err(error) => {
                    tracing::warn!(error = %error, "cannot use the changed certificate; the old one stays in use");
                }
            }
        }
        current.1.clone()
    }
}

fn stamp(files: &[PathBuf]) -> FileTimes {
    let changed = |path: &PathBuf| std::fs::metadata(path).and_then(|data| data.modified()).ok();
    files.iter().map(changed).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{File, read_to_string, write};
    use std::time::Duration;

    use super::*;

    #[test]
    fn files_are_read_again_when_one_has_changed_and_wrong_ones_change_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        let sum = || -> Result<u32, String> {
            let number = |path| read_to_string(path).map_err(|error| error.to_string());
            let (one, two) = (number(&one)?, number(&two)?);
            let parse = |text: &str| text.parse::<u32>().map_err(|error| error.to_string());
            Ok(parse(&one)? + parse(&two)?)
        };
        let files = vec![one.clone(), two.clone()];
        assert!(ReloadedFiles::read(files.clone(), sum).is_err());
        write(&one, "1").unwrap();
        write(&two, "2").unwrap();
        let renewed = ReloadedFiles::read(files, sum).unwrap();
        let unread = || -> Result<u32, String> { panic!("the files have not changed") };
        assert_eq!(renewed.current(unread), 3);
        // Two writes may fall within one tick of the file system's clock.
        let mut hours = 0;
        let mut replace = |path: &PathBuf, text: &str| {
            hours += 1;
            write(path, text).unwrap();
            let file = File::options().write(true).open(path).unwrap();
            let later = SystemTime::now() + Duration::from_hours(hours);
            file.set_modified(later).unwrap();
        };
        replace(&two, "none");
        assert_eq!(renewed.current(sum), 3);
        assert_eq!(renewed.current(unread), 3);
        replace(&one, "10");
        assert_eq!(renewed.current(sum), 3);
        replace(&two, "20");
        assert_eq!(renewed.current(sum), 30);
        std::fs::remove_file(&one).unwrap();
        assert_eq!(renewed.current(sum), 30);
        assert_eq!(renewed.current(unread), 30);
    }
}
