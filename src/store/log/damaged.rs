//! Damaged records of the log, which cannot be replayed or flushed: kept beside the log, each in its own file with the
//! reason.
//!
//! `NNNNNNNNNNNN-K.damaged` is a segment file that holds record `K` (from 0) of that segment; `.damaged.txt` beside it
//! holds the reason. The server never reads or deletes them. `repair` turns one back into a segment when a newer
//! program or another configuration can read it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::base::{file, segment};
use crate::store::common::error::StoreError;

/// Place of a record in the log: its segment, and its number there from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RecordPlace {
    pub(crate) segment: u64,
    /// Number of the record in the segment, from 0.
    pub(crate) record: u64,
}

/// A damaged record and why it is one.
#[derive(Debug, Clone)]
pub(crate) struct BadRecord {
    pub(crate) place: RecordPlace,
    pub(crate) payload: Bytes,
    pub(crate) reason: String,
}

/// Writes a record to its own file, durable when it returns. Writing the same record again changes nothing.
pub(crate) fn put_aside(folder: &Path, bad: &BadRecord) -> Result<PathBuf, StoreError> {
    let RecordPlace { segment, record } = bad.place;
    let path = folder.join(format!("{segment:012}-{record}.damaged"));
    let mut bytes = segment::MAGIC.to_vec();
    segment::encode_record(&bad.payload, &mut bytes);
    let reason = path.with_extension("damaged.txt");
    file::replace(&path, &bytes).map_err(StoreError::io("put a record aside in", &path))?;
    file::replace(&reason, format!("{}\n", bad.reason).as_bytes()).map_err(StoreError::io("write", &reason))?;
    tracing::error!(segment, record, reason = bad.reason, file = %path.display(), "a record of the log is put aside");
    Ok(path)
}

/// Files of damaged records, in the order of the log.
pub(crate) fn list(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io("list", folder)(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(StoreError::io("list", folder))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // A whole segment with damage is kept as `NNNNNNNNNNNN.damaged`; its records were replayed.
        if name.strip_suffix(".damaged").is_some_and(|stem| stem.contains('-')) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The segment that held the record of a file of [`list`].
pub(crate) fn segment_of(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.split_once('-')?.0.parse().ok()
}

/// Why a record was put aside, or a text that says the reason is unknown.
pub(crate) fn reason(path: &Path) -> String {
    fs::read_to_string(path.with_extension("damaged.txt")).map_or_else(
        |_| "the reason is not known any more".to_owned(),
        |text| text.trim().to_owned(),
    )
}

/// Removes the reason of a record that is used again.
pub(crate) fn forget_reason(path: &Path) {
    let _ = fs::remove_file(path.with_extension("damaged.txt"));
}
