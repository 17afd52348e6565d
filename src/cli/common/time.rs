//! Times on the command line: `now-1h`, RFC 3339, Unix times; and the time range of queries.
//!
//! In: text. Out: Unix milliseconds. Dates and times without a time zone are UTC.

use anyhow::{Context, bail};
use clap::Args;

use alluvium_base::duration;

/// Flags of the time range.
#[derive(Debug, Clone, Args)]
pub struct RangeArgs {
    /// Start of the time range: `now-1h`, `2026-01-31T10:00:00Z`, `2026-01-31`, or a Unix time.
    #[arg(long, value_name = "TIME", default_value = "now-1h")]
    pub from: String,
    /// End of the time range, not included, in the same forms as the start.
    #[arg(long, value_name = "TIME", default_value = "now")]
    pub until: String,
}

impl RangeArgs {
    /// Builds the flags of the range [start, end) of Unix milliseconds.
    pub(crate) fn of(start_ms: i64, end_ms: i64) -> Self {
        let [from, until] = [start_ms, end_ms].map(|ms| {
            let time = chrono::DateTime::from_timestamp_millis(ms).unwrap_or_default();
            time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
        });
        Self { from, until }
    }

    /// Returns the range [start, end) in Unix milliseconds.
    pub fn range(&self, now_ms: i64) -> anyhow::Result<(i64, i64)> {
        let start = parse(&self.from, now_ms).context("--from")?;
        let end = parse(&self.until, now_ms).context("--until")?;
        if start >= end {
            bail!(
                "the range is empty: --from {} is not before --until {}",
                self.from,
                self.until
            );
        }
        Ok((start, end))
    }
}

/// Returns the current time in Unix milliseconds.
pub(crate) fn now_ms() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

/// Parses a time. The number of digits of a Unix time determines its unit: up to 11 digits are seconds, up to 14
/// milliseconds, up to 17 microseconds, more nanoseconds.
pub(crate) fn parse(text: &str, now_ms: i64) -> anyhow::Result<i64> {
    let text = text.trim();
    if let Some(offset) = text.strip_prefix("now") {
        return relative(offset, now_ms).with_context(|| format!("invalid relative time `{text}`"));
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let number: i64 = text.parse().with_context(|| format!("invalid Unix time `{text}`"))?;
        return Ok(match text.len() {
            ..=11 => number.saturating_mul(1_000),
            12..=14 => number,
            15..=17 => number / 1_000,
            _ => number / 1_000_000,
        });
    }
    if let Ok(time) = chrono::DateTime::parse_from_rfc3339(text) {
        return Ok(time.timestamp_millis());
    }
    for format in [
        "%Y-%m-%dT%H:%M:%S",
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%d %H:%M",
    ] {
        if let Ok(time) = chrono::NaiveDateTime::parse_from_str(text, format) {
            return Ok(time.and_utc().timestamp_millis());
        }
    }
    if let Ok(date) = chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        return Ok(date.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_millis());
    }
    bail!("invalid time `{text}`: write `now-1h`, `2026-01-31T10:00:00Z`, `2026-01-31`, or a Unix time")
}

/// Formats a Unix time in milliseconds as RFC 3339 in UTC.
pub(crate) fn format(ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(ms).map_or_else(
        || format!("{ms} ms"),
        |time| time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
    )
}

fn relative(offset: &str, now_ms: i64) -> anyhow::Result<i64> {
    let (sign, length) = match offset.as_bytes().first() {
        None => return Ok(now_ms),
        Some(b'-') => (-1, &offset[1..]),
        Some(b'+') => (1, &offset[1..]),
        Some(_) => bail!("`now` must be followed by + or - and a duration"),
    };
    let length = i64::try_from(duration::parse(length)?.as_millis())?;
    Ok(now_ms.saturating_add(sign * length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_all_their_forms() {
        let now = 1_700_000_000_000;
        for (text, expected) in [
            ("now", now),
            ("now-1h", now - 3_600_000),
            ("now-1h30m", now - 5_400_000),
            ("now+5m", now + 300_000),
            ("now-7d", now - 604_800_000),
            ("1700000000", now),
            ("1700000000000", now),
            ("1700000000000000", now),
            ("1700000000000000000", now),
            ("0", 0),
            ("2023-11-14T22:13:20Z", now),
            ("2023-11-14T23:13:20+01:00", now),
            ("2023-11-14 22:13:20", now),
            ("2023-11-14T22:13", now - 20_000),
            ("2023-11-14", now - 80_000_000),
        ] {
            assert_eq!(parse(text, now).unwrap(), expected, "{text}");
        }
        for text in [
            "",
            "now1h",
            "now-",
            "now-x",
            "yesterday",
            "2023-13-01",
            "99999999999999999999",
            "-5",
        ] {
            assert!(parse(text, now).is_err(), "{text}");
        }
    }

    #[test]
    fn a_range_ends_after_it_starts() {
        let range = |from: &str, until: &str| {
            let (from, until) = (from.to_owned(), until.to_owned());
            RangeArgs { from, until }.range(1_700_000_000_000)
        };
        assert_eq!(range("now-1s", "now").unwrap(), (1_699_999_999_000, 1_700_000_000_000));
        assert!(range("now", "now").is_err());
        assert!(range("now", "now-1h").unwrap_err().to_string().contains("empty"));
        let written = RangeArgs::of(1_699_999_999_001, 1_700_000_000_002);
        assert_eq!(written.range(0).unwrap(), (1_699_999_999_001, 1_700_000_000_002));
    }
}
