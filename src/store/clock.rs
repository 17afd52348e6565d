//! The clocks of the store: those of the system, or clocks that a test sets.
//!
//! Times of receipt, ages of profiles and files, and retention, downsampling and vacuum follow the wall clock. Timeouts
//! and budgets follow the system's monotonic clock.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A wall clock and a monotonic clock. Clones share them.
#[derive(Clone)]
pub struct Clock {
    made: Instant,
    wall: Option<Hand<SystemTime>>,
    running: Option<Hand<Duration>>,
}

type Hand<T> = Arc<dyn Fn() -> T + Send + Sync>;

impl Default for Clock {
    fn default() -> Self {
        Self {
            made: Instant::now(),
            wall: None,
            running: None,
        }
    }
}

impl Clock {
    /// A wall clock that returns `now`; the monotonic clock follows it.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self {
            wall: Some(Arc::new(now)),
            ..Self::default()
        }
    }

    /// A wall clock that returns `now` and a monotonic clock that returns `running`, so that a test can set one against
    /// the other.
    #[cfg(test)]
    pub(crate) fn set_by(
        now: impl Fn() -> SystemTime + Send + Sync + 'static,
        running: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        Self {
            running: Some(Arc::new(running)),
            ..Self::new(now)
        }
    }

    pub fn now(&self) -> SystemTime {
        self.wall.as_ref().map_or_else(SystemTime::now, |now| now())
    }

    /// Time of the monotonic clock since an arbitrary start.
    pub fn running(&self) -> Duration {
        match (&self.running, &self.wall) {
            (Some(running), _) => running(),
            (None, Some(_)) => self.since_1970(),
            (None, None) => self.made.elapsed(),
        }
    }

    /// Microseconds since 1970.
    pub(crate) fn micros(&self) -> i64 {
        i64::try_from(self.since_1970().as_micros()).unwrap_or(i64::MAX)
    }

    /// Milliseconds since 1970.
    pub(crate) fn millis(&self) -> i64 {
        i64::try_from(self.since_1970().as_millis()).unwrap_or(i64::MAX)
    }

    /// Time since 1970; zero for a clock that is set before 1970.
    fn since_1970(&self) -> Duration {
        self.now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(if self.wall.is_some() { "Clock(given)" } else { "Clock" })
    }
}
