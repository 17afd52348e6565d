//! The durable, bounded queue of one endpoint: profiles wait in segment files until the endpoint has accepted them.
//!
//! In: encoded profiles. Out: batches, oldest first. Once appended, profiles survive a kill of the process, because
//! they are in the page cache. They survive a power failure after the next sync, at most 100 ms or 4 MiB later. If the
//! queue exceeds its limits of size or age, the oldest profiles are dropped. Each dropped profile is counted, and a
//! burst of drops is logged as one line. The file `cursor` in the folder names the first record that is not handled
//! yet, so a restart sends at most the current batch again.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::common::sending::outbox::metrics::{DropReason, EndpointMetrics};
use alluvium_base::file::create_folders;
use alluvium_base::segment;
use alluvium_profile::RawProfile;

mod age;
mod cursor;
mod files;
pub(crate) mod record;
mod state;
#[cfg(test)]
mod tests;

use age::{QueueClock, Queued};
use cursor::Cursor;
use files::{lock, segment_files, segment_path};
use record::Encoded;
use state::{Entry, Segment, State};

pub(crate) use age::now_ms;
pub(crate) use state::Limits;

/// Number of unsynced bytes at which an append syncs at once.
const UNSYNCED_BYTES: u64 = 4 << 20;

/// Maximum time that an inspection waits for the queue's lock. The holder of the lock may wait for a disk that does not
/// respond.
const LOOK_PATIENCE: Duration = Duration::from_millis(50);

/// Number, size and age of queued profiles, for metrics and debug info.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Waiting {
    /// Number of queued profiles.
    pub profiles: u64,
    /// Size of the profiles' records, in bytes.
    pub bytes: u64,
    /// Age of the oldest profile; zero if the queue is empty.
    pub oldest_age: Duration,
}

/// Profiles from the front of the queue. They stay in the queue until [`Queue::finish`].
pub(super) struct Batch {
    /// Ids of the queue's entries, in the order of `profiles`.
    pub ids: Vec<u64>,
    /// The profiles, oldest first.
    pub profiles: Vec<RawProfile>,
    /// Size of the profiles' records, in bytes.
    pub bytes: u64,
}

/// A queue in a folder of its own.
pub(super) struct Queue {
    folder: PathBuf,
    metrics: EndpointMetrics,
    clock: QueueClock,
    state: Mutex<State>,
    /// The last known state, for inspections while the disk does not respond.
    last_waiting: Mutex<Waiting>,
    arrived: Notify,
    /// Notified when appended profiles need a sync.
    written: Notify,
    /// The lock file, locked while it is open.
    _lock: File,
}

impl Queue {
    /// Opens the queue in `folder`, which is created if it does not exist, and restores the profiles in it.
    pub(super) fn open(folder: &Path, limits: Limits, metrics: EndpointMetrics) -> io::Result<Self> {
        Self::open_with(folder, limits, metrics, QueueClock::system())
    }

    fn open_with(folder: &Path, limits: Limits, metrics: EndpointMetrics, clock: QueueClock) -> io::Result<Self> {
        create_folders(folder)?;
        let lock = lock(&folder.join("lock"))?;
        let saved = Cursor::load(folder);
        let mut state = State::new(limits, saved);
        let files = segment_files(folder)?;
        let last = files.last().map(|(number, _)| *number);
        for (number, path) in files {
            state.next_segment = state.next_segment.max(number + 1);
            if number < saved.segment {
                fs::remove_file(&path)?;
                continue;
            }
            state.restore((number, Some(number) == last), &path, &metrics, clock.now())?;
        }
        // A killed process may not have synced the directory entry of the last segment.
        File::open(folder)?.sync_all()?;
        let queue = Self {
            folder: folder.to_owned(),
            metrics,
            clock,
            state: Mutex::new(state),
            last_waiting: Mutex::default(),
            arrived: Notify::new(),
            written: Notify::new(),
            _lock: lock,
        };
        queue.enforce(&mut queue.state.lock());
        Ok(queue)
    }

