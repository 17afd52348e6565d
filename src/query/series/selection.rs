//! Selects series by matchers, and runs queries for label names, label values, series and profile types.
//!
//! In: matchers and a range. Out: sets of ids and label sets. This module adds the synthetic labels of Pyroscope
//! (`__profile_type__`, ...).

use std::collections::{BTreeSet, HashSet};
use std::ops::Deref;
use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryReservation;
use hashbrown::{HashMap, HashSet as FastSet};

use crate::query::common::blocking;
use crate::query::common::blocking::Cancellation;
use crate::query::common::error::QueryError;
use crate::query::common::types::TimeRange;
use crate::query::decoded::context::Context;
use crate::query::decoded::labels::SeriesLabels;
use crate::query::decoded::totals::SelectedRuns;
use crate::store::tables::snapshot::ScanFilter;
use alluvium_base::BoxFuture;
use alluvium_profile::labels::{PROFILE_NAME, SERVICE_NAME};
use alluvium_profile::selector::Matcher;
use alluvium_profile::{Labels, ProfileType, ProfileTypeId, SeriesId, TimeSpan};

/// Synthetic label with the full profile type.
pub(crate) const PROFILE_TYPE: &str = "__profile_type__";

/// Memory in bytes of an entry in a set of series, with a share of the set's empty slots.
const ID_BYTES: usize = 18;
/// Number of new series after which the memory charged to the query is updated.
pub(crate) const SERIES_PER_CHARGE: usize = 4096;
/// Memory in bytes of a label value besides its text: its entries in a set, in the result and in the encoded result.
const VALUE_BYTES: usize = 64;

/// A series that occurs with a profile type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Active {
    pub(crate) series: SeriesId,
    pub(crate) profile_type: ProfileTypeId,
}

/// Values of a result. Their memory is charged to the query until this value is dropped.
pub struct Charged<T> {
    values: Vec<T>,
    memory: MemoryReservation,
}

impl<T> Deref for Charged<T> {
    type Target = [T];

    fn deref(&self) -> &Self::Target {
        &self.values
    }
}

/// Returns the series that occur with each type in `time`, in ascending order of type.
pub(crate) fn active(
    context: Arc<Context>,
    time: Option<TimeSpan>,
) -> BoxFuture<'static, Result<Charged<Active>, QueryError>> {
    Box::pin(async move {
        let memory = context.runtime.reservation("series by type");
        let filter = ScanFilter {
            tenants: Some(context.tenants.clone()),
            time,
            ..ScanFilter::default()
        };
        let selected = context.totals(filter).await?;
        blocking::run(move |cancellation| by_type(&selected, time, memory, cancellation)).await
    })
}

fn by_type(
    selected: &SelectedRuns,
    time: Option<TimeSpan>,
    memory: MemoryReservation,
    cancellation: &Cancellation,
) -> Result<Charged<Active>, QueryError> {
    // The runs of profiles of a file are grouped by type, and there are few types, so a linear search is fast.
    let mut types: Vec<(ProfileTypeId, FastSet<SeriesId>)> = Vec::new();
    let mut last = 0;
    let (mut series_of_types, mut charged) = (0, 0);
    for run in selected.runs().filter(|run| run.occurs(time)) {
        let is_its = |(profile_type, _): &(ProfileTypeId, FastSet<SeriesId>)| *profile_type == run.profile_type;
        if !types.get(last).is_some_and(is_its) {
            last = types.iter().position(is_its).unwrap_or(types.len());
        }
        if let Some((_, series)) = types.get_mut(last) {
            series_of_types += usize::from(series.insert(run.series));
        } else {
            types.push((run.profile_type.clone(), FastSet::from_iter([run.series])));
            series_of_types += 1;
        }
        cancellation.check()?;
        if series_of_types >= charged + SERIES_PER_CHARGE {
            charged = series_of_types;
            memory.try_resize(charged * (ID_BYTES + size_of::<Active>()))?;
        }
    }
    memory.try_resize(series_of_types * (ID_BYTES + size_of::<Active>()))?;
    types.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
    let mut all: Vec<Active> = Vec::with_capacity(series_of_types);
    for (profile_type, series) in types {
        cancellation.check()?;
        let first = all.len();
        all.extend(series.into_iter().map(|series| Active {
            series,
            profile_type: profile_type.clone(),
        }));
        all[first..].sort_unstable_by_key(|active| active.series);
    }
    memory.shrink(series_of_types * ID_BYTES);
    Ok(Charged { values: all, memory })
}

