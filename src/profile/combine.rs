//! Merges several profiles into one, as `go tool pprof` does.
//!
//! In: decoded profiles. Out: one profile with the sample types that all of them have. Types are matched by name, so
//! that neither their order nor additional types matter. Values are converted to the finest unit. The merge fails if
//! the profiles have no type in common, if a unit or value cannot be converted, or if the period types differ.

use hashbrown::HashSet;

use crate::pprof::{Builder, Profile, ValueType};
use crate::report::units;

/// The reason why profiles cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CombineError {
    /// No sample type occurs in all of the profiles.
    #[error(
        "the profiles have no sample type in common: one has {}, another has {}",
        .first.join(", "),
        .other.join(", ")
    )]
    NoCommonType { first: Vec<String>, other: Vec<String> },
    /// The units of a sample type cannot be converted into each other.
    #[error("the sample type `{kind}` has the unit `{first}` in one profile and `{other}` in another")]
    Units { kind: String, first: String, other: String },
    /// The samples of the profiles were triggered by different events.
    #[error("the period type is `{first}` in one profile and `{other}` in another")]
    PeriodTypes { first: String, other: String },
    /// A value is too large for the unit of the result.
    #[error("the value {value} of `{kind}` in `{from}` does not fit in 64 bits as `{to}`")]
    TooLarge {
        kind: String,
        value: i64,
        from: String,
        to: String,
    },
}

/// Merges profiles. Returns `None` if there is no profile.
///
/// The result has the sample types that all profiles have, in the order of the first profile. Equal functions and
/// locations are merged, but equal stacks remain separate samples. The time is the earliest time, the duration is the
/// sum of all durations, and the period is the largest period. Each comment occurs once. A sample with only zero values
/// is omitted.
pub fn combine<'a>(profiles: &[&Profile<'a>]) -> Result<Option<Profile<'a>>, CombineError> {
    let Some((first, others)) = profiles.split_first() else {
        return Ok(None);
    };
    if others.is_empty() {
        return Ok(Some((*first).clone()));
    }
    let types = common_types(first, profiles)?;
    let period_type = period_type(profiles)?;
    let mut comments: Vec<&str> = Vec::new();
    let mut known = HashSet::new();
    let all_comments = profiles.iter().flat_map(|profile| &profile.comments);
    comments.extend(all_comments.filter(|comment| known.insert(**comment)));
    let mut period = 0;
    for profile in profiles {
        period = period.max(scaled(profile.period, profile.period_type, period_type.unit)?);
    }
    let times = profiles.iter().map(|profile| profile.time_nanos);
    let durations = profiles.iter().map(|profile| profile.duration_nanos);
    let mut defaults = profiles.iter().map(|profile| default_type(profile, &types));
    let mut builder = Builder::new(Profile {
        comments,
        period_type,
        period,
        default_sample_type: defaults.find(|name| !name.is_empty()).unwrap_or_default(),
        sample_types: types.clone(),
        drop_frames: first.drop_frames,
        keep_frames: first.keep_frames,
        time_nanos: times.filter(|time| *time != 0).min().unwrap_or(0),
        duration_nanos: durations.fold(0, i64::saturating_add),
        ..Profile::default()
    });
    for profile in profiles {
        add(&mut builder, profile, &types)?;
    }
    Ok(Some(builder.finish()))
}

/// Returns a copy of `profile` in which the values of the sample type with the index `value` are in `unit`.
pub fn in_unit<'a>(profile: &Profile<'a>, value: usize, unit: &'a str) -> Result<Profile<'a>, CombineError> {
    let mut converted = profile.clone();
    let width = profile.sample_types.len();
    if let Some(kind) = converted.sample_types.get_mut(value) {
        for one in converted.values.iter_mut().skip(value).step_by(width) {
            *one = scaled(*one, *kind, unit)?;
        }
        kind.unit = unit;
    }
    Ok(converted)
}

/// Returns the finer of two units of a sample type.
pub fn finer<'a>(kind: &str, first: &'a str, other: &'a str) -> Result<&'a str, CombineError> {
    if first == other {
        return Ok(first);
    }
    let factor = units::factor(other, first).ok_or_else(|| CombineError::Units {
        kind: kind.to_owned(),
        first: first.to_owned(),
        other: other.to_owned(),
    })?;
    Ok(if factor < 1.0 { other } else { first })
}

