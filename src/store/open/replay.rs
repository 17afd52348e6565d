//! Recovery of the write-ahead log when a store is opened.
//!
//! The tables' transaction versions show which segments are committed. Segments that are committed to all tables are
//! deleted. Segments that only some tables contain form one generation, the unit of a flush, which is rebuilt and
//! committed to the other tables. Later segments are replayed into the head, and their profiles are recognised if they
//! are sent again. An unfinished write at the end of the last segment is normal after a crash, and is cut off. Damage
//! is counted and logged, and the segment is kept under another name. A record that is intact but cannot be used is
//! kept beside the log ([`damaged`]), and the replay continues.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use crate::store::common::error::StoreError;
use crate::store::common::error::is_full;
use crate::store::common::metrics::Metrics;
use crate::store::common::schema::Table;
use crate::store::flush::files;
use crate::store::flush::isolate;
use crate::store::flush::write::{Generation, Progress, Tables};
use crate::store::head::batch::{Batch, ReplayError};
use crate::store::head::repeats::Repeats;
use crate::store::head::{Head, KnownStacks};
use crate::store::log::damaged::{DamagedRecord, RecordPosition};
use crate::store::log::reader;
use crate::store::log::reader::{UnreadableBytes, read};
use crate::store::log::{damaged, wal};
use crate::store::tables::snapshot::FileEntry;
use alluvium_base::file::temporary_name;

/// The result of the recovery, with which a store starts.
pub(crate) struct Recovery {
    /// Profiles that are in no table yet.
    pub(crate) head: Head,
    /// A generation that some tables contain, and that could not be committed to the other tables because the disk is
    /// full.
    pub(crate) frozen: Option<Generation>,
    /// Number of the first new segment.
    pub(crate) next_segment: u64,
}

/// Brings the log and the tables into agreement. The folder must be locked. No single record prevents a store from
/// starting: a record that cannot be replayed or written is kept beside the log.
///
/// The function first checks that tables and log belong together, and only then removes files that no table lists. If
/// the tables or the log lack data, such files may be the only copy of profiles.
pub(crate) fn recover(
    folder: &Path,
    tables: &mut Tables,
    known: &Arc<KnownStacks>,
    (metrics, repeats): (&Metrics, &Repeats),
) -> Result<Recovery, StoreError> {
    tables.check_lineage(folder)?;
    let committed = tables.committed()?;
    let low = committed.iter().copied().min().unwrap_or(0);
    let high = committed.iter().copied().max().unwrap_or(0);
    for (table, version) in tables.tables.iter().zip(&committed) {
        let removed = files::remove_uncommitted(
            table.root(),
            table.table(),
            (&tables.writer, *version),
            &files::Uncommitted::Earlier,
        )?;
        if removed > 0 {
            tracing::info!(
                table = table.table().name(),
                removed,
                "removed files that were never committed"
            );
        }
    }
    let segments = wal::segments(folder)?;
    let mut frozen = None;
    if low < high {
        tracing::info!(low, high, "finishing an interrupted flush");
        frozen = finish(folder, low + 1..=high, tables, (metrics, repeats))?;
    }
    if frozen.is_some() {
        must_be_apart(tables, high)?;
    }
    if frozen.is_none() && segments.iter().any(|number| *number <= high) {
        match tables.delete_segments(folder, high) {
            // The next flush deletes the segments.
            Err(error) if error.is_full() => tracing::warn!(error = %error, "cannot delete flushed segments"),
            result => result?,
        }
    }
    let later: Vec<u64> = segments.iter().copied().filter(|number| *number > high).collect();
    let last = later.last().copied();
    let head = head_of(folder, (later, last), known, (metrics, repeats))?;
    // If a sender repeats a profile that is in the head, the sender receives a success although no new record is
    // written. So the last segment must be durable.
    if let Some(path) = last
        .map(|last| wal::segment_path(folder, last))
        .filter(|path| path.exists())
    {
        reader::rewrite_segment(&path, &tables.faults)?;
    }
    Ok(Recovery {
        head,
        frozen,
        next_segment: segments.last().copied().unwrap_or(0).max(high) + 1,
    })
}

/// Commits a generation to the tables that lack it. Returns the generation if the disk has no room for the commit.
fn finish(
    folder: &Path,
    range: isolate::Range,
    tables: &mut Tables,
    (metrics, repeats): (&Metrics, &Repeats),
) -> Result<Option<Generation>, StoreError> {
    let no_stacks = Arc::<KnownStacks>::default();
    let last_segment = *range.end();
    let is_covered = |number: &u64| range.contains(number);
    let segments: Vec<u64> = wal::segments(folder)?.into_iter().filter(is_covered).collect();
    let generation = Generation {
        // The flush has ended the last segment, so no segment may end in an unfinished write.
        head: Arc::new(head_of(folder, (segments, None), &no_stacks, (metrics, repeats))?),
        last_segment,
    };
    let error = match tables.commit(&generation, &mut Progress::new()) {
        Ok(()) => return Ok(None),
        Err(error) if error.may_be_data_error() => error,
        Err(error) if error.is_full() || has_no_room(folder) => {
            tracing::error!(error = %error, "cannot finish a flush, trying again");
            return Ok(Some(generation));
        }
        Err(error) => return Err(error),
    };
    let damaged_records = isolate::isolate(folder, &range, &tables.faults)?;
    if damaged_records.is_empty() {
        return Err(error);
    }
    let head = isolate::head_without(folder, &range, &no_stacks, &damaged_records, metrics)?;
    let rest = Generation {
        head: Arc::new(head),
        last_segment,
    };
    tables.commit(&rest, &mut Progress::new())?;
    Ok(None)
}

