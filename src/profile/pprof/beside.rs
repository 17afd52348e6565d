//! Merges profiles with different sample types into one profile with all of the types.
//!
//! In: profiles of the same period type. Out: one profile with one sample for each distinct stack and set of labels.
//! Comments, and the regular expressions `drop_frames` and `keep_frames` are omitted. The caller sets time and
//! duration.

use hashbrown::HashMap;

use crate::pprof::builder::Builder;
use crate::pprof::model::{Profile, SampleLabel};

/// The locations and the labels of a sample.
type Sample<'a> = (Vec<u32>, Vec<SampleLabel<'a>>);

/// Puts the values of profiles side by side, in the order of the profiles. If a profile does not contain a stack with
/// these labels, its values for the stack are 0.
pub fn side_by_side<'a>(profiles: &[Profile<'a>]) -> Profile<'a> {
    let types: Vec<_> = profiles
        .iter()
        .flat_map(|profile| &profile.sample_types)
        .copied()
        .collect();
    let width = types.len();
    let first = profiles.first();
    let mut builder = Builder::new(Profile {
        sample_types: types,
        period_type: first.map(|profile| profile.period_type).unwrap_or_default(),
        period: profiles.iter().map(|profile| profile.period).max().unwrap_or(0),
        ..Profile::default()
    });
    let mut samples: HashMap<Sample<'a>, usize> = HashMap::new();
    let mut values: Vec<i64> = Vec::new();
    let mut start = 0;
    for profile in profiles {
        let locations = builder.locations_of(profile);
        for sample in 0..profile.sample_count() {
            let stack = profile
                .stack(sample)
                .iter()
                .map(|location| locations[*location as usize]);
            let next = samples.len();
            let labels = profile.labels_of(sample).to_vec();
            let row = *samples.entry((stack.collect(), labels)).or_insert(next);
            if row == next {
                values.resize((row + 1) * width, 0);
            }
            for (index, value) in (row * width + start..).zip(profile.values_of(sample)) {
                values[index] = values[index].saturating_add(*value);
            }
        }
        start += profile.sample_types.len();
    }
    let mut rows: Vec<(&Sample<'a>, usize)> = samples.iter().map(|(sample, row)| (sample, *row)).collect();
    rows.sort_unstable_by_key(|(_, row)| *row);
    for ((stack, labels), row) in rows {
        let values = &values[row * width..(row + 1) * width];
        builder.sample(stack.iter().copied(), labels.iter().copied(), values);
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pprof::{Mapping, ValueType, decode, encode};

    fn profile_of<'a>(kind: &'a str, period: i64, stacks: &[(&[&'a str], i64)]) -> Profile<'a> {
        let mut builder = Builder::new(Profile {
            sample_types: vec![ValueType { kind, unit: "count" }],
            period,
            ..Profile::default()
        });
        for (names, value) in stacks {
            let stack: Vec<u32> = names.iter().map(|name| builder.named(name)).collect();
            builder.sample(stack, [], &[*value]);
        }
        builder.finish()
    }

    #[test]
    fn equal_stacks_have_the_values_of_all_profiles() {
        let left = profile_of(
            "objects",
            1,
            &[(&["work", "main"], 1), (&["main"], 2), (&["work", "main"], 4)],
        );
        let mut right = profile_of("space", 7, &[(&["idle", "main"], 8), (&["work", "main"], 16)]);
        right.mappings = vec![Mapping {
            file: "/bin/program",
            ..Mapping::default()
        }];
        let joined = side_by_side(&[left, right]);
        assert_eq!(
            joined
                .sample_types
                .iter()
                .map(|sample_type| sample_type.kind)
                .collect::<Vec<_>>(),
            ["objects", "space"]
        );
        assert_eq!(joined.period, 7);
        let sample = |sample: usize| {
            let names = joined.stack(sample).iter().map(|location| {
                let line = joined.lines_of(&joined.locations[*location as usize])[0];
                joined.functions[line.function as usize].name
            });
            (names.collect::<Vec<_>>(), joined.values_of(sample).to_vec())
        };
        assert_eq!(
            [0, 1, 2].map(sample),
            [
                (vec!["work", "main"], vec![5, 16]),
                (vec!["main"], vec![2, 0]),
                (vec!["idle", "main"], vec![0, 8]),
            ]
        );
        assert_eq!(joined.sample_count(), 3);
        assert_eq!(decode(&encode(&joined)).as_ref(), Ok(&joined));
        assert_eq!(side_by_side(&[]).sample_count(), 0);
    }

    #[test]
    fn stacks_with_different_labels_are_different_samples() {
        let labelled = |kind, labels: &[Option<SampleLabel<'static>>]| {
            let mut builder = Builder::new(Profile {
                sample_types: vec![ValueType { kind, unit: "count" }],
                ..Profile::default()
            });
            for (index, label) in labels.iter().enumerate() {
                let stack = [builder.named("work")];
                builder.sample(stack, *label, &[index as i64 + 1]);
            }
            builder.finish()
        };
        let [route, thread] = [SampleLabel::Text("route", "/"), SampleLabel::Number("thread_id", 7, "")].map(Some);
        let joined = side_by_side(&[
            labelled("objects", &[route, thread, None]),
            labelled("space", &[thread, route, route]),
        ]);
        let sample = |sample: usize| {
            (
                joined.labels_of(sample).first().copied(),
                joined.values_of(sample).to_vec(),
            )
        };
        assert_eq!(
            (0..joined.sample_count()).map(sample).collect::<Vec<_>>(),
            [(route, vec![1, 5]), (thread, vec![2, 1]), (None, vec![3, 0])]
        );
    }
}
