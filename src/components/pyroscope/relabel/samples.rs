//! Applies rules to the labels of a profile's samples.
//!
//! In: pprof. Out: pprof with other labels on its samples, or with fewer samples. Samples that end up with the same
//! stack and labels are summed. The rules treat the value of a numeric label as text. A numeric label that the rules do
//! not change stays numeric.

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;

use crate::common::passing::unpacked::{UnpackError, unpack};
use alluvium_profile::pprof::{self, DecodeError, Profile, SampleLabel};
use alluvium_profile::relabel::{LabelMap, Rules};

/// The reason why the rules cannot be applied to a profile.
#[derive(Debug, thiserror::Error)]
pub(super) enum SamplesError {
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    #[error("cannot read the profile: {0}")]
    Profile(#[from] DecodeError),
}

/// The result of the rules for a profile.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RelabelOutcome {
    /// The rules changed nothing.
    All,
    /// The changed profile, and the number of dropped samples.
    Changed(Bytes, u64),
    /// All samples were dropped. The value is their number.
    Nothing(u64),
}

/// The result of the rules for one set of labels.
enum After<'a> {
    Unchanged(&'a [SampleLabel<'a>]),
    /// The labels before the rules, and the labels after the rules.
    Changed(&'a [SampleLabel<'a>], LabelMap),
    Dropped,
}

/// Applies rules to the labels of every sample. Needs milliseconds of CPU time.
pub(super) fn relabel(bytes: &Bytes, rules: &Rules) -> Result<RelabelOutcome, SamplesError> {
    let plain = unpack(bytes)?;
    let profile = pprof::decode(&plain)?;
    let mut after: Vec<After<'_>> = Vec::new();
    let mut known: HashMap<&[SampleLabel<'_>], usize> = HashMap::new();
    let mut of_samples = Vec::with_capacity(profile.sample_count());
    for sample in 0..profile.sample_count() {
        let labels = profile.labels_of(sample);
        of_samples.push(*known.entry(labels).or_insert_with(|| {
            after.push(apply(rules, labels));
            after.len() - 1
        }));
    }
    if after.iter().all(|after| matches!(after, After::Unchanged(_))) {
        return Ok(RelabelOutcome::All);
    }
    let labels: Vec<Option<Vec<SampleLabel<'_>>>> = after.iter().map(After::labels).collect();
    let dropped = of_samples.iter().filter(|set| labels[**set].is_none()).count() as u64;
    if dropped == of_samples.len() as u64 {
        return Ok(RelabelOutcome::Nothing(dropped));
    }
    let relabeled = with_labels(&profile, |sample| labels[of_samples[sample]].as_deref());
    Ok(RelabelOutcome::Changed(
        pprof::gzip(&pprof::encode(&relabeled)).into(),
        dropped,
    ))
}

fn apply<'a>(rules: &Rules, labels: &'a [SampleLabel<'a>]) -> After<'a> {
    let before: LabelMap = labels
        .iter()
        .map(|label| (name(label).into(), value(label).into()))
        .collect();
    let mut map = before.clone();
    if !rules.change(&mut map) {
        After::Dropped
    } else if map == before {
        After::Unchanged(labels)
    } else {
        After::Changed(labels, map)
    }
}

impl After<'_> {
    fn labels(&self) -> Option<Vec<SampleLabel<'_>>> {
        match self {
            Self::Unchanged(labels) => Some(labels.to_vec()),
            Self::Changed(before, map) => {
                let mut labels = Vec::with_capacity(map.len());
                for (label_name, text) in map {
                    let unchanged = before
                        .iter()
                        .find(|label| name(label) == &**label_name && value(label) == **text);
                    labels.push(unchanged.copied().unwrap_or(SampleLabel::Text(label_name, text)));
                }
                Some(labels)
            }
            Self::Dropped => None,
        }
    }
}

