//! Finds individual stored profiles: ids, times, types and labels, without their samples.
//!
//! In: [`ProfilesQuery`]. Out: [`KeptProfile`]s in the order of their times. Profiles without an id are omitted. All
//! rows with the same time and id form one profile, because a profile has one row for each type and each series.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::MemoryReservation;

use crate::query::common::error::QueryError;
use crate::query::common::stream;
use crate::query::common::types::{KeptProfile, ProfilesQuery};
use crate::query::decoded::context::Context;
use crate::query::scan::read;
use crate::store::common::schema;
use crate::store::common::schema::Table;
use crate::store::common::schema::column::{DURATION_NS, PROFILE_ID, PROFILE_TYPE, SERIES, TIME};
use crate::store::tables::snapshot::ScanFilter;
use alluvium_base::BoxFuture;
use alluvium_profile::{Labels, ProfileTypeId, SeriesId};

/// Maximum number of profiles of a result.
const MAX_PROFILES: usize = 100_000;

/// Memory in bytes of a profile with its id.
const PROFILE_BYTES: usize = 512;
/// Memory in bytes of each type and each series of a profile.
const ROW_BYTES: usize = 96;

/// The profiles found so far, sorted by start and id, oldest first.
#[derive(Default)]
struct FoundProfiles {
    profiles: BTreeMap<(i64, Arc<str>), Rows>,
    /// Number of types and series of all profiles.
    rows: usize,
}

/// The rows of one profile.
#[derive(Default)]
struct Rows {
    duration_ns: i64,
    types: BTreeSet<ProfileTypeId>,
    series: BTreeSet<SeriesId>,
}

impl Rows {
    fn count(&self) -> usize {
        self.types.len() + self.series.len()
    }

    fn extend(&mut self, other: Self) {
        self.duration_ns = self.duration_ns.max(other.duration_ns);
        self.types.extend(other.types);
        self.series.extend(other.series);
    }
}

impl FoundProfiles {
    /// Adds rows of a profile. If there are more profiles than `limit`, drops the oldest.
    fn add(&mut self, key: (i64, Arc<str>), new_rows: Rows, limit: usize) {
        let rows = self.profiles.entry(key).or_default();
        self.rows -= rows.count();
        rows.extend(new_rows);
        self.rows += rows.count();
        if self.profiles.len() > limit
            && let Some((_, dropped)) = self.profiles.pop_first()
        {
            self.rows -= dropped.count();
        }
    }

    fn bytes(&self) -> usize {
        self.profiles.len() * PROFILE_BYTES + self.rows * ROW_BYTES
    }
}

