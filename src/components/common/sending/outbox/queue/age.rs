//! The age of queued profiles, by two clocks, because the wall clock may be changed while profiles wait.
//!
//! If this process has queued a profile, its age is the smaller of the ages by the wall clock and by the monotonic
//! clock. If a former process has queued the profile, only the wall clock can measure its age. The wall clock may be
//! wrong when a process starts and be corrected soon after. A profile of a former process is therefore dropped for its
//! age only after it has also waited in this process: for [`GRACE`], or for the age limit if that is shorter.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time that a profile of a former process waits in this process before it is dropped for its age, unless the age limit
/// is shorter. In this time it can be sent, or the wall clock can be corrected.
pub(super) const GRACE: Duration = Duration::from_hours(1);
/// Minimum interval between log messages about dropped profiles.
const TELL_EVERY: Duration = Duration::from_mins(1);

/// Returns the current Unix time in milliseconds.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |unix_time| unix_time.as_millis() as u64)
}

/// A reading of both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// Unix time by the wall clock, in milliseconds.
    pub wall_ms: u64,
    /// Time of the monotonic clock since an arbitrary start.
    pub running: Duration,
}

/// Reads both clocks: the system's, or clocks that a test sets.
#[derive(Clone)]
pub(super) struct QueueClock(Arc<dyn Fn() -> Moment + Send + Sync>);

impl QueueClock {
    /// Returns the clocks of the system.
    pub(super) fn system() -> Self {
        let start = Instant::now();
        Self::new(move || Moment {
            wall_ms: now_ms(),
            running: start.elapsed(),
        })
    }

    /// Returns clocks with the readings that `read` returns.
    pub(super) fn new(read: impl Fn() -> Moment + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    pub(super) fn now(&self) -> Moment {
        (self.0)()
    }
}

impl fmt::Debug for QueueClock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("QueueClock")
    }
}

/// The time at which a profile was queued.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    wall_ms: u64,
    /// Time of the monotonic clock when the profile was queued, or restored from a former process.
    running: Duration,
    is_restored: bool,
}

impl Queued {
    /// Returns the time of a profile that this process queues, at `wall_ms` of the wall clock.
    pub(super) fn new(wall_ms: u64, now: Moment) -> Self {
        Self {
            wall_ms,
            running: now.running,
            is_restored: false,
        }
    }

    /// Returns the time of a profile that a former process queued and that is restored at `now`.
    pub(super) fn restored(wall_ms: u64, now: Moment) -> Self {
        Self {
            is_restored: true,
            ..Self::new(wall_ms, now)
        }
    }

    /// Returns the age of the profile at `now`.
    pub(super) fn age(self, now: Moment) -> Duration {
        let by_wall = Duration::from_millis(now.wall_ms.saturating_sub(self.wall_ms));
        if self.is_restored {
            return by_wall;
        }
        by_wall.min(now.running.saturating_sub(self.running))
    }

    /// Returns true if the age of the profile exceeds `limit` and the profile has waited long enough in this process.
    pub(super) fn is_over(self, now: Moment, limit: Duration) -> bool {
        let waited = now.running.saturating_sub(self.running);
        self.age(now) > limit && (!self.is_restored || waited >= GRACE.min(limit))
    }
}

/// Counts the profiles that the limits of a queue drop, so that a burst of drops is logged as one line.
#[derive(Debug, Default)]
pub(super) struct Drops {
    for_age: u64,
    for_size: u64,
    reported_at: Option<Duration>,
}

impl Drops {
    pub(super) fn add(&mut self, is_for_age: bool) {
        *(if is_for_age {
            &mut self.for_age
        } else {
            &mut self.for_size
        }) += 1;
    }

    /// Returns the numbers of profiles that were dropped since the last report: for their age, and for the size of the
    /// queue. Returns `None` if no profile was dropped, or if the last report is less than [`TELL_EVERY`] ago.
    pub(super) fn take_untold(&mut self, now: Moment) -> Option<(u64, u64)> {
        let is_soon = |reported: Duration| now.running.saturating_sub(reported) < TELL_EVERY;
        if (self.for_age, self.for_size) == (0, 0) || self.reported_at.is_some_and(is_soon) {
            return None;
        }
        self.reported_at = Some(now.running);
        Some((std::mem::take(&mut self.for_age), std::mem::take(&mut self.for_size)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 3_600_000;

    fn moment(wall_hours: u64, running_hours: u64) -> Moment {
        Moment {
            wall_ms: wall_hours * HOUR_MS,
            running: Duration::from_hours(running_hours),
        }
    }

    #[test]
    fn a_profile_is_too_old_when_both_clocks_say_so() {
        let day = Duration::from_hours(24);
        let queued = Queued::new(100 * HOUR_MS, moment(100, 1));
        assert!(!queued.is_over(moment(200, 2), day), "somebody has set the clock");
        assert!(!queued.is_over(moment(101, 50), day), "and has put it back");
        assert!(queued.is_over(moment(125, 26), day));
        assert_eq!(queued.age(moment(200, 3)), Duration::from_hours(2));
    }

    #[test]
    fn what_a_former_process_queued_may_wait_for_an_hour_whatever_the_clock_says() {
        let (day, minute) = (Duration::from_hours(24), Duration::from_mins(1));
        let restored = Queued::restored(100 * HOUR_MS, moment(200, 0));
        assert!(!restored.is_over(moment(200, 0), day));
        assert!(restored.is_over(moment(201, 1), day));
        assert!(!restored.is_over(moment(101, 1), day), "the clock was put right");
        let later = Moment {
            wall_ms: 200 * HOUR_MS,
            running: minute,
        };
        assert!(restored.is_over(later, minute), "no longer than its limit");
    }

    #[test]
    fn a_burst_of_drops_is_told_once() {
        let mut drops = Drops::default();
        assert_eq!(drops.take_untold(moment(0, 0)), None);
        for is_for_age in [true, true, false] {
            drops.add(is_for_age);
        }
        assert_eq!(drops.take_untold(moment(0, 0)), Some((2, 1)));
        drops.add(true);
        assert_eq!(drops.take_untold(moment(0, 0)), None);
        assert_eq!(drops.take_untold(moment(1, 1)), Some((1, 0)));
    }
}