    /// Appends a batch as one write. On an error the queue contains no profile of the batch. Blocks on the disk.
    #[cfg(test)]
    pub(super) fn append(&self, encoded: &Encoded) -> io::Result<()> {
        self.begin(encoded)?.finish();
        self.sync_much();
        Ok(())
    }

    /// Writes a batch. [`Appending::finish`] makes it part of the queue. On an error, or if the result is dropped
    /// without `finish`, the batch is removed again. The queue is locked while the result exists. Blocks on the disk.
    pub(super) fn begin<'a>(&'a self, encoded: &'a Encoded) -> io::Result<Appending<'a>> {
        let mut state = self.state.lock();
        let start = if encoded.lengths.is_empty() {
            None
        } else {
            Some(state.write(&self.folder, &encoded.bytes)?)
        };
        Ok(Appending {
            queue: self,
            encoded,
            state: Some(state),
            start,
        })
    }

    /// Returns up to `max_profiles` profiles with up to `max_bytes` bytes from the front of the queue. Reads at least
    /// one record, unless the queue is empty. Damaged records are dropped and counted. Blocks on the disk.
    pub(super) fn take(&self, max_bytes: u64, max_profiles: usize) -> Batch {
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

    /// Finishes a batch of [`Queue::take`]: the profiles with the ids `done` leave the queue, and the other profiles of
    /// the batch wait again. Blocks on the disk.
    pub(super) fn finish(&self, done: &[u64]) {
        let mut state = self.state.lock();
        state.remove(done);
        state.in_flight = 0;
        self.enforce(&mut state);
        if let Err(error) = self.save(&mut state) {
            // This is not fatal: after a restart these profiles are sent once more.
            tracing::warn!(folder = %self.folder.display(), error = %error, "cannot save the position in the queue");
        }
    }

    /// Frees space on the disk: deletes the oldest segment that is neither being sent nor written to. Counts its
    /// profiles as dropped and returns their number, or `None` if there is no such segment. Blocks on the disk.
    pub(super) fn make_room(&self) -> Option<u64> {
        let mut state = self.state.lock();
        let number = state.oldest_at_rest()?;
        self.delete(&mut state, number)
    }

    /// Frees space for `encoded`: deletes the segment that is being written. It contains the oldest profiles if no
    /// other segment is at rest. Counts its profiles as dropped and returns their number. Returns `None` and deletes
    /// nothing if profiles of the segment are being sent, or if the segment is smaller than `encoded`. Blocks on the
    /// disk.
    pub(super) fn make_room_for(&self, encoded: &Encoded) -> Option<u64> {
        let mut state = self.state.lock();
        let needed_bytes = segment::MAGIC.len() + encoded.bytes.len();
        let number = state.close_written(needed_bytes as u64)?;
        self.delete(&mut state, number)
    }

    /// Deletes a segment that is neither being sent nor written to. Counts its profiles as dropped and returns their
    /// number.
    fn delete(&self, state: &mut State, number: u64) -> Option<u64> {
        fs::remove_file(segment_path(&self.folder, number)).ok()?;
        let dropped = state.drop_segment(number);
        for entry in &dropped {
            self.metrics.dropped(DropReason::Disk, 1, u64::from(entry.length));
        }
        // If the position cannot be saved for lack of space, a restart does not find the deleted segment and continues
        // with the next segment.
        let _ = self.save(state);
        Some(dropped.len() as u64)
    }

    /// Returns true if the oldest profile that is not being sent exceeds the maximum age. Does not wait for the disk:
    /// if the queue stays locked, returns false.
    pub(super) fn is_expired(&self) -> bool {
        self.state.try_lock_for(LOOK_PATIENCE).is_some_and(|state| {
            let oldest = state.entries.get(state.in_flight);
            oldest.is_some_and(|entry| entry.queued.is_over(self.clock.now(), state.limits.max_age))
        })
    }

    /// Drops and counts profiles that are too old. Blocks on the disk.
    pub(super) fn expire(&self) {
        self.enforce(&mut self.state.lock());
    }

    /// Syncs appended profiles to the disk. Blocks on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
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

    /// Syncs if many bytes are unsynced. Blocks on the disk.
    pub(super) fn sync_much(&self) {
        let is_sync_needed = self.state.lock().unsynced >= UNSYNCED_BYTES;
        if is_sync_needed {
            // The profiles are in the queue in any case. After a failure another sync is due, and that sync reports the
            // error.
            let _ = self.sync();
        }
    }

    /// Returns true if appended profiles are not synced.
    pub(super) fn is_sync_due(&self) -> bool {
        self.state.lock().unsynced > 0
    }

    /// Waits until appended profiles need a sync. Only one caller may wait.
    pub(super) async fn written(&self) {
        self.written.notified().await;
    }

    /// Waits until profiles are appended.
    pub(super) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Returns number, size and age of the queued profiles. While the disk does not respond, returns the last known
    /// values. Does not wait for the disk.
    pub(super) fn waiting(&self) -> Waiting {
        let Some(state) = self.state.try_lock_for(LOOK_PATIENCE) else {
            return *self.last_waiting.lock();
        };
        let waiting = Waiting {
            profiles: state.entries.len() as u64,
            bytes: state.bytes,
            oldest_age: state
                .entries
                .front()
                .map_or(Duration::ZERO, |entry| entry.queued.age(self.clock.now())),
        };
        drop(state);
        *self.last_waiting.lock() = waiting;
        waiting
    }

    /// Sets new limits, and drops the profiles that exceed them.
    pub(super) fn set_limits(&self, limits: Limits) {
        let mut state = self.state.lock();
        state.limits = limits;
        self.enforce(&mut state);
    }

    /// While a limit is exceeded, drops the oldest entry that is not being sent.
    fn enforce(&self, state: &mut State) {
        let now = self.clock.now();
        let mut is_changed = false;
        while let Some(entry) = state.entries.get(state.in_flight).copied() {
            let reason = if state.bytes > state.limits.max_bytes {
                DropReason::QueueSize
            } else if entry.queued.is_over(now, state.limits.max_age) {
                DropReason::QueueAge
            } else {
                break;
            };
            let index = state.in_flight;
            state.entries.remove(index);
            state.forget(&entry);
            self.metrics.dropped(reason, 1, u64::from(entry.length));
            state.drops.add(reason == DropReason::QueueAge);
            is_changed = true;
        }
        if let Some((too_old, too_many)) = state.drops.take_untold(now) {
            tracing::warn!(
                folder = %self.folder.display(), too_old, too_many,
                "dropped queued profiles that were older than `max_age` or exceeded `max_bytes` of the queue"
            );
        }
        if is_changed {
            // If the position cannot be saved, the dropped profiles may return to the queue after a kill, as far as the
            // limits allow.
            let _ = self.save(state);
        }
    }

    /// Saves the position of the first entry and deletes segments without waiting entries.
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

/// A batch that has been written and is not part of the queue yet.
pub(super) struct Appending<'a> {
    queue: &'a Queue,
    encoded: &'a Encoded,
    /// The locked state of the queue; `None` after [`Appending::finish`].
    state: Option<MutexGuard<'a, State>>,
    /// Offset of the batch in the last segment; `None` if the batch is empty.
    start: Option<u64>,
}

impl Appending<'_> {
    /// Makes the batch part of the queue.
    pub(super) fn finish(mut self) {
        let (Some(mut state), Some(start)) = (self.state.take(), self.start) else {
            return;
        };
        let queue = self.queue;
        let queued = Queued::new(self.encoded.queued_ms, queue.clock.now());
        state.put(start, &self.encoded.lengths, queued);
        queue.enforce(&mut state);
        drop(state);
        queue.arrived.notify_one();
        queue.written.notify_one();
    }
}

impl Drop for Appending<'_> {
    fn drop(&mut self) {
        if let (Some(state), Some(start)) = (&mut self.state, self.start) {
            state.cut(start);
        }
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
