//! Deletes files that no reader can need: files that left a table longer ago than the grace period, files that were
//! never in a table, and old entries of the tables' logs.
//!
//! The table's log contains the time at which a file was removed, and the grace period begins at this time. So a reader
//! that opened the table within the grace period finds all files of the version that it opened.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::store::common::error::StoreError;
use crate::store::common::fault::{FaultPoint, Faults};
use crate::store::common::schema::Table;
use crate::store::flush::files::name_of;
use crate::store::maintenance::report::Vacuumed;
use crate::store::tables::bucket::ListedObject;
use crate::store::tables::delta::log_files::{is_temporary, version_of};
use crate::store::tables::delta::{last_checkpoint, unescape};
use crate::store::tables::root::Root;

/// Minimum age at which a file that no table and no log entry names is deleted. Another program may be about to commit
/// a younger file.
pub(crate) const ORPHAN_AGE: Duration = Duration::from_hours(24);
/// How long log entries that a checkpoint covers are kept, for readers of older versions of the table.
const LOG_AGE: Duration = Duration::from_hours(168);

/// A Parquet file that is in the folder of a table but is not live.
#[derive(Debug, Clone)]
pub(crate) struct DeadFile {
    /// Path relative to the root.
    pub(crate) path: String,
    pub(crate) size: u64,
    /// When the file was removed from the table; `None` if no entry of the log removes the file.
    pub(crate) removed: Option<SystemTime>,
    pub(crate) modified: SystemTime,
    /// How much older the file is than the newest of the table's dead files and log files, by the clock of the bucket.
    /// If the tables are in a folder, the value is `Duration::MAX`: there is no clock besides the server's own.
    pub(crate) older_by: Duration,
}

impl DeadFile {
    /// Returns true if the file may be deleted at `now`.
    pub(crate) fn is_due(&self, now: SystemTime, grace: Duration) -> bool {
        let age = |time: SystemTime| now.duration_since(time).unwrap_or(Duration::ZERO);
        match self.removed {
            Some(removed) => age(removed) >= grace,
            // The file must be old by both clocks: a server whose clock is ahead must not delete a file that another
            // server is about to commit.
            None => age(self.modified).min(self.older_by) >= ORPHAN_AGE.max(grace),
        }
    }
}

/// The times at which files were removed from a table, by path relative to the root, as far as the table's log was
/// read. Each entry is read once, because a log of a week has tens of thousands of entries, and each read from a bucket
/// costs money.
#[derive(Default)]
pub(crate) struct Removals {
    /// Version of the first entry that was not read yet.
    next: u64,
    left: HashMap<String, SystemTime>,
}

/// Returns the files of a table that are not in `live` (paths relative to `root`). Adds the removals in new entries of
/// the table's log to `removals`.
pub(crate) fn dead_files(
    root: &Root,
    table: Table,
    live: &HashSet<&str>,
    removals: &mut Removals,
) -> Result<Vec<DeadFile>, StoreError> {
    let files = root.parquet_files(table, |path| !live.contains(path))?;
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let log = root.log_files(table)?;
    let newest = files.iter().chain(&log).map(|file| file.modified).max();
    let older_by = |file: &ListedObject| match root {
        Root::Folder(_) => Duration::MAX,
        Root::Bucket(_) => newest
            .and_then(|newest| newest.duration_since(file.modified).ok())
            .unwrap_or_default(),
    };
    removals.read_on(root, table, log)?;
    let paths: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    // The times for files in `live` stay, because another server may have removed these files meanwhile.
    (removals.left).retain(|path, _| paths.contains(path.as_str()) || live.contains(path.as_str()));
    Ok(files
        .into_iter()
        .map(|file| DeadFile {
            removed: removals.left.get(&file.path).copied(),
            older_by: older_by(&file),
            path: file.path,
            size: file.size,
            modified: file.modified,
        })
        .collect())
}

/// Deletes dead files that are due at `now`.
pub(crate) fn delete(
    root: &Root,
    dead: &[DeadFile],
    table: Table,
    (now, grace): (SystemTime, Duration),
    faults: &Faults,
    vacuumed: &mut Vacuumed,
) -> Result<(), StoreError> {
    for file in dead {
        if !file.is_due(now, grace) {
            vacuumed.waiting += 1;
            continue;
        }
        match faults.run(FaultPoint::FileDelete(table), || root.remove(&file.path)) {
            Ok(()) => {
                vacuumed.files += 1;
                vacuumed.bytes += file.size;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::io("remove", &root.name(&file.path))(error)),
        }
    }
    Ok(())
}

/// Deletes old entries of a table's log that a checkpoint covers, and unfinished writes that a crash has left.
pub(crate) fn trim_log(
    root: &Root,
    table: Table,
    now: SystemTime,
    faults: &Faults,
    vacuumed: &mut Vacuumed,
) -> Result<(), StoreError> {
    let checkpoint = last_checkpoint(root, table);
    for file in root.log_files(table)? {
        let name = name_of(&file.path);
        let version = version_of(name);
        let covered = version.is_some() && version < checkpoint;
        let age = now.duration_since(file.modified).unwrap_or_default();
        if (covered && age >= LOG_AGE) || (is_temporary(name) && age >= ORPHAN_AGE) {
            match faults.run(FaultPoint::FileDelete(table), || root.remove(&file.path)) {
                Ok(()) => vacuumed.entries += 1,
                // Another server has deleted the file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(StoreError::io("remove", &root.name(&file.path))(error)),
            }
        }
    }
    Ok(())
}

