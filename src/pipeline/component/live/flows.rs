//! Counters of what components hand to each other.
//!
//! An edge is counted by who hands over, with relaxed additions; readers take differences. An edge is forgotten when
//! nobody holds it any more, which is when the component that handed over has new receivers or has ended.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// What went from one component to another since the edge was made.
#[derive(Debug, Default)]
pub struct Edge {
    profiles: AtomicU64,
    bytes: AtomicU64,
}

/// A reading of an [`Edge`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowCount {
    /// Id of the component that hands profiles over.
    pub from: Arc<str>,
    /// Id of who takes; empty when it has none.
    pub to: Arc<str>,
    /// Profiles handed over, taken or refused.
    pub profiles: u64,
    /// Bytes of pprof in them, as they are carried.
    pub bytes: u64,
}

/// The targets of a component that exports some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetCount {
    /// Id of the component that is counted.
    pub component: Arc<str>,
    /// Targets that it exports now.
    pub current: u64,
    /// Targets exported since the start, counted at every export.
    pub exported: u64,
}

/// Who hands over, and who takes.
type Ends = (Arc<str>, Arc<str>);

#[derive(Default)]
pub(super) struct Flows {
    edges: Mutex<BTreeMap<Ends, Weak<Edge>>>,
}

impl Edge {
    /// Counts profiles on their way, `bytes` in all.
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

    /// All edges, by who hands over and who takes.
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
