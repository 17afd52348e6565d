//! Formats values and shares like `go tool pprof`: `1.50s`, `12.25MB`, `37.50%`.
//!
//! Families of units, their factors and the number formats are the same as in pprof's package `measurement`.

/// The name that stands for a unit that suits the smallest value of a report.
pub(super) const MINIMUM: &str = "minimum";

/// The name that stands for a unit that suits the value itself.
const AUTO: &str = "auto";

/// Units that are not written after a value.
const PLAIN: [&str; 5] = ["count", "sample", "unit", MINIMUM, AUTO];

/// A unit: its written form, its other names, and its size in the base unit of its family.
struct Unit {
    written: &'static str,
    names: &'static [&'static str],
    factor: f64,
}

const fn unit(written: &'static str, names: &'static [&'static str], factor: f64) -> Unit {
    Unit { written, names, factor }
}

/// Units that can be converted into each other. A value is written in the default unit if the wanted unit is not in
/// this family, or if the value is smaller than each of the units.
struct Family {
    units: &'static [Unit],
    default: Unit,
}

const FAMILIES: [Family; 3] = [
    Family {
        units: &[
            unit("B", &["b", "byte"], 1.0),
            unit("kB", &["kb", "kbyte", "kilobyte"], 1024.0),
            unit("MB", &["mb", "mbyte", "megabyte"], 1_048_576.0),
            unit("GB", &["gb", "gbyte", "gigabyte"], 1_073_741_824.0),
            unit("TB", &["tb", "tbyte", "terabyte"], 1_099_511_627_776.0),
            unit("PB", &["pb", "pbyte", "petabyte"], 1_125_899_906_842_624.0),
        ],
        default: unit("B", &[], 1.0),
    },
    Family {
        units: &[
            unit("ns", &["ns", "nanosecond"], 1.0),
            unit("us", &["\u{3bc}s", "us", "microsecond"], 1e3),
            unit("ms", &["ms", "millisecond"], 1e6),
            unit("s", &["s", "sec", "second"], 1e9),
            unit("hrs", &["hour", "hr"], 3600e9),
        ],
        default: unit("s", &[], 1e9),
    },
    Family {
        units: &[
            unit("n*GCU", &["nanogcu"], 1e-9),
            unit("u*GCU", &["microgcu"], 1e-6),
            unit("m*GCU", &["milligcu"], 1e-3),
            unit("GCU", &["gcu"], 1.0),
            unit("k*GCU", &["kilogcu"], 1e3),
            unit("M*GCU", &["megagcu"], 1e6),
            unit("G*GCU", &["gigagcu"], 1e9),
            unit("T*GCU", &["teragcu"], 1e12),
            unit("P*GCU", &["petagcu"], 1e15),
        ],
        default: unit("GCU", &[], 1.0),
    },
];

impl Family {
    fn find(&self, name: &str) -> Option<&Unit> {
        let name = name.to_lowercase();
        let singular = match name.strip_suffix('s') {
            Some(singular) if name.len() > 2 => singular,
            _ => name.as_str(),
        };
        self.units.iter().find(|unit| unit.names.contains(&singular))
    }

    /// Converts a value to the unit `to`, or to the default if `to` is not in this family. Returns `None` if `from` is
    /// not in this family.
    fn convert(&self, value: f64, from: &str, to: &str) -> Option<(f64, &'static str)> {
        let value = value * self.find(from)?.factor;
        let target_unit = if matches!(to, MINIMUM | AUTO) {
            self.units.iter().rfind(|unit| value / unit.factor >= 1.0)
        } else {
            self.find(to)
        };
        let unit = target_unit.unwrap_or(&self.default);
        Some((value / unit.factor, unit.written))
    }
}

/// Returns the number of units `to` in one unit `from`, or `None` if they cannot be converted into each other.
pub(crate) fn factor(from: &str, to: &str) -> Option<f64> {
    FAMILIES
        .iter()
        .find_map(|family| Some(family.find(from)?.factor / family.find(to)?.factor))
}

/// Returns the value in the unit `to`, and the written form of that unit. The written form is empty for a unit that is
/// not written after a value.
pub(super) fn scale<'a>(value: i64, from: &str, to: &'a str) -> (f64, &'a str) {
    if value < 0 {
        let (scaled, unit) = scale_positive(-(value as f64), from, to);
        return (-scaled, unit);
    }
    scale_positive(value as f64, from, to)
}

