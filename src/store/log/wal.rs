//! The write-ahead log: segment files `NNNNNNNNNNNN.seg`, written and synced by one thread.
//!
//! Callers append framed records to a buffer under a short lock. Each call also passes an item: a value that the log
//! returns in an event. The thread writes all pending records, syncs once (group commit), and sends their items in a
//! [`LogEvent::Durable`], in the order of the log. After a failure, the thread sends the items in a
//! [`LogEvent::Failed`] and cuts the file back to its last durable byte (or records the durable length beside the file,
//! see `cut`). Until a new segment is written and synced, the log refuses appends. The thread retries until this
//! succeeds, so the log recovers from a full disk on its own. The caller chooses the type of the items and deletes the
//! segments.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::store::common::error::is_full;
use crate::store::common::error::{LogFailure, StoreError};
use crate::store::common::fault::Faults;
use crate::store::common::lifecycle::catch_panic;
use crate::store::common::metrics::Metrics;
use crate::store::log::segment::{Segment, SyncMode};
pub(crate) use crate::store::log::segment::{segment_path, segments};
use alluvium_base::segment::{KEYED_HEADER_BYTES, Key};

/// Number of bytes that may wait for the writer before the log refuses appends. A busy disk writes them in some
/// seconds.
const PENDING_LIMIT_BYTES: usize = 64 << 20;
/// Interval between two attempts of a failed log to write again.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);
/// Buffers larger than this are freed after the write.
const KEEP_BUFFER_BYTES: usize = 4 << 20;

/// An event of the log, in the order of the log.
pub(crate) enum LogEvent<T> {
    /// The records of the items are durable.
    Durable(Vec<T>),
    /// The records of the items are not in the log and never will be.
    Failed(Vec<T>, Arc<str>),
    /// The log was rotated. The number is that of the ended segment. It and earlier segments contain the records of all
    /// earlier durable items. The records of all later items are in later segments.
    Rotated(u64, SyncSender<u64>),
}

/// The log, open for appending. When it is dropped, the thread writes the pending records and ends.
pub(crate) struct Log<T: Send + 'static> {
    shared: Arc<Shared<T>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared<T> {
    /// The checksum key of all segments of this process.
    key: Key,
    state: Mutex<State<T>>,
    wake: Condvar,
}

struct State<T> {
    pending: Vec<u8>,
    items: Vec<T>,
    /// Channels to the callers that wait for a rotation. The thread sends the outcome through them. If it is `Ok`, the
    /// reader of the events sends the segment number through the caller's second channel, in `rotation_replies`.
    rotations: Vec<SyncSender<Result<(), LogFailure>>>,
    rotation_replies: Vec<SyncSender<u64>>,
    failure: Option<Arc<str>>,
    stopped: bool,
}

/// An append that was refused: its item and the reason.
pub(crate) struct RefusedAppend<T>(pub(crate) T, pub(crate) Arc<str>);

