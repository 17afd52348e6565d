//! What time it is for the store: the system's clocks, or those that a test moves.
//!
//! Times of receipt, ages of profiles and files, and what retention, downsampling and vacuum do about them follow the
//! wall clock. Waits and budgets follow the monotonic clock of the system.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The clocks. Clones share them.
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
    /// A clock that shows what `now` gives, and runs evenly.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self {
            wall: Some(Arc::new(now)),
            ..Self::default()
        }
    }

    /// A clock that shows what `now` gives while so much time passes as `running` says: it may be set.
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

    /// Time since some moment, by a clock that nobody sets.
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

    /// A clock before 1970 shows 1970.
    fn since_1970(&self) -> Duration {
        self.now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(if self.wall.is_some() { "Clock(given)" } else { "Clock" })
    }
}
