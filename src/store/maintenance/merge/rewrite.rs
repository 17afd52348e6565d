//! Rewrites files: merges the rows of some files of a partition into new files, optionally without some of the rows.
//!
//! In: a [`Job`]. Out: files that are durable but not committed. The job selects the rows to omit. If the job has an
//! interval, times are rounded and rows that become equal are summed; otherwise rows keep their order and their values.
//! Each input is read once. If memory cannot hold all stacks, inputs with stacks are read several times. The memory in
//! use grows with the number of inputs.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use prometheus_client::metrics::gauge::Gauge;

use crate::store::common::error::StoreError;
use crate::store::common::fault::Faults;
use crate::store::common::schema;
use crate::store::common::schema::Table;
use crate::store::common::schema::column::{PROFILE_TYPE, SERIES, TIME};
use crate::store::flush::files::{Effort, Output, Target, name_of};
use crate::store::maintenance::merge::input::Input;
use crate::store::maintenance::merge::names::{Piece, StackSet};
use crate::store::maintenance::merge::parts::{Parts, Split};
use crate::store::maintenance::merge::profiles;
use crate::store::maintenance::merge::samples;
use crate::store::maintenance::merge::samples::Row;
use crate::store::maintenance::merge::series::SeriesMerge;
use crate::store::tables::delta::NewFile;
use crate::store::tables::root::Root;
use crate::store::tables::snapshot::FileEntry;
use crate::store::tables::stats::{FileStats, extend, extend_type};
use alluvium_profile::time::HOUR_US;
use alluvium_profile::{ProfileTypeId, SeriesId, TenantId, TimeSpan};

/// Merge level of a file that contains only some of the stacks of a merge, because memory could not hold all stacks.
/// Such a file is not merged again.
pub(crate) const FULL_NAMES: u8 = 2;

/// Number of rows between two calls of [`Environment::throttle`].
const THROTTLE_ROWS: usize = 16 << 10;

/// The change that a rewrite makes to the rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Change {
    /// Rows that are omitted from the output.
    pub(crate) drop: Option<Selection>,
    /// Times are rounded down to multiples of this number of microseconds. Rows that are then equal become one row with
    /// the sum of their values. All span and trace ids are dropped. 0 leaves the rows unchanged.
    pub(crate) interval_us: i64,
}

/// A selection of rows of samples or profiles. A row is selected if it meets all conditions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    /// The selected series; `None` for all.
    pub(crate) series: Option<Arc<HashSet<SeriesId>>>,
    /// The selected profile type; `None` for all.
    pub(crate) profile_type: Option<ProfileTypeId>,
    /// The selected span of time; `None` for all.
    pub(crate) time: Option<TimeSpan>,
}

impl Selection {
    /// Returns true if the row is selected.
    pub(crate) fn selects(&self, profile_type: &str, series: SeriesId, time: i64) -> bool {
        self.series.as_ref().is_none_or(|set| set.contains(&series))
            && self
                .profile_type
                .as_ref()
                .is_none_or(|own| own.as_str() == profile_type)
            && self.time.is_none_or(|span| span.contains(time))
    }

    /// Returns true if a file may hold selected rows.
    pub(crate) fn touches(&self, file: &FileEntry) -> bool {
        let touches = |span: TimeSpan| file.time.is_none_or(|time| span.touches(time.min, time.max));
        self.time.is_none_or(touches)
            && self.series.as_ref().is_none_or(|set| {
                file.series
                    .is_none_or(|bounds| set.iter().any(|id| bounds.contains(id)))
            })
            && self.profile_type.as_ref().is_none_or(|own| {
                let bounds = file.profile_type.as_ref();
                bounds.is_none_or(|bounds| bounds.contains(own))
            })
    }
}

/// A rewrite of files of one partition.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) table: Table,
    pub(crate) tenant: TenantId,
    /// Partition: days since 1970.
    pub(crate) day: i32,
    pub(crate) inputs: Vec<FileEntry>,
    /// Change to make to the rows.
    pub(crate) change: Change,
    pub(crate) level: u8,
    /// Resolution of the output in seconds, 0 for unchanged times.
    pub(crate) resolution: u32,
    pub(crate) by_hour: bool,
    /// If true, each profile type gets its own file.
    pub(crate) by_type: bool,
    /// Reason for the rewrite, for logs and metrics.
    pub(crate) reason: &'static str,
}

