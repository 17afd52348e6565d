//! The active series of a tenant, that is, the series with a recent profile.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use alluvium_profile::SeriesId;

/// Time without a profile after which a series is no longer active.
pub(super) const IDLE: Duration = Duration::from_mins(15);

/// Shortest time between two searches of a full set for idle series.
const MIN_SEARCH_INTERVAL: Duration = Duration::from_secs(10);

/// Active series with the time of their last profile. No series is added beyond the limit.
#[derive(Debug, Default)]
pub(super) struct ActiveSeries {
    last: HashMap<SeriesId, Duration>,
    searched: Option<Duration>,
}

impl ActiveSeries {
    /// Makes all of `ids` active if the number of active series stays within `limit`, or if all of them are active
    /// already. Otherwise, returns the number of active series as the error.
    pub(super) fn admit(
        &mut self,
        ids: impl Iterator<Item = SeriesId> + Clone,
        now: Duration,
        limit: usize,
    ) -> Result<(), usize> {
        let has_room = |active: &HashMap<SeriesId, Duration>| {
            // The rules of a tenant may give several parts of a profile the same series, which counts once.
            let new: HashSet<SeriesId> = ids.clone().filter(|id| !active.contains_key(id)).collect();
            new.is_empty() || active.len() + new.len() <= limit
        };
        if !has_room(&self.last) {
            self.search(now);
            if !has_room(&self.last) {
                return Err(self.last.len());
            }
        }
        self.last.extend(ids.map(|id| (id, now)));
        Ok(())
    }

    /// Removes idle series, unless the last search was less than [`MIN_SEARCH_INTERVAL`] ago.
    fn search(&mut self, now: Duration) {
        if self
            .searched
            .is_some_and(|time| now.saturating_sub(time) < MIN_SEARCH_INTERVAL)
        {
            return;
        }
        self.searched = Some(now);
        self.last.retain(|_, last| now.saturating_sub(*last) < IDLE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(range: std::ops::Range<i64>) -> impl Iterator<Item = SeriesId> + Clone {
        range.map(SeriesId)
    }

    #[test]
    fn known_series_pass_a_full_set_and_new_ones_do_not() {
        let mut series = ActiveSeries::default();
        let now = Duration::from_secs(1);
        assert_eq!(series.admit(ids(0..10), now, 10), Ok(()));
        assert_eq!(series.admit(ids(3..7), now, 10), Ok(()));
        assert_eq!(series.admit(ids(9..11), now, 10), Err(10));
        assert_eq!(series.admit(ids(10..11), now, 11), Ok(()), "the limit was raised");
        let repeated_ids = ids(11..12).chain(ids(11..12));
        assert_eq!(series.admit(repeated_ids, now, 12), Ok(()), "one series in two parts");
    }

    #[test]
    fn idle_series_make_room() {
        let mut series = ActiveSeries::default();
        assert_eq!(series.admit(ids(0..10), Duration::ZERO, 10), Ok(()));
        assert_eq!(series.admit(ids(0..4), IDLE / 2, 10), Ok(()));
        assert_eq!(series.admit(ids(20..26), IDLE / 2, 10), Err(10));
        assert_eq!(series.admit(ids(20..26), IDLE, 10), Ok(()), "0 to 3 and six new ones");
        assert_eq!(series.admit(ids(30..31), IDLE + MIN_SEARCH_INTERVAL, 10), Err(10));
    }
}
