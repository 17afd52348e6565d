//! Recovery of the write-ahead log when a store is opened.
//!
//! The tables' transaction versions say which segments are committed. A segment committed to all tables is deleted;
//! segments committed to some are one generation, rebuilt and committed to the rest; later ones go into the head, and
//! are known when they are sent again. A torn tail is normal after a crash. Damage is counted and logged, and the
//! segment is kept under another name. A record that is intact but cannot be used is put aside ([`damaged`]), and the
//! replay continues.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::store::StoreError;
use crate::store::batch::{Batch, ReplayError};
use crate::store::damaged::{BadRecord, RecordPlace};
use crate::store::files;
use crate::store::flush::{Generation, Progress, Tables, delete_segments};
use crate::store::head::{Head, KnownStacks};
use crate::store::log_read::{Ending, read};
use crate::store::metrics::Metrics;
use crate::store::repeats::Repeats;
use crate::store::{damaged, isolate, wal};

/// The state with which a store starts.
pub(crate) struct Recovered {
    /// Profiles that are in no table yet.
    pub(crate) head: Head,
    /// Number of the first new segment.
    pub(crate) next_segment: u64,
}

/// Brings log and tables in agreement. The folder must be locked. No single record keeps a store from starting: one
/// that cannot be replayed or written is put aside.
pub(crate) fn recover(
    folder: &Path,
    tables: &mut Tables,
    known: &Arc<KnownStacks>,
    (metrics, repeats): (&Metrics, &Repeats),
) -> Result<Recovered, StoreError> {
    let committed = tables.committed()?;
    let low = committed.iter().copied().min().unwrap_or(0);
    let high = committed.iter().copied().max().unwrap_or(0);
    for (table, version) in tables.tables.iter().zip(&committed) {
        let removed = files::remove_uncommitted(table.root(), table.table(), &tables.writer, *version)?;
        if removed > 0 {
            tracing::info!(
                table = table.table().name(),
                removed,
                "removed files that were never committed"
            );
        }
    }
    let segments = wal::segments(folder)?;
    if low < high {
        tracing::info!(low, high, "finishing a flush that was interrupted");
        finish(folder, low + 1..=high, tables, (metrics, repeats))?;
    }
    if segments.iter().any(|number| *number <= high) {
        delete_segments(folder, high, &tables.faults)?;
    }
    let later = segments.iter().copied().filter(|number| *number > high);
    let head = head_of(folder, later.collect(), known, (metrics, repeats))?;
    Ok(Recovered {
        head,
        next_segment: segments.last().copied().unwrap_or(0).max(high) + 1,
    })
}

/// Commits a generation to the tables that lack it.
fn finish(
    folder: &Path,
    range: isolate::Range,
    tables: &mut Tables,
    (metrics, repeats): (&Metrics, &Repeats),
) -> Result<(), StoreError> {
    let none = Arc::<KnownStacks>::default();
    let last_segment = *range.end();
    let within = |number: &u64| range.contains(number);
    let segments: Vec<u64> = wal::segments(folder)?.into_iter().filter(within).collect();
    let generation = Generation {
        head: Arc::new(head_of(folder, segments, &none, (metrics, repeats))?),
        last_segment,
    };
    let error = match tables.commit(&generation, &mut Progress::new()) {
        Err(error) if error.may_be_the_data() => error,
        result => return result,
    };
    let bad = isolate::isolate(folder, &range, &tables.faults)?;
    if bad.is_empty() {
        return Err(error);
    }
    let head = isolate::without(folder, &range, &none, &bad, metrics)?;
    let rest = Generation {
        head: Arc::new(head),
        last_segment,
    };
    tables.commit(&rest, &mut Progress::new())
}

/// The head of some segments. Records that cannot be applied are put aside.
fn head_of(
    folder: &Path,
    segments: Vec<u64>,
    known: &Arc<KnownStacks>,
    (metrics, repeats): (&Metrics, &Repeats),
) -> Result<Head, StoreError> {
    let mut bad: BTreeMap<RecordPlace, BadRecord> = BTreeMap::new();
    loop {
        let skipped = bad.keys().copied().collect();
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
            // The head may hold a part of the record: build it again without the record.
            bad.insert(record.place, record);
            continue;
        }
        bad.extend(
            replayed
                .iter_mut()
                .flat_map(|one| one.unreadable.drain(..))
                .map(|record| (record.place, record)),
        );
        for record in bad.values() {
            damaged::put_aside(folder, record)?;
            metrics.records_put_aside.inc();
            metrics.damaged_bytes.inc_by(record.payload.len() as u64);
        }
        for one in &replayed {
            one.close(folder, metrics)?;
        }
        return Ok(head);
    }
}

struct Replayed {
    segment: u64,
    ending: Ending,
    applied: u64,
    /// Records that could not be read. Their checksums match, so the cause is a bug, a record of a newer program, or a
    /// profile that expands to more than is allowed.
    unreadable: Vec<BadRecord>,
    records: u64,
}

impl Replayed {
    /// Logs the findings, keeps a damaged segment and removes an empty one.
    fn close(&self, folder: &Path, metrics: &Metrics) -> Result<(), StoreError> {
        let path = wal::segment_path(folder, self.segment);
        let (segment, ending) = (self.segment, &self.ending);
        if ending.torn_bytes > 0 {
            tracing::info!(
                segment,
                bytes = ending.torn_bytes,
                "the segment ends in an unfinished write"
            );
        }
        if ending.damaged_bytes > 0 {
            tracing::error!(
                segment,
                bytes = ending.damaged_bytes,
                "the segment is damaged, its other records are kept"
            );
            metrics.damaged_bytes.inc_by(ending.damaged_bytes);
            let _ = fs::hard_link(&path, path.with_extension("damaged"));
        }
        metrics.replayed.inc_by(self.applied);
        if self.records == 0 && ending.damaged_bytes == 0 {
            // A start without profiles leaves an empty segment.
            fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
        }
        Ok(())
    }
}

fn replay(
    folder: &Path,
    number: u64,
    head: &Head,
    (skipped, repeats): (&BTreeSet<RecordPlace>, &Repeats),
) -> Result<Replayed, ReplayError> {
    let mut batch = Batch::new(number, head, skipped).known_to(repeats);
    let mut failed = Ok(());
    let ending = read(&wal::segment_path(folder, number), |payload| {
        if failed.is_ok() {
            failed = batch.push(payload);
        }
    })?;
    failed?;
    batch.apply()?;
    Ok(Replayed {
        segment: number,
        ending,
        applied: batch.applied,
        unreadable: batch.unreadable,
        records: batch.records,
    })
}
