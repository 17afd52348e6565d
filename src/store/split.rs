//! Splits the samples of a profile into series by their text labels, and takes span and trace ids off them.
//!
//! Labels that the series has already win over those of a sample; numbers and private labels (`__`) are no labels of a series.

use hashbrown::HashMap;

use crate::profile::Labels;
use crate::profile::pprof::{Profile, SampleLabel};
use crate::store::ingest::{Link, Samples, SeriesRows, is_link};
use crate::store::limits::{Limits, Rejection};

/// Labels of a sample, sorted.
type Pairs<'a> = Vec<(&'a str, &'a str)>;

/// The series of `profile` whose own labels are `base`, and the links of its samples.
pub fn split(profile: &Profile<'_>, base: &Labels, limits: &Limits) -> Result<(Vec<SeriesRows>, Vec<Link>), Rejection> {
    let count = profile.sample_count() as u32;
    let whole = |labels: &Labels| SeriesRows {
        id: labels.hash64() as i64,
        labels: labels.clone(),
        samples: Samples::All(count),
    };
    if !profile
        .labels
        .iter()
        .any(|label| matches!(label, SampleLabel::Text(..)))
    {
        return Ok((vec![whole(base)], Vec::new()));
    }
    let mut links = Vec::new();
    let mut groups: Vec<(Pairs<'_>, Vec<u32>)> = Vec::new();
    let mut index_of: HashMap<Pairs<'_>, usize> = HashMap::new();
    let mut pairs = Pairs::new();
    for sample in 0..count {
        let labels = profile.labels_of(sample as usize);
        pairs.clear();
        for label in labels {
            if let SampleLabel::Text(name, value) = label
                && !is_link(label)
                && !name.starts_with("__")
                && !name.is_empty()
                && !value.is_empty()
                && base.get(name).is_none()
            {
                pairs.push((name, value));
            }
        }
        pairs.sort_unstable();
        let group = match index_of.get(&pairs) {
            Some(group) => *group,
            None => {
                groups.push((pairs.clone(), Vec::new()));
                index_of.insert(pairs.clone(), groups.len() - 1);
                groups.len() - 1
            }
        };
        groups[group].1.push(sample);
        links.extend(link(sample, labels));
    }
    if let [(pairs, _)] = groups.as_slice()
        && pairs.is_empty()
    {
        return Ok((vec![whole(base)], links));
    }
    let mut series = Vec::with_capacity(groups.len());
    for (pairs, samples) in groups {
        let labels = Labels::from_pairs(base.iter().chain(pairs.iter().copied()));
        limits.check_labels(&labels)?;
        series.push(SeriesRows {
            id: labels.hash64() as i64,
            labels,
            samples: Samples::Some(samples),
        });
    }
    Ok((series, links))
}

fn link(sample: u32, labels: &[SampleLabel<'_>]) -> Option<Link> {
    let find = |wanted: &str| {
        labels.iter().find_map(|label| match label {
            SampleLabel::Text(name, value) if *name == wanted && !value.is_empty() => Some(Box::from(*value)),
            _ => None,
        })
    };
    let span_id = find("span_id").or_else(|| find("profile_id"));
    let trace_id = find("trace_id");
    (span_id.is_some() || trace_id.is_some()).then_some(Link {
        sample,
        span_id,
        trace_id,
    })
}
