//! Caches the decoded `profiles` table between queries, by file: the times and totals of the profiles of each profile
//! type and series.
//!
//! In: a filter. Out: runs of profiles of one type and series ([`Run`]). Runs of files come from the cache; runs of
//! heads are read each time. Files never change, so cached runs are never stale. Time series, label queries and periods
//! are computed from runs. Profile ids are read from the table.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::MemoryReservation;
use hashbrown::HashMap;

use crate::query::common::error::QueryError;
use crate::query::common::stream;
use crate::query::resources::cache::{Bytes, Cache};
use crate::query::resources::runtime::Runtime;
use crate::query::scan::{heads, read};
use crate::store::common::schema;
use crate::store::common::schema::Table;
use crate::store::common::schema::column::{PERIOD, PROFILE_TYPE, SERIES, TIME, TOTAL};
use crate::store::tables::snapshot::{FileEntry, ScanFilter, Snapshot};
use crate::store::tables::stats::Bounds;
use alluvium_base::BoxFuture;
use alluvium_profile::{ProfileTypeId, SeriesId, TimeSpan};

/// Profiles of one type and series, in ascending order of time.
pub(crate) struct Run {
    pub(crate) profile_type: ProfileTypeId,
    pub(crate) series: SeriesId,
    /// Times of the first and the last profile; `None` if there are no profiles. The bounds are stored in the run
    /// itself, near the fields that are checked first.
    bounds: Option<Bounds<i64>>,
    times: Vec<i64>,
    totals: Vec<i64>,
    /// One period if all profiles have the same period; otherwise one period for each profile.
    periods: Vec<i64>,
}

/// All runs of a file or head.
pub(crate) type Runs = Arc<[Run]>;

/// The cached runs of files, by path.
pub(crate) type TotalsCache = Cache<String, Runs>;

impl Bytes for [Run] {
    fn bytes(&self) -> usize {
        self.iter().map(Run::bytes).sum()
    }
}

/// Memory of a run while it is collected, and of each of its profiles, in bytes.
const RUN_BYTES: usize = 320;
const PROFILE_BYTES: usize = 48;

const COLUMNS: [&str; 5] = [SERIES, PROFILE_TYPE, TIME, TOTAL, PERIOD];

impl Run {
    fn new(profile_type: ProfileTypeId, series: SeriesId) -> Self {
        Self {
            profile_type,
            series,
            bounds: None,
            times: Vec::new(),
            totals: Vec::new(),
            periods: Vec::new(),
        }
    }

    /// Returns true if there is a profile in `time`. Comparing the bounds nearly always avoids a search.
    pub(crate) fn occurs(&self, time: Option<TimeSpan>) -> bool {
        let Some(Bounds { min, max }) = self.bounds else {
            return false;
        };
        let Some(span) = time else {
            return true;
        };
        let is_within = min < span.start && span.end <= max;
        span.contains(min) || span.contains(max) || (is_within && !self.rows(time).is_empty())
    }

    /// Returns the time and total of the profiles in `time`.
    pub(crate) fn between(&self, time: Option<TimeSpan>) -> impl ExactSizeIterator<Item = (i64, i64)> {
        let rows = self.rows(time);
        let times = self.times[rows.clone()].iter().copied();
        times.zip(self.totals[rows].iter().copied())
    }

    /// Returns the longest period of the profiles in `time`.
    pub(crate) fn longest_period(&self, time: Option<TimeSpan>) -> Option<i64> {
        let rows = self.rows(time);
        if self.periods.len() == self.times.len() {
            self.periods[rows].iter().copied().max()
        } else {
            self.periods.first().copied().filter(|_| !rows.is_empty())
        }
    }

    fn rows(&self, time: Option<TimeSpan>) -> std::ops::Range<usize> {
        let Some(span) = time else {
            return 0..self.times.len();
        };
        let first = self.times.partition_point(|time| *time < span.start);
        first..self.times.partition_point(|time| *time < span.end).max(first)
    }

    fn finish(&mut self) {
        if !self.times.is_sorted() {
            let mut order: Vec<usize> = (0..self.times.len()).collect();
            order.sort_by_key(|index| self.times[*index]);
            for column in [&mut self.totals, &mut self.periods, &mut self.times] {
                *column = order.iter().map(|index| column[*index]).collect();
            }
        }
        if let Some(first) = self.periods.first().copied()
            && self.periods.iter().all(|period| *period == first)
        {
            self.periods = vec![first];
        }
        for column in [&mut self.times, &mut self.totals, &mut self.periods] {
            column.shrink_to_fit();
        }
        let ends = self.times.first().zip(self.times.last());
        self.bounds = ends.map(|(first, last)| Bounds::new(*first, *last));
    }

    fn bytes(&self) -> usize {
        128 + self.times.len() * 16 + self.periods.len() * 8
    }
}

