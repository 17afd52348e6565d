//! Parses points in time: `now`, `now-1h30m`, RFC 3339, or a number since 1970.
//!
//! In: text and the current time. Out: microseconds since 1970. The size of a number determines its unit: seconds,
//! milliseconds, microseconds or nanoseconds.

use crate::query::common::error::QueryError;
use crate::query::common::types::check_time_ms;
use alluvium_base::duration;

/// Parses a point in time from the year 1 to the year 9999. `now_us` is the current time in microseconds since 1970.
pub(crate) fn parse(text: &str, now_us: i64) -> Result<i64, QueryError> {
    let micros = read(text, now_us)?;
    check_time_ms(&format!("`{text}`"), micros.div_euclid(1000))?;
    Ok(micros)
}

fn read(text: &str, now_us: i64) -> Result<i64, QueryError> {
    let refuse = || {
        QueryError::invalid(format!(
            "`{text}` is not a time; write `now`, `now-1h`, `2026-01-31T12:00:00Z` or seconds since 1970"
        ))
    };
    let trimmed = text.trim();
    if let Some(rest) = trimmed.strip_prefix("now") {
        let rest = rest.trim();
        let (sign, length) = match rest.as_bytes().first() {
            None => return Ok(now_us),
            Some(b'-') => (-1, &rest[1..]),
            Some(b'+') => (1, &rest[1..]),
            Some(_) => return Err(refuse()),
        };
        let length = duration::parse(length.trim()).map_err(|_| refuse())?;
        let micros = i64::try_from(length.as_micros()).map_err(|_| refuse())?;
        return now_us.checked_add(sign * micros).ok_or_else(refuse);
    }
    if let Ok(number) = trimmed.parse::<i64>() {
        return number_to_micros(number).ok_or_else(refuse);
    }
    if let Ok(time) = chrono::DateTime::parse_from_rfc3339(trimmed) {
        return Ok(time.timestamp_micros());
    }
    for format in [
        "%Y-%m-%d %H:%M:%S%.f",
        "%Y-%m-%dT%H:%M:%S%.f",
        "%Y-%m-%d %H:%M",
        "%Y-%m-%dT%H:%M",
    ] {
        if let Ok(time) = chrono::NaiveDateTime::parse_from_str(trimmed, format) {
            return Ok(time.and_utc().timestamp_micros());
        }
    }
    if let Ok(day) = chrono::NaiveDate::parse_from_str(trimmed, "%Y-%m-%d") {
        return Ok(day.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_micros());
    }
    Err(refuse())
}

/// Converts a number of seconds, milliseconds, microseconds or nanoseconds since 1970 to microseconds. The size of the
/// number determines its unit. A number at the limit between two units means the year 5138 in the coarser unit and 1973
/// in the finer unit.
pub(crate) fn number_to_micros(number: i64) -> Option<i64> {
    match number.unsigned_abs() {
        0..100_000_000_000 => number.checked_mul(1_000_000),
        100_000_000_000..100_000_000_000_000 => number.checked_mul(1000),
        100_000_000_000_000..100_000_000_000_000_000 => Some(number),
        _ => Some(number / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let now = 1_700_000_000_000_000;
        assert_eq!(parse("now", now).unwrap(), now);
        assert_eq!(parse("now-1h", now).unwrap(), now - 3_600_000_000);
        assert_eq!(parse(" now - 30m ", now).unwrap(), now - 1_800_000_000);
        for text in [
            "1700000000",
            "1700000000000",
            "1700000000000000",
            "1700000000000000000",
            "2023-11-14T22:13:20Z",
            "2023-11-14T23:13:20+01:00",
            "2023-11-14 22:13:20",
        ] {
            assert_eq!(parse(text, 0).unwrap(), now, "{text}");
        }
        assert_eq!(parse("2023-11-14", 0).unwrap(), 1_699_920_000_000_000);
        for text in [
            "",
            "yesterday",
            "now1h",
            "now-",
            "now-1x",
            "2023-13-01",
            "99999-01-01",
            "now+9000y",
        ] {
            assert!(parse(text, now).is_err(), "{text}");
        }
    }
}
