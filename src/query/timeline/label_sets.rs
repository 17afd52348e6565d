//! Finds the rows of `profiles` that belong to one profile, so that an average counts each profile once. A profile
//! whose samples have labels has a row for each set of these labels.
//!
//! In: runs and the lines of their series. Out: for each point, the number of rows that repeat a counted profile. Rows
//! of one profile have the same time, id and service. The service matters because some programs give one id to all of
//! their profiles. Ids are read only for times that several series of a line share.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryReservation;
use hashbrown::HashMap;

use crate::query::common::blocking;
use crate::query::common::blocking::Cancellation;
use crate::query::common::error::QueryError;
use crate::query::decoded::context::Context;
use crate::query::decoded::labels::SeriesLabels;
use crate::query::decoded::totals::SelectedRuns;
use crate::query::series::moments;
use crate::query::series::moments::Moment;
use crate::query::timeline::steps::{Groups, Steps};
use crate::store::tables::snapshot::ScanFilter;
use alluvium_base::BoxFuture;
use alluvium_profile::labels::SERVICE_NAME;
use alluvium_profile::{Labels, SeriesId};

/// A row of `profiles`: its line, its time and its series.
type Row = (u32, i64, SeriesId);

/// For each line and step, the number of rows that repeat a profile.
type Counts = HashMap<(u32, i64), u64>;

/// Memory in bytes of a moment with its id.
const MOMENT_BYTES: usize = 160;

/// The number of rows that repeat a profile, by line and step. Its memory is charged to the query until this value is
/// dropped.
#[derive(Default)]
pub(super) struct RepeatedRows {
    counts: Counts,
    _memory: Option<MemoryReservation>,
}

impl RepeatedRows {
    /// Counts the rows that repeat a profile of the same line.
    pub(super) fn load(
        context: &Arc<Context>,
        filter: &ScanFilter,
        selected: Arc<SelectedRuns>,
        labels: Arc<SeriesLabels>,
        (groups, steps): (Arc<Groups>, Steps),
    ) -> BoxFuture<'static, Result<Self, QueryError>> {
        let (context, filter) = (context.clone(), filter.clone());
        Box::pin(async move {
            let memory = context.runtime.reservation("label sets of profiles");
            let collected = blocking::run(move |cancellation| {
                let rows = rows_at_shared_times(&selected, &groups, &memory, cancellation)?;
                Ok((rows, memory))
            });
            let (rows, memory) = collected.await?;
            if rows.is_empty() {
                return Ok(Self::default());
            }
            memory.try_grow(rows.len() * MOMENT_BYTES)?;
            let all: HashSet<Moment> = rows.iter().map(|(_, time, series)| (*series, *time)).collect();
            let ids = moments::ids_of(&context, &filter, all).await?;
            let counts = blocking::run(move |cancellation| {
                let mut counts = Counts::new();
                for rows in rows.chunk_by(is_same_time) {
                    cancellation.check()?;
                    let (line, time, _) = rows[0];
                    let repeated = rows.len() as u64 - profiles_among(rows, &ids, &labels);
                    if repeated > 0 {
                        *counts.entry((line, steps.index_of(time))).or_default() += repeated;
                    }
                }
                Ok(counts)
            });
            let counts = counts.await?;
            memory.try_resize(counts.capacity() * size_of::<((u32, i64), u64)>())?;
            Ok(Self {
                counts,
                _memory: Some(memory),
            })
        })
    }

    /// Returns the number of rows that repeat a profile in a step of a line.
    pub(super) fn at(&self, line: u32, step: i64) -> u64 {
        self.counts.get(&(line, step)).copied().unwrap_or_default()
    }
}

/// Returns the counted rows whose line has a row of another series at the same time, in the order of line and time.
fn rows_at_shared_times(
    selected: &SelectedRuns,
    groups: &Groups,
    memory: &MemoryReservation,
    cancellation: &Cancellation,
) -> Result<Vec<Row>, QueryError> {
    let mut rows: Vec<Row> = Vec::new();
    for run in selected.runs() {
        cancellation.check()?;
        let line = groups.group_of(run.series);
        let counted = run.between(selected.time()).filter(|(_, total)| *total != 0);
        rows.extend(counted.map(|(time, _)| (line, time, run.series)));
        memory.try_resize(rows.capacity() * size_of::<Row>())?;
    }
    rows.sort_unstable();
    cancellation.check()?;
    let mut kept = 0;
    let mut start = 0;
    while start < rows.len() {
        let end = start + rows[start..].partition_point(|row| is_same_time(&rows[start], row));
        // Rows are in the order of their series.
        if rows[start].2 != rows[end - 1].2 {
            rows.copy_within(start..end, kept);
            kept += end - start;
        }
        start = end;
    }
    rows.truncate(kept);
    rows.shrink_to_fit();
    memory.try_resize(rows.capacity() * size_of::<Row>())?;
    Ok(rows)
}

fn is_same_time((line, time, _): &Row, (other_line, other_time, _): &Row) -> bool {
    (line, time) == (other_line, other_time)
}

/// Returns the number of profiles to which rows of one line and time belong. If a series has several rows at that time,
/// they are of as many profiles, even if these profiles have the same id.
fn profiles_among(rows: &[Row], ids: &HashMap<Moment, Arc<str>>, labels: &HashMap<SeriesId, Labels>) -> u64 {
    let mut by_id: HashMap<(&str, Option<&str>), u64> = HashMap::new();
    let mut without_id = 0;
    for rows in rows.chunk_by(|(_, _, left), (_, _, right)| left == right) {
        let (_, time, series) = rows[0];
        let count = rows.len() as u64;
        match ids.get(&(series, time)) {
            Some(id) => {
                let service = labels.get(&series).and_then(|labels| labels.get(SERVICE_NAME));
                let profiles = by_id.entry((&**id, service)).or_default();
                *profiles = count.max(*profiles);
            }
            None => without_id += count,
        }
    }
    by_id.values().sum::<u64>() + without_id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_id_and_service_are_one_profile_unless_a_series_has_several() {
        let ids = [
            ((1, 10), "a"),
            ((2, 10), "a"),
            ((3, 10), "b"),
            ((4, 10), "a"),
            ((7, 10), "a"),
        ];
        let ids: HashMap<Moment, Arc<str>> = ids
            .into_iter()
            .map(|((series, time), id)| ((SeriesId(series), time), Arc::from(id)))
            .collect();
        let labels_of = |id: i64| {
            let service = if id == 7 { "cart" } else { "shop" };
            (SeriesId(id), Labels::from_pairs([(SERVICE_NAME, service)]))
        };
        let labels: HashMap<SeriesId, Labels> = (1..8).map(labels_of).collect();
        let profiles = |series: &[i64]| {
            let rows: Vec<Row> = series.iter().map(|series| (0, 10, SeriesId(*series))).collect();
            profiles_among(&rows, &ids, &labels)
        };
        assert_eq!(profiles(&[1, 2, 4]), 1);
        assert_eq!(profiles(&[1, 2, 3]), 2);
        assert_eq!(profiles(&[1, 1, 2, 2]), 2);
        assert_eq!(profiles(&[1, 5, 6]), 3);
        assert_eq!(profiles(&[1, 2, 7]), 2);
    }
}
