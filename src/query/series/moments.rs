//! Finds profiles by their ids, and the ids of profiles. Here, a profile is identified by its series and its time,
//! because a stored sample has the series and the time of its profile, but not the id.
//!
//! If the sender chose no id, the id is made from the series and the time, so that a query can select every profile by
//! its id.

use std::collections::HashSet;
use std::sync::Arc;

use hashbrown::HashMap;
use uuid::Uuid;

use crate::query::common::error::QueryError;
use crate::query::common::stream;
use crate::query::decoded::context::Context;
use crate::query::scan::read;
use crate::store::common::schema;
use crate::store::common::schema::Table;
use crate::store::common::schema::column::{PROFILE_ID, SERIES, TIME};
use crate::store::tables::snapshot::ScanFilter;
use alluvium_base::BoxFuture;
use alluvium_profile::SeriesId;

/// The series of a profile, and the start of the profile in microseconds since 1970.
pub(crate) type Moment = (SeriesId, i64);

/// Memory in bytes of an entry in a set of moments, with a share of the set's empty slots.
const MOMENT_BYTES: usize = 24;
/// Memory in bytes of an entry in a map from moments to ids, without the text of the id.
const NAMED_BYTES: usize = 64;

/// Returns the moments of the profiles with these ids.
pub(crate) fn by_ids(
    context: &Arc<Context>,
    filter: &ScanFilter,
    ids: &[String],
) -> BoxFuture<'static, Result<HashSet<Moment>, QueryError>> {
    let is_wanted = |(series, _): &Moment| filter.series.as_ref().is_none_or(|selected| selected.contains(series));
    let id_moments: Vec<Moment> = ids.iter().filter_map(|id| moment_of(id)).filter(is_wanted).collect();
    let ids: HashSet<String> = ids.iter().cloned().collect();
    let context = context.clone();
    let columns = [SERIES, TIME, PROFILE_ID];
    let streams = read::open(&context.runtime, &context.snapshot, Table::Profiles, filter, &columns);
    Box::pin(async move {
        let make = || (HashSet::new(), context.runtime.reservation("profiles by id"));
        let moments = stream::fold(streams?, make, move |(moments, memory), batch| {
            let series = schema::integers(batch, SERIES)?;
            let times = schema::times(batch, TIME)?;
            let names = schema::texts(batch, PROFILE_ID)?;
            moments.extend(
                (0..batch.num_rows())
                    .filter(|row| ids.contains(names.value(*row)))
                    .map(|row| (SeriesId(series[row]), times[row])),
            );
            Ok(memory.try_resize(moments.capacity() * MOMENT_BYTES)?)
        })
        .await?;
        // If there is no profile at a moment that was made from an id, this moment selects nothing.
        Ok(moments
            .into_iter()
            .flat_map(|(moments, _)| moments)
            .chain(id_moments)
            .collect())
    })
}

/// Returns the ids of the profiles at these moments.
pub(crate) fn ids_of(
    context: &Arc<Context>,
    filter: &ScanFilter,
    moments: HashSet<Moment>,
) -> BoxFuture<'static, Result<HashMap<Moment, Arc<str>>, QueryError>> {
    let context = context.clone();
    let filter = ScanFilter {
        series: Some(Arc::new(moments.iter().map(|(series, _)| *series).collect())),
        ..filter.clone()
    };
    Box::pin(async move {
        let columns = [SERIES, TIME, PROFILE_ID];
        let streams = read::open(&context.runtime, &context.snapshot, Table::Profiles, &filter, &columns)?;
        let make = || {
            (
                HashMap::<Moment, Arc<str>>::new(),
                context.runtime.reservation("ids of profiles"),
            )
        };
        let all = Arc::new(moments);
        let filter_moments = all.clone();
        let ids_by_moment = stream::fold(streams, make, move |(ids_by_moment, memory), batch| {
            let series = schema::integers(batch, SERIES)?;
            let times = schema::times(batch, TIME)?;
            let names = schema::texts(batch, PROFILE_ID)?;
            for row in 0..batch.num_rows() {
                let (moment, name) = ((SeriesId(series[row]), times[row]), names.value(row));
                // If several profiles have the same moment, the smallest id is used.
                let is_first = || ids_by_moment.get(&moment).is_none_or(|current| name < current.as_ref());
                if !name.is_empty() && filter_moments.contains(&moment) && is_first() {
                    memory.try_grow(NAMED_BYTES + name.len())?;
                    ids_by_moment.insert(moment, name.into());
                }
            }
            Ok(())
        })
        .await?;
        let mut ids: HashMap<Moment, Arc<str>> = HashMap::with_capacity(all.len());
        for (moment, name) in ids_by_moment.into_iter().flat_map(|(ids_by_moment, _)| ids_by_moment) {
            let smallest = ids.entry(moment).or_insert_with(|| name.clone());
            if name < *smallest {
                *smallest = name;
            }
        }
        let nameless = all.iter().filter(|moment| !ids.contains_key(*moment));
        let generated_ids: Vec<(Moment, Arc<str>)> =
            nameless.map(|moment| (*moment, generated_id(*moment).into())).collect();
        ids.extend(generated_ids);
        Ok(ids)
    })
}

/// Returns the id of a profile without an id from the sender.
fn generated_id((series, time): Moment) -> String {
    Uuid::from_u64_pair(series.0 as u64, time as u64).to_string()
}

/// Returns the moment from which [`generated_id`] may have made an id. Every UUID corresponds to a moment, but there
/// may be no profile at that moment.
fn moment_of(id: &str) -> Option<Moment> {
    let (series, time) = Uuid::parse_str(id).ok()?.as_u64_pair();
    Some((SeriesId(series as i64), time as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_id_leads_back_to_the_moment() {
        for moment in [(SeriesId(-7), 1_700_000_000_000_001), (SeriesId(i64::MAX), -1)] {
            assert_eq!(moment_of(&generated_id(moment)), Some(moment));
        }
        assert_eq!(moment_of("profile-1"), None);
    }
}
