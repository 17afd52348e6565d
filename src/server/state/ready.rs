//! Readiness of the server, with the reason while it is not ready.
//!
//! The composition root holds a clone, and sets the state to not ready when the program stops. `/ready` reports the
//! state to load balancers.

use std::sync::Arc;

use parking_lot::RwLock;

/// The shared readiness state.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<RwLock<Option<String>>>);

impl Readiness {
    /// Returns the state of a server that is ready.
    pub fn ready() -> Self {
        Self(Arc::new(RwLock::new(None)))
    }

    /// Sets the state to not ready, for `reason`.
    pub fn set_not_ready(&self, reason: &str) {
        *self.0.write() = Some(reason.to_owned());
    }

    /// Returns the reason why the server is not ready, or `None` if it is ready.
    pub fn reason(&self) -> Option<String> {
        self.0.read().clone()
    }
}