/// Returns the runs that may contain profiles that pass the filter: all runs of the filter's type and series. This
/// function does not check the time; the methods of [`Run`] do.
pub(crate) fn load(
    runtime: Arc<Runtime>,
    cache: Arc<TotalsCache>,
    snapshot: Arc<Snapshot>,
    filter: ScanFilter,
) -> BoxFuture<'static, Result<SelectedRuns, QueryError>> {
    Box::pin(async move {
        let files = read::live_files(&snapshot, Table::Profiles, &filter);
        let all = snapshot
            .files
            .iter()
            .filter(|file| file.table == Table::Profiles)
            .count();
        let (mut runs_of_files, mut read) = (Vec::new(), 0);
        let memory = runtime.reservation("totals of profiles");
        for file in files {
            if let Some(runs) = cache.get(file.path.as_str()) {
                runs_of_files.push(runs);
                continue;
            }
            read += 1;
            let runs = read_file(&runtime, &snapshot, file).await?;
            // The cache may be too small to keep the runs, so the query is charged for them.
            memory.try_grow(runs.bytes())?;
            cache.insert(file.path.clone(), runs.clone());
            runs_of_files.push(runs);
        }
        runtime.count_files(all - read, read);
        if !snapshot.heads.is_empty() {
            let stream = heads::head_stream(&runtime, &snapshot, Table::Profiles, &filter, &COLUMNS)?;
            let states = stream::fold(vec![stream], || Builder::new(&runtime), Builder::add).await?;
            let runs = finish(states);
            memory.try_grow(runs.bytes())?;
            runs_of_files.push(runs);
        }
        Ok(SelectedRuns {
            runs: runs_of_files,
            filter,
            _memory: memory,
        })
    })
}

/// Runs with the filter that selected them. While a query holds this value, the query is charged for the runs that it
/// read.
pub(crate) struct SelectedRuns {
    runs: Vec<Runs>,
    filter: ScanFilter,
    _memory: MemoryReservation,
}

impl SelectedRuns {
    /// Returns the runs of the filter's type and series.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Run> {
        let profile_type = self.filter.profile_type.as_ref();
        let series: Option<&HashSet<SeriesId>> = self.filter.series.as_deref();
        self.runs.iter().flat_map(|runs| runs.iter()).filter(move |run| {
            profile_type.is_none_or(|requested_type| run.profile_type == *requested_type)
                && series.is_none_or(|set| set.contains(&run.series))
        })
    }

    /// Returns the time span of the filter.
    pub(crate) fn time(&self) -> Option<TimeSpan> {
        self.filter.time
    }
}

/// Reads all runs of a file regardless of the filter, because the next query may need other runs.
fn read_file(
    runtime: &Arc<Runtime>,
    snapshot: &Snapshot,
    file: &FileEntry,
) -> BoxFuture<'static, Result<Runs, QueryError>> {
    let streams = read::open_files(
        runtime,
        snapshot,
        Table::Profiles,
        &[file],
        &ScanFilter::default(),
        &COLUMNS,
    );
    let runtime = runtime.clone();
    Box::pin(async move {
        let states = stream::fold(streams?, || Builder::new(&runtime), Builder::add).await?;
        Ok(finish(states))
    })
}

/// Collects runs and charges their memory to the query.
struct Builder {
    runs: Vec<Run>,
    index: HashMap<(ProfileTypeId, SeriesId), usize>,
    types: Vec<ProfileTypeId>,
    memory: MemoryReservation,
}

impl Builder {
    fn new(runtime: &Runtime) -> Self {
        Self {
            runs: Vec::new(),
            index: HashMap::new(),
            types: Vec::new(),
            memory: runtime.reservation("totals of profiles"),
        }
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<(), QueryError> {
        let series = schema::integers(batch, SERIES)?;
        let types = schema::texts(batch, PROFILE_TYPE)?;
        let times = schema::times(batch, TIME)?;
        let totals = schema::integers(batch, TOTAL)?;
        let periods = schema::integers(batch, PERIOD)?;
        let runs_before = self.runs.len();
        let mut last: Option<usize> = None;
        for row in 0..batch.num_rows() {
            let (profile_type, series) = (types.value(row), SeriesId(series[row]));
            let same_run = last.filter(|run_index| {
                let run = &self.runs[*run_index];
                run.series == series && run.profile_type.as_str() == profile_type
            });
            let run_index = match same_run {
                Some(run_index) => run_index,
                None => self.run(profile_type, series),
            };
            last = Some(run_index);
            let run = &mut self.runs[run_index];
            run.times.push(times[row]);
            run.totals.push(totals[row]);
            run.periods.push(periods[row]);
        }
        let new_runs = self.runs.len() - runs_before;
        Ok(self
            .memory
            .try_grow(new_runs * RUN_BYTES + batch.num_rows() * PROFILE_BYTES)?)
    }

    fn run(&mut self, profile_type: &str, series: SeriesId) -> usize {
        // There are few types, and equal ids compare faster if they share their text.
        let profile_type = if let Some(shared) = self.types.iter().find(|shared| shared.as_str() == profile_type) {
            shared.clone()
        } else {
            let profile_type = ProfileTypeId::from(profile_type);
            self.types.push(profile_type.clone());
            profile_type
        };
        let next = self.runs.len();
        let run_index = *self.index.entry((profile_type.clone(), series)).or_insert(next);
        if run_index == next {
            self.runs.push(Run::new(profile_type, series));
        }
        run_index
    }
}

fn finish(states: Vec<Builder>) -> Runs {
    let mut runs: Vec<Run> = states.into_iter().flat_map(|builder| builder.runs).collect();
    runs.iter_mut().for_each(Run::finish);
    runs.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_occurs_where_one_of_its_profiles_lies_and_not_in_a_gap() {
        let empty = || Run::new("t".into(), SeriesId(1));
        let mut run = empty();
        (run.times, run.totals) = (vec![10, 20, 50, 60], vec![0; 4]);
        run.finish();
        for start in 0..70 {
            for end in start..70 {
                let time = Some(TimeSpan::new(start, end));
                assert_eq!(run.occurs(time), run.between(time).len() > 0, "{start} {end}");
            }
        }
        assert!(run.occurs(None) && !empty().occurs(None));
    }
}
