//! Counters of the data that flows between components.
//!
//! The sender increments the counters of an edge with relaxed atomic additions; readers compute differences. An edge is
//! dropped with its last reference: when the sender has new receivers or has ended.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// Counters of an edge since its creation. An edge is the flow of profiles from one component to another.
#[derive(Debug, Default)]
pub struct Edge {
    profiles: AtomicU64,
    bytes: AtomicU64,
}

/// A reading of an [`Edge`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowCount {
    /// Id of the sending component.
    pub from: Arc<str>,
    /// Id of the receiver; empty if the receiver has no id.
    pub to: Arc<str>,
    /// Number of profiles sent, whether the receiver accepted or refused them.
    pub profiles: u64,
    /// Size of the pprof data of these profiles as transmitted, in bytes.
    pub bytes: u64,
}

/// Number of targets that a component exports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetCount {
    /// Id of the component that exports the targets.
    pub component: Arc<str>,
    /// Number of targets that the component exports now.
    pub current: u64,
    /// Number of targets exported since the start, counted at every export.
    pub exported: u64,
}

/// Ids of sender and receiver.
type Ends = (Arc<str>, Arc<str>);

#[derive(Default)]
pub(super) struct Flows {
    edges: Mutex<BTreeMap<Ends, Weak<Edge>>>,
}

impl Edge {
    /// Counts profiles that are sent, with `bytes` in total.
    #[inline]
    pub fn count(&self, profiles: usize, bytes: usize) {
        self.profiles.fetch_add(profiles as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Flows {
    pub(super) fn edge(&self, from: &Arc<str>, to: &str) -> Arc<Edge> {
        let mut edges = self.edges.lock();
        let key = (from.clone(), Arc::from(to));
        if let Some(edge) = edges.get(&key).and_then(Weak::upgrade) {
            return edge;
        }
        let edge = Arc::default();
        edges.insert(key, Arc::downgrade(&edge));
        edge
    }

    /// Returns the counts of all edges, sorted by sender and receiver.
    pub(super) fn counts(&self) -> Vec<FlowCount> {
        let mut edges = self.edges.lock();
        edges.retain(|_, edge| edge.strong_count() > 0);
        let count = |((from, to), edge): (&Ends, &Weak<Edge>)| {
            let edge = edge.upgrade()?;
            Some(FlowCount {
                from: from.clone(),
                to: to.clone(),
                profiles: edge.profiles.load(Ordering::Relaxed),
                bytes: edge.bytes.load(Ordering::Relaxed),
            })
        };
        edges.iter().filter_map(count).collect()
    }
}