/// Returns the types that occur in `time`, in ascending order.
pub(crate) fn types(
    context: Arc<Context>,
    time: Option<TimeSpan>,
) -> BoxFuture<'static, Result<Vec<ProfileType>, QueryError>> {
    Box::pin(async move {
        let active = active(context, time).await?;
        blocking::run(move |_| {
            let runs = active
                .values
                .chunk_by(|left, right| left.profile_type == right.profile_type);
            let first = runs.filter_map(|run| run.first());
            Ok(first.filter_map(|pair| pair.profile_type.parts().ok()).collect())
        })
        .await
    })
}

/// Returns the ids of the series that match all matchers; `None` if there are no matchers. The matchers can also refer
/// to the synthetic labels of the type.
pub(crate) fn select(
    labels: Arc<SeriesLabels>,
    profile_type: ProfileType,
    matchers: Vec<Matcher>,
) -> BoxFuture<'static, Result<Option<Arc<HashSet<SeriesId>>>, QueryError>> {
    if matchers.is_empty() {
        return Box::pin(std::future::ready(Ok(None)));
    }
    blocking::run(move |cancellation| {
        let synthetic = matchers.iter().any(|matcher| matcher.name().starts_with("__"));
        let synthetic = synthetic.then(|| Synthetic::of(&profile_type));
        let mut selected = HashSet::new();
        for (id, labels) in labels.iter() {
            cancellation.check()?;
            let all = synthetic.as_ref().map(|synthetic| synthetic.with(labels));
            let all = all.as_ref().unwrap_or(labels);
            if matchers.iter().all(|matcher| matcher.matches(all)) {
                selected.insert(*id);
            }
        }
        Ok(Some(Arc::new(selected)))
    })
}

/// The synthetic labels for a profile type and the service.
pub(crate) struct Synthetic {
    of_type: Labels,
    service: Arc<str>,
}

impl Synthetic {
    pub(crate) fn of(profile_type: &ProfileType) -> Self {
        let of_type = Labels::from_pairs([
            (PROFILE_TYPE, profile_type.to_string().as_str()),
            (PROFILE_NAME, &profile_type.name),
            ("__type__", &profile_type.sample_type),
            ("__unit__", &profile_type.sample_unit),
            ("__period_type__", &profile_type.period_type),
            ("__period_unit__", &profile_type.period_unit),
        ]);
        Self {
            of_type,
            service: "__service_name__".into(),
        }
    }

    /// Returns `labels` together with the synthetic labels of the type and of the service.
    pub(crate) fn with(&self, labels: &Labels) -> Labels {
        let pairs = labels.pairs();
        let service = pairs.iter().find(|(name, _)| name.as_ref() == SERVICE_NAME);
        let service = service.map(|(_, service)| (self.service.clone(), service.clone()));
        Labels::from_pairs(pairs.iter().chain(self.of_type.pairs()).cloned().chain(service))
    }
}

/// Labels of series, and the profile types that occur.
type Occurring = (Charged<Labels>, Vec<ProfileType>);

/// Returns the labels of each series that occurs in the range, without synthetic labels. Also returns the types with
/// which these series occur, in ascending order.
pub(crate) fn occurring_series(
    context: Arc<Context>,
    range: TimeRange,
) -> BoxFuture<'static, Result<Occurring, QueryError>> {
    Box::pin(async move {
        let time = range.micros();
        let labels = context.labels(time).await?;
        let memory = context.runtime.reservation("labels of series");
        let active = active(context, Some(time)).await?;
        blocking::run(move |cancellation| own_labels(&labels, &active, memory, cancellation)).await
    })
}

fn own_labels(
    labels: &SeriesLabels,
    active: &Charged<Active>,
    memory: MemoryReservation,
    cancellation: &Cancellation,
) -> Result<Occurring, QueryError> {
    let mut types: Vec<&ProfileTypeId> = Vec::new();
    let (mut series_ids, mut series_labels) = (FastSet::new(), Vec::new());
    for pair in &active.values {
        if types.last() != Some(&&pair.profile_type) {
            types.push(&pair.profile_type);
        }
        if series_ids.insert(pair.series) {
            series_labels.extend(labels.get(&pair.series).cloned());
        }
        if series_ids.len().is_multiple_of(SERIES_PER_CHARGE) {
            cancellation.check()?;
            memory.try_resize(series_ids.len() * (ID_BYTES + size_of::<Labels>() * 2))?;
        }
    }
    let types = types.into_iter().filter_map(|id| id.parts().ok()).collect();
    // The labels stay charged, because the result may live longer than the cached labels.
    memory.try_resize(series_labels.len() * size_of::<Labels>() + labels.charged())?;
    Ok((
        Charged {
            values: series_labels,
            memory,
        },
        types,
    ))
}