/// Name of a file that maintenance writes: `c<level>-<resolution>-<uuid>-<writer>.parquet`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MergedName {
    /// Merge level: 1 for files merged from flushed files, higher for later merges.
    pub(crate) level: u8,
    /// Interval in seconds to which times are rounded, 0 if times are not rounded.
    pub(crate) resolution: u32,
}

impl MergedName {
    pub(crate) fn text(&self, writer: &str) -> String {
        let id = uuid::Uuid::new_v4().simple();
        format!("c{}-{}-{id}-{writer}.parquet", self.level, self.resolution)
    }

    /// Parses the name of a file. Flushed files and files of other programs have level 0.
    pub(crate) fn of(path: &str) -> Self {
        let parse = || {
            let name = name_of(path).strip_suffix(".parquet")?.strip_prefix('c')?;
            let (level, rest) = name.split_once('-')?;
            let (resolution, _) = rest.split_once('-')?;
            Some(Self {
                level: level.parse().ok()?,
                resolution: resolution.parse().ok()?,
            })
        };
        parse().unwrap_or(Self {
            level: 0,
            resolution: 0,
        })
    }

    /// Returns true if `path` names a merged file that `writer` wrote.
    pub(crate) fn is_written_by(path: &str, writer: &str) -> bool {
        let name = name_of(path);
        name.starts_with('c')
            && name
                .strip_suffix(".parquet")
                .and_then(|stem| stem.strip_suffix(writer))
                .is_some_and(|rest| rest.ends_with('-'))
    }
}

/// Settings and resources of a rewrite, which its caller provides.
pub(crate) struct Environment<'a> {
    pub(crate) root: &'a Root,
    /// Identity of the writer in file names.
    pub(crate) writer: &'a str,
    /// The effort to spend on the new files.
    pub(crate) effort: Effort,
    pub(crate) faults: &'a Faults,
    /// See [`MaintenanceConfig::memory_bytes`](crate::store::maintenance::MaintenanceConfig::memory_bytes).
    pub(crate) memory_bytes: usize,
    /// Gauge of the memory in bytes that `memory_bytes` limits.
    pub(crate) memory_used: &'a Gauge,
    /// Called after every few thousand rows. It waits to keep within the CPU share, and fails if the work must end.
    pub(crate) throttle: &'a mut dyn FnMut() -> Result<(), StoreError>,
}

/// Writes the files of a job. After a failure, removes the files that were written.
pub(crate) fn run(job: &Job, environment: &mut Environment<'_>) -> Result<Vec<NewFile>, StoreError> {
    let mut written = RewrittenFiles::default();
    let result = match job.table {
        Table::Samples => write_samples(job, environment, &mut written),
        Table::Profiles => write_profiles(job, environment, &mut written),
        Table::Stacks => write_stacks(job, environment, &mut written),
        Table::Series => write_series(job, environment, &mut written),
    };
    environment.memory_used.set(0);
    match result {
        Ok(()) => Ok(written.files),
        Err(error) => {
            for path in written.paths {
                let _ = environment.root.remove(&path);
            }
            Err(error)
        }
    }
}

#[derive(Default)]
struct RewrittenFiles {
    files: Vec<NewFile>,
    /// Paths of the new files, relative to the root.
    paths: Vec<String>,
}

impl Environment<'_> {
    fn inputs(&self, job: &Job) -> Result<Vec<Input>, StoreError> {
        job.inputs.iter().map(|file| Input::open(self.root, file)).collect()
    }

    fn name(&self, job: &Job) -> String {
        let name = MergedName {
            level: job.level,
            resolution: job.resolution,
        };
        name.text(self.writer)
    }
}

impl Job {
    fn target<'a>(&'a self, root: &'a Root) -> Target<'a> {
        Target {
            table: self.table,
            root,
            tenant: &self.tenant,
            day: self.day,
        }
    }
}

/// Writes one file, or several if the stacks do not fit into memory together.
fn write_stacks(job: &Job, environment: &mut Environment<'_>, written: &mut RewrittenFiles) -> Result<(), StoreError> {
    let mut piece = Piece::default();
    loop {
        let half = piece.half();
        let Some(set) = read_stacks(job, environment, piece, half.is_some())? else {
            piece = half.unwrap_or(piece);
            continue;
        };
        let name = MergedName {
            level: if piece.is_all() { job.level } else { FULL_NAMES },
            resolution: job.resolution,
        };
        let (name, root) = (name.text(environment.writer), environment.root);
        written.paths.push(file_path(job, &name));
        written
            .files
            .extend(set.write(job.target(root), &name, environment.effort, environment.faults)?);
        environment.memory_used.set(0);
        match piece.next() {
            Some(next) => piece = next,
            None => return Ok(()),
        }
    }
}