/// Returns the sample types that all profiles have, in the order of the first profile and in the finest unit.
fn common_types<'a>(first: &Profile<'a>, profiles: &[&Profile<'a>]) -> Result<Vec<ValueType<'a>>, CombineError> {
    let mut common = Vec::new();
    for kind in &first.sample_types {
        let matches = profiles.iter().map(|profile| find(profile, kind.kind));
        let Some(all) = matches.collect::<Option<Vec<(usize, ValueType<'a>)>>>() else {
            continue;
        };
        let mut unit = kind.unit;
        for (_, other) in all {
            unit = finer(kind.kind, unit, other.unit)?;
        }
        common.push(ValueType { kind: kind.kind, unit });
    }
    if common.is_empty() {
        let names = |profile: &Profile<'_>| profile.sample_types.iter().map(|kind| kind.kind.to_owned()).collect();
        let lacks = |profile: &&&Profile<'a>| first.sample_types.iter().all(|kind| find(profile, kind.kind).is_none());
        let other = profiles.iter().find(lacks).or(profiles.last());
        return Err(CombineError::NoCommonType {
            first: names(first),
            other: other.map(|other| names(other)).unwrap_or_default(),
        });
    }
    Ok(common)
}

fn find<'a>(profile: &Profile<'a>, name: &str) -> Option<(usize, ValueType<'a>)> {
    let mut types = profile.sample_types.iter().copied().enumerate();
    types.find(|(_, kind)| kind.kind == name)
}

/// Returns the period type that all profiles have, in the finest unit. Skips profiles without a period type, and
/// ignores an `s` at the end of the names.
fn period_type<'a>(profiles: &[&Profile<'a>]) -> Result<ValueType<'a>, CombineError> {
    let mut common = ValueType::default();
    for profile in profiles {
        let period_type = profile.period_type;
        if period_type == ValueType::default() {
            continue;
        }
        if common == ValueType::default() {
            common = period_type;
            continue;
        }
        let singular = |name: &'a str| name.strip_suffix('s').unwrap_or(name);
        let different = || CombineError::PeriodTypes {
            first: format!("{} in {}", common.kind, common.unit),
            other: format!("{} in {}", period_type.kind, period_type.unit),
        };
        if singular(common.kind) != singular(period_type.kind) {
            return Err(different());
        }
        common.unit = finer(common.kind, common.unit, period_type.unit).map_err(|_| different())?;
    }
    Ok(common)
}

/// Returns the sample type that a viewer shows first. Follows the rule that `go tool pprof` applies after it has
/// removed the types that not all profiles have.
fn default_type<'a>(profile: &Profile<'a>, types: &[ValueType<'a>]) -> &'a str {
    let names = |types: &[ValueType<'a>]| types.iter().map(|kind| kind.kind).collect::<Vec<_>>();
    let (common_names, profile_names) = (names(types), names(&profile.sample_types));
    if common_names == profile_names || common_names.contains(&profile.default_sample_type) {
        return profile.default_sample_type;
    }
    common_names.first().copied().unwrap_or_default()
}

/// Adds the samples of a profile with the values of `types`. The profile has all of these types.
fn add<'a>(builder: &mut Builder<'a>, profile: &Profile<'a>, types: &[ValueType<'a>]) -> Result<(), CombineError> {
    let columns: Vec<_> = types
        .iter()
        .filter_map(|kind| Some((find(profile, kind.kind)?, kind.unit)))
        .collect();
    let locations = builder.locations_of(profile);
    let mut values = Vec::with_capacity(types.len());
    for sample in 0..profile.sample_count() {
        let row = profile.values_of(sample);
        values.clear();
        for ((index, kind), unit) in &columns {
            values.push(scaled(row.get(*index).copied().unwrap_or(0), *kind, unit)?);
        }
        if values.iter().all(|value| *value == 0) {
            continue;
        }
        let stack = profile.stack(sample).iter();
        let stack = stack.map(|location| locations[*location as usize]);
        builder.sample(stack, profile.labels_of(sample).iter().copied(), &values);
    }
    Ok(())
}

