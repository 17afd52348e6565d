//! Damaged records of the log, which cannot be replayed or flushed. Each record is kept beside the log in its own file,
//! with the reason.
//!
//! `NNNNNNNNNNNN-K.damaged` is a segment file that holds record `K` (from 0) of segment `NNNNNNNNNNNN`. A file with the
//! ending `.damaged.txt` holds the reason. The server never reads or deletes these files. `alluvium store repair` turns
//! a damaged record back into a segment, once a newer program or another configuration can read the record.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::store::common::error::StoreError;
use alluvium_base::{file, segment};

/// Position of a record in the log: its segment and its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RecordPosition {
    pub(crate) segment: u64,
    /// Index of the record in the segment, from 0.
    pub(crate) record: u64,
}

/// A damaged record and the reason.
#[derive(Debug, Clone)]
pub(crate) struct DamagedRecord {
    pub(crate) position: RecordPosition,
    pub(crate) payload: Bytes,
    pub(crate) reason: String,
}

/// Writes a record to its own file, and the reason to a second file. Both files are durable when the function returns.
/// Writing the same record again changes nothing.
pub(crate) fn save_damaged(folder: &Path, damaged: &DamagedRecord) -> Result<PathBuf, StoreError> {
    let RecordPosition { segment, record } = damaged.position;
    let path = folder.join(format!("{segment:012}-{record}.damaged"));
    let mut bytes = segment::MAGIC.to_vec();
    segment::encode_record(&damaged.payload, &mut bytes);
    let reason = path.with_extension("damaged.txt");
    file::replace(&path, &bytes).map_err(StoreError::io("write a damaged record to", &path))?;
    file::replace(&reason, format!("{}\n", damaged.reason).as_bytes()).map_err(StoreError::io("write", &reason))?;
    tracing::error!(segment, record, reason = damaged.reason, file = %path.display(), "damaged record moved to a file");
    Ok(path)
}

/// Returns the files of damaged records in the order of their names, which begin with the number of the segment.
pub(crate) fn list(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io("list", folder)(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(StoreError::io("list", folder))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // A file `NNNNNNNNNNNN.damaged` without an index is a whole damaged segment. Its intact records were replayed.
        if name.strip_suffix(".damaged").is_some_and(|stem| stem.contains('-')) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns the number of the segment that held the record at `path`, a path from [`list`].
pub(crate) fn segment_of(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.split_once('-')?.0.parse().ok()
}

/// Returns the reason why a record is damaged, or a text that says that the reason is unknown.
pub(crate) fn reason(path: &Path) -> String {
    fs::read_to_string(path.with_extension("damaged.txt"))
        .map_or_else(|_| "the reason is unknown".to_owned(), |text| text.trim().to_owned())
}

/// Removes the file with the reason of a record, because the record becomes part of the log again.
pub(crate) fn forget_reason(path: &Path) {
    let _ = fs::remove_file(path.with_extension("damaged.txt"));
}
