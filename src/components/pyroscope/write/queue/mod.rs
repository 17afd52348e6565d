//! The durable, bounded queue of one endpoint: profiles wait in segment files until the endpoint has taken them.
//!
//! In: encoded profiles. Out: batches, oldest first. What is appended survives a kill of the process at once (it is in
//! the page cache) and a power failure after the next sync, at most 100 ms or 4 MiB later. The oldest profiles go when
//! the queue is larger or older than its limits; each is counted. `cursor` in the folder names the first record not yet
//! done with, so a restart sends again at most the batch under way.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::base::segment;
use crate::components::pyroscope::write::metrics::{DropReason, EndpointMetrics};
use crate::profile::RawProfile;

mod cursor;
mod files;
pub mod record;
#[cfg(test)]
mod tests;

use cursor::Cursor;
use files::{lock, segment_files, segment_path};
use record::Encoded;

/// A segment is closed at this size; it is the step in which disk space is given back.
const SEGMENT_BYTES: u64 = 8 << 20;
/// An append syncs by itself when so much is not synced yet.
const UNSYNCED_BYTES: u64 = 4 << 20;

/// Bounds of a queue in bytes and age.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Bytes of waiting records. Files may take one segment (8 MiB) more.
    pub max_bytes: u64,
    /// Age of a waiting profile.
    pub max_age: Duration,
}

/// What waits, for metrics and people.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waiting {
    /// How many profiles wait.
    pub profiles: u64,
    /// Bytes of their records.
    pub bytes: u64,
    /// Age of the oldest; zero when nothing waits.
    pub oldest_age: Duration,
}

/// Profiles taken from the front; they stay in the queue until [`Queue::finish`].
pub struct Batch {
    /// Their places, in the order of `profiles`.
    pub ids: Vec<u64>,
    /// The profiles, oldest first.
    pub profiles: Vec<RawProfile>,
    /// Bytes of their records.
    pub bytes: u64,
}

/// A queue in a folder of its own.
pub struct Queue {
    folder: PathBuf,
    metrics: EndpointMetrics,
    state: Mutex<State>,
    arrived: Notify,
    /// Something is appended that is not synced.
    written: Notify,
    /// Held open for the lock on it.
    _lock: File,
}

struct State {
    limits: Limits,
    /// Records that wait, oldest first.
    entries: VecDeque<Entry>,
    /// Entries at the front that are being sent; limits do not touch them.
    in_flight: usize,
    bytes: u64,
    /// Oldest first; the last is the one written to when `is_writing`.
    segments: VecDeque<Segment>,
    is_writing: bool,
    next_segment: u64,
    next_id: u64,
    saved: Cursor,
    unsynced: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    id: u64,
    segment: u64,
    offset: u64,
    /// Bytes of the record with its framing.
    length: u32,
    queued_ms: u64,
}

struct Segment {
    number: u64,
    file: Arc<File>,
    bytes: u64,
    /// Entries that still wait in it.
    waiting: usize,
}