impl Removals {
    /// Reads the entries of the log that were not read yet.
    fn read_on(&mut self, root: &Root, table: Table, log: Vec<ListedObject>) -> Result<(), StoreError> {
        let mut entries: Vec<(u64, ListedObject)> = log
            .into_iter()
            .filter_map(|file| {
                let name = name_of(&file.path);
                let version = version_of(name).filter(|version| *version >= self.next)?;
                name.ends_with(".json").then_some((version, file))
            })
            .collect();
        entries.sort_unstable_by_key(|(version, _)| *version);
        let mut next = self.next;
        if let Some((first, file)) = entries.first()
            && (next == 0 || file.modified.elapsed().unwrap_or_default() >= ORPHAN_AGE)
        {
            // `trim_log` has deleted the earlier entries.
            next = *first;
        }
        for (version, file) in &entries {
            let path = &file.path;
            match root.read(path) {
                Ok(entry) => {
                    let removed = removed_by(&entry);
                    self.left
                        .extend(removed.map(|(path, time)| (format!("{}/{path}", table.name()), time)));
                }
                // Another server may have trimmed the log meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(StoreError::io("read", &root.name(path))(error)),
            }
            // A listing may miss files that were written meanwhile. The next pass reads the entries after a gap again.
            next += u64::from(*version == next);
        }
        self.next = next;
        Ok(())
    }
}

/// Returns the paths, relative to the table, of the files that an entry of its log removes, and the times of removal.
fn removed_by(entry: &[u8]) -> impl Iterator<Item = (String, SystemTime)> {
    entry.split(|byte| *byte == b'\n').filter_map(|line| {
        if !line.starts_with(b"{\"remove\"") {
            return None;
        }
        let action: serde_json::Value = serde_json::from_slice(line).ok()?;
        let remove = action.get("remove")?;
        let milliseconds = remove.get("deletionTimestamp")?.as_u64()?;
        let path = unescape(remove.get("path")?.as_str()?);
        Some((path, UNIX_EPOCH + Duration::from_millis(milliseconds)))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_in_no_log_is_due_a_day_later_by_our_clock_and_by_that_of_the_bucket() {
        let (now, hours) = (SystemTime::now(), Duration::from_hours);
        let is_due = |server_age: u64, bucket_age: Duration| {
            let file = DeadFile {
                path: "samples/a.parquet".to_owned(),
                size: 1,
                removed: None,
                modified: now - hours(server_age),
                older_by: bucket_age,
            };
            file.is_due(now, Duration::ZERO)
        };
        assert!(is_due(25, hours(25)) && is_due(25, Duration::MAX));
        // The server's clock is ahead, or the bucket's clock is.
        assert!(!is_due(25, hours(1)) && !is_due(1, hours(25)));
    }

    #[test]
    fn an_entry_of_the_log_is_read_once_and_what_it_says_holds_until_the_file_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("samples/_delta_log");
        fs::create_dir_all(&log).unwrap();
        let entry = |version: u64, file: &str| {
            let path = log.join(format!("{version:020}.json"));
            let text = format!(
                "{{\"add\":{{}}}}\n{{\"remove\":{{\"path\":\"{file}\",\"deletionTimestamp\":{version}000}}}}\n"
            );
            fs::write(&path, text).unwrap();
            path
        };
        let file = |name: &str| fs::write(dir.path().join("samples").join(name), "x").unwrap();
        let root = Root::Folder(dir.path().to_owned());
        let mut removals = Removals::default();
        let mut left = |live: &[&str]| -> Vec<(String, Option<u64>)> {
            let live = live.iter().copied().collect();
            let dead = dead_files(&root, Table::Samples, &live, &mut removals).unwrap();
            let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap().as_secs();
            let mut left: Vec<_> = dead
                .into_iter()
                .map(|dead| (dead.path, dead.removed.map(seconds)))
                .collect();
            left.sort();
            left
        };
        let expected_file = |name: &str, removed: Option<u64>| (format!("samples/{name}.parquet"), removed);
        ["a.parquet", "b.parquet", "c.parquet", "d.parquet"]
            .into_iter()
            .for_each(file);
        let first = entry(5, "a.parquet");
        // The file is removed while it is still in the list of live files.
        entry(6, "c.parquet");
        assert_eq!(
            left(&["samples/c.parquet", "samples/d.parquet"]),
            [expected_file("a", Some(5)), expected_file("b", None)]
        );
        // A second read of this entry would find no removal.
        fs::write(first, "").unwrap();
        entry(8, "d.parquet");
        assert_eq!(
            left(&[]),
            [
                expected_file("a", Some(5)),
                expected_file("b", None),
                expected_file("c", Some(6)),
                expected_file("d", Some(8))
            ]
        );
        // The earlier listing did not contain this entry.
        entry(7, "b.parquet");
        fs::remove_file(dir.path().join("samples/a.parquet")).unwrap();
        assert_eq!(
            left(&[]),
            [
                expected_file("b", Some(7)),
                expected_file("c", Some(6)),
                expected_file("d", Some(8))
            ]
        );
        assert_eq!(removals.left.len(), 3);
        assert_eq!(removals.next, 9);
    }
}
