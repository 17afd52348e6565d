//! Selects series by matchers, and answers queries for label names, label values, series and profile types.
//!
//! In: matchers and a range. Out: sets of ids and label sets. The synthetic labels of Pyroscope (`__profile_type__`,
//! ...) are added here.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryReservation;
use hashbrown::{HashMap, HashSet as FastSet};

use crate::base::BoxFuture;
use crate::profile::labels::{PROFILE_NAME, SERVICE_NAME};
use crate::profile::selector::Matcher;
use crate::profile::{Labels, ProfileType, ProfileTypeId, SeriesId, TimeSpan};
use crate::query::blocking::{self, Cancellation};
use crate::query::context::Context;
use crate::query::runtime::Runtime;
use crate::query::{QueryError, TimeRange};
use crate::store::snapshot::ScanFilter;

/// Synthetic label with the full profile type.
pub(crate) const PROFILE_TYPE: &str = "__profile_type__";

/// A series that occurs with a profile type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Active {
    pub(crate) series: SeriesId,
    pub(crate) profile_type: ProfileTypeId,
}

/// The series that occur with each type in `time`, ascending by type.
pub(crate) fn active(
    context: Arc<Context>,
    time: Option<TimeSpan>,
) -> BoxFuture<'static, Result<Vec<Active>, QueryError>> {
    Box::pin(async move {
        let filter = ScanFilter {
            tenants: Some(context.tenants.clone()),
            time,
            ..ScanFilter::default()
        };
        let chosen = context.totals(filter).await?;
        // The runs of a file are grouped by type, and there are few types.
        let mut found: Vec<(ProfileTypeId, FastSet<SeriesId>)> = Vec::new();
        let mut last = 0;
        for run in chosen.runs().filter(|run| run.occurs(time)) {
            let is_its = |(profile_type, _): &(ProfileTypeId, FastSet<SeriesId>)| *profile_type == run.profile_type;
            if !found.get(last).is_some_and(is_its) {
                last = found.iter().position(is_its).unwrap_or(found.len());
            }
            match found.get_mut(last) {
                Some((_, series)) => {
                    series.insert(run.series);
                }
                None => found.push((run.profile_type.clone(), FastSet::from_iter([run.series]))),
            }
        }
        found.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
        let mut all: Vec<Active> = Vec::new();
        for (profile_type, series) in found {
            let first = all.len();
            all.extend(series.into_iter().map(|series| Active {
                series,
                profile_type: profile_type.clone(),
            }));
            all[first..].sort_unstable_by_key(|active| active.series);
        }
        Ok(all)
    })
}

/// The ids of the series that match all matchers, with the labels of the type included; `None` when there are no
/// matchers.
pub(crate) fn select(
    labels: Arc<HashMap<SeriesId, Labels>>,
    profile_type: ProfileType,
    matchers: Vec<Matcher>,
) -> BoxFuture<'static, Result<Option<Arc<HashSet<SeriesId>>>, QueryError>> {
    if matchers.is_empty() {
        return Box::pin(std::future::ready(Ok(None)));
    }
    blocking::run(move |cancellation| {
        let synthetic = matchers.iter().any(|matcher| matcher.name().starts_with("__"));
        let synthetic = synthetic.then(|| Synthetic::of(&profile_type));
        let mut chosen = HashSet::new();
        for (id, labels) in labels.iter() {
            cancellation.check()?;
            let all = synthetic.as_ref().map(|synthetic| synthetic.with(labels));
            let all = all.as_ref().unwrap_or(labels);
            if matchers.iter().all(|matcher| matcher.matches(all)) {
                chosen.insert(*id);
            }
        }
        Ok(Some(Arc::new(chosen)))
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

    /// Adds the labels of the type and the service.
    pub(crate) fn with(&self, labels: &Labels) -> Labels {
        let pairs = labels.pairs();
        let service = pairs.iter().find(|(name, _)| name.as_ref() == SERVICE_NAME);
        let service = service.map(|(_, service)| (self.service.clone(), service.clone()));
        Labels::from_pairs(pairs.iter().chain(self.of_type.pairs()).cloned().chain(service))
    }
}

/// Labels of series, and the profile types that occur.
type Occurring = (Vec<Labels>, Vec<ProfileType>);

/// The labels of the series that occur in the range, each once and without synthetic ones, and the types that they
/// occur with, ascending.
pub(crate) fn occurring(context: Arc<Context>, range: TimeRange) -> BoxFuture<'static, Result<Occurring, QueryError>> {
    Box::pin(async move {
        let time = range.micros();
        let labels = context.labels(time).await?;
        let active = active(context, Some(time)).await?;
        let mut types: Vec<&ProfileTypeId> = active.iter().map(|pair| &pair.profile_type).collect();
        types.dedup();
        let types = types.into_iter().filter_map(|id| id.parts().ok()).collect();
        let mut seen = HashSet::new();
        let fresh = active.iter().filter(|pair| seen.insert(pair.series));
        let own = fresh.filter_map(|pair| labels.get(&pair.series).cloned()).collect();
        Ok((own, types))
    })
}

