//! Decides whether enough members are present to start: `--cluster.wait-for-size` and `--cluster.wait-timeout`.
//!
//! In: the size of the cluster, and the time. Out: whether this member takes its share of the targets.

use std::time::Duration;

use tokio::time::Instant;

/// The required number of members, and the start of the wait.
pub(super) struct Readiness {
    /// Required number of members, including this one.
    min_members: usize,
    /// Timeout of the wait; `None` to wait without limit.
    patience: Option<Duration>,
    waiting_since: Option<Instant>,
}

impl Readiness {
    /// Creates a wait for `min_members` members. If `patience` is zero, the wait has no limit.
    pub(super) fn new(min_members: usize, patience: Duration) -> Self {
        Self {
            min_members,
            patience: (!patience.is_zero()).then_some(patience),
            waiting_since: None,
        }
    }

    /// Returns true if this member takes its share in a cluster of `size` members. If the cluster becomes too small, a
    /// new wait starts.
    pub(super) fn is_ready(&mut self, size: usize, now: Instant) -> bool {
        if size >= self.min_members {
            self.waiting_since = None;
            return true;
        }
        self.waiting_since.get_or_insert(now);
        self.patience_ends().is_some_and(|end| now >= end)
    }

    /// Returns the time at which the wait ends, or `None` if no wait is running or the wait has no limit.
    pub(super) fn patience_ends(&self) -> Option<Instant> {
        Some(self.waiting_since? + self.patience?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_wait_for_ever_or_as_long_as_is_said() {
        let now = Instant::now();
        let mut unlimited = Readiness::new(3, Duration::ZERO);
        assert!(!unlimited.is_ready(2, now) && !unlimited.is_ready(2, now + Duration::from_hours(9)));
        assert!(unlimited.is_ready(3, now) && unlimited.is_ready(4, now));

        let mut readiness = Readiness::new(3, Duration::from_secs(10));
        let later = |seconds| now + Duration::from_secs(seconds);
        assert!(!readiness.is_ready(2, now) && !readiness.is_ready(1, later(9)) && readiness.is_ready(1, later(10)));
        assert!(readiness.is_ready(3, later(20)));
        // Other members die, so this member waits again.
        assert!(!readiness.is_ready(2, later(30)) && readiness.is_ready(2, later(40)));
        assert!(Readiness::new(0, Duration::ZERO).is_ready(1, now));
    }
}
