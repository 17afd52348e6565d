//! Applies the rules of a tenant to the sample types and the series of a profile.
//!
//! In: the series that result from the labels of the samples. Out: the series that result from the rules, each with its
//! remaining types, or nothing if the rules drop all series. Dropped values are set to zero, so that a stack with only
//! dropped values is not stored. As in Pyroscope, the rules see all labels, including `__name__` and other private
//! labels. Then the labels are checked against the limits, and their names are sanitised if the tenant's rules require
//! it.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::store::ingest::bounds;
use crate::store::ingest::defaults::{GODELTAPROF, default_name, stored_labels, with_service};
use crate::store::ingest::prepared::{Samples, SeriesRows};
use crate::store::ingest::sessions::limit_sessions;
use crate::store::rules::limits::{Limits, Rejection, start_of};
use crate::store::rules::relabel_rules::{DefaultRules, RelabelRules, TYPE, UNIT};
use alluvium_profile::labels::PROFILE_NAME;
use alluvium_profile::pprof::Profile;
use alluvium_profile::relabel::LabelMap;
use alluvium_profile::{Labels, ProfileType, ProfileTypeId, SeriesId};

/// Label that holds the name that the default rules have replaced.
const NAME_REPLACED: &str = "__name_replaced__";
/// Label with the value `false` if the values of a profile are already deltas.
const DELTA: &str = "__delta__";

/// A column of a profile with the type of its values.
type Column = (u32, ProfileTypeId);

/// The series of a profile after the rules.
pub(super) struct Reshaped {
    pub(super) series: Vec<SeriesRows>,
    /// Number of values that were dropped.
    pub(super) dropped_values: u64,
}

/// Samples with the labels and types that result from the rules.
struct Part {
    labels: Labels,
    columns: Vec<Column>,
    samples: Samples,
}

/// Applies `rules` to the series of `profile`. `own` contains the profile's labels as they were sent. Returns `None` if
/// the rules drop all series.
pub(super) fn reshape(
    profile: &mut Profile<'_>,
    own: &Labels,
    (rules, limits): (&RelabelRules, &Limits),
    series: Vec<SeriesRows>,
) -> Result<Option<Reshaped>, Rejection> {
    let width = profile.sample_types.len() as u32;
    let own = with_service(own, Some(rules));
    let is_kept: Vec<bool> = (0..width)
        .map(|column| keeps_type(rules, &own, profile, column))
        .collect();
    let private = limit_sessions(&own, rules.max_sessions()).filtered(|name| name.starts_with("__"));
    let mut dropped_values = 0;
    let mut parts: Vec<Part> = Vec::new();
    let mut text = 0;
    for rows in series {
        let mut row_columns: Vec<(Labels, Vec<Column>)> = Vec::new();
        let mut outcomes: Vec<(Input<'_>, Option<(Labels, String)>)> = Vec::new();
        let mut dropped: Vec<u32> = Vec::new();
        for column in 0..width {
            if !is_kept[column as usize] {
                dropped.push(column);
                continue;
            }
            let sample_type = &profile.sample_types[column as usize];
            let input = Input::of(rules, &private, sample_type.kind, sample_type.unit);
            let outcome_index =
                if let Some(outcome_index) = outcomes.iter().position(|(outcomes, _)| *outcomes == input) {
                    outcome_index
                } else {
                    let outcome = input.outcome(rules, limits, &private, &rows.labels)?;
                    outcomes.push((input, outcome));
                    outcomes.len() - 1
                };
            let Some((_, Some((labels, name)))) = outcomes.get(outcome_index) else {
                dropped.push(column);
                continue;
            };
            let profile_type = type_of(rules, name, profile, column)?;
            match row_columns.iter_mut().find(|(row_labels, _)| row_labels == labels) {
                Some((_, columns)) => columns.push((column, profile_type)),
                None => row_columns.push((labels.clone(), vec![(column, profile_type)])),
            }
        }
        dropped_values += clear(profile, &rows.samples, &dropped);
        let last = row_columns.len().saturating_sub(1);
        let mut samples = Some(rows.samples);
        for (index, (labels, columns)) in row_columns.into_iter().enumerate() {
            let samples = if index == last { samples.take() } else { samples.clone() };
            text += labels
                .iter()
                .map(|(name, value)| name.len() + value.len())
                .sum::<usize>();
            bounds::check_series(parts.len() + 1, width as usize, text)?;
            parts.extend(samples.map(|samples| Part {
                labels,
                columns,
                samples,
            }));
        }
    }
    if parts.is_empty() {
        return Ok(None);
    }
    let series = united(parts);
    Ok(Some(Reshaped {
        series: series.into_iter().map(Part::into_rows).collect(),
        dropped_values,
    }))
}

/// Returns true if the rules for sample types keep a column.
fn keeps_type(rules: &RelabelRules, own: &Labels, profile: &Profile<'_>, column: u32) -> bool {
    if rules.sample_types.is_empty() {
        return true;
    }
    let mut map: LabelMap = own.pairs().iter().cloned().collect();
    let sample_type = &profile.sample_types[column as usize];
    set(&mut map, TYPE, sample_type.kind);
    set(&mut map, UNIT, sample_type.unit);
    rules.sample_types.change(&mut map)
}

/// The part of the input of the series rules that may differ between columns.
#[derive(PartialEq, Eq)]
struct Input<'a> {
    name: &'a str,
    /// The name that the default rules have replaced.
    replaced: Option<&'a str>,
    /// Sample type and unit, if the rules may read them.
    sample_type: Option<(&'a str, &'a str)>,
}

