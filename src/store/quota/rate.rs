//! A token bucket of bytes.
//!
//! A profile is accepted while the bucket is not empty, and may leave a debt. On average, a tenant therefore stays
//! within the rate, and a profile of any size can be accepted.

use std::time::Duration;

/// Bytes that are left in the bucket, and the time of the last refill.
#[derive(Debug)]
pub(super) struct Rate {
    available: f64,
    updated_at: Duration,
}

impl Rate {
    /// Creates a full bucket: at `now`, `burst` bytes are left.
    pub(super) fn new(burst: u64, now: Duration) -> Self {
        Self {
            available: burst.max(1) as f64,
            updated_at: now,
        }
    }

    /// Refills the bucket up to `now`, at `rate` bytes per second and to at most `burst` bytes. Returns true if bytes
    /// are left.
    pub(super) fn has_room(&mut self, rate: u64, burst: u64, now: Duration) -> bool {
        let gained = now.saturating_sub(self.updated_at).as_secs_f64() * rate as f64;
        self.available = (self.available + gained).min(burst.max(1) as f64);
        self.updated_at = now;
        self.available > 0.0
    }

    /// Takes `bytes` out of the bucket, even if fewer are left.
    pub(super) fn take(&mut self, bytes: u64) {
        self.available -= bytes as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_profile_is_paid_for_by_the_time_after_it() {
        let seconds = Duration::from_secs;
        let mut rate = Rate::new(100, seconds(0));
        assert!(rate.has_room(50, 100, seconds(0)));
        rate.take(300);
        assert!(!rate.has_room(50, 100, seconds(4)), "a debt of 200 bytes takes 4 s");
        assert!(rate.has_room(50, 100, seconds(5)));
    }

    #[test]
    fn a_pause_saves_no_more_than_the_burst() {
        let mut rate = Rate::new(100, Duration::ZERO);
        let day = Duration::from_hours(24);
        assert!(rate.has_room(50, 100, day));
        rate.take(100);
        assert!(!rate.has_room(50, 100, day));
    }
}