impl<T: Send + 'static> Log<T> {
    /// Creates segment `number` in `folder` and starts the thread. If the disk has no room for the segment, the log
    /// starts in the state after a failed write: it refuses appends until there is room.
    pub(crate) fn open(
        folder: &Path,
        number: u64,
        sync: SyncMode,
        faults: Faults,
        metrics: Metrics,
        events: SyncSender<LogEvent<T>>,
    ) -> Result<Self, StoreError> {
        let path = segment_path(folder, number);
        let key = Key::random();
        let (segment, failure) = match Segment::create(folder, number, (key, sync), &faults) {
            Ok(segment) => (segment, None),
            Err(error) if is_full(&error) => {
                tracing::error!(error = %error, segment = number, "the disk is full, the store is read-only and \
                    refuses profiles until there is room for the write-ahead log");
                metrics.log_failures.inc();
                let reason = format!("the store is read-only because it cannot create the write-ahead log: {error}");
                let placeholder =
                    Segment::placeholder(number.saturating_sub(1)).map_err(StoreError::io("create", &path))?;
                (placeholder, Some(reason.into()))
            }
            Err(error) => return Err(StoreError::io("create", &path)(error)),
        };
        let faults = faults.recording_waits(&metrics.waits.log);
        let shared = Arc::new(Shared {
            key,
            state: Mutex::new(State {
                pending: Vec::new(),
                items: Vec::new(),
                rotations: Vec::new(),
                rotation_replies: Vec::new(),
                failure,
                stopped: false,
            }),
            wake: Condvar::new(),
        });
        let mut writer = Writer {
            shared: shared.clone(),
            folder: folder.to_owned(),
            segment,
            sync,
            faults,
            metrics,
            events,
        };
        let thread = std::thread::Builder::new()
            .name("store-log".to_owned())
            .spawn(move || {
                if let Err(reason) = catch_panic(|| writer.run()) {
                    tracing::error!(
                        %reason,
                        "the thread of the write-ahead log has ended, the store accepts no profiles until a restart"
                    );
                    writer.end(
                        &format!("the thread of the write-ahead log has ended: {reason}; restart the server").into(),
                    );
                }
            })
            .map_err(StoreError::io("start the writer thread of", folder))?;
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Queues records, each given in two pieces, and their item. The call returns at once, and an event follows.
    pub(crate) fn append(&self, records: &[[&[u8]; 2]], item: T) -> Result<(), RefusedAppend<T>> {
        let mut state = self.shared.state.lock();
        if let Some(reason) = &state.failure {
            let reason = reason.clone();
            return Err(RefusedAppend(item, reason));
        }
        if state.stopped {
            return Err(RefusedAppend(item, Arc::from("the store is closing")));
        }
        if state.pending.len() > PENDING_LIMIT_BYTES {
            return Err(RefusedAppend(
                item,
                Arc::from("the disk cannot keep up with the write-ahead log"),
            ));
        }
        for record in records {
            self.shared.key.encode(record, &mut state.pending);
        }
        state.items.push(item);
        drop(state);
        self.shared.wake.notify_one();
        Ok(())
    }

    /// Ends the current segment and opens the next. Blocks until the reader of the events has replied to
    /// [`LogEvent::Rotated`]. Returns the number of the last segment with records from before the call.
    pub(crate) fn rotate(&self) -> Result<u64, StoreError> {
        let (failed_tx, failed_rx) = sync_channel(1);
        let (reply_tx, reply_rx) = sync_channel(1);
        {
            let mut state = self.shared.state.lock();
            if state.stopped {
                return Err(StoreError::Closed);
            }
            state.rotations.push(failed_tx);
            state.rotation_replies.push(reply_tx);
        }
        self.shared.wake.notify_one();
        match failed_rx.recv() {
            Ok(Ok(())) => reply_rx.recv().map_err(|_| StoreError::Closed),
            Ok(Err(reason)) => Err(StoreError::LogUnavailable(reason)),
            Err(_) => Err(StoreError::Closed),
        }
    }

    /// Returns why the log accepts no records at the moment, or `None` if it accepts records.
    pub(crate) fn failure(&self) -> Option<Arc<str>> {
        self.shared.state.lock().failure.clone()
    }

    /// Refuses further appends. The thread writes the pending records and ends.
    pub(crate) fn begin_stop(&self) {
        self.shared.state.lock().stopped = true;
        self.shared.wake.notify_one();
    }

    /// Returns true if the thread has ended or was detached by [`give_up`](Self::give_up).
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.lock().as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Detaches the thread, so that no caller waits for it any more.
    pub(crate) fn give_up(&self) {
        drop(self.thread.lock().take());
    }

    /// Refuses further appends, writes the pending records and ends the thread.
    pub(crate) fn stop(&self) {
        self.begin_stop();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the write-ahead log's thread panicked");
        }
    }
}

impl<T: Send + 'static> Drop for Log<T> {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Writer<T: Send + 'static> {
    shared: Arc<Shared<T>>,
    folder: PathBuf,
    segment: Segment,
    sync: SyncMode,
    faults: Faults,
    metrics: Metrics,
    events: SyncSender<LogEvent<T>>,
}