impl<'a> Input<'a> {
    fn of(rules: &RelabelRules, private: &'a Labels, kind: &'a str, unit: &'a str) -> Self {
        let original = private.get(PROFILE_NAME).unwrap_or_default();
        let name = match rules.defaults() {
            DefaultRules::First => default_name(original, kind),
            DefaultRules::Last | DefaultRules::Disabled => original,
        };
        Self {
            name,
            replaced: (name != original).then_some(original),
            sample_type: rules.by_type.then_some((kind, unit)),
        }
    }

    /// Returns the labels and the name that the rules make from `labels`, or `None` if the rules drop the series.
    fn outcome(
        &self,
        rules: &RelabelRules,
        limits: &Limits,
        private: &Labels,
        labels: &Labels,
    ) -> Result<Option<(Labels, String)>, Rejection> {
        let mut map: LabelMap = private.pairs().iter().chain(labels.pairs()).cloned().collect();
        set(&mut map, PROFILE_NAME, self.name);
        if let Some(replaced) = self.replaced {
            set(&mut map, NAME_REPLACED, replaced);
            if replaced.starts_with(GODELTAPROF) {
                set(&mut map, DELTA, "false");
            }
        }
        if let Some((kind, unit)) = self.sample_type {
            set(&mut map, TYPE, kind);
            set(&mut map, UNIT, unit);
        }
        if !rules.series.change(&mut map) {
            return Ok(None);
        }
        for added in [NAME_REPLACED, TYPE, UNIT] {
            map.remove(added);
        }
        let all = Labels::from_pairs(map);
        limits.check_labels(&all)?;
        let all = if rules.sanitizes() { sanitized(&all)? } else { all };
        let name = all.get(PROFILE_NAME).ok_or_else(|| {
            let message = format!(
                "the relabel rules leave profile {} without {PROFILE_NAME}",
                labels.short()
            );
            Rejection::invalid("missing_labels", message)
        })?;
        Ok(Some((stored_labels(&all, Some(rules)), name.to_owned())))
    }
}

/// Returns the type of a column. `name` is the name of the profiles after the rules.
fn type_of(rules: &RelabelRules, name: &str, profile: &Profile<'_>, column: u32) -> Result<ProfileTypeId, Rejection> {
    let sample_type = &profile.sample_types[column as usize];
    let name = match rules.defaults() {
        DefaultRules::Last => default_name(name, sample_type.kind),
        DefaultRules::First | DefaultRules::Disabled => name,
    };
    if name.contains(':') {
        let message =
            format!("the relabel rules name a profile `{name}`, but `:` separates the parts of a profile type");
        return Err(Rejection::invalid("malformed_profile", message));
    }
    bounds::check_types(name, profile)?;
    let parts = ProfileType {
        name: name.to_owned(),
        sample_type: sample_type.kind.to_owned(),
        sample_unit: sample_type.unit.to_owned(),
        period_type: profile.period_type.kind.to_owned(),
        period_unit: profile.period_type.unit.to_owned(),
    };
    Ok((&parts).into())
}

