//! Deletes what no reader can need: files that left a table longer ago than the grace period, files that never were in one, old entries of the log.
//!
//! When a file left its table stands in the table's log. A reader that opened the table within the grace period finds all its files.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::store::StoreError;
use crate::store::delta::commit::is_temporary;
use crate::store::delta::{last_checkpoint, sums, unescape};
use crate::store::fault::{Faults, Place};
use crate::store::root::Root;
use crate::store::schema::Table;

/// A file that is in no table and no log must be so old: another program may be about to commit it.
pub const ORPHAN_AGE: Duration = Duration::from_secs(24 * 3600);
/// Entries of the log that a checkpoint covers are kept so long, for readers of older versions.
const LOG_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

/// What was, or would be, deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vacuumed {
    /// Parquet files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Entries and checkpoints of the log.
    pub entries: u64,
    /// Files that are not needed and too young.
    pub waiting: u64,
}

/// A Parquet file in the folder of a table that is not live.
#[derive(Debug, Clone)]
pub struct Dead {
    /// Where it is, relative to the root.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// When it left the table; `None` for a file that the log does not know.
    pub removed: Option<SystemTime>,
    /// When it was written.
    pub modified: SystemTime,
}

impl Dead {
    /// Whether it may be deleted at `now`.
    pub fn is_due(&self, now: SystemTime, grace: Duration) -> bool {
        let age = |since: SystemTime| now.duration_since(since).unwrap_or(Duration::ZERO);
        match self.removed {
            Some(removed) => age(removed) >= grace,
            None => age(self.modified) >= ORPHAN_AGE.max(grace),
        }
    }
}

/// The files of a table that are not in `live` (paths relative to `root`).
pub fn dead_files(root: &Root, table: Table, live: &HashSet<&str>) -> Result<Vec<Dead>, StoreError> {
    let found = root.parquet_files(table, |path| !live.contains(path))?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let removed = removals(root, table)?;
    Ok(found
        .into_iter()
        .map(|file| Dead {
            removed: removed.get(&file.path).copied(),
            path: file.path,
            size: file.size,
            modified: file.modified,
        })
        .collect())
}

/// Deletes dead files that are due at `now`.
pub fn delete(
    root: &Root,
    dead: &[Dead],
    table: Table,
    (now, grace): (SystemTime, Duration),
    faults: &Faults,
    done: &mut Vacuumed,
) -> Result<(), StoreError> {
    for file in dead {
        if !file.is_due(now, grace) {
            done.waiting += 1;
            continue;
        }
        match faults.run(Place::FileDelete(table), || root.remove(&file.path)) {
            Ok(()) => {
                done.files += 1;
                done.bytes += file.size;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::io("remove", &root.name(&file.path))(error)),
        }
    }
    Ok(())
}

/// Deletes entries of the log that a checkpoint covers and that are old at `now`, and unfinished writes that a crash has left.
pub fn trim_log(
    root: &Root,
    table: Table,
    now: SystemTime,
    faults: &Faults,
    done: &mut Vacuumed,
) -> Result<(), StoreError> {
    let checkpoint = last_checkpoint(root, table);
    for file in root.log_files(table)? {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let version = sums::version_of(name);
        let covered = version.is_some() && version < checkpoint;
        let age = now.duration_since(file.modified).unwrap_or_default();
        if (covered && age >= LOG_AGE) || (is_temporary(name) && age >= ORPHAN_AGE) {
            match faults.run(Place::FileDelete(table), || root.remove(&file.path)) {
                Ok(()) => done.entries += 1,
                // Another server was first.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(StoreError::io("remove", &root.name(&file.path))(error)),
            }
        }
    }
    Ok(())
}

/// When files left the table, by path relative to `root`, as far as the log's entries reach.
fn removals(root: &Root, table: Table) -> Result<HashMap<String, SystemTime>, StoreError> {
    let mut removed = HashMap::new();
    for file in root.log_files(table)? {
        if !file.path.ends_with(".json") {
            continue;
        }
        let text = match root.read(&file.path) {
            Ok(text) => text,
            // A server may trim its log meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(StoreError::io("read", &root.name(&file.path))(error)),
        };
        for line in text.split(|byte| *byte == b'\n') {
            if !line.starts_with(b"{\"remove\"") {
                continue;
            }
            let action: Option<serde_json::Value> = serde_json::from_slice(line).ok();
            let told = action.as_ref().and_then(|action| {
                let remove = action.get("remove")?;
                Some((
                    remove.get("path")?.as_str()?,
                    remove.get("deletionTimestamp")?.as_u64()?,
                ))
            });
            if let Some((path, milliseconds)) = told {
                removed.insert(
                    format!("{}/{}", table.name(), unescape(path)),
                    UNIX_EPOCH + Duration::from_millis(milliseconds),
                );
            }
        }
    }
    Ok(removed)
}
