//! Parses times in the parameters of Pyroscope's plain HTTP routes, in Graphite's format: a Unix time, a day, `now-1h`.
//!
//! In: text and the current time. Out: Unix nanoseconds. The number of digits decides the unit of a Unix time: 13
//! digits are milliseconds, 16 microseconds, and 19 nanoseconds. Eight digits are a day (`YYYYMMDD`). Any other number
//! of digits is a time in seconds. Pyroscope replaces an invalid time by the current time. This parser returns an
//! error.

use chrono::{NaiveDate, NaiveTime};

use crate::connect::ConnectError;

const SECOND: i64 = 1_000_000_000;

/// Number of seconds in each unit of a relative time. A month has 30 days and a year 365.
const UNITS: [(&str, i64); 17] = [
    ("s", 1),
    ("sec", 1),
    ("second", 1),
    ("m", 60),
    ("min", 60),
    ("minute", 60),
    ("h", 3600),
    ("hour", 3600),
    ("d", 86_400),
    ("day", 86_400),
    ("w", 604_800),
    ("week", 604_800),
    ("M", 2_592_000),
    ("mon", 2_592_000),
    ("month", 2_592_000),
    ("y", 31_536_000),
    ("year", 31_536_000),
];

/// Parses the value of a parameter to Unix nanoseconds. An empty text means now. The error for an invalid time has
/// status 400 and names the parameter.
pub fn read(parameter: &str, text: &str, now_nanos: i64) -> Result<i64, ConnectError> {
    parse(text, now_nanos).ok_or_else(|| {
        ConnectError::invalid(format!(
            "{parameter}: `{text}` is not a time: expected Unix seconds, milliseconds, microseconds or \
                nanoseconds, YYYYMMDD, `now` or `now-1h`"
        ))
    })
}

fn parse(text: &str, now_nanos: i64) -> Option<i64> {
    // Graphite ignores these characters as well; they only make a time easier to read.
    let text: String = text.trim().chars().filter(|c| !matches!(c, ' ' | '_' | ',')).collect();
    if text.is_empty() {
        return Some(now_nanos);
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let number: i64 = text.parse().ok()?;
        return match text.len() {
            8 => {
                let date = NaiveDate::parse_from_str(&text, "%Y%m%d").ok()?;
                date.and_time(NaiveTime::MIN).and_utc().timestamp_nanos_opt()
            }
            13 => number.checked_mul(SECOND / 1000),
            16 => number.checked_mul(SECOND / 1_000_000),
            19 => Some(number),
            _ => number.checked_mul(SECOND),
        };
    }
    if text == "now" {
        return Some(now_nanos);
    }
    let offset = text.strip_prefix("now").unwrap_or(&text);
    match offset.split_at_checked(1)? {
        ("-", offset) => now_nanos.checked_sub(parse_offset(offset)?),
        ("+", offset) => now_nanos.checked_add(parse_offset(offset)?),
        _ => None,
    }
}

/// Parses an offset such as `1h30min` to nanoseconds.
fn parse_offset(text: &str) -> Option<i64> {
    if text.is_empty() {
        return None;
    }
    let mut rest = text;
    let mut total = 0i64;
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit())?;
        let number: i64 = rest.get(..digits)?.parse().ok()?;
        rest = rest.get(digits..)?;
        let letters = rest
            .find(|character: char| character.is_ascii_digit())
            .unwrap_or(rest.len());
        let unit = rest.get(..letters)?;
        let singular = unit.strip_suffix('s').filter(|unit| unit.len() > 1).unwrap_or(unit);
        let (_, seconds) = UNITS.iter().find(|(name, _)| *name == singular || *name == unit)?;
        total = total.checked_add(number.checked_mul(*seconds)?.checked_mul(SECOND)?)?;
        rest = rest.get(letters..)?;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000 * SECOND;

    #[test]
    fn times_are_read_in_every_form() {
        for (text, seconds) in [
            ("1700000000", 1_700_000_000),
            ("1700000000000", 1_700_000_000),
            ("1700000000000000", 1_700_000_000),
            ("1700000000000000000", 1_700_000_000),
            ("20231114", 1_699_920_000),
            ("now", 1_700_000_000),
            ("", 1_700_000_000),
            (" now - 1_h ", 1_700_000_000 - 3600),
            ("1,700,000,000", 1_700_000_000),
            ("now-1h30min", 1_700_000_000 - 5400),
            ("now-2days", 1_700_000_000 - 172_800),
            ("-5m", 1_700_000_000 - 300),
        ] {
            assert_eq!(parse(text, NOW), Some(seconds * SECOND), "{text}");
        }
        for text in [
            "yesterday",
            "now-",
            "now-1",
            "now-h",
            "99999999",
            "9999999999999999999",
            "now-99999999999y",
            "nowx",
            "\u{e9}",
        ] {
            assert_eq!(parse(text, NOW), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused_by_the_name_of_its_parameter() {
        let error = read("until", "soon", NOW).unwrap_err();
        assert_eq!(error.status, 400);
        assert!(error.message.starts_with("until: `soon` is not a time"), "{error}");
    }
}
