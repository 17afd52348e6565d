//! Applies records of the log to a head, when a store is opened and when a head is rebuilt.

use std::collections::BTreeSet;
use std::thread::ScopedJoinHandle;

use bytes::Bytes;

use crate::store::common::error::StoreError;
use crate::store::common::lifecycle::{PanicMessage, catch_panic};
use crate::store::head::Head;
use crate::store::head::repeats::Repeats;
use crate::store::ingest::{self, Prepared, Refusal};
use crate::store::log::damaged::{DamagedRecord, RecordPosition};
use crate::store::log::record;
use crate::store::log::record::Record;
use crate::store::rules::relabel_rules::KnownRules;
use alluvium_profile::SinkError;

/// Memory in bytes of the records that are decoded together: a few dozen profiles per core.
const BATCH_BYTES: usize = 64 << 20;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplayError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A record made the program panic. The caller must drop the head to which it was applied.
    #[error("record {} of segment {} cannot be applied: {}", .0.position.record, .0.position.segment, .0.reason)]
    Record(DamagedRecord),
}

/// The reason why a record cannot be prepared for a head.
#[derive(Debug, thiserror::Error)]
pub(in crate::store) enum PrepareError {
    /// The profile is invalid, or it exceeds a limit.
    #[error(transparent)]
    Rejected(#[from] SinkError),
    #[error("the relabel rules drop the profile")]
    Dropped,
    /// The profile made the program panic.
    #[error(transparent)]
    Panicked(#[from] PanicMessage),
}

/// Records of one segment for a head. They are decoded on all cores and applied in order, with bounded memory.
pub(in crate::store) struct Batch<'a> {
    segment: u64,
    head: &'a Head,
    skipped: &'a BTreeSet<RecordPosition>,
    queued: Vec<QueuedRecord>,
    /// Receives the keys of the applied profiles.
    repeats: Option<&'a Repeats>,
    /// The relabel rules of the records.
    rules: KnownRules,
    /// Upper bound of the memory in bytes that decoding the queued records takes.
    bytes: usize,
    /// Number of records seen so far, including the skipped ones.
    pub records: u64,
    pub applied: u64,
    /// Records that cannot be decoded or prepared.
    pub unreadable: Vec<DamagedRecord>,
}

impl From<ReplayError> for StoreError {
    fn from(error: ReplayError) -> Self {
        match error {
            ReplayError::Store(error) => error,
            ReplayError::Record(record) => Self::Panicked(record.reason),
        }
    }
}

impl<'a> Batch<'a> {
    /// Creates a batch for the records of `segment`, without the records in `skipped`.
    pub(in crate::store) fn new(segment: u64, head: &'a Head, skipped: &'a BTreeSet<RecordPosition>) -> Self {
        Self {
            segment,
            head,
            skipped,
            queued: Vec::new(),
            repeats: None,
            rules: KnownRules::default(),
            bytes: 0,
            records: 0,
            applied: 0,
            unreadable: Vec::new(),
        }
    }

    /// Makes `repeats` remember the profiles that are applied.
    pub(in crate::store) fn known_to(mut self, repeats: &'a Repeats) -> Self {
        self.repeats = Some(repeats);
        self
    }

    /// Adds the next record of the segment.
    pub(in crate::store) fn push(&mut self, payload: Bytes) -> Result<(), ReplayError> {
        let position = RecordPosition {
            segment: self.segment,
            record: self.records,
        };
        self.records += 1;
        if self.skipped.contains(&position) {
            return Ok(());
        }
        match record::decode(&payload, &mut self.rules) {
            Ok(record) => {
                let room = ingest::announced_size(&record.profile, &record.limits());
                self.bytes += ingest::memory_for(room);
                self.queued.push(QueuedRecord {
                    position,
                    payload,
                    record,
                    room,
                });
            }
            Err(error) => self.unreadable.push(DamagedRecord {
                position,
                payload,
                reason: error.to_string(),
            }),
        }
        if self.bytes >= BATCH_BYTES {
            self.apply()?;
        }
        Ok(())
    }

    /// Applies the records that were added.
    pub(in crate::store) fn apply(&mut self) -> Result<(), ReplayError> {
        let waiting = std::mem::take(&mut self.queued);
        self.bytes = 0;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let share = waiting.len().div_ceil(cores).max(1);
        let decoded: Vec<_> = std::thread::scope(|threads| {
            let workers: Vec<_> = waiting
                .chunks(share)
                .map(|chunk| threads.spawn(move || chunk.iter().map(QueuedRecord::decode).collect::<Vec<_>>()))
                .collect();
            workers.into_iter().map(ScopedJoinHandle::join).collect()
        });
        let mut records = waiting.into_iter();
        for worker in decoded {
            // The decoder catches its own panics, so this panic is a bug.
            let results = worker.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            for (result, waiting) in results.into_iter().zip(&mut records) {
                let result = match result {
                    Err(Failure::LargerThanAnnounced) => prepare(&waiting.record),
                    Err(Failure::Unreadable(error)) => Err(error),
                    Ok(prepared) => Ok(prepared),
                };
                let QueuedRecord {
                    position,
                    payload,
                    record,
                    ..
                } = waiting;
                let damaged_record = |reason: String| DamagedRecord {
                    position,
                    payload,
                    reason,
                };
                match result {
                    Ok(prepared) => {
                        if let Err(reason) = catch_panic(|| self.head.apply(&record.tenant, &prepared)) {
                            return Err(ReplayError::Record(damaged_record(reason.to_string())));
                        }
                        if let Some(repeats) = self.repeats {
                            repeats.replayed(&record.tenant, &record.profile, prepared.is_dated);
                        }
                        self.applied += 1;
                    }
                    Err(error) => self.unreadable.push(damaged_record(error.to_string())),
                }
            }
        }
        Ok(())
    }
}

/// A record that is not decoded yet.
struct QueuedRecord {
    position: RecordPosition,
    payload: Bytes,
    record: Record,
    /// Uncompressed size in bytes that the profile announces.
    room: usize,
}

enum Failure {
    LargerThanAnnounced,
    Unreadable(PrepareError),
}

impl QueuedRecord {
    fn decode(&self) -> Result<Prepared, Failure> {
        let record = &self.record;
        let prepared = || ingest::prepare_within(&record.profile, record.received_ms, &record.limits(), self.room);
        match catch_panic(prepared) {
            Ok(Ok(prepared)) => Ok(prepared),
            Ok(Err(Refusal::Rejected(rejection))) => Err(Failure::Unreadable(rejection.error.into())),
            Ok(Err(Refusal::LargerThanAnnounced)) => Err(Failure::LargerThanAnnounced),
            Ok(Err(Refusal::Dropped)) => Err(Failure::Unreadable(PrepareError::Dropped)),
            Err(panic) => Err(Failure::Unreadable(panic.into())),
        }
    }
}

/// Returns the profile of a record, ready for a head. The profile may be larger than it announces.
pub(in crate::store) fn prepare(record: &Record) -> Result<Prepared, PrepareError> {
    catch_panic(|| ingest::prepare(&record.profile, record.received_ms, &record.limits()))?
        .map_err(|rejection| rejection.error.into())
}
