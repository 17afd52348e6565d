//! Spreads the periodic requests of a fleet over their interval, so that collectors that start together do not ask the
//! same server at the same moments for ever.
//!
//! In: the name of the machine and the id of the component. Out: the pause after the first request. All later pauses
//! are the interval itself.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

/// The place of one component of one machine within the interval. It is the same after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread(u64);

impl Spread {
    /// Returns the place of the component `id` on the machine `host`.
    pub fn new(host: &str, id: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (host, id).hash(&mut hasher);
        Self(hasher.finish())
    }

    /// Returns the pause between the first request and the second: at least half the interval, so that the two requests
    /// are not close together, and less than one and a half intervals.
    pub fn first_pause(self, interval: Duration) -> Duration {
        let nanoseconds = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        interval / 2 + Duration::from_nanos(self.0 % nanoseconds.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_that_starts_together_asks_evenly_over_the_interval() {
        let interval = Duration::from_mins(1);
        let mut counts = [0_usize; 60];
        for number in 0..6_000 {
            let pause = Spread::new(&format!("node-{number}"), "discovery.consul.default").first_pause(interval);
            assert!(pause >= interval / 2 && pause < interval * 3 / 2, "{pause:?}");
            counts[pause.as_secs() as usize % 60] += 1;
        }
        // 100 collectors are expected in each second. Without the spread, all 6,000 are in the same second.
        assert!(counts.iter().all(|count| (50..=150).contains(count)), "{counts:?}");
    }

    #[test]
    fn the_place_is_stable_and_differs_by_machine_and_component() {
        let place = |host: &str, id: &str| Spread::new(host, id);
        assert_eq!(place("a", "x"), place("a", "x"));
        assert_ne!(place("a", "x"), place("b", "x"));
        assert_ne!(place("a", "x"), place("a", "y"));
        assert_eq!(place("a", "x").first_pause(Duration::ZERO), Duration::ZERO);
    }
}
