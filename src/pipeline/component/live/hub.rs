//! The hub of live debugging: the watched components, and their reports.
//!
//! In: calls of components through their [`LiveHandle`]. Out: entries in the queues of watchers, and counters of the
//! flow over each edge.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::component::live::entry::{Entry, TimedEntry};
use crate::component::live::flows::{Edge, FlowCount, Flows, TargetCount};
use crate::component::live::watcher::{Batch, Watcher};

/// State that all components of a controller share: watchers and flow counters. Clones share the same hub.
#[derive(Clone, Default)]
pub struct LiveHub(Arc<Hub>);

#[derive(Default)]
struct Hub {
    /// True if components may be watched; flows are always counted.
    enabled: AtomicBool,
    flows: Flows,
    /// Channels by component. A channel whose component has ended is removed at the next read of the map.
    channels: Mutex<BTreeMap<Arc<str>, Weak<Channel>>>,
}

/// A component's handle to report events. Clones refer to the same component.
#[derive(Clone)]
pub struct LiveHandle(Arc<Channel>);

struct Channel {
    id: Arc<str>,
    hub: LiveHub,
    /// Length of `watchers`, so that an event without a watcher costs only one load.
    watched: AtomicUsize,
    watchers: Mutex<Vec<Arc<Watcher>>>,
    /// True if the watchers belong to another channel, which closes them.
    is_borrowed: bool,
    /// Number of targets that the component exports now.
    targets: AtomicU64,
    /// Sum of the target counts of all exports since the start. An export of no targets counts as 1.
    exported: AtomicU64,
}

/// A watch of one component; dropping it ends the watch.
pub struct Watch {
    watcher: Arc<Watcher>,
    channel: Weak<Channel>,
}

impl LiveHub {
    /// Creates the handle of a component that is being built.
    pub fn handle(&self, id: &Arc<str>) -> LiveHandle {
        let handle = LiveHandle(Arc::new(Channel::new(id.clone(), self.clone())));
        self.0.channels.lock().insert(id.clone(), Arc::downgrade(&handle.0));
        handle
    }

    /// Allows clients to watch components.
    pub fn enable(&self) {
        self.0.enabled.store(true, Ordering::Relaxed);
    }

    /// Forbids watching and ends all watches.
    pub fn disable(&self) {
        self.0.enabled.store(false, Ordering::Relaxed);
        for channel in self.channels() {
            channel.close();
        }
    }

    /// True if components may be watched.
    pub fn is_enabled(&self) -> bool {
        self.0.enabled.load(Ordering::Relaxed)
    }

    /// Returns the counters of each edge since the start, and the target counts of every component that exports
    /// targets.
    pub fn counts(&self) -> (Vec<FlowCount>, Vec<TargetCount>) {
        let targets = self.channels().into_iter().filter_map(|channel| channel.target_count());
        (self.0.flows.counts(), targets.collect())
    }

    /// Begins to watch a component; returns `None` if no component has this id. `probability` is the fraction of
    /// entries to receive, 0 to 1.
    pub(crate) fn subscribe(&self, id: &str, probability: f64) -> Option<Watch> {
        let channel = self.0.channels.lock().get(id)?.upgrade()?;
        let watcher = Arc::new(Watcher::new(probability));
        channel.add(watcher.clone());
        // If watching was forbidden meanwhile, only this call can end the new watch.
        if !self.is_enabled() {
            channel.close();
        }
        Some(Watch {
            watcher,
            channel: Arc::downgrade(&channel),
        })
    }

    fn channels(&self) -> Vec<Arc<Channel>> {
        let mut channels = self.0.channels.lock();
        channels.retain(|_, channel| channel.strong_count() > 0);
        channels.values().filter_map(Weak::upgrade).collect()
    }
}

impl LiveHandle {
    /// Creates a handle without a controller: for tests, and for components that are built only for inspection.
    pub fn detached(id: &str) -> Self {
        LiveHub::default().handle(&Arc::from(id))
    }

    /// Watches the component of this handle; for tests and benches, which have no controller.
    pub fn watch(&self, probability: f64) -> Watch {
        let watcher = Arc::new(Watcher::new(probability));
        self.0.add(watcher.clone());
        Watch {
            watcher,
            channel: Arc::downgrade(&self.0),
        }
    }

