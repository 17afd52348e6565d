//! Whether the server is ready to work, and the reason while it is not.
//!
//! The composition root holds a clone and says when replay is done and when the program stops; `/ready` tells load
//! balancers.

use std::sync::Arc;

use parking_lot::RwLock;

/// A shared answer to "ready?".
#[derive(Clone, Debug)]
pub struct Readiness(Arc<RwLock<Option<String>>>);

impl Readiness {
    /// A server that is ready from the start.
    pub fn ready() -> Self {
        Self(Arc::new(RwLock::new(None)))
    }

    /// From now on not ready, for `reason`.
    pub fn set_not_ready(&self, reason: &str) {
        *self.0.write() = Some(reason.to_owned());
    }

    /// Why the server is not ready; `None` when it is.
    pub fn reason(&self) -> Option<String> {
        self.0.read().clone()
    }
}
