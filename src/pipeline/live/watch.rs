//! A watcher: a bounded queue of entries between a component and one who looks.
//!
//! The component never waits. The queue is bounded in entries and in the bytes that they keep alive; what does not fit is lost and counted.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::pipeline::live::entry::Entry;
use crate::pipeline::live::{Channel, LiveHandle};

/// Entries that wait for a slow watcher at most.
const MOST_ENTRIES: usize = 1000;
/// Bytes that the waiting entries keep alive at most, roughly: 8 MiB.
const MOST_BYTES: usize = 8 << 20;

/// An entry, when it was, and whose it is.
#[derive(Debug, Clone)]
pub struct Stamped {
    /// When.
    pub time: SystemTime,
    /// Id of the component.
    pub component: Arc<str>,
    /// What.
    pub entry: Arc<Entry>,
}

/// Entries that came since the last look.
#[derive(Debug, Default)]
pub struct Batch {
    /// In the order in which they were told.
    pub entries: Vec<Stamped>,
    /// Entries that did not fit since the last look.
    pub lost: u64,
}

/// One who looks at a component; dropping it ends the look.
pub struct Watch {
    watcher: Arc<Watcher>,
    channel: Weak<Channel>,
}

pub(super) struct Watcher {
    probability: f64,
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Default)]
struct State {
    entries: VecDeque<Stamped>,
    bytes: usize,
    lost: u64,
    closed: bool,
}

impl Stamped {
    pub(super) fn now(component: Arc<str>, entry: Entry) -> Self {
        Self {
            time: SystemTime::now(),
            component,
            entry: Arc::new(entry),
        }
    }
}

impl Watch {
    pub(super) fn new(watcher: Arc<Watcher>, channel: Weak<Channel>) -> Self {
        Self { watcher, channel }
    }

    /// A handle that tells this watch only.
    pub(super) fn handle(&self, id: &Arc<str>) -> LiveHandle {
        LiveHandle::only(id, self.watcher.clone())
    }

    /// What has come since the last look, once there is something; `None` at the end: the component ended, or watching was forbidden.
    pub async fn next(&mut self) -> Option<Batch> {
        loop {
            let wake = self.watcher.wake.notified();
            {
                let mut state = self.watcher.state.lock();
                if !state.entries.is_empty() || state.lost > 0 {
                    state.bytes = 0;
                    return Some(Batch {
                        entries: std::mem::take(&mut state.entries).into(),
                        lost: std::mem::take(&mut state.lost),
                    });
                }
                if state.closed {
                    return None;
                }
            }
            wake.await;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(channel) = self.channel.upgrade() {
            channel.remove(&self.watcher);
        }
    }
}

impl Watcher {
    pub(super) fn new(probability: f64) -> Self {
        Self {
            probability,
            state: Mutex::default(),
            wake: Notify::new(),
        }
    }

    /// Throws the dice of the sampling.
    pub(super) fn wants(&self) -> bool {
        self.probability >= 1.0 || rand::random::<f64>() < self.probability
    }

    pub(super) fn push(&self, stamped: Stamped) {
        let weight = stamped.entry.weight();
        let mut state = self.state.lock();
        if state.closed {
            return;
        }
        let is_full = state.entries.len() >= MOST_ENTRIES || state.bytes.saturating_add(weight) > MOST_BYTES;
        if is_full && !state.entries.is_empty() {
            state.lost += 1;
            return;
        }
        state.bytes += weight;
        state.entries.push_back(stamped);
        drop(state);
        self.wake.notify_one();
    }

    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_one();
    }
}
