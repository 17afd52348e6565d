//! The files of a queue: names of its segments, and the lock that excludes other processes.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Maximum wait for the folder's lock. A former process or component may still hold the lock while it closes.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// Returns the path of a segment's file.
pub(super) fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:016}.seg"))
}

/// Returns the segments in a folder, oldest first.
pub(super) fn segment_files(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "seg")
            && let Some(number) = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok())
        {
            files.push((number, path));
        }
    }
    files.sort();
    Ok(files)
}

/// Locks the queue with the lock file `path` for this process. The lock ends when the returned file is closed.
pub(super) fn lock(path: &Path) -> io::Result<File> {
    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    let deadline = Instant::now() + LOCK_PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(fs::TryLockError::WouldBlock) => {
                return Err(io::Error::new(
                    io::ErrorKind::ResourceBusy,
                    format!("{} is locked by another process", path.display()),
                ));
            }
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
    }
}
