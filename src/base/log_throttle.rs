//! Limits how often a frequent message is logged.

use std::time::{Duration, Instant};

/// A message that is logged at most once per interval.
#[derive(Debug)]
pub struct LogThrottle {
    every: Duration,
    last: Option<Instant>,
    unsaid: u64,
}

impl LogThrottle {
    /// Creates a message that is logged at most once in `every`.
    pub const fn new(every: Duration) -> Self {
        Self {
            every,
            last: None,
            unsaid: 0,
        }
    }

    /// Returns `None` if the message must not be logged yet, and otherwise the number of messages suppressed since
    /// the last one.
    pub fn say(&mut self) -> Option<u64> {
        if self.last.is_some_and(|last| last.elapsed() < self.every) {
            self.unsaid += 1;
            return None;
        }
        self.last = Some(Instant::now());
        Some(std::mem::take(&mut self.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_once_in_a_while_with_how_often_it_was_not() {
        let mut hour = LogThrottle::new(Duration::from_hours(1));
        let said: Vec<_> = (0..3).map(|_| hour.say()).collect();
        assert_eq!(said, [Some(0), None, None]);
        hour.every = Duration::ZERO;
        assert_eq!([hour.say(), hour.say()], [Some(2), Some(0)]);
    }
}
