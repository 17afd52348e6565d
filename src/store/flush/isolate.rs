//! Finds the log records that prevent a frozen head from being written to files, if the disk is not the cause.
//!
//! In: segments of the log. Out: the records that cannot be written, and a head of the other records. A trial builds a
//! head from a set of records and encodes all its tables, without output. If the trial of a set fails, each half of the
//! set is tried, down to single records.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::store::common::error::StoreError;
use crate::store::common::fault::Faults;
use crate::store::common::lifecycle::{PanicMessage, catch_panic};
use crate::store::common::metrics::Metrics;
use crate::store::flush::files;
use crate::store::flush::files::EncodeError;
use crate::store::head::batch;
use crate::store::head::batch::{Batch, PrepareError};
use crate::store::head::{Head, KnownStacks};
use crate::store::log::damaged;
use crate::store::log::damaged::{DamagedRecord, RecordPosition};
use crate::store::log::{reader, record, wal};
use crate::store::rules::relabel_rules::KnownRules;
use alluvium_profile::record::RecordError;

/// The reason why a set of records cannot be encoded as tables.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrialError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The records made the program panic.
    #[error(transparent)]
    Panicked(#[from] PanicMessage),
}

/// A range of segment numbers.
pub(crate) type Range = RangeInclusive<u64>;

/// A record and its position in the log.
type LocatedRecord = (RecordPosition, Bytes);

/// Searches a range of segments for records that cannot be written, alone or together with others. Returns these
/// records.
pub(crate) fn isolate(folder: &Path, range: &Range, faults: &Faults) -> Result<Vec<DamagedRecord>, StoreError> {
    let mut records: Vec<LocatedRecord> = Vec::new();
    for segment in wal::segments(folder)? {
        if range.contains(&segment) {
            let mut record = 0;
            reader::read(&wal::segment_path(folder, segment), |payload| {
                records.push((RecordPosition { segment, record }, payload));
                record += 1;
            })?;
        }
    }
    let mut damaged_records = Vec::new();
    search(&records, &|records| writable(records, faults), &mut damaged_records);
    Ok(damaged_records)
}

/// Saves `damaged_records` in files beside the log, and builds a head of the other records of the segments.
pub(crate) fn head_without(
    folder: &Path,
    range: &Range,
    known: &Arc<KnownStacks>,
    damaged_records: &[DamagedRecord],
    metrics: &Metrics,
) -> Result<Head, StoreError> {
    for record in damaged_records {
        damaged::save_damaged(folder, record)?;
        metrics.records_put_aside.inc();
    }
    let skipped = damaged_records.iter().map(|record| record.position).collect();
    let head = Head::new(known.clone());
    for segment in wal::segments(folder)? {
        if !range.contains(&segment) {
            continue;
        }
        let mut batch = Batch::new(segment, &head, &skipped);
        let mut pushed = Ok(());
        reader::read(&wal::segment_path(folder, segment), |payload| {
            if pushed.is_ok() {
                pushed = batch.push(payload);
            }
        })?;
        pushed.and_then(|()| batch.apply())?;
    }
    Ok(head)
}

/// Checks whether the tables of these records can be encoded.
pub(crate) fn writable(records: &[LocatedRecord], faults: &Faults) -> Result<(), TrialError> {
    let trial = || -> Result<(), TrialError> {
        let head = Head::new(Arc::default());
        let mut rules = KnownRules::default();
        for (_, payload) in records {
            let record = record::decode(payload, &mut rules)?;
            head.apply(&record.tenant, &batch::prepare(&record)?);
        }
        Ok(files::encode_nowhere(&head, faults)?)
    };
    catch_panic(trial)?
}

/// Adds records of `all` to `damaged_records`, so that the remaining records pass `test`.
fn search<E: Display>(
    all: &[LocatedRecord],
    test: &dyn Fn(&[LocatedRecord]) -> Result<(), E>,
    damaged_records: &mut Vec<DamagedRecord>,
) {
    let Err(error) = test(all) else { return };
    let damaged_record = |(position, payload): &LocatedRecord| DamagedRecord {
        position: *position,
        payload: payload.clone(),
        reason: error.to_string(),
    };
    if let [one] = all {
        damaged_records.push(damaged_record(one));
        return;
    }
    let (left, right) = all.split_at(all.len() / 2);
    let before = damaged_records.len();
    search(left, test, damaged_records);
    search(right, test, damaged_records);
    // Each half passes the test alone, so leaving out the later half is enough.
    if damaged_records.len() == before {
        damaged_records.extend(right.iter().map(damaged_record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(count: u64) -> Vec<LocatedRecord> {
        (0..count)
            .map(|record| (RecordPosition { segment: 1, record }, Bytes::new()))
            .collect()
    }

    fn isolated_numbers(count: u64, test: impl Fn(&[u64]) -> bool) -> Vec<u64> {
        let mut damaged_records = Vec::new();
        let test = |some: &[LocatedRecord]| {
            let numbers: Vec<u64> = some.iter().map(|(position, _)| position.record).collect();
            if test(&numbers) { Ok(()) } else { Err("no".to_owned()) }
        };
        search(&records(count), &test, &mut damaged_records);
        damaged_records.iter().map(|record| record.position.record).collect()
    }

    #[test]
    fn the_records_that_fail_alone_are_found_and_no_others() {
        assert_eq!(
            isolated_numbers(1000, |some| !some.contains(&3) && !some.contains(&999)),
            [3, 999]
        );
        assert_eq!(isolated_numbers(1, <[u64]>::is_empty), [0]);
        assert!(isolated_numbers(1000, |_| true).is_empty());
    }

    #[test]
    fn of_records_that_fail_only_together_enough_are_left_out() {
        let fits = |some: &[u64]| some.len() <= 10;
        let damaged_records = isolated_numbers(16, fits);
        assert!(
            !damaged_records.is_empty() && 16 - damaged_records.len() <= 10,
            "{damaged_records:?}"
        );
    }
}
