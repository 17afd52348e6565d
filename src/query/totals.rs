//! The `profiles` table kept decoded between questions, a file at a time: for each profile type and series the times and totals of its profiles.
//!
//! In: a filter. Out: runs of profiles of one type and series ([`Run`]), those of files from the cache, those of heads as they are now. Files never change, so what is kept is never
//! stale; it is bounded by bytes. Time lines, label questions and periods are answered from runs; who needs profile ids reads the table.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{Int64Type, TimestampMicrosecondType};
use arrow::record_batch::RecordBatch;
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::base::BoxFuture;
use crate::query::runtime::Runtime;
use crate::query::unused::Looks;
use crate::query::{QueryError, heads, scan, stream};
use crate::store::schema::Table;
use crate::store::snapshot::{FileEntry, ScanFilter, Snapshot};

/// Profiles of one type and series, ascending by time.
#[derive(Default)]
pub(crate) struct Run {
    pub(crate) profile_type: Arc<str>,
    pub(crate) series: i64,
    /// Time of the first and of the last, beside what is looked at first; `None` for no profiles.
    span: Option<(i64, i64)>,
    times: Vec<i64>,
    totals: Vec<i64>,
    /// One for all, or one a profile.
    periods: Vec<i64>,
}

/// All runs of a file or head.
pub(crate) type Runs = Arc<[Run]>;

/// What was read of the `profiles` table before.
pub(crate) struct TotalsCache {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    files: HashMap<String, Entry>,
    bytes: usize,
    clock: u64,
    looks: Looks,
}

struct Entry {
    runs: Runs,
    bytes: usize,
    used: u64,
}

const COLUMNS: [&str; 5] = ["series", "profile_type", "time", "total", "period"];

impl Run {
    /// Whether there is a profile with `start <= time < end`; its ends nearly always say so without a search.
    pub(crate) fn occurs(&self, time: Option<(i64, i64)>) -> bool {
        let Some((first, last)) = self.span else {
            return false;
        };
        let Some((start, end)) = time else {
            return true;
        };
        let inside = |time: i64| start <= time && time < end;
        inside(first) || inside(last) || (first < start && end <= last && !self.rows(time).is_empty())
    }

    /// Time and total of the profiles with `start <= time < end`.
    pub(crate) fn between(&self, time: Option<(i64, i64)>) -> impl ExactSizeIterator<Item = (i64, i64)> {
        let rows = self.rows(time);
        let times = self.times[rows.clone()].iter().copied();
        times.zip(self.totals[rows].iter().copied())
    }

    /// The longest period of those.
    pub(crate) fn longest_period(&self, time: Option<(i64, i64)>) -> Option<i64> {
        let rows = self.rows(time);
        match self.periods.len() == self.times.len() {
            true => self.periods[rows].iter().copied().max(),
            false if rows.is_empty() => None,
            false => self.periods.first().copied(),
        }
    }

    fn rows(&self, time: Option<(i64, i64)>) -> std::ops::Range<usize> {
        let Some((start, end)) = time else {
            return 0..self.times.len();
        };
        let first = self.times.partition_point(|time| *time < start);
        first..self.times.partition_point(|time| *time < end).max(first)
    }

    fn finish(&mut self) {
        if !self.times.is_sorted() {
            let mut order: Vec<usize> = (0..self.times.len()).collect();
            order.sort_by_key(|at| self.times[*at]);
            for column in [&mut self.totals, &mut self.periods, &mut self.times] {
                *column = order.iter().map(|at| column[*at]).collect();
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
        self.span = self.times.first().copied().zip(self.times.last().copied());
    }

    fn bytes(&self) -> usize {
        128 + self.times.len() * 16 + self.periods.len() * 8
    }
}

impl TotalsCache {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            state: Mutex::default(),
        }
    }

    fn get(&self, path: &str) -> Option<Runs> {
        let mut state = self.state.lock();
        state.clock += 1;
        let clock = state.clock;
        let entry = state.files.get_mut(path)?;
        entry.used = clock;
        Some(entry.runs.clone())
    }

    fn keep(&self, path: &str, runs: &Runs) {
        let bytes = 256 + runs.iter().map(Run::bytes).sum::<usize>();
        if bytes > self.limit {
            return;
        }
        let mut state = self.state.lock();
        state.clock += 1;
        let entry = Entry {
            runs: runs.clone(),
            bytes,
            used: state.clock,
        };
        if let Some(before) = state.files.insert(path.to_owned(), entry) {
            state.bytes -= before.bytes;
        }
        state.bytes += bytes;
        while state.bytes > self.limit {
            let oldest = state.files.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(path, _)| path.clone()) else {
                return;
            };
            if let Some(entry) = state.files.remove(&oldest) {
                state.bytes -= entry.bytes;
            }
        }
    }

    /// Keeps only what was read of these files.
    pub(crate) fn retain(&self, files: &HashSet<&str>) {
        let mut state = self.state.lock();
        state.files.retain(|path, _| files.contains(path.as_str()));
        state.count();
    }

    /// Drops what was not asked for in the last [five looks](crate::query::unused).
    pub(crate) fn forget_unused(&self) {
        let mut state = self.state.lock();
        let clock = state.clock;
        let used = state.looks.look(clock);
        state.files.retain(|_, entry| entry.used > used);
        state.count();
    }
}

