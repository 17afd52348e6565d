//! What the write-ahead log still holds when a store is opened, and what is to be done with it.
//!
//! The tables' transaction versions say which segments are committed. A segment committed to all tables is deleted; segments committed to
//! some are one generation, rebuilt and committed to the rest; later ones go into the head. A torn tail is what a crash leaves
//! and no damage; damage is counted, logged, and the segment is kept under another name.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::thread::ScopedJoinHandle;

use bytes::Bytes;

use crate::base::segment::{self, SegmentContents};
use crate::store::StoreError;
use crate::store::files;
use crate::store::flush::{Generation, Progress, Tables, delete_segments};
use crate::store::head::{Head, KnownStacks};
use crate::store::ingest::Prepared;
use crate::store::metrics::Metrics;
use crate::store::{ingest, record, wal};

/// Log bytes decoded at once: some tens of profiles a core.
const BATCH_BYTES: usize = 4 << 20;

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
    let path = wal::segment_path(folder, number);
    let mut batch = Batch::new(number, head, metrics);
    let ending = read(&path, |payload| batch.push(payload))?;
    batch.apply();
    let count = batch.count;
    if ending.torn_bytes > 0 {
        tracing::info!(
            segment = number,
            bytes = ending.torn_bytes,
            "the segment ends in an unfinished write"
        );
    }
    if ending.damaged_bytes > 0 {
        tracing::error!(
            segment = number,
            bytes = ending.damaged_bytes,
            "the segment is damaged, its other records are kept"
        );
        metrics.damaged_bytes.inc_by(ending.damaged_bytes);
        let _ = fs::hard_link(&path, path.with_extension("damaged"));
    }
    metrics.replayed.inc_by(count);
    if count == 0 && ending.damaged_bytes == 0 && batch.failed == 0 {
        // What a start without profiles leaves.
        fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
    }
    Ok(())
}

/// Records on their way into a head: decoded on all cores, applied in order, bounded in memory.
pub struct Batch<'a> {
    segment: u64,
    head: &'a Head,
    metrics: &'a Metrics,
    payloads: Vec<Bytes>,
    bytes: usize,
    /// Records applied.
    pub count: u64,
    failed: u64,
}

impl<'a> Batch<'a> {
    /// For the records of a segment.
    pub fn new(segment: u64, head: &'a Head, metrics: &'a Metrics) -> Self {
        Self {
            segment,
            head,
            metrics,
            payloads: Vec::new(),
            bytes: 0,
            count: 0,
            failed: 0,
        }
    }

    /// Adds a record.
    pub fn push(&mut self, payload: Bytes) {
        self.bytes += payload.len();
        self.payloads.push(payload);
        if self.bytes >= BATCH_BYTES {
            self.apply();
        }
    }

    /// Applies what was added.
    pub fn apply(&mut self) {
        let payloads = std::mem::take(&mut self.payloads);
        self.bytes = 0;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let share = payloads.len().div_ceil(cores).max(1);
        let prepared: Vec<_> = std::thread::scope(|threads| {
            let workers: Vec<_> = payloads
                .chunks(share)
                .map(|chunk| threads.spawn(move || chunk.iter().map(prepare).collect::<Vec<_>>()))
                .collect();
            workers.into_iter().map(ScopedJoinHandle::join).collect()
        });
        for worker in prepared {
            // A worker that panics met a fault of ours; what it held is in the log until the next flush, so stop rather than go on without.
            let results = worker.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            for result in results {
                match result {
                    Ok((tenant, prepared)) => {
                        self.head.apply(&tenant, &prepared);
                        self.count += 1;
                    }
                    // Its checksum is right, so this is a fault of ours or the work of a newer program.
                    Err((bytes, reason)) => {
                        tracing::error!(segment = self.segment, reason, "a record of the segment cannot be read");
                        self.metrics.damaged_bytes.inc_by(bytes);
                        self.failed += 1;
                    }
                }
            }
        }
    }
}

fn prepare(payload: &Bytes) -> Result<(Arc<str>, Prepared), (u64, String)> {
    record::decode(payload)
        .and_then(|record| {
            ingest::prepare(&record.profile, record.received_ms, &record.limits())
                .map(|prepared| (record.tenant, prepared))
                .map_err(|rejection| rejection.error.message)
        })
        .map_err(|reason| (payload.len() as u64, reason))
}

/// What was wrong with a segment.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// An unfinished write at the end.
    pub torn_bytes: u64,
    /// Damage before valid records, or in the first bytes.
    pub damaged_bytes: u64,
}

/// Reads a segment record by record, so that a large one needs little memory. The part from the first damage on is searched for
/// further records as a whole; a damaged magic does not hide the records after it.
pub fn read(path: &Path, mut receive: impl FnMut(Bytes)) -> Result<Ending, StoreError> {
    let failed = |error| StoreError::io("read", path)(error);
    let file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut ending = Ending::default();
    let mut magic = [0; segment::MAGIC.len()];
    if length < magic.len() as u64 {
        ending.torn_bytes = length;
        return Ok(ending);
    }
    reader.read_exact(&mut magic).map_err(failed)?;
    if magic != segment::MAGIC {
        ending.damaged_bytes = magic.len() as u64;
    }
    let mut position = magic.len() as u64;
    while position < length {
        match next_record(&mut reader, length - position).map_err(failed)? {
            Some(payload) => {
                position += (segment::RECORD_HEADER_BYTES + payload.len()) as u64;
                receive(payload);
            }
            None => {
                let rest = rest_of(reader.into_inner(), position).map_err(failed)?;
                for payload in rest.records {
                    receive(payload);
                }
                ending.torn_bytes += rest.torn_bytes;
                ending.damaged_bytes += rest.damaged_bytes;
                break;
            }
        }
    }
    Ok(ending)
}

/// The record that starts here, `None` when there is no valid one in the `left` bytes.
fn next_record(reader: &mut impl Read, left: u64) -> io::Result<Option<Bytes>> {
    let mut header = [0; segment::RECORD_HEADER_BYTES];
    if left < header.len() as u64 {
        return Ok(None);
    }
    reader.read_exact(&mut header)?;
    let [a, b, c, d, e, f, g, h] = header;
    let (length, checksum) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
    if length == 0 || u64::from(length) > left - header.len() as u64 || length as usize > segment::MAX_RECORD_BYTES {
        return Ok(None);
    }
    let mut payload = vec![0; length as usize];
    reader.read_exact(&mut payload)?;
    Ok((crc32fast::hash(&payload) == checksum).then(|| Bytes::from(payload)))
}

/// Everything from `position` on, searched for valid records.
fn rest_of(mut file: File, position: u64) -> io::Result<SegmentContents> {
    file.seek(SeekFrom::Start(position))?;
    let mut data = segment::MAGIC.to_vec();
    file.read_to_end(&mut data)?;
    segment::parse(Bytes::from(data)).map_err(|reason| io::Error::new(io::ErrorKind::InvalidData, reason))
}