impl<T: Send + 'static> Writer<T> {
    /// Ends the log after a panic: refuses all further appends and ends all waits.
    fn end(&self, reason: &Arc<str>) {
        self.fail(Vec::new(), reason);
        let mut state = self.shared.state.lock();
        state.stopped = true;
        state.rotations.clear();
        state.rotation_replies.clear();
    }

    fn run(&mut self) {
        let mut spare = Vec::new();
        loop {
            let (bytes, items, rotations, replies, stopped) = {
                let mut state = self.shared.state.lock();
                // A log that started without room must try to recover at once.
                while state.items.is_empty() && state.rotations.is_empty() && !state.stopped && state.failure.is_none()
                {
                    self.shared.wake.wait(&mut state);
                }
                (
                    std::mem::replace(&mut state.pending, std::mem::take(&mut spare)),
                    std::mem::take(&mut state.items),
                    std::mem::take(&mut state.rotations),
                    std::mem::take(&mut state.rotation_replies),
                    state.stopped,
                )
            };
            if !items.is_empty() {
                self.commit(&bytes, items);
            }
            for (request, reply) in rotations.into_iter().zip(replies) {
                self.rotate(&request, reply);
            }
            spare = bytes;
            spare.clear();
            if spare.capacity() > KEEP_BUFFER_BYTES {
                spare = Vec::new();
            }
            if self.shared.state.lock().failure.is_some() {
                self.recover();
            }
            if stopped {
                return;
            }
        }
    }

    fn commit(&mut self, bytes: &[u8], items: Vec<T>) {
        let start = Instant::now();
        let working = self.metrics.waits.log.begin();
        let written = self.segment.write(bytes, items.len(), self.sync, &self.faults);
        drop(working);
        match written {
            Ok(()) => {
                self.metrics.log_sync_seconds.observe(start.elapsed().as_secs_f64());
                self.metrics.log_bytes.inc_by(bytes.len() as u64);
                let _ = self.events.send(LogEvent::Durable(items));
            }
            Err(error) => {
                let reason: Arc<str> = format!("cannot write the write-ahead log: {error}").into();
                tracing::error!(error = %error, segment = self.segment.number, "write-ahead log failed, refusing \
                    profiles until it can be written");
                self.metrics.log_failures.inc();
                self.fail(items, &reason);
            }
        }
    }

    /// Refuses `items` and all items that were queued meanwhile.
    fn fail(&self, mut items: Vec<T>, reason: &Arc<str>) {
        {
            let mut state = self.shared.state.lock();
            state.failure = Some(reason.clone());
            state.pending.clear();
            items.append(&mut state.items);
        }
        let _ = self.events.send(LogEvent::Failed(items, reason.clone()));
    }

    fn rotate(&mut self, request: &SyncSender<Result<(), LogFailure>>, reply: SyncSender<u64>) {
        let failure = self.shared.state.lock().failure.clone();
        let result = if let Some(reason) = failure {
            Err(LogFailure::Write(reason))
        } else {
            let last = self.segment.number;
            let _working = self.metrics.waits.log.begin();
            Segment::create(&self.folder, last + 1, (self.shared.key, self.sync), &self.faults)
                .map(|segment| {
                    self.segment = segment;
                    let _ = self.events.send(LogEvent::Rotated(last, reply));
                })
                .map_err(LogFailure::Segment)
        };
        let _ = request.send(result);
    }

    /// Cuts the failed segment back and opens a new segment. Retries until both succeed or the log is stopped.
    /// Meanwhile, one rotation can succeed without a new segment, so that a flush can run and free room on the disk.
    fn recover(&mut self) {
        let mut ended = None;
        loop {
            let cleaned = self.clean();
            let is_clean = cleaned.is_ok();
            match cleaned.and_then(|()| self.try_next()) {
                Ok(()) => {
                    tracing::info!(segment = self.segment.number, "write-ahead log is writable again");
                    self.shared.state.lock().failure = None;
                    return;
                }
                Err(error) => tracing::debug!(error = %error, "write-ahead log is still not writable"),
            }
            let (rotations, replies, reason, is_stopped) = {
                let mut state = self.shared.state.lock();
                (
                    std::mem::take(&mut state.rotations),
                    std::mem::take(&mut state.rotation_replies),
                    state.failure.clone().unwrap_or_else(|| "the log failed".into()),
                    state.stopped,
                )
            };
            for (request, reply) in rotations.into_iter().zip(replies) {
                let last = self.segment.number;
                if is_clean && ended != Some(last) {
                    // The rotation needs no new file: no record follows in this segment, and the next segment has
                    // another number.
                    ended = Some(last);
                    let _ = self.events.send(LogEvent::Rotated(last, reply));
                    let _ = request.send(Ok(()));
                } else {
                    let _ = request.send(Err(LogFailure::Write(reason.clone())));
                }
            }
            if is_stopped {
                return;
            }
            let mut state = self.shared.state.lock();
            if state.rotations.is_empty() && !state.stopped {
                self.shared.wake.wait_for(&mut state, PROBE_INTERVAL);
            }
        }
    }

    /// Ensures that refused records do not reappear at the next start.
    fn clean(&mut self) -> io::Result<()> {
        let _working = self.metrics.waits.log.begin();
        if self.segment.exists
            && let Err(error) = self.segment.truncate(&self.faults)
        {
            self.segment.mark(&self.folder, &self.faults).map_err(|_| error)?;
        }
        Ok(())
    }

    /// Continues in the next segment if it can be written.
    fn try_next(&mut self) -> io::Result<()> {
        let _working = self.metrics.waits.log.begin();
        let number = self.segment.number + 1;
        let mut probe = match Segment::create(&self.folder, number, (self.shared.key, self.sync), &self.faults) {
            Ok(segment) => segment,
            Err(error) => {
                let _ = std::fs::remove_file(segment_path(&self.folder, number));
                return Err(error);
            }
        };
        // The probe writes some bytes, because a disk without a free block can still create empty files.
        let probed = probe
            .write(&[0; 8192], 0, self.sync, &self.faults)
            .and_then(|()| probe.cut_to(KEYED_HEADER_BYTES as u64, &self.faults));
        if let Err(error) = probed {
            let _ = std::fs::remove_file(segment_path(&self.folder, number));
            return Err(error);
        }
        self.segment = probe;
        Ok(())
    }
}

/// The receiving end of the log's events.
pub(crate) type LogEvents<T> = Receiver<LogEvent<T>>;

#[cfg(test)]
#[path = "wal_tests.rs"]
mod tests;