/// Reads the stacks of a piece. If `may_stop` is true and the stacks exceed the allowed memory, returns `None`.
fn read_stacks(
    job: &Job,
    environment: &mut Environment<'_>,
    piece: Piece,
    may_stop: bool,
) -> Result<Option<StackSet>, StoreError> {
    let mut set = StackSet::new(piece);
    let (throttle, used) = (&mut *environment.throttle, environment.memory_used);
    let memory_bytes = environment.memory_bytes;
    for file in &job.inputs {
        let mut input = Input::open(environment.root, file)?;
        let is_within = set.read(&mut input, &mut |bytes| {
            throttle()?;
            used.set(bytes as i64);
            Ok(!may_stop || bytes <= memory_bytes)
        })?;
        if !is_within {
            return Ok(None);
        }
    }
    Ok(Some(set))
}

fn write_series(job: &Job, environment: &mut Environment<'_>, written: &mut RewrittenFiles) -> Result<(), StoreError> {
    let merge = SeriesMerge::new(environment.inputs(job)?)?;
    let (name, root) = (environment.name(job), environment.root);
    written.paths.push(file_path(job, &name));
    let (throttle, used) = (&mut *environment.throttle, environment.memory_used);
    let file = merge.write(
        job.target(root),
        &name,
        (environment.effort, environment.faults),
        environment.memory_bytes,
        &mut |bytes| {
            used.set(bytes as i64);
            throttle()
        },
    )?;
    written.files.extend(file);
    Ok(())
}

fn file_path(job: &Job, name: &str) -> String {
    format!(
        "{}/tenant={}/day={}/{name}",
        job.table.name(),
        job.tenant,
        crate::store::tables::delta::day_text(job.day)
    )
}

fn write_profiles(
    job: &Job,
    environment: &mut Environment<'_>,
    written: &mut RewrittenFiles,
) -> Result<(), StoreError> {
    let inputs = environment.inputs(job)?;
    let (schema, root) = (job.table.file_schema(), environment.root);
    let mut open: Vec<((i64, usize), Output, FileStats)> = Vec::new();
    let change = &job.change;
    let mut types: Vec<String> = Vec::new();
    profiles::merge(
        inputs,
        |row| {
            if let Some(drop) = &change.drop
                && drop.selects(row.profile_type, row.series, row.time)
            {
                return None;
            }
            let hour = if job.by_hour { row.time.div_euclid(HOUR_US) } else { 0 };
            if job.by_type && types.last().is_none_or(|last| last != row.profile_type) {
                types.push(row.profile_type.to_owned());
            }
            Some((hour, types.len()))
        },
        |hour, batch| {
            (environment.throttle)()?;
            let index = if let Some(index) = open.iter().position(|(other, ..)| *other == hour) {
                index
            } else {
                let name = environment.name(job);
                written.paths.push(file_path(job, &name));
                let output = Output::create(job.target(root), &name, environment.effort, environment.faults)?;
                open.push((hour, output, FileStats::default()));
                open.len() - 1
            };
            let (_, output, stats) = &mut open[index];
            let failed = |error: ArrowError| StoreError::Parquet {
                path: output.path().to_owned(),
                reason: error.to_string(),
            };
            let batch = expand_dictionary(&batch, &schema).map_err(failed)?;
            extend_stats(stats, &batch).map_err(failed)?;
            output.write(&batch)
        },
    )?;
    for (_, output, stats) in open {
        written.files.push(output.finish(stats)?);
    }
    Ok(())
}

/// Converts the profile type of a batch from a dictionary to text.
fn expand_dictionary(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = std::iter::zip(batch.columns(), schema.fields());
    let columns = columns.map(|(column, field)| cast(column, field.data_type()));
    RecordBatch::try_new(schema.clone(), columns.collect::<Result<_, _>>()?)
}