    /// Creates a handle that reports to a single watcher.
    fn for_watcher(id: &Arc<str>, watcher: Arc<Watcher>) -> Self {
        let mut channel = Channel::new(id.clone(), LiveHub::default());
        channel.is_borrowed = true;
        channel.add(watcher);
        Self(Arc::new(channel))
    }

    /// Returns the id of the component that the handle belongs to.
    pub fn id(&self) -> &Arc<str> {
        &self.0.id
    }

    /// True if the component is watched. Callers check it before costly work; [`LiveHandle::tell`] checks it itself.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.0.watched.load(Ordering::Relaxed) > 0
    }

    /// Reports an event to the watchers. `make` runs only if the sampling of at least one watcher selects this entry.
    /// `make` should only clone shared data, and format nothing.
    #[inline]
    pub fn tell(&self, make: impl FnOnce() -> Entry) {
        if self.is_watched() {
            self.report_to_watchers(make);
        }
    }

    #[cold]
    fn report_to_watchers(&self, make: impl FnOnce() -> Entry) {
        let watchers: Vec<Arc<Watcher>> = self.0.watchers.lock().clone();
        let wanting: Vec<&Arc<Watcher>> = watchers.iter().filter(|watcher| watcher.wants()).collect();
        if wanting.is_empty() {
            return;
        }
        let stamped = TimedEntry::now(self.0.id.clone(), make());
        for watcher in wanting {
            watcher.push(stamped.clone());
        }
    }

    /// Returns the counters of the edge from this component to the receiver `to`. A receiver without a name has an
    /// empty `to`. The counters exist as long as the caller holds the returned value.
    pub fn edge(&self, to: &str) -> Arc<Edge> {
        self.0.hub.0.flows.edge(&self.0.id, to)
    }

    /// Reports the number of exported targets; called at every export.
    pub fn exported_targets(&self, count: usize) {
        self.0.targets.store(count as u64, Ordering::Relaxed);
        // Count at least 1, so that an export of no targets differs from no export.
        self.0.exported.fetch_add(count.max(1) as u64, Ordering::Relaxed);
    }
}

impl Watch {
    /// Creates a handle that reports to this watch only.
    pub(crate) fn handle(&self, id: &Arc<str>) -> LiveHandle {
        LiveHandle::for_watcher(id, self.watcher.clone())
    }

    /// Waits for entries and returns the entries since the last call; `None` at the end, when the component has ended
    /// or watching was forbidden.
    pub async fn next(&mut self) -> Option<Batch> {
        self.watcher.next().await
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(channel) = self.channel.upgrade() {
            channel.remove(&self.watcher);
        }
    }
}

impl Channel {
    fn new(id: Arc<str>, hub: LiveHub) -> Self {
        Self {
            id,
            hub,
            watched: AtomicUsize::new(0),
            watchers: Mutex::default(),
            is_borrowed: false,
            targets: AtomicU64::new(0),
            exported: AtomicU64::new(0),
        }
    }

    fn add(&self, watcher: Arc<Watcher>) {
        let mut watchers = self.watchers.lock();
        watchers.push(watcher);
        self.watched.store(watchers.len(), Ordering::Relaxed);
    }

    fn remove(&self, watcher: &Arc<Watcher>) {
        let mut watchers = self.watchers.lock();
        watchers.retain(|other| !Arc::ptr_eq(other, watcher));
        self.watched.store(watchers.len(), Ordering::Relaxed);
    }

    fn close(&self) {
        for watcher in std::mem::take(&mut *self.watchers.lock()) {
            watcher.close();
        }
        self.watched.store(0, Ordering::Relaxed);
    }

    fn target_count(&self) -> Option<TargetCount> {
        let exported = self.exported.load(Ordering::Relaxed);
        (exported > 0).then(|| TargetCount {
            component: self.id.clone(),
            current: self.targets.load(Ordering::Relaxed),
            exported,
        })
    }
}

/// Ends the watches of a component that has ended.
impl Drop for Channel {
    fn drop(&mut self) {
        if !self.is_borrowed {
            self.close();
        }
    }
}
