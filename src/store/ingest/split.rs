//! Splits the samples of a profile into series by their labels, and moves span and trace ids into links.
//!
//! Labels of the profile's series take precedence over labels of a sample. Private labels (`__`) do not become labels
//! of a series. Numeric labels do so only if the tenant's rules name them, because numbers such as the sizes of a heap
//! profile would make a series of nearly every sample.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use crate::store::ingest::bounds;
use crate::store::ingest::prepared::{Link, Samples, SeriesRows};
use crate::store::ingest::texts::Spans;
use crate::store::rules::limits::{Limits, Rejection};
use crate::store::rules::relabel_rules::RelabelRules;
use alluvium_profile::pprof::{Profile, SampleLabel};
use alluvium_profile::{Labels, SeriesId};

/// Sorted labels of a sample.
type Pairs<'a> = Vec<(&'a str, &'a str)>;

/// Splits the samples of `profile`. `base` contains the labels that all its series share. Returns the series and the
/// links of the samples. If rules may still change the labels, the label limits are checked after the rules.
pub(super) fn split(
    profile: &Profile<'_>,
    base: &Labels,
    limits: &Limits,
    spans: &mut Spans<'_>,
) -> Result<(Vec<SeriesRows>, Vec<Link>), Rejection> {
    let count = profile.sample_count() as u32;
    let series_rows = |labels: &Labels| SeriesRows {
        id: SeriesId(labels.hash64() as i64),
        labels: labels.clone(),
        samples: Samples::All(count),
        columns: None,
    };
    let numbers = Numbers::of(profile, limits);
    if !profile
        .labels
        .iter()
        .any(|label| matches!(label, SampleLabel::Text(..)) || numbers.text(label).is_some())
    {
        return Ok((vec![series_rows(base)], Vec::new()));
    }
    let sanitizes = limits.rules.as_ref().is_some_and(|rules| rules.sanitizes());
    // Names that become equal when they are sanitised are names of one label.
    let own_names: Option<HashSet<String>> =
        sanitizes.then(|| base.iter().map(|(name, _)| name.replace('.', "_")).collect());
    let is_own = |name: &str| match &own_names {
        None => base.get(name).is_some(),
        Some(names) if name.contains('.') => names.contains(&name.replace('.', "_")),
        Some(names) => names.contains(name),
    };
    let (types, base_text) = (profile.sample_types.len(), text_of(base.iter()));
    let (mut text, mut read) = (0, 0);
    let mut links = Vec::new();
    let mut groups: Vec<(Pairs<'_>, Vec<u32>)> = Vec::new();
    let mut index_of: HashMap<Pairs<'_>, usize> = HashMap::new();
    let mut pairs = Pairs::new();
    for sample in 0..count {
        let labels = profile.labels_of(sample as usize);
        pairs.clear();
        for label in labels {
            let pair = match label {
                SampleLabel::Text(name, value) => Some((*name, *value)),
                SampleLabel::Number(name, ..) => numbers.text(label).map(|text| (*name, text)),
            };
            if let Some((name, value)) = pair
                && !is_link(label)
                && !name.starts_with("__")
                && !name.is_empty()
                && !value.is_empty()
                && !is_own(name)
            {
                pairs.push((name, value));
            }
        }
        read += text_of(pairs.iter().copied());
        bounds::check_labels(sample, read)?;
        pairs.sort_unstable();
        let group = if let Some(group) = index_of.get(&pairs) {
            *group
        } else {
            text += base_text + text_of(pairs.iter().copied());
            bounds::check_series(groups.len() + 1, types, text)?;
            groups.push((pairs.clone(), Vec::new()));
            index_of.insert(pairs.clone(), groups.len() - 1);
            groups.len() - 1
        };
        groups[group].1.push(sample);
        links.extend(link(sample, labels, spans)?);
    }
    if let [(pairs, _)] = groups.as_slice()
        && pairs.is_empty()
    {
        return Ok((vec![series_rows(base)], links));
    }
    let mut shared: HashMap<&str, Arc<str>> = HashMap::new();
    let mut share = |text| shared.entry(text).or_insert_with(|| Arc::from(text)).clone();
    let mut series = Vec::with_capacity(groups.len());
    for (pairs, samples) in groups {
        let own = pairs.into_iter().map(|(name, value)| (share(name), share(value)));
        let labels = Labels::from_pairs(base.pairs().iter().cloned().chain(own));
        if limits.rules.is_none() {
            limits.check_labels(&labels)?;
        }
        series.push(SeriesRows {
            id: SeriesId(labels.hash64() as i64),
            labels,
            samples: Samples::Some(samples),
            columns: None,
        });
    }
    Ok((series, links))
}

/// The texts of the numbers that become values of labels.
struct Numbers<'l> {
    /// Names of the numeric labels that the tenant keeps.
    names: &'l [String],
    texts: HashMap<i64, String>,
}

impl<'l> Numbers<'l> {
    fn of(profile: &Profile<'_>, limits: &'l Limits) -> Self {
        let mut numbers = Self {
            names: limits.rules.as_deref().map_or(&[], RelabelRules::numeric_labels),
            texts: HashMap::new(),
        };
        let kept = profile.labels.iter().filter_map(|label| numbers.kept(label));
        numbers.texts = kept.map(|number| (number, number.to_string())).collect();
        numbers
    }

    /// Returns the number of a label that becomes a label of a series. Like Go's pprof library, this takes 0 without a
    /// unit as no number.
    fn kept(&self, label: &SampleLabel<'_>) -> Option<i64> {
        match label {
            SampleLabel::Number(name, number, unit) if *number != 0 || !unit.is_empty() => {
                self.names.iter().any(|kept| kept == name).then_some(*number)
            }
            _ => None,
        }
    }

    fn text(&self, label: &SampleLabel<'_>) -> Option<&str> {
        self.texts.get(&self.kept(label)?).map(String::as_str)
    }
}

fn text_of<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> usize {
    pairs.map(|(name, value)| name.len() + value.len()).sum()
}

/// Returns true for a label that belongs to the link of its sample, and not to the labels of a series.
fn is_link(label: &SampleLabel<'_>) -> bool {
    matches!(label, SampleLabel::Text("profile_id" | "span_id" | "trace_id", _))
}

fn link(sample: u32, labels: &[SampleLabel<'_>], spans: &mut Spans<'_>) -> Result<Option<Link>, Rejection> {
    let find = |label_name: &'static str| {
        labels.iter().find_map(|label| match label {
            SampleLabel::Text(name, value) if *name == label_name && !value.is_empty() => Some((label_name, *value)),
            _ => None,
        })
    };
    let mut span = |pair: Option<(&str, &str)>| {
        pair.map_or(Ok(Default::default()), |(name, id)| {
            bounds::check_link(name, id).map(|()| spans.span_of(id))
        })
    };
    let link = Link {
        sample,
        span_id: span(find("span_id").or_else(|| find("profile_id")))?,
        trace_id: span(find("trace_id"))?,
    };
    Ok((!link.span_id.is_empty() || !link.trace_id.is_empty()).then_some(link))
}