impl State {
    fn count(&mut self) {
        self.bytes = self.files.values().map(|entry| entry.bytes).sum();
    }
}

/// The runs that may hold profiles that the filter lets through: all that match its type and series, at any time; ask a run for the time.
pub(crate) fn load(
    runtime: Arc<Runtime>,
    cache: Arc<TotalsCache>,
    snapshot: Arc<Snapshot>,
    filter: ScanFilter,
) -> BoxFuture<'static, Result<Chosen, QueryError>> {
    Box::pin(async move {
        let files = scan::live_files(&snapshot, Table::Profiles, &filter);
        let all = snapshot
            .files
            .iter()
            .filter(|file| file.table == Table::Profiles)
            .count();
        let (mut found, mut read) = (Vec::new(), 0);
        for file in files {
            if let Some(runs) = cache.get(&file.path) {
                found.push(runs);
                continue;
            }
            read += 1;
            let runs = read_file(&runtime, &snapshot, file).await?;
            cache.keep(&file.path, &runs);
            found.push(runs);
        }
        runtime.count_files(all - read, read);
        if !snapshot.heads.is_empty() {
            let stream = heads::head_stream(&runtime, &snapshot, Table::Profiles, &filter, &COLUMNS)?;
            let states = stream::fold(vec![stream], Builder::default, Builder::add).await?;
            found.push(finish(states));
        }
        Ok(Chosen { runs: found, filter })
    })
}

/// Runs with the filter that chose them.
pub(crate) struct Chosen {
    runs: Vec<Runs>,
    filter: ScanFilter,
}

impl Chosen {
    /// The runs of the filter's type and series.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Run> {
        let kind = self.filter.profile_type.as_deref();
        let series: Option<&HashSet<i64>> = self.filter.series.as_deref();
        self.runs.iter().flat_map(|runs| runs.iter()).filter(move |run| {
            kind.is_none_or(|wanted| *run.profile_type == *wanted) && series.is_none_or(|set| set.contains(&run.series))
        })
    }

    /// The time that was asked for.
    pub(crate) fn time(&self) -> Option<(i64, i64)> {
        self.filter.time
    }
}

/// All runs of a file, whatever the question: the next one may be another.
fn read_file(
    runtime: &Arc<Runtime>,
    snapshot: &Snapshot,
    file: &FileEntry,
) -> BoxFuture<'static, Result<Runs, QueryError>> {
    let streams = scan::open_files(
        runtime,
        snapshot,
        Table::Profiles,
        &[file],
        &ScanFilter::default(),
        &COLUMNS,
    );
    Box::pin(async move {
        let states = stream::fold(streams?, Builder::default, Builder::add).await?;
        Ok(finish(states))
    })
}

#[derive(Default)]
struct Builder {
    runs: Vec<Run>,
    index: HashMap<(Arc<str>, i64), usize>,
    types: Vec<Arc<str>>,
}

impl Builder {
    fn add(&mut self, batch: &RecordBatch) -> Result<(), QueryError> {
        let series = batch.column(0).as_primitive::<Int64Type>().values();
        let types = batch.column(1).as_string::<i32>();
        let times = batch.column(2).as_primitive::<TimestampMicrosecondType>().values();
        let totals = batch.column(3).as_primitive::<Int64Type>().values();
        let periods = batch.column(4).as_primitive::<Int64Type>().values();
        let mut last: Option<usize> = None;
        for row in 0..batch.num_rows() {
            let kind = types.value(row);
            let same = last.filter(|at| self.runs[*at].series == series[row] && *self.runs[*at].profile_type == *kind);
            let at = match same {
                Some(at) => at,
                None => self.run(kind, series[row]),
            };
            last = Some(at);
            let run = &mut self.runs[at];
            run.times.push(times[row]);
            run.totals.push(totals[row]);
            run.periods.push(periods[row]);
        }
        Ok(())
    }

    fn run(&mut self, kind: &str, series: i64) -> usize {
        // There are few types, and runs that share the text are told together sooner.
        let kind = match self.types.iter().find(|known| ***known == *kind) {
            Some(known) => known.clone(),
            None => {
                let kind: Arc<str> = kind.into();
                self.types.push(kind.clone());
                kind
            }
        };
        let next = self.runs.len();
        let at = *self.index.entry((kind.clone(), series)).or_insert(next);
        if at == next {
            self.runs.push(Run {
                profile_type: kind,
                series,
                ..Run::default()
            });
        }
        at
    }
}

fn finish(states: Vec<Builder>) -> Runs {
    let mut runs: Vec<Run> = states.into_iter().flat_map(|state| state.runs).collect();
    runs.iter_mut().for_each(Run::finish);
    runs.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_occurs_where_one_of_its_profiles_lies_and_not_in_a_gap() {
        let mut run = Run {
            times: vec![10, 20, 50, 60],
            totals: vec![0; 4],
            ..Run::default()
        };
        run.finish();
        for start in 0..70 {
            for end in start..70 {
                let time = Some((start, end));
                assert_eq!(run.occurs(time), run.between(time).len() > 0, "{start} {end}");
            }
        }
        assert!(run.occurs(None) && !Run::default().occurs(None));
    }
}