impl Queue {
    /// Opens the queue in `folder`, made if it is not there, and takes up what waits in it.
    pub fn open(folder: &Path, limits: Limits, metrics: EndpointMetrics) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let lock = lock(&folder.join("lock"))?;
        let saved = Cursor::load(folder);
        let mut state = State {
            limits,
            entries: VecDeque::new(),
            in_flight: 0,
            bytes: 0,
            segments: VecDeque::new(),
            is_writing: false,
            next_segment: saved.segment + 1,
            next_id: 0,
            saved,
            unsynced: 0,
        };
        for (number, path) in segment_files(folder)? {
            state.next_segment = state.next_segment.max(number + 1);
            if number < saved.segment {
                fs::remove_file(&path)?;
                continue;
            }
            state.restore(number, &path, &metrics)?;
        }
        let queue = Self {
            folder: folder.to_owned(),
            metrics,
            state: Mutex::new(state),
            arrived: Notify::new(),
            written: Notify::new(),
            _lock: lock,
        };
        queue.enforce(&mut queue.state.lock());
        Ok(queue)
    }

    /// Appends a batch as one write. On an error nothing of it is in the queue. Blocks on the disk.
    pub fn append(&self, encoded: &Encoded) -> io::Result<()> {
        if encoded.lengths.is_empty() {
            return Ok(());
        }
        let mut state = self.state.lock();
        let start = state.write(&self.folder, &encoded.bytes)?;
        let segment = state.next_segment - 1;
        let mut offset = start;
        for length in &encoded.lengths {
            let id = state.next_id;
            state.next_id += 1;
            state.bytes += u64::from(*length);
            state.entries.push_back(Entry {
                id,
                segment,
                offset,
                length: *length,
                queued_ms: encoded.queued_ms,
            });
            offset += u64::from(*length);
        }
        if let Some(last) = state.segments.back_mut() {
            last.waiting += encoded.lengths.len();
        }
        self.enforce(&mut state);
        let is_sync_due = state.unsynced >= UNSYNCED_BYTES;
        drop(state);
        if is_sync_due {
            self.sync()?;
        }
        self.arrived.notify_one();
        self.written.notify_one();
        Ok(())
    }

    /// Takes profiles from the front until a limit is reached, at least one if any waits. Blocks on the disk. Damaged
    /// records are dropped and counted.
    pub fn take(&self, max_bytes: u64, max_profiles: usize) -> Batch {
        let (entries, files) = {
            let mut state = self.state.lock();
            let mut bytes = 0;
            let mut entries = Vec::new();
            for entry in state.entries.iter().take(max_profiles.max(1)) {
                bytes += u64::from(entry.length);
                if bytes > max_bytes && !entries.is_empty() {
                    break;
                }
                entries.push(*entry);
            }
            state.in_flight = entries.len();
            let files: Vec<Option<Arc<File>>> = entries.iter().map(|entry| state.file_of(entry.segment)).collect();
            (entries, files)
        };
        let mut batch = Batch {
            ids: Vec::with_capacity(entries.len()),
            profiles: Vec::with_capacity(entries.len()),
            bytes: 0,
        };
        let mut damaged = Vec::new();
        for (entry, file) in entries.iter().zip(files) {
            match file.and_then(|file| read(&file, entry)) {
                Some(profile) => {
                    batch.ids.push(entry.id);
                    batch.profiles.push(profile);
                    batch.bytes += u64::from(entry.length);
                }
                None => damaged.push(*entry),
            }
        }
        if !damaged.is_empty() {
            let ids: Vec<u64> = damaged.iter().map(|entry| entry.id).collect();
            let mut state = self.state.lock();
            for entry in &damaged {
                self.metrics.dropped(DropReason::Damaged, 1, u64::from(entry.length));
            }
            state.remove(&ids);
            state.in_flight = batch.ids.len();
            tracing::error!(folder = %self.folder.display(), count = ids.len(), "queued profiles are damaged and \
                dropped");
        }
        batch
    }

    /// Ends what [`Queue::take`] began: the profiles of `done` leave the queue, the others of the batch wait again.
    /// Blocks on the disk.
    pub fn finish(&self, done: &[u64]) {
        let mut state = self.state.lock();
        state.remove(done);
        state.in_flight = 0;
        self.enforce(&mut state);
        if let Err(error) = self.save(&mut state) {
            // Not fatal: after a restart these profiles are sent once more.
            tracing::warn!(folder = %self.folder.display(), error = %error, "cannot save the place in the queue");
        }
    }

    /// Drops and counts what is too old.
    pub fn expire(&self) {
        self.enforce(&mut self.state.lock());
    }

    /// Brings to the disk what was appended. Blocks on the disk.
    pub fn sync(&self) -> io::Result<()> {
        let file = {
            let mut state = self.state.lock();
            if state.unsynced == 0 {
                return Ok(());
            }
            state.unsynced = 0;
            state.segments.back().map(|segment| segment.file.clone())
        };
        let synced = file.map_or(Ok(()), |file| file.sync_data());
        if synced.is_err() {
            self.state.lock().unsynced += 1;
        }
        synced
    }

    /// True when something is appended that is not synced.
    pub fn is_sync_due(&self) -> bool {
        self.state.lock().unsynced > 0
    }

    /// Waits until something is appended that has to be synced. For one caller.
    pub async fn written(&self) {
        self.written.notified().await;
    }

    /// Waits until something is appended.
    pub async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Number, bytes and age of what waits now.
    pub fn waiting(&self) -> Waiting {
        let state = self.state.lock();
        Waiting {
            profiles: state.entries.len() as u64,
            bytes: state.bytes,
            oldest_age: state
                .entries
                .front()
                .map_or(Duration::ZERO, |entry| age(entry.queued_ms, now_ms())),
        }
    }

    /// Sets other bounds; what is beyond them goes.
    pub fn set_limits(&self, limits: Limits) {
        let mut state = self.state.lock();
        state.limits = limits;
        self.enforce(&mut state);
    }

    /// Drops the oldest entries that are not being sent while a limit is exceeded.
    fn enforce(&self, state: &mut State) {
        let now = now_ms();
        let mut is_changed = false;
        while let Some(entry) = state.entries.get(state.in_flight).copied() {
            let reason = if state.bytes > state.limits.max_bytes {
                DropReason::QueueSize
            } else if age(entry.queued_ms, now) > state.limits.max_age {
                DropReason::QueueAge
            } else {
                break;
            };
            let index = state.in_flight;
            state.entries.remove(index);
            state.forget(&entry);
            self.metrics.dropped(reason, 1, u64::from(entry.length));
            is_changed = true;
        }
        if is_changed {
            // A place that is not saved only means that what was dropped may come back after a kill, within the limits.
            let _ = self.save(state);
        }
    }

    /// Saves the place of the first entry and deletes segments that hold nothing.
    fn save(&self, state: &mut State) -> io::Result<()> {
        let front = state.entries.front().map(|entry| Cursor {
            segment: entry.segment,
            offset: entry.offset,
        });
        let end = state.segments.back().map(|segment| Cursor {
            segment: segment.number,
            offset: segment.bytes,
        });
        let cursor = front.or(end).unwrap_or(state.saved);
        if cursor != state.saved {
            cursor.save(&self.folder)?;
            state.saved = cursor;
        }
        let writing = if state.is_writing {
            state.next_segment - 1
        } else {
            u64::MAX
        };
        let is_empty = |segment: &Segment| segment.waiting == 0 && segment.number != writing;
        for segment in state.segments.iter().filter(|segment| is_empty(segment)) {
            match fs::remove_file(segment_path(&self.folder, segment.number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        state.segments.retain(|segment| !is_empty(segment));
        Ok(())
    }
}

impl State {
    /// Takes up the records of a segment that a former process left.
    fn restore(&mut self, number: u64, path: &Path, metrics: &EndpointMetrics) -> io::Result<()> {
        let data = Bytes::from(fs::read(path)?);
        let start = data.as_ptr() as usize;
        let contents = match segment::parse(data.clone()) {
            Ok(contents) => contents,
            Err(reason) => {
                tracing::error!(path = %path.display(), reason = %reason, "a file in the queue is not a segment, it is \
                    left alone");
                return Ok(());
            }
        };
        if contents.damaged_bytes > 0 {
            metrics.dropped(DropReason::Damaged, 1, contents.damaged_bytes);
            tracing::error!(path = %path.display(), bytes = contents.damaged_bytes, "queued profiles are damaged and \
                dropped");
        }
        if contents.torn_bytes > 0 {
            tracing::warn!(path = %path.display(), bytes = contents.torn_bytes, "the last write of the queue was cut \
                short");
        }
        let before = self.entries.len();
        for payload in &contents.records {
            let offset = (payload.as_ptr() as usize - start - segment::RECORD_HEADER_BYTES) as u64;
            if number == self.saved.segment && offset < self.saved.offset {
                continue;
            }
            let length = payload.len() + segment::RECORD_HEADER_BYTES;
            let Ok(queued_ms) = record::queued_ms(payload) else {
                metrics.dropped(DropReason::Damaged, 1, length as u64);
                continue;
            };
            self.entries.push_back(Entry {
                id: self.next_id,
                segment: number,
                offset,
                length: length as u32,
                queued_ms,
            });
            self.next_id += 1;
            self.bytes += length as u64;
        }
        let waiting = self.entries.len() - before;
        if waiting == 0 {
            return fs::remove_file(path);
        }
        self.segments.push_back(Segment {
            number,
            file: Arc::new(File::open(path)?),
            bytes: contents.valid_bytes,
            waiting,
        });
        Ok(())
    }

    /// Writes framed records to the current segment or a new one; returns the offset at which they start.
    fn write(&mut self, folder: &Path, bytes: &[u8]) -> io::Result<u64> {
        let is_full = self
            .segments
            .back()
            .is_none_or(|segment| segment.bytes >= SEGMENT_BYTES);
        if !self.is_writing || is_full {
            if self.is_writing
                && self.unsynced > 0
                && let Some(segment) = self.segments.back()
            {
                // A closed segment is always synced, so that `sync` needs to look at the last one only.
                segment.file.sync_data()?;
                self.unsynced = 0;
            }
            let number = self.next_segment;
            let file = segment::create(&segment_path(folder, number))?;
            File::open(folder)?.sync_all()?;
            self.next_segment += 1;
            self.is_writing = true;
            self.segments.push_back(Segment {
                number,
                file: Arc::new(file),
                bytes: segment::MAGIC.len() as u64,
                waiting: 0,
            });
        }
        let Some(segment) = self.segments.back_mut() else {
            return Err(io::Error::other("the queue has no segment to write to"));
        };
        let start = segment.bytes;
        if let Err(error) = segment.file.as_ref().write_all(bytes) {
            // Part of it may be there: cut it off, or leave the segment as it is and go on in a new one.
            if segment.file.set_len(start).is_err() {
                self.is_writing = false;
            }
            return Err(error);
        }
        segment.bytes += bytes.len() as u64;
        self.unsynced += bytes.len() as u64;
        Ok(start)
    }

    /// Removes entries by id; they are among the first `in_flight`.
    fn remove(&mut self, ids: &[u64]) {
        let front: Vec<Entry> = self.entries.drain(..self.in_flight.min(self.entries.len())).collect();
        for entry in front.into_iter().rev() {
            if ids.contains(&entry.id) {
                self.forget(&entry);
            } else {
                self.entries.push_front(entry);
            }
        }
    }

    /// Takes an entry that has left `entries` out of the sums.
    fn forget(&mut self, entry: &Entry) {
        self.bytes -= u64::from(entry.length);
        if let Some(segment) = self.segments.iter_mut().find(|segment| segment.number == entry.segment) {
            segment.waiting -= 1;
        }
    }

    fn file_of(&self, number: u64) -> Option<Arc<File>> {
        self.segments
            .iter()
            .find(|segment| segment.number == number)
            .map(|segment| segment.file.clone())
    }
}

/// Reads and checks one record.
fn read(file: &File, entry: &Entry) -> Option<RawProfile> {
    let mut data = vec![0; entry.length as usize];
    file.read_exact_at(&mut data, entry.offset).ok()?;
    let data = Bytes::from(data);
    let payload = data.slice(segment::RECORD_HEADER_BYTES..);
    let checksum = u32::from_le_bytes(data.get(4..segment::RECORD_HEADER_BYTES)?.try_into().ok()?);
    if crc32fast::hash(&payload) != checksum {
        return None;
    }
    record::decode(&payload).ok()
}

/// Unix time in milliseconds.
pub fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

fn age(queued_ms: u64, now_ms: u64) -> Duration {
    Duration::from_millis(now_ms.saturating_sub(queued_ms))
}
