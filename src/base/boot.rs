//! Time since the system booted: a clock that nobody can set and that continues after a restart of the process.
//!
//! Only Linux offers this clock. It also counts the time during which the machine sleeps.

use std::fs;
use std::time::Duration;

/// A point in time, measured from a boot of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinceBoot {
    /// Identifier that differs for each boot.
    pub id: String,
    pub time: Duration,
}

impl SinceBoot {
    /// Returns the current moment, or `None` if the system does not offer the clock.
    pub fn now() -> Option<Self> {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let uptime = fs::read_to_string("/proc/uptime").ok()?;
        Self::of(id.trim(), uptime.split(' ').next()?)
    }

    /// Returns the time from `earlier` to this moment, or `None` if the system booted again between them.
    pub fn since(&self, earlier: &Self) -> Option<Duration> {
        (self.id == earlier.id)
            .then(|| self.time.checked_sub(earlier.time))
            .flatten()
    }

    /// Formats both fields as one line, for a file.
    pub fn text(&self) -> String {
        format!("boot {} {:.2}", self.id, self.time.as_secs_f64())
    }

    /// Parses a line that [`SinceBoot::text`] wrote.
    pub fn parse(line: &str) -> Option<Self> {
        let (id, seconds) = line.trim().strip_prefix("boot ")?.split_once(' ')?;
        Self::of(id, seconds)
    }

    fn of(id: &str, seconds: &str) -> Option<Self> {
        let time = Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?;
        (!id.is_empty()).then(|| Self {
            id: id.to_owned(),
            time,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_as_it_was_written_and_compared_within_its_boot_only() {
        let reading = |id: &str, seconds: u64| SinceBoot {
            id: id.to_owned(),
            time: Duration::from_secs(seconds),
        };
        let (early, late) = (reading("one", 5), reading("one", 65));
        assert_eq!(SinceBoot::parse(&early.text()), Some(early.clone()));
        assert_eq!(late.since(&early), Some(Duration::from_mins(1)));
        assert_eq!(early.since(&late), None);
        assert_eq!(reading("other", 65).since(&early), None);
        assert_eq!(SinceBoot::parse("2026-11-24T00:00:00Z"), None);
        assert_eq!(SinceBoot::parse("boot one -1"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_tells_it() {
        let (first, second) = (SinceBoot::now().unwrap(), SinceBoot::now().unwrap());
        assert!(second.since(&first).is_some());
    }
}