/// All label sets, synthetic labels included, of series that occur in the range and match at least one group of
/// matchers.
pub(crate) fn label_sets(
    context: Arc<Context>,
    groups: Vec<Vec<Matcher>>,
    range: TimeRange,
) -> BoxFuture<'static, Result<Vec<Labels>, QueryError>> {
    Box::pin(async move {
        let time = range.micros();
        let labels = context.labels(time).await?;
        let memory = context.runtime.reservation("label sets");
        let active = active(context, Some(time)).await?;
        blocking::run(move |cancellation| sets_of(&labels, active, &groups, &memory, cancellation)).await
    })
}

fn sets_of(
    labels: &HashMap<SeriesId, Labels>,
    active: Vec<Active>,
    groups: &[Vec<Matcher>],
    memory: &MemoryReservation,
    cancellation: &Cancellation,
) -> Result<Vec<Labels>, QueryError> {
    let mut sets = Vec::new();
    let mut last: Option<(ProfileTypeId, Synthetic)> = None;
    for pair in active {
        let Some(own) = labels.get(&pair.series) else { continue };
        if last.as_ref().is_none_or(|(id, _)| *id != pair.profile_type) {
            let Ok(parts) = pair.profile_type.parts() else {
                continue;
            };
            last = Some((pair.profile_type, Synthetic::of(&parts)));
        }
        let Some((_, synthetic)) = &last else { continue };
        let all = synthetic.with(own);
        // Several selector strings are combined with AND, as in Pyroscope.
        cancellation.check()?;
        if groups.iter().flatten().all(|matcher| matcher.matches(&all)) {
            memory.try_grow(size_of::<Labels>() + size_of_val(all.pairs()))?;
            sets.push(all);
        }
    }
    Ok(sets)
}

/// Fails when the texts of label sets exceed the memory of a query. Each set counts with its own texts: an answer
/// repeats texts that we store once.
pub(crate) fn check_texts(runtime: &Runtime, sets: &[Labels]) -> Result<(), QueryError> {
    let of = |labels: &Labels| {
        labels
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum::<usize>()
    };
    Ok(runtime
        .reservation("texts of labels")
        .try_grow(sets.iter().map(of).sum())?)
}

/// Distinct label sets reduced to `names` (empty: all), sorted.
pub(crate) fn narrowed(sets: Vec<Labels>, names: &[String]) -> Vec<Labels> {
    let distinct: BTreeSet<Labels> = if names.is_empty() {
        sets.into_iter().collect()
    } else {
        sets.iter()
            .map(|labels| labels.filtered(|name| names.iter().any(|wanted| wanted == name)))
            .filter(|labels| !labels.is_empty())
            .collect()
    };
    distinct.into_iter().collect()
}
