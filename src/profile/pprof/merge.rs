//! Several profiles of the same types as one.

use hashbrown::HashSet;

use crate::profile::pprof::builder::Builder;
use crate::profile::pprof::model::Profile;

/// All samples of `profiles`, which must have the sample types of the first; those with others are left out. `None`
/// when there is no profile.
///
/// Equal functions and locations are one; equal stacks stay samples of their own. The time is the earliest, the
/// duration the sum of all, and each comment is there once.
pub fn merge<'a>(profiles: &[&Profile<'a>]) -> Option<Profile<'a>> {
    let (first, _) = profiles.split_first()?;
    let same: Vec<&&Profile<'a>> = profiles
        .iter()
        .filter(|profile| profile.sample_types == first.sample_types)
        .collect();
    let times = same.iter().map(|profile| profile.time_nanos).filter(|time| *time != 0);
    let durations = same.iter().map(|profile| profile.duration_nanos);
    let mut comments: Vec<&str> = Vec::new();
    let mut known = HashSet::new();
    for comment in same.iter().flat_map(|profile| &profile.comments) {
        if known.insert(*comment) {
            comments.push(*comment);
        }
    }
    let mut builder = Builder::new(Profile {
        comments,
        sample_types: first.sample_types.clone(),
        period_type: first.period_type,
        period: first.period,
        default_sample_type: first.default_sample_type,
        drop_frames: first.drop_frames,
        keep_frames: first.keep_frames,
        time_nanos: times.min().unwrap_or(0),
        duration_nanos: durations.fold(0, i64::saturating_add),
        ..Profile::default()
    });
    for profile in same {
        let locations = builder.locations_of(profile);
        for sample in 0..profile.sample_count() {
            let stack = profile
                .stack(sample)
                .iter()
                .map(|location| locations[*location as usize]);
            let labels = profile.labels_of(sample).iter().copied();
            builder.sample(stack, labels, profile.values_of(sample));
        }
    }
    Some(builder.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::pprof::ValueType;

    #[test]
    fn functions_are_merged_and_samples_are_kept() {
        let profile = |names: &[&'static str], kind| {
            let mut builder = Builder::new(Profile {
                sample_types: vec![ValueType { kind, unit: "count" }],
                duration_nanos: 5,
                comments: vec!["of a test", names[0]],
                ..Profile::default()
            });
            let stack: Vec<u32> = names.iter().map(|name| builder.named(name)).collect();
            builder.sample(stack, [], &[7]);
            builder.finish()
        };
        let [one, two, other] = [
            profile(&["work", "main"], "samples"),
            profile(&["main"], "samples"),
            profile(&["main"], "other"),
        ];
        let merged = merge(&[&one, &two, &other]).unwrap();
        assert_eq!((merged.functions.len(), merged.duration_nanos), (2, 10));
        assert_eq!(merged.comments, ["of a test", "work", "main"]);
        assert_eq!(
            [0, 1].map(|sample| merged.stack(sample).to_vec()),
            [vec![0, 1], vec![1]]
        );
        assert_eq!(merged.values, [7, 7]);
        assert_eq!(merge(&[]), None);
    }
}
