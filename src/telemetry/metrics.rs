//! Metric handles: one registry for the process, handed down in scopes.

use std::borrow::Cow;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::registry::{Metric, Registry};

/// A place in the registry with labels that every metric registered here carries. Clones share the registry. When the last clone of a scope that was
/// made by [`Scope::child`] is dropped, its metrics leave the registry, so a component that is removed leaves nothing behind.
#[derive(Clone)]
pub struct Scope {
    registries: Arc<Mutex<Vec<Arc<Mutex<Registry>>>>>,
    own: Arc<Mutex<Registry>>,
}

impl Default for Scope {
    fn default() -> Self {
        Self::new()
    }
}

impl Scope {
    /// A fresh, empty root.
    pub fn new() -> Self {
        let own = Arc::new(Mutex::new(Registry::default()));
        Self {
            registries: Arc::new(Mutex::new(vec![own.clone()])),
            own,
        }
    }

    /// A scope whose metrics carry these labels.
    pub fn child(&self, labels: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        let labels = labels
            .into_iter()
            .map(|(name, value)| (Cow::Borrowed(name), Cow::Owned(value)));
        let own = Arc::new(Mutex::new(Registry::with_labels(labels)));
        self.registries.lock().push(own.clone());
        Self {
            registries: self.registries.clone(),
            own,
        }
    }

    /// Registers a metric. `name` is without the `_total` suffix of counters, which the text form adds.
    pub fn register(&self, name: &'static str, help: &'static str, metric: impl Metric) {
        self.own.lock().register(name, help, metric);
    }
}