/// Sets the values of columns to zero. Returns the number of values that would otherwise have been stored.
fn clear(profile: &mut Profile<'_>, samples: &Samples, columns: &[u32]) -> u64 {
    if columns.is_empty() {
        return 0;
    }
    let width = profile.sample_types.len();
    let mut cleared = 0;
    samples.for_each(|sample| {
        for column in columns {
            if let Some(value) = profile.values.get_mut(sample as usize * width + *column as usize) {
                cleared += u64::from(*value > 0);
                *value = 0;
            }
        }
    });
    cleared
}

/// Unites parts so that no two parts have the same labels and a common type, because a profile has one row for each
/// series and type.
fn united(parts: Vec<Part>) -> Vec<Part> {
    let mut by_labels: HashMap<Labels, usize> = HashMap::new();
    let mut united: Vec<Vec<Part>> = Vec::new();
    for part in parts {
        let index = *by_labels.entry(part.labels.clone()).or_insert_with(|| {
            united.push(Vec::new());
            united.len() - 1
        });
        united[index].push(part);
    }
    united.into_iter().flat_map(one_row_a_type).collect()
}

/// Like [`united`], for parts with the same labels.
fn one_row_a_type(parts: Vec<Part>) -> Vec<Part> {
    if parts.len() < 2 {
        return parts;
    }
    let mut labels = Labels::default();
    let mut columns: BTreeMap<Column, Vec<u32>> = BTreeMap::new();
    for part in parts {
        for column in part.columns {
            let samples = columns.entry(column).or_default();
            part.samples.for_each(|sample| samples.push(sample));
        }
        labels = part.labels;
    }
    let mut united: Vec<(Vec<u32>, Vec<Column>)> = Vec::new();
    for (column, mut samples) in columns {
        samples.sort_unstable();
        match united.iter_mut().find(|(row_samples, _)| *row_samples == samples) {
            Some((_, columns)) => columns.push(column),
            None => united.push((samples, vec![column])),
        }
    }
    let part = |(samples, columns)| Part {
        labels: labels.clone(),
        columns,
        samples: Samples::Some(samples),
    };
    united.into_iter().map(part).collect()
}

impl Part {
    fn into_rows(self) -> SeriesRows {
        SeriesRows {
            id: SeriesId(self.labels.hash64() as i64),
            labels: self.labels,
            samples: self.samples,
            columns: Some(self.columns),
        }
    }
}

/// Returns the labels with sanitised names: dots become underscores, as in Pyroscope. Fails if a name starts with a
/// digit, or contains characters other than letters, digits, underscores and dots. Also fails if two labels with
/// different values get the same name.
fn sanitized(labels: &Labels) -> Result<Labels, Rejection> {
    let is_allowed = |(index, byte): (usize, u8)| {
        byte == b'_' || byte == b'.' || byte.is_ascii_alphabetic() || (index > 0 && byte.is_ascii_digit())
    };
    if let Some((invalid_name, _)) = labels
        .iter()
        .find(|(name, _)| !name.bytes().enumerate().all(is_allowed))
    {
        let message = format!(
            "label name `{}` of series {} may only contain letters, digits, underscores and dots \
             (disable_label_sanitization)",
            start_of(invalid_name),
            labels.short()
        );
        return Err(Rejection::invalid("invalid_labels", message));
    }
    if labels.iter().all(|(name, _)| !name.contains('.')) {
        return Ok(labels.clone());
    }
    let mut map = LabelMap::new();
    for (name, value) in labels.pairs() {
        let name: Arc<str> = name.replace('.', "_").into();
        if let Some(other) = map.insert(name.clone(), value.clone())
            && other != *value
        {
            let message = format!(
                "series {} has two values of the label `{}` after dots become underscores \
                 (disable_label_sanitization)",
                labels.short(),
                start_of(&name)
            );
            return Err(Rejection::invalid("duplicate_label_names", message));
        }
    }
    Ok(Labels::from_pairs(map))
}

/// Sets a label. An empty value removes the label.
fn set(map: &mut LabelMap, name: &str, value: &str) {
    if value.is_empty() {
        map.remove(name);
    } else {
        map.insert(name.into(), value.into());
    }
}
