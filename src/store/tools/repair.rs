//! Repairs damage in a data folder if the repair loses no data. Removes unfinished writes and files that were never
//! committed, repairs the tables' logs, and returns damaged records to the write-ahead log.
//!
//! In: a data folder that no process has locked. Out: a list of the steps of the repair. Files with any other damage
//! stay unchanged, and a later check reports them.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use crate::store::common::error::StoreError;
use crate::store::common::fault::Faults;
use crate::store::common::schema::Table;
use crate::store::flush::commits;
use crate::store::flush::commits::Remembered;
use crate::store::flush::{files, isolate};
use crate::store::log::damaged::RecordPosition;
use crate::store::log::{damaged, reader, wal};
use crate::store::maintenance;
use crate::store::open::folder::Folder;
use crate::store::tables::delta::{DeltaTable, sums};
use crate::store::tables::root::{DataLocation, Root, log_of};
use crate::store::tools::{check_log, inspect};
use alluvium_base::file::sync_parent;

/// One step of a repair, as reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Action {
    /// The file or folder, relative to the data folder.
    pub path: String,
    pub done: String,
}

/// Repairs a folder. Files in a bucket are never removed. If `accept_loss` is true, tables and log are treated as
/// complete even if they lack data.
pub(crate) fn repair<'a>(location: impl Into<DataLocation<'a>>, accept_loss: bool) -> Result<Vec<Action>, StoreError> {
    let location = location.into();
    inspect::run_on_thread(|| repair_location(location, accept_loss))
}

fn repair_location(location: DataLocation<'_>, accept_loss: bool) -> Result<Vec<Action>, StoreError> {
    let dir = location.dir;
    fs::read_dir(dir).map_err(StoreError::io("read the data folder", dir))?;
    let folder = Folder::open(dir, &Faults::default())?;
    let root = location.root()?;
    let mut actions = Vec::new();
    let mut act = |path: &Path, done: String| {
        let path = path.strip_prefix(dir).unwrap_or(path).display().to_string();
        actions.push(Action { path, done });
    };
    for path in inspect::leftovers(dir)? {
        fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
        act(&path, "removed an unfinished write".to_owned());
    }
    // The store writes checksums only for table logs in a folder, not for those in a bucket.
    if let Some(tables) = root.folder() {
        for table in Table::ALL {
            let log = tables.join(log_of(table));
            if log.exists() {
                for (path, outcome) in sums::repair(&log)? {
                    act(&path, outcome);
                }
            }
        }
    }
    if accept_loss && accept(dir, &root, &folder.writer)? {
        act(
            &dir.join(commits::FILE),
            "accepted the loss: the contents of tables and log are treated as complete".to_owned(),
        );
    }
    // If tables or log lack data, files that no table lists may be the only copy of profiles.
    let is_whole =
        check_log::contradictions(dir, &root, &folder.writer).is_ok_and(|contradictions| contradictions.is_empty());
    for table in Table::ALL.into_iter().filter(|_| is_whole) {
        if !root.has_log(table)? {
            continue;
        }
        // A table that cannot be read is left alone: its files may be needed to restore it.
        let Ok(opened) = DeltaTable::open(&root, table) else {
            continue;
        };
        let live = opened.files()?;
        let live: HashSet<&str> = live.iter().map(|file| file.path.as_str()).collect();
        let committed = opened.last_segment(&folder.writer)?;
        let mut removed =
            files::remove_uncommitted(&root, table, (&folder.writer, committed), &files::Uncommitted::Earlier)? as u64;
        removed += maintenance::remove_unnamed(&root, table, &folder.writer, &live, &Faults::default())?;
        if removed > 0 {
            act(
                &opened.location(),
                format!(
                    "removed {removed} files that were never committed; their contents are in the log or in the \
                        files that they were made from"
                ),
            );
        }
    }
    let segments = wal::segments(&folder.log)?;
    let committed = committed_segments(&root, &folder.writer)?;
    let mut last = segments.last().copied().max(committed.highest).unwrap_or(0);
    for path in damaged::list(&folder.log)? {
        let segment = damaged::segment_of(&path).filter(|number| segments.contains(number));
        // The next start commits this segment to the tables that lack it. A later repair restores the record.
        if segment.is_some_and(|number| committed.is_partial(number)) {
            continue;
        }
        // The next start replays the record from its segment, and must not find the record twice. A segment that all
        // tables contain is not replayed but deleted.
        if segment.is_some_and(|number| !committed.is_complete(number)) {
            fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
            damaged::forget_reason(&path);
            act(
                &path,
                "removed; its segment still has the record, and the next start replays it".to_owned(),
            );
        } else if let Some(number) = restore_record(&path, last + 1)? {
            last = number;
            let outcome = format!("became segment {number} of the log; the next start replays it");
            act(&path, outcome);
        }
    }
    // Only the last segment may end in an unfinished write. Damaged segments stay for programs that can read them.
    if let Some(number) = wal::segments(&folder.log)?.into_iter().next_back() {
        let path = wal::segment_path(&folder.log, number);
        let ending = reader::read(&path, |_| {})?;
        if ending.torn_bytes > 0 && ending.damaged_bytes == 0 {
            reader::cut(&path, ending.torn_bytes)?;
            act(
                &path,
                format!(
                    "cut off {} bytes of an unfinished write that was never acknowledged",
                    ending.torn_bytes
                ),
            );
        }
    }
    Ok(actions)
}

