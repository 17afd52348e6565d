//! Measures how far the wall clock is from the expected time, to relax the limits on the age of new profiles.
//!
//! If the wall clock is wrong by a day, these limits refuse every new profile, and senders do not send a refused
//! profile again. In: the wall clock and the monotonic clock. Out: the difference, which extends the limits. The
//! expected time advances with the monotonic clock. It also moves toward the wall clock by up to one hour a day, so
//! that the drift of a correct clock, which is smaller, does not count. If the wall clock differs for a whole day, its
//! time becomes the expected time.

use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use crate::store::common::clock::Clock;

const DAY: Duration = Duration::from_hours(24);
/// In this many seconds, the expected time moves toward the wall clock by at most one second.
const FOLLOWED: u32 = 24;
/// Largest difference that is ignored.
const EXACT: Duration = Duration::from_secs(1);

/// The expected time. It begins as the time of the wall clock.
#[derive(Debug)]
pub(crate) struct ExpectedClock(Mutex<ExpectedTime>);

#[derive(Debug, Clone, Copy)]
struct ExpectedTime {
    wall: SystemTime,
    /// Monotonic time at which `wall` was the expected time.
    running: Duration,
    /// Monotonic time at which the wall clock began to differ; `None` while it agrees.
    differs_since: Option<Duration>,
}

/// Difference of the wall clock from the expected time. At most one of the fields is above zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClockDifference {
    pub(crate) ahead: Duration,
    pub(crate) behind: Duration,
}

impl ClockDifference {
    fn between(wall: SystemTime, expected: SystemTime) -> Self {
        let excess = |one: SystemTime, other: SystemTime| one.duration_since(other).unwrap_or_default();
        Self {
            ahead: excess(wall, expected),
            behind: excess(expected, wall),
        }
    }

    /// Returns true if the wall clock agrees with the expected time.
    pub(crate) fn is_none(self) -> bool {
        self.ahead <= EXACT && self.behind <= EXACT
    }
}

impl ExpectedClock {
    /// Creates an expected clock that starts at the present time of the wall clock.
    pub(crate) fn new(clock: &Clock) -> Self {
        Self(Mutex::new(ExpectedTime {
            wall: clock.now(),
            running: clock.running(),
            differs_since: None,
        }))
    }

    /// Advances the expected time, and returns how far the wall clock differs from it. If the wall clock has differed
    /// for a day, its time becomes the expected time, and the difference is zero.
    pub(crate) fn difference(&self, clock: &Clock) -> ClockDifference {
        let (wall, running) = (clock.now(), clock.running());
        let mut state = self.0.lock();
        let passed = running.saturating_sub(state.running);
        let expected = state.wall + passed;
        let difference = ClockDifference::between(wall, expected);
        let max = passed / FOLLOWED;
        let expected = expected + difference.ahead.min(max) - difference.behind.min(max);
        *state = ExpectedTime {
            wall: expected,
            running: state.running.max(running),
            ..*state
        };
        let left = ClockDifference::between(wall, expected);
        if left.is_none() {
            state.differs_since = None;
            return ClockDifference::default();
        }
        let start = *state.differs_since.get_or_insert(running);
        if running.saturating_sub(start) < DAY {
            return left;
        }
        state.wall = wall;
        state.differs_since = None;
        ClockDifference::default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::UNIX_EPOCH;

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    #[test]
    fn a_jump_counts_until_it_is_taken_back_or_stands_for_a_day() {
        let hands = Arc::new(Mutex::new((DAY * 20_000, Duration::ZERO)));
        let (wall, running) = (hands.clone(), hands.clone());
        let clock = Clock::set_by(move || UNIX_EPOCH + wall.lock().0, move || running.lock().1);
        let pass = |time: Duration| {
            let mut hands = hands.lock();
            hands.0 += time;
            hands.1 += time;
        };
        let steady = ExpectedClock::new(&clock);
        pass(HOUR);
        assert_eq!(steady.difference(&clock), ClockDifference::default());
        // A time server corrects the clock by a little.
        hands.lock().0 += Duration::from_secs(30);
        pass(HOUR);
        assert_eq!(steady.difference(&clock), ClockDifference::default());

        hands.lock().0 += 25 * HOUR;
        let jumped = steady.difference(&clock);
        assert_eq!((jumped.ahead, jumped.behind), (25 * HOUR, Duration::ZERO));
        pass(2 * HOUR);
        let later = steady.difference(&clock).ahead;
        assert!(later > 24 * HOUR && later < 25 * HOUR, "{later:?}");
        hands.lock().0 -= 25 * HOUR;
        let corrected = steady.difference(&clock);
        assert!(corrected.ahead.is_zero() && corrected.behind < HOUR, "{corrected:?}");
        pass(3 * HOUR);
        assert_eq!(steady.difference(&clock), ClockDifference::default());

        hands.lock().0 -= 5 * HOUR;
        assert_eq!(steady.difference(&clock).behind, 5 * HOUR);
        for _ in 0..23 {
            pass(HOUR);
            assert!(!steady.difference(&clock).is_none());
        }
        pass(HOUR);
        assert_eq!(steady.difference(&clock), ClockDifference::default());
        pass(HOUR);
        assert_eq!(steady.difference(&clock), ClockDifference::default());
    }
}