/// Returns all label sets, including synthetic labels, of series that occur in the range and match all groups of
/// matchers.
pub(crate) fn label_sets(
    context: Arc<Context>,
    groups: Vec<Vec<Matcher>>,
    range: TimeRange,
) -> BoxFuture<'static, Result<Charged<Labels>, QueryError>> {
    Box::pin(async move {
        let time = range.micros();
        let labels = context.labels(time).await?;
        let memory = context.runtime.reservation("label sets");
        let active = active(context, Some(time)).await?;
        blocking::run(move |cancellation| sets_of(&labels, active, &groups, memory, cancellation)).await
    })
}

fn sets_of(
    labels: &HashMap<SeriesId, Labels>,
    active: Charged<Active>,
    groups: &[Vec<Matcher>],
    memory: MemoryReservation,
    cancellation: &Cancellation,
) -> Result<Charged<Labels>, QueryError> {
    let mut sets = Vec::new();
    let mut last: Option<(ProfileTypeId, Synthetic)> = None;
    for pair in active.values {
        let Some(series_labels) = labels.get(&pair.series) else {
            continue;
        };
        if last.as_ref().is_none_or(|(id, _)| *id != pair.profile_type) {
            let Ok(parts) = pair.profile_type.parts() else {
                continue;
            };
            last = Some((pair.profile_type, Synthetic::of(&parts)));
        }
        let Some((_, synthetic)) = &last else { continue };
        let all = synthetic.with(series_labels);
        // A series must match all selectors, as in Pyroscope.
        cancellation.check()?;
        if groups.iter().flatten().all(|matcher| matcher.matches(&all)) {
            memory.try_grow(size_of::<Labels>() + size_of_val(all.pairs()))?;
            sets.push(all);
        }
    }
    Ok(Charged { values: sets, memory })
}

/// Returns the names of the labels of all sets and of `additional`, sorted.
pub(crate) fn names(
    sets: Charged<Labels>,
    additional: Vec<Labels>,
) -> BoxFuture<'static, Result<Vec<String>, QueryError>> {
    blocking::run(move |cancellation| {
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for labels in sets.values.iter().chain(&additional) {
            cancellation.check()?;
            names.extend(labels.iter().map(|(name, _)| name));
        }
        Ok(names.into_iter().map(str::to_owned).collect())
    })
}

/// Returns the values of one label in all sets, sorted.
pub(crate) fn values(sets: Charged<Labels>, name: String) -> BoxFuture<'static, Result<Vec<String>, QueryError>> {
    blocking::run(move |cancellation| {
        let mut values: BTreeSet<&str> = BTreeSet::new();
        for labels in &sets.values {
            cancellation.check()?;
            let Some(value) = labels.get(&name) else { continue };
            if values.insert(value) {
                // The result and its encoding each contain the text. The set only refers to it.
                sets.memory.try_grow(VALUE_BYTES + 2 * value.len())?;
            }
        }
        Ok(values.into_iter().map(str::to_owned).collect())
    })
}

/// Returns the distinct label sets, sorted. If `names` is not empty, each set is reduced to these labels. Fails if the
/// sets with their texts exceed the memory limit of a query. Each set is charged for all of its texts, because a
/// response repeats texts that are stored once in memory.
pub(crate) fn distinct_label_sets(
    sets: Charged<Labels>,
    names: Vec<String>,
) -> BoxFuture<'static, Result<Charged<Labels>, QueryError>> {
    let texts = |labels: &Labels| {
        let lengths = labels.iter().map(|(name, value)| name.len() + value.len());
        lengths.sum::<usize>()
    };
    blocking::run(move |cancellation| {
        let Charged { values, memory } = sets;
        let mut distinct: BTreeSet<Labels> = BTreeSet::new();
        for labels in values {
            cancellation.check()?;
            let labels = if names.is_empty() {
                labels
            } else {
                labels.filtered(|name| names.iter().any(|requested| requested == name))
            };
            if names.is_empty() || !labels.is_empty() {
                let bytes = 2 * size_of::<Labels>() + texts(&labels);
                if distinct.insert(labels) {
                    memory.try_grow(bytes)?;
                }
            }
        }
        let values = distinct.into_iter().collect();
        Ok(Charged { values, memory })
    })
}
