//! What time it is for the store: the system's clock, or one that a test moves.
//!
//! Times of receipt, ages of profiles and files, and what retention, downsampling and vacuum do about them follow it. Waits and budgets follow the monotonic
//! clock of the system.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A clock. Clones share it.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<dyn Fn() -> SystemTime + Send + Sync>>);

impl Clock {
    /// A clock that shows what `now` gives.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(now)))
    }

    /// The time.
    pub fn now(&self) -> SystemTime {
        self.0.as_ref().map_or_else(SystemTime::now, |now| now())
    }

    /// Microseconds since 1970.
    pub fn micros(&self) -> i64 {
        i64::try_from(self.since_1970().as_micros()).unwrap_or(i64::MAX)
    }

    /// Milliseconds since 1970.
    pub fn millis(&self) -> i64 {
        i64::try_from(self.since_1970().as_millis()).unwrap_or(i64::MAX)
    }

    /// A clock before 1970 shows 1970.
    fn since_1970(&self) -> Duration {
        self.now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(if self.0.is_some() { "Clock(given)" } else { "Clock" })
    }
}
