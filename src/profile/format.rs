//! Formats values with units, so that people can read them. The web page formats them the same way.
//!
//! Times are in ns, us, ms, s, min, h; bytes are in B, KiB, MiB, GiB, TiB; counts are plain or in K, M, G. A number
//! that needs a fraction has at most three significant digits. Unknown units are appended unchanged.

const NANOSECONDS: [(f64, &str); 6] = [
    (3600e9, "h"),
    (60e9, "min"),
    (1e9, "s"),
    (1e6, "ms"),
    (1e3, "us"),
    (1.0, "ns"),
];
const BYTES: [(f64, &str); 5] = [
    (1_099_511_627_776.0, "TiB"),
    (1_073_741_824.0, "GiB"),
    (1_048_576.0, "MiB"),
    (1024.0, "KiB"),
    (1.0, "B"),
];
const COUNTS: [(f64, &str); 4] = [(1e9, "G"), (1e6, "M"), (1e3, "K"), (1.0, "")];

/// Formats `value` in the largest unit in which the value is at least 1. `unit` is the unit of `value`, as in a profile
/// type.
pub fn value(value: i64, unit: &str) -> String {
    let value = value as f64;
    match unit {
        "nanoseconds" | "ns" => scaled(value, &NANOSECONDS, " "),
        "microseconds" | "us" => scaled(value * 1e3, &NANOSECONDS, " "),
        "milliseconds" | "ms" => scaled(value * 1e6, &NANOSECONDS, " "),
        "seconds" | "s" => scaled(value * 1e9, &NANOSECONDS, " "),
        "bytes" | "B" => scaled(value, &BYTES, " "),
        "count" | "objects" | "samples" | "" => scaled(value, &COUNTS, ""),
        other => format!("{} {other}", scaled(value, &COUNTS, "")),
    }
}

/// Formats `part` as a share of `total`: `12.34%`, or 0% if `total` is 0.
pub fn share(part: i64, total: i64) -> String {
    if total == 0 {
        return "0%".to_owned();
    }
    let percent = part as f64 / total as f64 * 100.0;
    match percent {
        100.0 => "100%".to_owned(),
        percent => format!("{percent:.2}%"),
    }
}

fn scaled(value: f64, units: &[(f64, &str)], separator: &str) -> String {
    // A value that would round to 1000 of a unit becomes 1 of the next unit.
    let fits = |scale: f64| (value / scale).abs() >= 0.9995 || scale == 1.0;
    let (scale, unit) = units.iter().find(|(scale, _)| fits(*scale)).unwrap_or(&(1.0, ""));
    let number = value / scale;
    let digits = match number.abs() {
        x if *scale == 1.0 || x >= 99.95 => 0,
        x if x >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{number:.digits$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text}{separator}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_in_their_largest_unit() {
        for (number, unit, expected) in [
            (0, "nanoseconds", "0 ns"),
            (999, "nanoseconds", "999 ns"),
            (1_000, "nanoseconds", "1 us"),
            (1_234_567, "nanoseconds", "1.23 ms"),
            (999_999_999, "nanoseconds", "1 s"),
            (10_000_000, "nanoseconds", "10 ms"),
            (90_000_000_000, "nanoseconds", "1.5 min"),
            (7_200_000_000_000, "nanoseconds", "2 h"),
            (15, "milliseconds", "15 ms"),
            (2_500, "microseconds", "2.5 ms"),
            (61, "seconds", "1.02 min"),
            (1_023, "bytes", "1023 B"),
            (1_536, "bytes", "1.5 KiB"),
            (123_456_789, "bytes", "118 MiB"),
            (5 << 40, "bytes", "5 TiB"),
            (999, "count", "999"),
            (12_345, "count", "12.3K"),
            (999_999, "objects", "1M"),
            (-1_500, "count", "-1.5K"),
            (12, "furlongs", "12 furlongs"),
            (i64::MIN, "bytes", "-8388608 TiB"),
        ] {
            assert_eq!(value(number, unit), expected, "{number} {unit}");
        }
    }

    #[test]
    fn shares_have_two_digits() {
        assert_eq!(share(1, 3), "33.33%");
        assert_eq!(share(3, 3), "100%");
        assert_eq!(share(0, 0), "0%");
    }
}
