//! The recorder's settings, which are events of a recording.

use std::time::Duration;

/// The event type that a setting applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingEvent {
    /// Execution samples (CPU time).
    Execution,
    /// Any other event type, or none.
    Other,
}

/// The settings that are used, and the number of lost samples.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    /// The event that async-profiler samples: `cpu`, `itimer`, `wall`, ...; empty for other recorders.
    pub event: String,
    /// Interval between execution samples in nanoseconds.
    pub interval_nanos: Option<i64>,
    /// Number of samples without a stack.
    pub lost: u64,
}

impl Settings {
    /// Returns true if threads were sampled whether or not they were running.
    pub(super) fn is_wall(&self) -> bool {
        self.event == "wall"
    }

    /// Stores a setting if it is used.
    pub(super) fn set(&mut self, event: SettingEvent, name: &str, value: &str) {
        match name {
            "event" => value.clone_into(&mut self.event),
            // The setting of async-profiler in nanoseconds; 0 means its default.
            "interval" => {
                let nanos = value.parse().ok().filter(|nanos| *nanos > 0);
                self.interval_nanos = nanos.or(self.interval_nanos);
            }
            // The setting of the Java Development Kit, such as `20 ms`.
            "period" if event == SettingEvent::Execution => {
                let nanos = period(value).and_then(|period| i64::try_from(period.as_nanos()).ok());
                self.interval_nanos = nanos.or(self.interval_nanos);
            }
            _ => {}
        }
    }
}

/// Parses a time of the Java Development Kit: a number, a space, and a unit.
fn period(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_once(' ')?;
    let number: u64 = number.parse().ok().filter(|number| *number > 0)?;
    match unit {
        "ns" => Some(Duration::from_nanos(number)),
        "us" => Some(Duration::from_micros(number)),
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_samples_of_execution() {
        let mut settings = Settings::default();
        for (event, name, value, nanos) in [
            (SettingEvent::Execution, "period", "everyChunk", None),
            (SettingEvent::Execution, "period", "20 ms", Some(20_000_000)),
            (SettingEvent::Other, "period", "1 s", Some(20_000_000)),
            (SettingEvent::Execution, "period", "0 ms", Some(20_000_000)),
            (SettingEvent::Other, "interval", "0", Some(20_000_000)),
            (SettingEvent::Other, "interval", "10000000", Some(10_000_000)),
        ] {
            settings.set(event, name, value);
            assert_eq!(settings.interval_nanos, nanos, "{name} {value}");
        }
        assert!(!settings.is_wall());
        settings.set(SettingEvent::Other, "event", "wall");
        assert!(settings.is_wall());
    }
}
