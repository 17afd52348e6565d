//! Repairs what can be repaired without loss: leftovers, files that were never committed, unfinished ends of the log.
//!
//! In: a data folder that no process holds. Out: what was done. Damaged files stay as they are, and the check reports
//! them afterwards.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::Path;

use crate::base::file::sync_parent;
use crate::store::damaged::RecordPlace;
use crate::store::delta::{DeltaTable, sums};
use crate::store::fault::Faults;
use crate::store::folder::Folder;
use crate::store::root::{At, log_of};
use crate::store::schema::Table;
use crate::store::{StoreError, damaged, files, inspect, isolate, log_read, maintenance, wal};

/// One step of a repair, as reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Action {
    /// The file or folder, relative to the data folder.
    pub path: String,
    pub done: String,
}

/// Repairs a folder, and what its writer left in the bucket if the tables are there.
pub(crate) fn repair<'a>(at: impl Into<At<'a>>) -> Result<Vec<Action>, StoreError> {
    let at = at.into();
    inspect::on_a_thread(|| repair_here(at))
}

fn repair_here(at: At<'_>) -> Result<Vec<Action>, StoreError> {
    let dir = at.dir;
    fs::read_dir(dir).map_err(StoreError::io("read the data folder", dir))?;
    let folder = Folder::open(dir, &Faults::default())?;
    let root = at.root()?;
    let mut actions = Vec::new();
    let mut act = |path: &Path, done: String| {
        let path = path.strip_prefix(dir).unwrap_or(path).display().to_string();
        actions.push(Action { path, done });
    };
    for path in inspect::leftovers(dir)? {
        fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
        act(&path, "removed, it was an unfinished write".to_owned());
    }
    for table in Table::ALL {
        if !root.has_log(table)? {
            continue;
        }
        // Logs in a bucket have no checksums of this store.
        if let Some(tables) = root.folder() {
            for (path, done) in sums::repair(&tables.join(log_of(table)))? {
                act(&path, done);
            }
        }
        // A table that cannot be read is left alone: its files may be needed to restore it.
        let Ok(opened) = DeltaTable::open(&root, table) else {
            continue;
        };
        let live = opened.files()?;
        let live: HashSet<&str> = live.iter().map(|file| file.path.as_str()).collect();
        let committed = opened
            .committed(&folder.writer)?
            .map_or(0, |version| version.max(0) as u64);
        let mut removed = files::remove_uncommitted(&root, table, &folder.writer, committed)? as u64;
        removed += maintenance::remove_unnamed(&root, table, &folder.writer, &live, &Faults::default())?;
        if removed > 0 {
            act(
                &opened.place(),
                format!(
                    "removed {removed} files that were written and never committed; what they held is in the log or \
                        in the files that they were made of"
                ),
            );
        }
    }
    let mut last = wal::segments(&folder.log)?.last().copied().unwrap_or(0);
    for table in Table::ALL {
        if root.has_log(table)?
            && let Ok(opened) = DeltaTable::open(&root, table)
        {
            let committed = opened.committed(&folder.writer)?.unwrap_or(0);
            last = last.max(committed.max(0) as u64);
        }
    }
    let segments = wal::segments(&folder.log)?;
    for path in damaged::list(&folder.log)? {
        // Its segment was never flushed: the next start replays the record from there, and must not find it twice.
        if damaged::segment_of(&path).is_some_and(|number| segments.contains(&number)) {
            fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
            damaged::forget_reason(&path);
            act(
                &path,
                "removed, its segment still holds it and the next start tries it again".to_owned(),
            );
        } else if let Some(number) = take_up(&path, last + 1)? {
            last = number;
            let done = format!("is segment {number} of the log now; the next start replays it");
            act(&path, done);
        }
    }
    for number in wal::segments(&folder.log)? {
        let path = wal::segment_path(&folder.log, number);
        let ending = log_read::read(&path, |_| {})?;
        if ending.torn_bytes > 0 && ending.damaged_bytes == 0 {
            let file = File::options()
                .write(true)
                .open(&path)
                .map_err(StoreError::io("open", &path))?;
            let length = file.metadata().map_err(StoreError::io("read", &path))?.len();
            file.set_len(length.saturating_sub(ending.torn_bytes))
                .and_then(|()| file.sync_all())
                .map_err(StoreError::io("cut", &path))?;
            act(
                &path,
                format!(
                    "cut off {} bytes of an unfinished write, of which nothing was acknowledged",
                    ending.torn_bytes
                ),
            );
        }
    }
    Ok(actions)
}

/// Turns a damaged record back into segment `number`, if this program can replay and write it.
fn take_up(path: &Path, number: u64) -> Result<Option<u64>, StoreError> {
    let mut records = Vec::new();
    let place = RecordPlace {
        segment: number,
        record: 0,
    };
    log_read::read(path, |payload| records.push((place, payload)))?;
    if records.is_empty() || isolate::writable(&records, &Faults::default()).is_err() {
        return Ok(None);
    }
    let segment = wal::segment_path(path.parent().unwrap_or(Path::new(".")), number);
    // The file is already a valid segment: one rename moves it into the log.
    fs::rename(path, &segment).map_err(StoreError::io("rename", path))?;
    sync_parent(&segment).map_err(StoreError::io("sync the folder of", &segment))?;
    damaged::forget_reason(path);
    Ok(Some(number))
}
