//! Deletes what no reader can need: files that left a table longer ago than the grace period, files that never were in one, old entries of the log.
//!
//! When a file left its table stands in the table's log. A reader that opened the table within the grace period finds all its files.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::store::StoreError;
use crate::store::delta::commit::{is_temporary, last_checkpoint};
use crate::store::delta::{sums, unescape};
use crate::store::fault::{Faults, Place};
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
    /// Where it is.
    pub path: PathBuf,
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

/// The files in the folder of a table that are not in `live` (paths relative to `root`).
pub fn dead_files(root: &Path, table: Table, live: &HashSet<&str>) -> Result<Vec<Dead>, StoreError> {
    let folder = root.join(table.name());
    let mut dead = Vec::new();
    let mut removed: Option<HashMap<String, SystemTime>> = None;
    for path in parquet_files(&folder)? {
        let relative = match path.strip_prefix(root) {
            Ok(relative) => relative.to_string_lossy().into_owned(),
            Err(_) => continue,
        };
        if live.contains(relative.as_str()) {
            continue;
        }
        let removed = match &removed {
            Some(known) => known,
            None => removed.insert(removals(root, table)?),
        };
        // It may be gone since it was listed.
        let Ok(metadata) = fs::metadata(&path) else {
            continue;
        };
        dead.push(Dead {
            size: metadata.len(),
            removed: removed.get(&relative).copied(),
            modified: metadata.modified().unwrap_or(UNIX_EPOCH),
            path,
        });
    }
    Ok(dead)
}

/// Deletes dead files that are due at `now`.
pub fn delete(
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
        match faults.run(Place::FileDelete(table), || fs::remove_file(&file.path)) {
            Ok(()) => {
                done.files += 1;
                done.bytes += file.size;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::io("remove", &file.path)(error)),
        }
    }
    Ok(())
}

/// Deletes entries of the log that a checkpoint covers and that are old at `now`, and unfinished writes that a crash has left.
pub fn trim_log(
    root: &Path,
    table: Table,
    now: SystemTime,
    faults: &Faults,
    done: &mut Vacuumed,
) -> Result<(), StoreError> {
    let folder = root.join(table.name()).join("_delta_log");
    let checkpoint = last_checkpoint(&folder);
    for entry in fs::read_dir(&folder).map_err(StoreError::io("list", &folder))? {
        let entry = entry.map_err(StoreError::io("list", &folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let version = sums::version_of(&name);
        let covered = version.is_some() && version < checkpoint;
        let modified = entry.metadata().and_then(|metadata| metadata.modified()).unwrap_or(now);
        let age = now.duration_since(modified).unwrap_or_default();
        if (covered && age >= LOG_AGE) || (is_temporary(&name) && age >= ORPHAN_AGE) {
            let path = entry.path();
            faults
                .run(Place::FileDelete(table), || fs::remove_file(&path))
                .map_err(StoreError::io("remove", &path))?;
            done.entries += 1;
        }
    }
    Ok(())
}

/// When files left the table, by path relative to `root`, as far as the log's entries reach.
fn removals(root: &Path, table: Table) -> Result<HashMap<String, SystemTime>, StoreError> {
    let folder = root.join(table.name()).join("_delta_log");
    let mut removed = HashMap::new();
    if !folder.exists() {
        return Ok(removed);
    }
    for entry in fs::read_dir(&folder).map_err(StoreError::io("list", &folder))? {
        let path = entry.map_err(StoreError::io("list", &folder))?.path();
        if path.extension().is_none_or(|end| end != "json") {
            continue;
        }
        let file = match fs::File::open(&path) {
            Ok(file) => file,
            // A server may trim its log meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(StoreError::io("read", &path)(error)),
        };
        for line in std::io::BufReader::new(file).lines() {
            let line = line.map_err(StoreError::io("read", &path))?;
            if !line.starts_with("{\"remove\"") {
                continue;
            }
            let action: Option<serde_json::Value> = serde_json::from_str(&line).ok();
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

/// All Parquet files of a table, without those of its log.
pub fn parquet_files(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(StoreError::io("list", &folder)(error)),
        };
        for entry in entries {
            let entry = entry.map_err(StoreError::io("list", &folder))?;
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if path.is_dir() {
                if name.contains('=') {
                    open.push(path);
                }
            } else if name.ends_with(".parquet") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