/// Fails if samples of the generation that ends with segment `last` have been merged with other samples. Queries would
/// then find the samples of the generation twice, in the merged files and in memory.
fn must_be_apart(tables: &Tables, last: u64) -> Result<(), StoreError> {
    for table in tables.tables.iter().filter(|table| table.table() == Table::Samples) {
        let is_committed = table.committed(&tables.writer)? == Some(last as i64);
        let is_last_flush = |file: &FileEntry| files::FileName::segment_of(&file.path, &tables.writer) == Some(last);
        if is_committed && !table.files()?.iter().any(is_last_flush) {
            let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
            return Err(StoreError::io("finish a flush to", &table.location())(full));
        }
    }
    Ok(())
}

/// Returns true if the disk has no room for a small file. Errors of the Delta library do not report a full disk.
fn has_no_room(folder: &Path) -> bool {
    let path = temporary_name(&folder.join("room"));
    let written = File::create(&path).and_then(|mut file| {
        file.write_all(&[0; 64 << 10])?;
        file.sync_all()
    });
    let _ = fs::remove_file(&path);
    written.is_err_and(|error| is_full(&error))
}

/// Builds a head from the records of `segments`. The segment `last` may end in an unfinished write. Records that cannot
/// be applied are kept beside the log.
fn head_of(
    folder: &Path,
    (segments, last): (Vec<u64>, Option<u64>),
    known: &Arc<KnownStacks>,
    (metrics, repeats): (&Metrics, &Repeats),
) -> Result<Head, StoreError> {
    let mut damaged_records: BTreeMap<RecordPosition, DamagedRecord> = BTreeMap::new();
    loop {
        let skipped = damaged_records.keys().copied().collect();
        let head = Head::new(known.clone());
        let mut replayed = Vec::new();
        let mut applied = Ok(());
        for segment in &segments {
            match replay(folder, *segment, &head, (&skipped, repeats)) {
                Ok(one) => replayed.push(one),
                Err(ReplayError::Store(error)) => return Err(error),
                Err(ReplayError::Record(record)) => {
                    applied = Err(record);
                    break;
                }
            }
        }
        if let Err(record) = applied {
            // The head may hold a part of the record, so the head is built again without the record.
            damaged_records.insert(record.position, record);
            continue;
        }
        damaged_records.extend(
            replayed
                .iter_mut()
                .flat_map(|one| one.unreadable.drain(..))
                .map(|record| (record.position, record)),
        );
        for record in damaged_records.values() {
            damaged::save_damaged(folder, record)?;
            metrics.records_put_aside.inc();
            metrics.damaged_bytes.inc_by(record.payload.len() as u64);
        }
        for one in replayed {
            let is_last = Some(one.segment) == last;
            one.close(folder, is_last, metrics)?;
        }
        return Ok(head);
    }
}

struct ReplayResult {
    segment: u64,
    ending: UnreadableBytes,
    applied: u64,
    /// Records that could not be read. Their checksums match, so the cause is a bug, a record of a newer program, or a
    /// profile that expands to more than the limit.
    unreadable: Vec<DamagedRecord>,
    records: u64,
}

impl ReplayResult {
    /// Logs the result, keeps a damaged segment, cuts off an unfinished write and removes an empty segment.
    fn close(self, folder: &Path, is_last: bool, metrics: &Metrics) -> Result<(), StoreError> {
        let path = wal::segment_path(folder, self.segment);
        let segment = self.segment;
        let ending = if is_last {
            self.ending
        } else {
            self.ending.of_closed_segment()
        };
        if ending.damaged_bytes > 0 {
            tracing::error!(
                segment,
                bytes = ending.damaged_bytes,
                "the segment is damaged and kept as .damaged: acknowledged profiles may be lost; its other records are \
                    used"
            );
            metrics.damaged_bytes.inc_by(ending.damaged_bytes);
            let _ = fs::hard_link(&path, path.with_extension("damaged"));
        }
        metrics.replayed.inc_by(self.applied);
        if self.records == 0 && ending.damaged_bytes == 0 {
            // A start without profiles leaves an empty segment.
            return fs::remove_file(&path).map_err(StoreError::io("remove", &path));
        }
        if ending.torn_bytes > 0 {
            tracing::info!(
                segment,
                bytes = ending.torn_bytes,
                "the segment ends in an unfinished write"
            );
            // The unfinished write would be treated as damage once another segment follows.
            if let Err(error) = reader::cut(&path, ending.torn_bytes) {
                tracing::warn!(error = %error, "cannot cut off an unfinished write of the log");
            }
        }
        Ok(())
    }
}

fn replay(
    folder: &Path,
    number: u64,
    head: &Head,
    (skipped, repeats): (&BTreeSet<RecordPosition>, &Repeats),
) -> Result<ReplayResult, ReplayError> {
    let mut batch = Batch::new(number, head, skipped).known_to(repeats);
    let mut failed = Ok(());
    let ending = read(&wal::segment_path(folder, number), |payload| {
        if failed.is_ok() {
            failed = batch.push(payload);
        }
    })?;
    failed?;
    batch.apply()?;
    Ok(ReplayResult {
        segment: number,
        ending,
        applied: batch.applied,
        unreadable: batch.unreadable,
        records: batch.records,
    })
}