/// Returns the profile with new labels for each sample. A sample for which `labels` returns `None` is dropped.
fn with_labels<'a>(profile: &'a Profile<'a>, labels: impl Fn(usize) -> Option<&'a [SampleLabel<'a>]>) -> Profile<'a> {
    let width = profile.sample_types.len();
    let mut relabeled = Profile {
        sample_locations: Vec::new(),
        sample_starts: vec![0],
        values: Vec::new(),
        labels: Vec::new(),
        label_starts: vec![0],
        ..profile.clone()
    };
    let mut known: HashMap<(&[u32], &[SampleLabel<'_>]), usize> = HashMap::new();
    for sample in 0..profile.sample_count() {
        let Some(labels) = labels(sample) else { continue };
        let (stack, values) = (profile.stack(sample), profile.values_of(sample));
        let next = relabeled.sample_count();
        let index = *known.entry((stack, labels)).or_insert(next);
        if index < next {
            let sums = relabeled.values[index * width..].iter_mut();
            sums.zip(values)
                .for_each(|(sum, addend)| *sum = sum.saturating_add(*addend));
            continue;
        }
        relabeled.sample_locations.extend_from_slice(stack);
        relabeled.sample_starts.push(relabeled.sample_locations.len() as u32);
        relabeled.values.extend_from_slice(values);
        relabeled.labels.extend_from_slice(labels);
        relabeled.label_starts.push(relabeled.labels.len() as u32);
    }
    relabeled.drop_unused();
    relabeled
}

fn name<'a>(label: &SampleLabel<'a>) -> &'a str {
    match label {
        SampleLabel::Text(name, _) | SampleLabel::Number(name, ..) => name,
    }
}

fn value<'a>(label: &SampleLabel<'a>) -> Cow<'a, str> {
    match label {
        SampleLabel::Text(_, text) => Cow::Borrowed(text),
        SampleLabel::Number(_, number, _) => Cow::Owned(number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testing::{Body, receivers};
    use crate::pyroscope::relabel::DEFINITION;
    use alluvium_profile::pprof::{Builder, ValueType};

    fn rules(rules: &[(&str, &str)]) -> Rules {
        let mut body = Body::new().with("forward_to", receivers([]));
        for (action, regex) in rules {
            let mut rule = Body::new().text("action", action).text("regex", regex);
            if matches!(*action, "drop" | "keep") {
                let source_label = alluvium_lang::value::Value::string("job");
                rule = rule.with("source_labels", alluvium_lang::value::Value::array([source_label]));
            }
            body = body.block("sample_rule", rule);
        }
        (*body.arguments(&DEFINITION).sample_rule).clone()
    }

    fn profile() -> Bytes {
        let mut builder = Builder::new(Profile {
            sample_types: vec![ValueType {
                kind: "cpu",
                unit: "count",
            }],
            ..Profile::default()
        });
        let (work, idle) = (builder.named("work"), builder.named("idle"));
        let text = SampleLabel::Text;
        builder.sample(
            [work],
            [text("job", "a"), text("span", "1"), SampleLabel::Number("pid", 7, "")],
            &[1],
        );
        builder.sample(
            [work],
            [text("job", "a"), text("span", "2"), SampleLabel::Number("pid", 7, "")],
            &[2],
        );
        builder.sample([idle], [text("job", "b")], &[4]);
        builder.sample([idle], [], &[8]);
        pprof::encode(&builder.finish()).into()
    }

    fn shown(left: RelabelOutcome) -> String {
        let (bytes, dropped) = match left {
            RelabelOutcome::Changed(bytes, dropped) => (bytes, dropped),
            other => return format!("{other:?}"),
        };
        let plain = pprof::gunzip(&bytes, 1 << 20).unwrap();
        let profile = pprof::decode(&plain).unwrap();
        let samples = (0..profile.sample_count()).map(|index| {
            format!(
                "{:?} {:?} {:?}",
                profile.stack(index),
                profile.labels_of(index),
                profile.values_of(index)
            )
        });
        format!("{dropped}: {}", samples.collect::<Vec<_>>().join("; "))
    }

    #[test]
    fn labels_are_dropped_and_what_becomes_equal_is_added_up() {
        let left = relabel(&profile(), &rules(&[("labeldrop", "span")])).unwrap();
        assert_eq!(
            shown(left),
            "0: [0] [Text(\"job\", \"a\"), Number(\"pid\", 7, \"\")] [3]; [1] [Text(\"job\", \"b\")] [4]; [1] [] [8]"
        );
    }

    #[test]
    fn samples_are_dropped_with_their_names_and_counted() {
        let left = relabel(&profile(), &rules(&[("drop", "a|")])).unwrap();
        assert_eq!(shown(left), "3: [0] [Text(\"job\", \"b\")] [4]");
        assert_eq!(
            relabel(&profile(), &rules(&[("keep", "c")])).unwrap(),
            RelabelOutcome::Nothing(4)
        );
    }

    #[test]
    fn what_no_rule_changes_is_as_it_came_and_what_is_no_profile_is_refused() {
        assert_eq!(
            relabel(&profile(), &rules(&[("labeldrop", "other")])).unwrap(),
            RelabelOutcome::All
        );
        let error = relabel(&Bytes::from_static(b"no"), &rules(&[("labeldrop", "x")]))
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("cannot read the profile"), "{error}");
    }
}