/// Converts a value of a type to a unit that is equally fine or finer.
fn scaled(value: i64, kind: ValueType<'_>, unit: &str) -> Result<i64, CombineError> {
    if value == 0 || kind.unit == unit {
        return Ok(value);
    }
    let factor = units::factor(kind.unit, unit).unwrap_or(1.0).round();
    value.checked_mul(factor as i64).ok_or_else(|| CombineError::TooLarge {
        kind: kind.kind.to_owned(),
        value,
        from: kind.unit.to_owned(),
        to: unit.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pprof::Mapping;

    /// Creates a profile with one sample for each row of values, in functions `f0`, `f1`, ...
    fn profile<'a>(types: &[(&'a str, &'a str)], rows: &[&[i64]]) -> Profile<'a> {
        let mut builder = Builder::new(Profile {
            sample_types: types.iter().map(|(kind, unit)| ValueType { kind, unit }).collect(),
            duration_nanos: 5,
            period: 3,
            period_type: ValueType {
                kind: "cpu",
                unit: "nanoseconds",
            },
            ..Profile::default()
        });
        for (values, name) in rows.iter().zip(["f0", "f1", "f2"]) {
            let stack = [builder.named(name)];
            builder.sample(stack, [], values);
        }
        builder.finish()
    }

    fn types<'a>(profile: &Profile<'a>) -> Vec<(&'a str, &'a str)> {
        profile.sample_types.iter().map(|kind| (kind.kind, kind.unit)).collect()
    }

    #[test]
    fn values_are_matched_by_the_names_of_their_types() {
        let (samples, cpu) = (("samples", "count"), ("cpu", "nanoseconds"));
        let one = profile(&[samples, cpu], &[&[7, 70]]);
        let other = profile(&[cpu, samples], &[&[80, 8]]);
        let merged = combine(&[&one, &other]).unwrap().unwrap();
        assert_eq!(types(&merged), [samples, cpu]);
        assert_eq!(
            (merged.values.as_slice(), merged.functions.len()),
            (&[7, 70, 8, 80][..], 1)
        );
        assert_eq!((merged.duration_nanos, merged.period), (10, 3));

        let zeros = profile(&[samples, cpu], &[&[0, 0]]);
        let merged = combine(&[&one, &zeros]).unwrap().unwrap();
        assert_eq!((merged.values.as_slice(), merged.sample_count()), (&[7, 70][..], 1));

        let one_type = profile(&[("inuse_space", "bytes")], &[&[1]]);
        let two_types = profile(&[("alloc_space", "bytes"), ("inuse_space", "bytes")], &[&[2, 3]]);
        for (first, second) in [(&one_type, &two_types), (&two_types, &one_type)] {
            let merged = combine(&[first, second]).unwrap().unwrap();
            assert_eq!(types(&merged), [("inuse_space", "bytes")]);
            assert_eq!(merged.values.iter().sum::<i64>(), 4);
        }
    }

    #[test]
    fn values_are_converted_to_the_finest_unit() {
        let in_micros = Profile {
            period: 2,
            period_type: ValueType {
                kind: "cpu",
                unit: "ms",
            },
            ..profile(&[("cpu", "microseconds")], &[&[7]])
        };
        let in_nanos = profile(&[("cpu", "nanoseconds")], &[&[1]]);
        for (first, second) in [(&in_micros, &in_nanos), (&in_nanos, &in_micros)] {
            let merged = combine(&[first, second]).unwrap().unwrap();
            assert_eq!(types(&merged), [("cpu", "nanoseconds")]);
            assert_eq!(merged.values.iter().sum::<i64>(), 7001);
            assert_eq!((merged.period, merged.period_type.unit), (2_000_000, "nanoseconds"));
        }
        let converted = in_unit(&in_micros, 0, "ns").unwrap();
        assert_eq!(
            (converted.values.as_slice(), converted.sample_types[0].unit),
            (&[7000][..], "ns")
        );
    }

    #[test]
    fn what_cannot_be_merged_is_said() {
        let cpu = profile(&[("cpu", "nanoseconds")], &[&[1]]);
        let heap = profile(&[("inuse_space", "bytes")], &[&[1]]);
        let other_unit = profile(&[("cpu", "count")], &[&[1]]);
        let large_value = profile(&[("cpu", "seconds")], &[&[i64::MAX / 2]]);
        let of_time = Profile {
            period_type: ValueType {
                kind: "wall",
                unit: "nanoseconds",
            },
            ..cpu.clone()
        };
        for (other, expected) in [
            (
                &heap,
                "the profiles have no sample type in common: one has cpu, another has inuse_space",
            ),
            (
                &other_unit,
                "the sample type `cpu` has the unit `nanoseconds` in one profile and `count` in another",
            ),
            (
                &large_value,
                "the value 4611686018427387903 of `cpu` in `seconds` does not fit in 64 bits as `nanoseconds`",
            ),
            (
                &of_time,
                "the period type is `cpu in nanoseconds` in one profile and `wall in nanoseconds` in another",
            ),
        ] {
            assert_eq!(combine(&[&cpu, other]).unwrap_err().to_string(), expected);
        }
        let unknown = Profile {
            period_type: ValueType::default(),
            ..cpu.clone()
        };
        assert!(combine(&[&unknown, &cpu]).is_ok());
        assert_eq!(combine(&[]), Ok(None));
    }

    #[test]
    fn a_file_that_is_loaded_at_two_addresses_is_one_binary() {
        let loaded_at = |start: u64, size: u64| {
            let mut builder = Builder::new(profile(&[("cpu", "nanoseconds")], &[]));
            let mapping = builder.mapping(Mapping {
                start,
                limit: start + size,
                offset: 0x1000,
                file: "/lib/libc.so.6",
                ..Mapping::default()
            });
            let location = builder.location(mapping, start + 0x123, &[]);
            builder.sample([location], [], &[1]);
            builder.finish()
        };
        let [one, other, longer] =
            [(0x7f11, 0x2000), (0x7f22, 0x1fff), (0x7f33, 0x3000)].map(|(high, size)| loaded_at(high << 32, size));
        let merged = combine(&[&one, &other, &longer]).unwrap().unwrap();
        assert_eq!((merged.mappings.len(), merged.locations.len()), (2, 2));
        assert_eq!(merged.locations[0].address, 0x7f11_0000_0123);
        assert_eq!([0, 1, 2].map(|sample| merged.stack(sample)[0]), [0, 0, 1]);
    }
}
