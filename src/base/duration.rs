//! Durations in Go's format: `1h30m`, `1.5s`, `500ms`, `0`, as Go documents it for `time.ParseDuration` and
//! `Duration.String`. The parser also accepts days (`d`), weeks (`w`) and years (`y`, 365 days), as in Prometheus. The
//! formatter never writes these units.

use std::time::Duration;

const UNITS: [(&str, f64); 11] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("\u{b5}s", 1e3),
    ("\u{3bc}s", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
    ("d", 86_400e9),
    ("w", 604_800e9),
    ("y", 31_536_000e9),
];

/// The error for a text that is not a valid duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a duration such as \"15s\", \"500ms\" or \"1h30m\"")]
pub struct DurationError(pub String);

/// Parses a non-negative duration.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let error = || DurationError(text.to_owned());
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(error());
    }
    let mut nanoseconds = 0f64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(error)?;
        let number: f64 = rest[..digits].parse().map_err(|_| error())?;
        rest = &rest[digits..];
        let letters = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let (_, scale) = UNITS
            .iter()
            .find(|(unit, _)| *unit == &rest[..letters])
            .ok_or_else(error)?;
        nanoseconds += number * scale;
        rest = &rest[letters..];
    }
    // Go's durations end at 2^63 ns, which is 292 years.
    if nanoseconds >= i64::MAX as f64 {
        return Err(error());
    }
    Ok(Duration::from_nanos(nanoseconds.round() as u64))
}

/// Formats a duration as Go does: `1h30m0s`, `1.5s`, `500ms`, `0s`.
pub fn format(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    if nanoseconds == 0 {
        return "0s".to_owned();
    }
    if nanoseconds < 1_000_000_000 {
        let (scale, unit) = match nanoseconds {
            0..1_000 => (1.0, "ns"),
            1_000..1_000_000 => (1e3, "\u{b5}s"),
            _ => (1e6, "ms"),
        };
        return format!("{}{unit}", nanoseconds as f64 / scale);
    }
    let seconds = duration.as_secs();
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let rest = (seconds % 60) as f64 + f64::from(duration.subsec_nanos()) / 1e9;
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m{rest}s"),
        _ => format!("{hours}h{minutes}m{rest}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations_are_read() {
        assert_eq!(parse("1h30m").unwrap(), Duration::from_mins(90));
        assert_eq!(parse("1.5s").unwrap(), Duration::from_millis(1500));
        assert_eq!(parse("0").unwrap(), Duration::ZERO);
        assert_eq!(parse("7d").unwrap(), Duration::from_hours(168));
        for invalid in ["", "1", "s", "-1s", "1x", "1..2s", "300y"] {
            assert!(parse(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn durations_are_written_as_go_writes_them() {
        for text in ["1h30m0s", "1.5s", "500ms", "0s", "14s", "2m0s"] {
            assert_eq!(format(parse(text).unwrap()), text);
        }
    }
}
