//! The clocks of the store: the system's clocks, or clocks that a test sets.
//!
//! The wall clock supplies the receipt time of profiles. The age of profiles and files, retention, downsampling and
//! vacuum also depend on the wall clock. Timeouts and budgets use the system's monotonic clock.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use alluvium_base::boot::SinceBoot;

/// A wall clock and a monotonic clock. Clones share both.
#[derive(Clone)]
pub struct Clock {
    started_at: Instant,
    wall: Option<Hand<SystemTime>>,
    running: Option<Hand<Duration>>,
    boot: Option<Hand<SinceBoot>>,
}

type Hand<T> = Arc<dyn Fn() -> T + Send + Sync>;

impl Default for Clock {
    fn default() -> Self {
        Self {
            started_at: Instant::now(),
            wall: None,
            running: None,
            boot: None,
        }
    }
}

impl Clock {
    /// Creates a wall clock that returns `now`. The monotonic clock follows the wall clock.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self {
            wall: Some(Arc::new(now)),
            ..Self::default()
        }
    }

    /// Creates a wall clock that returns `now` and a monotonic clock that returns `running`. A test can move each clock
    /// independently of the other.
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

    /// Returns the same clocks, with `now` as the time since the boot of the system.
    #[cfg(test)]
    pub(crate) fn with_boot(mut self, now: impl Fn() -> SinceBoot + Send + Sync + 'static) -> Self {
        self.boot = Some(Arc::new(now));
        self
    }

    /// Returns the time since the boot of the system, if it is known.
    pub(crate) fn since_boot(&self) -> Option<SinceBoot> {
        match (&self.boot, &self.wall) {
            (Some(boot), _) => Some(boot()),
            (None, Some(_)) => None,
            (None, None) => SinceBoot::now(),
        }
    }

    pub fn now(&self) -> SystemTime {
        self.wall.as_ref().map_or_else(SystemTime::now, |now| now())
    }

    /// Returns the time of the monotonic clock since an arbitrary start.
    pub fn running(&self) -> Duration {
        match (&self.running, &self.wall) {
            (Some(running), _) => running(),
            (None, Some(_)) => self.since_1970(),
            (None, None) => self.started_at.elapsed(),
        }
    }

    /// Returns the time in microseconds since 1970.
    pub(crate) fn micros(&self) -> i64 {
        i64::try_from(self.since_1970().as_micros()).unwrap_or(i64::MAX)
    }

    /// Returns the time in milliseconds since 1970.
    pub(crate) fn millis(&self) -> i64 {
        i64::try_from(self.since_1970().as_millis()).unwrap_or(i64::MAX)
    }

    /// Returns the time since 1970, or zero if the clock is set to a time before 1970.
    fn since_1970(&self) -> Duration {
        self.now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(if self.wall.is_some() { "Clock(given)" } else { "Clock" })
    }
}
