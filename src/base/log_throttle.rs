//! Limits how often a frequent message is logged.

use std::time::{Duration, Instant};

/// A message that is logged at most once per interval.
#[derive(Debug)]
pub struct LogThrottle {
    interval: Duration,
    last: Option<Instant>,
    suppressed: u64,
}

impl LogThrottle {
    /// Creates a message that is logged at most once in `interval`.
    pub const fn new(interval: Duration) -> Self {
        Self {
            interval,
            last: None,
            suppressed: 0,
        }
    }

    /// Returns `None` if the message must not be logged yet. Otherwise returns the number of messages that were
    /// suppressed since the message was last logged.
    pub fn try_log(&mut self) -> Option<u64> {
        if self.last.is_some_and(|last| last.elapsed() < self.interval) {
            self.suppressed += 1;
            return None;
        }
        self.last = Some(Instant::now());
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_once_in_a_while_with_how_often_it_was_not() {
        let mut hour = LogThrottle::new(Duration::from_hours(1));
        let decisions: Vec<_> = (0..3).map(|_| hour.try_log()).collect();
        assert_eq!(decisions, [Some(0), None, None]);
        hour.interval = Duration::ZERO;
        assert_eq!([hour.try_log(), hour.try_log()], [Some(2), Some(0)]);
    }
}
