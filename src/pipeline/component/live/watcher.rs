//! A watcher: a bounded queue of entries from a component to one client.
//!
//! The component never waits. The queue is bounded in entries and in the bytes that they keep alive; entries that do
//! not fit are dropped and counted.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::component::live::entry::TimedEntry;

/// Maximum number of entries that wait for a slow watcher.
const MAX_WAITING_ENTRIES: usize = 1000;
/// Approximate maximum of bytes that the waiting entries keep alive: 8 MiB.
const MAX_WAITING_BYTES: usize = 8 << 20;

/// The entries since the last read.
#[derive(Debug, Default)]
pub struct Batch {
    /// The entries in the order of their events.
    pub entries: Vec<TimedEntry>,
    /// Number of entries that were dropped since the last read.
    pub dropped: u64,
}

/// The queue: components push, one client reads.
pub(super) struct Watcher {
    probability: f64,
    queue: Mutex<Queue>,
    wake: Notify,
}

#[derive(Default)]
struct Queue {
    entries: VecDeque<TimedEntry>,
    bytes: usize,
    dropped: u64,
    closed: bool,
}

impl Watcher {
    pub(super) fn new(probability: f64) -> Self {
        Self {
            probability,
            queue: Mutex::default(),
            wake: Notify::new(),
        }
    }

    /// Decides at random, by the sampling probability, whether to send an entry.
    pub(super) fn wants(&self) -> bool {
        self.probability >= 1.0 || rand::random::<f64>() < self.probability
    }

    pub(super) fn push(&self, stamped: TimedEntry) {
        let weight = stamped.entry.weight();
        let mut queue = self.queue.lock();
        if queue.closed {
            return;
        }
        let is_full =
            queue.entries.len() >= MAX_WAITING_ENTRIES || queue.bytes.saturating_add(weight) > MAX_WAITING_BYTES;
        if is_full && !queue.entries.is_empty() {
            queue.dropped += 1;
            return;
        }
        queue.bytes += weight;
        queue.entries.push_back(stamped);
        drop(queue);
        self.wake.notify_one();
    }

    /// Waits for entries and returns the entries since the last call; `None` if the watcher is closed.
    pub(super) async fn next(&self) -> Option<Batch> {
        loop {
            let wake = self.wake.notified();
            {
                let mut queue = self.queue.lock();
                if !queue.entries.is_empty() || queue.dropped > 0 {
                    queue.bytes = 0;
                    return Some(Batch {
                        entries: std::mem::take(&mut queue.entries).into(),
                        dropped: std::mem::take(&mut queue.dropped),
                    });
                }
                if queue.closed {
                    return None;
                }
            }
            wake.await;
        }
    }

    pub(super) fn close(&self) {
        self.queue.lock().closed = true;
        self.wake.notify_one();
    }
}
