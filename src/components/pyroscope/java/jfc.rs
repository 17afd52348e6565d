//! Builds the settings of JDK Flight Recorder, in the form of a `.jfc` file. The module does no I/O.

use std::time::Duration;

use crate::pyroscope::java::arguments::ProfilingConfig;

/// Shortest sampling period that JFR accepts.
const SHORTEST_PERIOD: Duration = Duration::from_millis(10);

/// First Java version that samples allocations at a steady rate. Older versions record only the allocations that need a
/// new thread-local allocation buffer (TLAB) or do not fit into one.
const ALLOCATION_SAMPLES: u32 = 16;

/// Returns the settings for a version of Java.
pub(super) fn settings(config: &ProfilingConfig, version: u32) -> String {
    let period = config.period().max(SHORTEST_PERIOD);
    let period = ("period", format!("{} ms", period.as_millis()));
    let mut events: Vec<(&str, Option<(&str, String)>)> = vec![("jdk.ActiveSetting", None)];
    if config.cpu {
        events.push(("jdk.ExecutionSample", Some(period)));
    }
    if !config.alloc.is_empty() {
        if version < ALLOCATION_SAMPLES {
            events.push(("jdk.ObjectAllocationInNewTLAB", None));
            events.push(("jdk.ObjectAllocationOutsideTLAB", None));
        } else {
            let throttle = ("throttle", "150/s".to_owned());
            events.push(("jdk.ObjectAllocationSample", Some(throttle)));
        }
    }
    if let Some(threshold) = lock_threshold(&config.lock) {
        for event in ["jdk.JavaMonitorEnter", "jdk.ThreadPark"] {
            events.push((event, Some(("threshold", format!("{} us", threshold.as_micros())))));
        }
    }
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<configuration version=\"2.0\">\n");
    for (name, setting) in events {
        text += &format!("  <event name=\"{name}\">\n    <setting name=\"enabled\">true</setting>\n");
        text += "    <setting name=\"stackTrace\">true</setting>\n";
        if let Some((name, value)) = setting {
            text += &format!("    <setting name=\"{name}\">{value}</setting>\n");
        }
        text += "  </event>\n";
    }
    text + "</configuration>\n"
}

/// Returns the major version from an answer to `VM.version`. The answer contains a line such as `JDK 17.0.15`. If the
/// line is missing, returns 8, the oldest version with JFR.
pub(super) fn major_version(answer: &str) -> u32 {
    let version = answer.lines().find_map(|line| line.strip_prefix("JDK "));
    let major = version.and_then(|version| version.split(['.', '+', '-', '_']).next());
    major.and_then(|major| major.trim().parse().ok()).unwrap_or(8)
}

/// Parses a time in async-profiler's form: a number with the unit `ns`, `us`, `ms` or `s`. A number without a unit is
/// in nanoseconds. Returns `None` if the text does not begin with a number. Lock samples are then turned off.
fn lock_threshold(text: &str) -> Option<Duration> {
    let digits = text.trim_start_matches(|character: char| character.is_ascii_digit());
    let number: u64 = text.strip_suffix(digits)?.parse().ok()?;
    match digits {
        "us" => Some(Duration::from_micros(number)),
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        _ => Some(Duration::from_nanos(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testing::Body;
    use crate::pyroscope::java::DEFINITION;
    use alluvium_lang::value::{Number, Value};

    fn settings_of(config: Body, version: u32) -> String {
        let body = Body::new()
            .with("targets", Value::array([]))
            .with("forward_to", Value::array([]))
            .block("profiling_config", config);
        settings(&body.arguments(&DEFINITION).profiling_config, version)
    }

    #[test]
    fn settings_say_what_the_arguments_ask_for() {
        let all = settings_of(Body::new().with("sample_rate", Value::Number(Number::Int(50))), 17);
        for part in [
            "jdk.ExecutionSample",
            "<setting name=\"period\">20 ms<",
            "jdk.ObjectAllocationSample",
            "<setting name=\"throttle\">150/s<",
            "jdk.JavaMonitorEnter",
            "<setting name=\"threshold\">10000 us<",
        ] {
            assert!(all.contains(part), "{part}: {all}");
        }
        assert!(!all.contains("TLAB"));
        let old = settings_of(Body::new().text("lock", "").with("cpu", Value::Bool(false)), 11);
        assert!(old.contains("jdk.ObjectAllocationInNewTLAB") && !old.contains("Monitor"));
        assert!(!old.contains("ExecutionSample") && !old.contains("ObjectAllocationSample"));
    }

    #[test]
    fn versions_are_read_from_what_the_machine_says() {
        for (answer, major) in [
            ("OpenJDK 64-Bit Server VM version 17.0.15+6\nJDK 17.0.15\n", 17),
            ("OpenJDK 64-Bit Server VM version 25-b08\nJDK 8.0_392\n", 8),
            ("JDK 25+36\n", 25),
            ("", 8),
        ] {
            assert_eq!(major_version(answer), major, "{answer}");
        }
    }

    #[test]
    fn thresholds_of_locks_have_units() {
        for (text, nanos) in [
            ("10ms", Some(10_000_000)),
            ("5us", Some(5_000)),
            ("1s", Some(1_000_000_000)),
            ("0", Some(0)),
            ("700", Some(700)),
            ("", None),
            ("much", None),
        ] {
            assert_eq!(lock_threshold(text).map(|time| time.as_nanos()), nanos, "{text}");
        }
    }
}