fn extend_stats(stats: &mut FileStats, batch: &RecordBatch) -> Result<(), ArrowError> {
    stats.rows += batch.num_rows() as u64;
    extend(&mut stats.time, schema::times(batch, TIME)?.iter().copied());
    let series = schema::integers(batch, SERIES)?;
    extend(&mut stats.series, series.iter().map(|id| SeriesId(*id)));
    let types = schema::texts(batch, PROFILE_TYPE)?;
    // The batch is sorted by type, so the first and the last row have the smallest and the largest type.
    for row in [0, types.len().saturating_sub(1)] {
        if row < types.len() {
            extend_type(&mut stats.profile_type, types.value(row));
        }
    }
    Ok(())
}

fn write_samples(job: &Job, environment: &mut Environment<'_>, written: &mut RewrittenFiles) -> Result<(), StoreError> {
    let inputs = environment.inputs(job)?;
    let mut parts = Parts::new(Split {
        by_hour: job.by_hour,
        by_type: job.by_type,
        stacks_by_rows: environment.effort.stacks_by_rows,
    });
    let change = &job.change;
    let (mut pending, mut rows): (Option<PendingRow>, usize) = (None, 0);
    let (effort, faults, writer, root) = (
        environment.effort,
        environment.faults,
        environment.writer,
        environment.root,
    );
    let mut create = || {
        let name = MergedName {
            level: job.level,
            resolution: job.resolution,
        }
        .text(writer);
        written.paths.push(file_path(job, &name));
        Output::create(job.target(root), &name, effort, faults)
    };
    samples::merge(inputs, |types, mut row| {
        rows += 1;
        if rows % THROTTLE_ROWS == 0 {
            (environment.throttle)()?;
        }
        let profile_type = types.id(row.profile_type);
        if let Some(drop) = &change.drop
            && drop.selects(profile_type.as_str(), row.series, row.time)
        {
            return Ok(());
        }
        if change.interval_us == 0 {
            return parts.push(profile_type, &row, &mut create);
        }
        (row.span, row.trace) = (None, None);
        row.time -= row.time.rem_euclid(change.interval_us);
        if pending.as_mut().is_some_and(|sum| sum.adds(&row)) {
            return Ok(());
        }
        match pending.replace(PendingRow::new(profile_type, &row)) {
            Some(sum) => parts.push(&sum.profile_type, &sum.row, &mut create),
            None => Ok(()),
        }
    })?;
    if let Some(sum) = pending {
        parts.push(&sum.profile_type, &sum.row, &mut create)?;
    }
    written.files.extend(parts.finish()?);
    Ok(())
}

/// A row to which the values of the next rows with the same key are added before it is written.
struct PendingRow {
    row: Row<'static>,
    profile_type: ProfileTypeId,
}

impl PendingRow {
    fn new(profile_type: &ProfileTypeId, row: &Row<'_>) -> Self {
        Self {
            profile_type: profile_type.clone(),
            row: Row {
                profile_type: row.profile_type,
                series: row.series,
                stack: row.stack,
                time: row.time,
                value: row.value,
                span: None,
                trace: None,
            },
        }
    }

    /// Adds the value of a row with the same key. Returns false if the key differs, or if the sum would overflow.
    fn adds(&mut self, row: &Row<'_>) -> bool {
        let own = &mut self.row;
        if (own.profile_type, own.series, own.stack, own.time) != (row.profile_type, row.series, row.stack, row.time) {
            return false;
        }
        match own.value.checked_add(row.value) {
            Some(sum) => {
                own.value = sum;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_level_resolution_and_writer() {
        let name = MergedName {
            level: 2,
            resolution: 300,
        };
        let text = name.text("some-writer");
        assert_eq!(MergedName::of(&format!("samples/tenant=t/day=2026-11-21/{text}")), name);
        assert!(MergedName::is_written_by(&text, "some-writer"));
        assert!(!MergedName::is_written_by(&text, "writer2"));
        let flushed = MergedName::of("samples/tenant=t/day=2026-11-21/000000000012-1-w.parquet");
        assert_eq!((flushed.level, flushed.resolution), (0, 0));
    }

    #[test]
    fn a_sum_that_would_overflow_stays_two_rows() {
        let profile_type = ProfileTypeId::from("k");
        let row = |value| Row {
            profile_type: 0,
            series: SeriesId(1),
            stack: alluvium_profile::StackId(2),
            time: 3,
            value,
            span: None,
            trace: None,
        };
        let mut sum = PendingRow::new(&profile_type, &row(i64::MAX - 1));
        assert!(sum.adds(&row(1)));
        assert!(!sum.adds(&row(1)));
        assert_eq!(sum.row.value, i64::MAX);
    }
}
