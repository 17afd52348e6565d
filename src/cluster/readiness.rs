//! Whether there are members enough to begin: `--cluster.wait-for-size` and `--cluster.wait-timeout`.
//!
//! In: the size of the cluster, and the time. Out: whether this member takes its share. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// What is waited for, and since when.
pub(super) struct Readiness {
    /// Members that must be there, this one included.
    least: usize,
    /// How long they are waited for; `None` for ever.
    patience: Option<Duration>,
    waiting_since: Option<Instant>,
}

impl Readiness {
    /// Waits for `least` members, for as long as it takes when `patience` is zero.
    pub(super) fn new(least: usize, patience: Duration) -> Self {
        Self {
            least,
            patience: (!patience.is_zero()).then_some(patience),
            waiting_since: None,
        }
    }

    /// Whether a cluster of this size begins. One that becomes too small waits anew.
    pub(super) fn is_ready(&mut self, size: usize, now: Instant) -> bool {
        if size >= self.least {
            self.waiting_since = None;
            return true;
        }
        self.waiting_since.get_or_insert(now);
        self.patience_ends().is_some_and(|end| now >= end)
    }

    /// When the patience ends, if it does and is needed.
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
        let mut patient = Readiness::new(3, Duration::ZERO);
        assert!(!patient.is_ready(2, now) && !patient.is_ready(2, now + Duration::from_hours(9)));
        assert!(patient.is_ready(3, now) && patient.is_ready(4, now));

        let mut readiness = Readiness::new(3, Duration::from_secs(10));
        let at = |seconds| now + Duration::from_secs(seconds);
        assert!(!readiness.is_ready(2, now) && !readiness.is_ready(1, at(9)) && readiness.is_ready(1, at(10)));
        assert!(readiness.is_ready(3, at(20)));
        // Members die: it waits once more.
        assert!(!readiness.is_ready(2, at(30)) && readiness.is_ready(2, at(40)));
        assert!(Readiness::new(0, Duration::ZERO).is_ready(1, now));
    }
}