/// Makes the file `COMMITS` agree with the tables: it then claims no segment that a table lacks, and lists every
/// process that the tables name. Returns false if folder and tables agree already.
fn accept(dir: &Path, root: &Root, writer: &str) -> Result<bool, StoreError> {
    if check_log::contradictions(dir, root, writer)?.is_empty() {
        return Ok(false);
    }
    let mut remembered = Remembered::read(dir, writer)?;
    let mut min = u64::MAX;
    for table in Table::ALL {
        let mut committed = 0;
        if root.has_log(table)? {
            let opened = DeltaTable::open(root, table)?;
            committed = opened.last_segment(writer)?;
            remembered.processes.extend(opened.process(writer)?);
        }
        min = min.min(committed);
        remembered.accepted = remembered.accepted.max(committed);
    }
    remembered.accepted = remembered.accepted.max(remembered.flushed);
    remembered.flushed = remembered.flushed.min(min);
    remembered.write(dir, &Faults::default())?;
    Ok(true)
}

/// The segments that the tables contain.
struct CommittedSegments {
    /// The last segment that every table contains. `None` if a table cannot be read.
    lowest: Option<u64>,
    /// The last segment that a readable table contains.
    highest: Option<u64>,
}

impl CommittedSegments {
    /// Returns true if every table contains the segment.
    fn is_complete(&self, segment: u64) -> bool {
        self.lowest.is_some_and(|lowest| segment <= lowest)
    }

    /// Returns true if some tables may contain the segment and others may lack it.
    fn is_partial(&self, segment: u64) -> bool {
        !self.is_complete(segment) && (self.lowest.is_none() || self.highest.is_some_and(|highest| segment <= highest))
    }
}

fn committed_segments(root: &Root, writer: &str) -> Result<CommittedSegments, StoreError> {
    let mut tables = Vec::new();
    for table in Table::ALL {
        tables.push(if !root.has_log(table)? {
            Some(0)
        } else if let Ok(opened) = DeltaTable::open(root, table) {
            Some(opened.last_segment(writer)?)
        } else {
            None
        });
    }
    Ok(CommittedSegments {
        highest: tables.iter().copied().flatten().max(),
        lowest: tables.into_iter().min().flatten(),
    })
}

/// Turns a damaged record into segment `number`, if this program can replay and write it.
fn restore_record(path: &Path, number: u64) -> Result<Option<u64>, StoreError> {
    let mut records = Vec::new();
    let position = RecordPosition {
        segment: number,
        record: 0,
    };
    reader::read(path, |payload| records.push((position, payload)))?;
    if records.is_empty() || isolate::writable(&records, &Faults::default()).is_err() {
        return Ok(None);
    }
    let segment = wal::segment_path(path.parent().unwrap_or(Path::new(".")), number);
    // The file is a valid segment already, so one rename moves it into the log.
    fs::rename(path, &segment).map_err(StoreError::io("rename", path))?;
    sync_parent(&segment).map_err(StoreError::io("sync the folder of", &segment))?;
    damaged::forget_reason(path);
    Ok(Some(number))
}