fn scale_positive<'a>(value: f64, from: &str, to: &'a str) -> (f64, &'a str) {
    let converted = FAMILIES.iter().find_map(|family| family.convert(value, from, to));
    converted.unwrap_or_else(|| (value, if PLAIN.contains(&to) { "" } else { to }))
}

/// Formats the value with its unit, with two decimals, or without decimals if both are zero.
pub(super) fn label(value: i64, from: &str, to: &str) -> String {
    let (scaled, unit) = scale(value, from, to);
    let number = format!("{scaled:.2}");
    let number = number.strip_suffix(".00").unwrap_or(&number);
    match number {
        "0" | "-0" => "0".to_owned(),
        number => format!("{number}{unit}"),
    }
}

/// Formats the value in the unit that suits it best.
pub(super) fn auto_label(value: i64, from: &str) -> String {
    label(value, from, AUTO)
}

/// Formats the value as a share of `total`, six characters wide.
pub(super) fn percentage(value: i64, total: i64) -> String {
    let ratio = match total {
        0 => 0.0,
        total => (value as f64 / total as f64).abs() * 100.0,
    };
    if (99.95..=100.05).contains(&ratio) {
        "  100%".to_owned()
    } else if ratio >= 1.0 {
        format!("{ratio:5.2}%")
    } else {
        format!("{:>5}%", two_digits(ratio))
    }
}

/// Formats a number from 0 to 1 with two significant digits, like `%.2g`.
fn two_digits(number: f64) -> String {
    let scientific = format!("{number:.1e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let mantissa = mantissa.strip_suffix(".0").unwrap_or(mantissa);
    match exponent.parse::<i32>().unwrap_or(0) {
        0 => mantissa.to_owned(),
        exponent @ -4..0 => {
            let zeros = "0".repeat((-exponent - 1) as usize);
            format!("0.{zeros}{}", mantissa.replace('.', ""))
        }
        exponent => format!("{mantissa}e-{:02}", -exponent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_go_writes_them() {
        for (value, from, to, expected) in [
            (0, "nanoseconds", MINIMUM, "0"),
            (10_000_000, "nanoseconds", "ms", "10ms"),
            (1_230_000_000, "nanoseconds", AUTO, "1.23s"),
            (-1_500_000_000, "nanoseconds", AUTO, "-1.50s"),
            (7_200_000_000_000, "nanoseconds", AUTO, "2hrs"),
            (1, "nanoseconds", "s", "0"),
            (142_840_000, "bytes", "MB", "136.22MB"),
            (512, "bytes", "kB", "0.50kB"),
            (5, "count", "count", "5"),
            (5, "count", MINIMUM, "5"),
            (5, "furlongs", "furlongs", "5furlongs"),
            (12, "nanoseconds", "bytes", "0"),
            (i64::MIN, "count", MINIMUM, "-9223372036854775808"),
        ] {
            assert_eq!(label(value, from, to), expected, "{value} {from} {to}");
        }
    }

    #[test]
    fn shares_are_six_characters_wide() {
        for (value, total, expected) in [
            (0, 0, "    0%"),
            (1, 1, "  100%"),
            (1, 3, "33.33%"),
            (-1, 20, " 5.00%"),
            (996, 100_000, "    1%"),
            (5, 1000, "  0.5%"),
            (54, 100_000, "0.054%"),
            (12, 10_000_000, "0.00012%"),
            (5, 10_000_000, "5e-05%"),
            (54, 100_000_000, "5.4e-05%"),
            (300, 100, "300.00%"),
        ] {
            assert_eq!(percentage(value, total), expected, "{value} of {total}");
        }
    }
}
