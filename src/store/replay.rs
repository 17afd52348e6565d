//! What the write-ahead log still holds when a store is opened, and what is to be done with it.
//!
//! The tables' transaction versions say which segments are committed. A segment committed to all tables is deleted; segments committed to
//! some are one generation, rebuilt and committed to the rest; later ones go into the head. A torn tail is what a crash leaves
//! and no damage; damage is counted, logged, and the segment is kept under another name.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::base::segment::{self, SegmentContents};
use crate::store::StoreError;
use crate::store::files;
use crate::store::flush::{Generation, Progress, Tables, delete_segments};
use crate::store::head::{Head, KnownStacks};
use crate::store::metrics::Metrics;
use crate::store::{ingest, record, wal};

/// The state with which a store starts.
pub struct Recovered {
    /// Profiles that no table has.
    pub head: Head,
    /// Number of the first new segment.
    pub next_segment: u64,
}

/// Brings log and tables in agreement. The folder must be locked.
pub fn recover(
    folder: &Path,
    tables: &mut Tables,
    known: &Arc<KnownStacks>,
    metrics: &Metrics,
) -> Result<Recovered, StoreError> {
    let committed = tables.committed()?;
    let low = committed.iter().copied().min().unwrap_or(0);
    let high = committed.iter().copied().max().unwrap_or(0);
    for (table, version) in tables.tables.iter().zip(&committed) {
        let removed = files::remove_uncommitted(table.folder(), &tables.writer, *version)?;
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
        let head = Head::new(Arc::default());
        for number in segments.iter().filter(|number| (low + 1..=high).contains(number)) {
            replay(folder, *number, &head, metrics)?;
        }
        let generation = Generation {
            head: Arc::new(head),
            last_segment: high,
        };
        tables.commit(&generation, &mut Progress::new())?;
    }
    if segments.iter().any(|number| *number <= high) {
        delete_segments(folder, high, &tables.faults)?;
    }
    let head = Head::new(known.clone());
    for number in segments.iter().filter(|number| **number > high) {
        replay(folder, *number, &head, metrics)?;
    }
    Ok(Recovered {
        head,
        next_segment: segments.last().copied().unwrap_or(0).max(high) + 1,
    })
}

fn replay(folder: &Path, number: u64, head: &Head, metrics: &Metrics) -> Result<(), StoreError> {
    let contents = read(folder, number)?;
    if contents.torn_bytes > 0 {
        tracing::info!(
            segment = number,
            bytes = contents.torn_bytes,
            "the segment ends in an unfinished write"
        );
    }
    if contents.damaged_bytes > 0 {
        tracing::error!(
            segment = number,
            bytes = contents.damaged_bytes,
            "the segment is damaged, its other records are kept"
        );
        metrics.damaged_bytes.inc_by(contents.damaged_bytes);
        let path = wal::segment_path(folder, number);
        let _ = fs::hard_link(&path, path.with_extension("damaged"));
    }
    let count = apply(&contents, number, head, metrics);
    metrics.replayed.inc_by(count);
    Ok(())
}

/// Applies the records of a segment to a head; returns how many.
pub fn apply(contents: &SegmentContents, number: u64, head: &Head, metrics: &Metrics) -> u64 {
    let mut count = 0;
    for payload in &contents.records {
        let applied = record::decode(payload).and_then(|record| {
            ingest::prepare(&record.profile, record.received_ms, &record.limits())
                .map(|prepared| head.apply(&record.tenant, &prepared))
                .map_err(|rejection| rejection.error.message)
        });
        match applied {
            Ok(_) => count += 1,
            // Its checksum is right, so this is a fault of ours or of a newer program.
            Err(reason) => {
                tracing::error!(segment = number, reason, "a record of the segment cannot be read");
                metrics.damaged_bytes.inc_by(payload.len() as u64);
            }
        }
    }
    count
}

/// Reads a segment. A damaged first line does not hide the records after it.
pub fn read(folder: &Path, number: u64) -> Result<SegmentContents, StoreError> {
    let path = wal::segment_path(folder, number);
    let mut data = fs::read(&path).map_err(StoreError::io("read", &path))?;
    let magic = segment::MAGIC.len();
    let mut damaged = 0;
    if let Some(start) = data.get_mut(..magic)
        && start != segment::MAGIC
    {
        start.copy_from_slice(&segment::MAGIC);
        damaged = magic as u64;
    }
    let mut contents = segment::parse(Bytes::from(data)).map_err(|reason| StoreError::Damaged { path, reason })?;
    contents.damaged_bytes += damaged;
    Ok(contents)
}