/// Finds the profiles of a query. If the query has more profiles than its limit, returns the newest profiles. If the
/// query has no limit, fails if there are more than [`MAX_PROFILES`] profiles.
pub(crate) fn find(
    context: Arc<Context>,
    query: ProfilesQuery,
) -> BoxFuture<'static, Result<Vec<KeptProfile>, QueryError>> {
    Box::pin(async move {
        let time = query.range.micros();
        let labels = context.labels(time).await?;
        let selected = |labels: &Labels| query.matchers.iter().all(|matcher| matcher.matches(labels));
        let series = (!query.matchers.is_empty()).then(|| {
            let selected = labels.iter().filter(|(_, labels)| selected(labels));
            Arc::new(selected.map(|(id, _)| *id).collect::<HashSet<SeriesId>>())
        });
        let filter = ScanFilter {
            tenants: Some(context.tenants.clone()),
            time: Some(time),
            series,
            ..ScanFilter::default()
        };
        let columns = [TIME, SERIES, PROFILE_TYPE, DURATION_NS, PROFILE_ID];
        let streams = read::open(&context.runtime, &context.snapshot, Table::Profiles, &filter, &columns)?;
        let make = || {
            (
                FoundProfiles::default(),
                context.runtime.reservation("profiles by time"),
            )
        };
        let limit = match query.limit {
            0 => MAX_PROFILES + 1,
            limit => limit.min(MAX_PROFILES),
        };
        let (names, ids) = (query.names, query.ids.into_iter().collect::<HashSet<String>>());
        let is_wanted = move |id: &str, of_type: &str| {
            !id.is_empty() && (ids.is_empty() || ids.contains(id)) && names.contain(of_type)
        };
        let add = move |(profiles, memory): &mut (FoundProfiles, MemoryReservation),
                        batch: &RecordBatch|
              -> Result<(), QueryError> {
            let (times, series) = (schema::times(batch, TIME)?, schema::integers(batch, SERIES)?);
            let durations = schema::integers(batch, DURATION_NS)?;
            let (types, ids) = (schema::texts(batch, PROFILE_TYPE)?, schema::texts(batch, PROFILE_ID)?);
            for row in (0..batch.num_rows()).filter(|row| is_wanted(ids.value(*row), types.value(*row))) {
                let rows = Rows {
                    duration_ns: durations[row],
                    types: [types.value(row).into()].into(),
                    series: [SeriesId(series[row])].into(),
                };
                profiles.add((times[row], ids.value(row).into()), rows, limit);
            }
            Ok(memory.try_resize(profiles.bytes())?)
        };
        let mut parts = stream::fold(streams, make, add).await?;
        let (mut profiles, memory) = parts.pop().unwrap_or_else(make);
        for (part, _) in parts {
            for (key, rows) in part.profiles {
                profiles.add(key, rows, limit);
            }
            memory.try_resize(profiles.bytes())?;
        }
        if query.limit == 0 && profiles.profiles.len() > MAX_PROFILES {
            return Err(QueryError::Limit(format!(
                "there are more than {MAX_PROFILES} profiles; select a shorter time range or set a limit"
            )));
        }
        let kept = profiles.profiles.into_iter().map(|((time_us, id), rows)| KeptProfile {
            id,
            time_us,
            duration_ns: rows.duration_ns,
            types: rows.types.into_iter().collect(),
            labels: common(rows.series.iter().filter_map(|series| labels.get(series))),
        });
        Ok(kept.collect())
    })
}

/// Returns the labels that all sets have in common.
pub(crate) fn common<'a>(mut sets: impl Iterator<Item = &'a Labels>) -> Labels {
    let first = sets.next().cloned().unwrap_or_default();
    sets.fold(first, |common, labels| {
        let common_names: Vec<&str> = common
            .iter()
            .filter(|(name, value)| labels.get(name) == Some(value))
            .map(|(name, _)| name)
            .collect();
        common.filtered(|name| common_names.contains(&name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(of_type: &str, series: i64) -> Rows {
        Rows {
            duration_ns: series,
            types: [of_type.into()].into(),
            series: [SeriesId(series)].into(),
        }
    }

    #[test]
    fn rows_of_one_profile_are_one_and_the_oldest_profiles_are_dropped() {
        let mut collected = FoundProfiles::default();
        for (time, id, of_type, series) in [(3, "c", "x", 1), (1, "a", "x", 1), (3, "c", "y", 2), (2, "b", "x", 1)] {
            collected.add((time, id.into()), rows(of_type, series), 2);
        }
        let kept: Vec<_> = collected
            .profiles
            .keys()
            .map(|(time, id)| (*time, id.as_ref()))
            .collect();
        assert_eq!(kept, [(2, "b"), (3, "c")]);
        let last = collected.profiles.last_key_value().unwrap().1;
        assert_eq!((last.types.len(), last.series.len(), last.duration_ns), (2, 2, 2));
        assert_eq!((collected.rows, collected.bytes()), (6, 2 * 512 + 6 * 96));
    }

    #[test]
    fn labels_of_a_profile_are_those_that_all_of_its_series_have() {
        let sets = [
            Labels::from_pairs([("service_name", "shop"), ("pod", "a"), ("region", "eu")]),
            Labels::from_pairs([("service_name", "shop"), ("pod", "b"), ("region", "eu"), ("more", "x")]),
        ];
        assert_eq!(common(sets.iter()).to_string(), r#"{region="eu", service_name="shop"}"#);
        assert!(common(std::iter::empty()).is_empty());
    }
}
