//! Readiness of the server, with the reason while it is not ready.
//!
//! The composition root holds a clone and sets it when replay is done and when the program stops; `/ready` reports it
//! to load balancers.

use std::sync::Arc;

use parking_lot::RwLock;

/// The shared readiness state.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<RwLock<Option<String>>>);

impl Readiness {
    /// The state of a server that is ready.
    pub fn ready() -> Self {
        Self(Arc::new(RwLock::new(None)))
    }

    /// Sets the state to not ready, for `reason`.
    pub fn set_not_ready(&self, reason: &str) {
        *self.0.write() = Some(reason.to_owned());
    }

    /// Why the server is not ready; `None` when it is.
    pub fn reason(&self) -> Option<String> {
        self.0.read().clone()
    }
}
