//! Output files of a rewrite of samples: a single file, or one per hour, and optionally one per profile type.
//!
//! In: rows in the order of the merge. Out: files with their statistics. Columns are gathered per file and written in
//! batches. If `Effort::stacks_by_rows` is true, the stacks of a series are reordered first.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Int64Array, RecordBatch, StringArray, StringBuilder, TimestampMicrosecondArray, new_null_array,
};
use arrow::datatypes::{DataType, SchemaRef};

use crate::store::common::error::StoreError;
use crate::store::common::schema::Table;
use crate::store::flush::files::Output;
use crate::store::maintenance::merge::samples::Row;
use crate::store::tables::delta::NewFile;
use crate::store::tables::stats::{Bounds, FileStats, extend};
use alluvium_profile::time::HOUR_US;
use alluvium_profile::{ProfileTypeId, SeriesId, StackId};

/// Number of rows in an output batch.
const BATCH_ROWS: usize = 16 << 10;
/// Number of gathered rows of one series and type at which the rows are reordered, even if the series continues. This
/// many rows take about 30 MB.
const REORDER_ROWS: usize = 1 << 20;

pub(crate) struct Parts {
    split: Split,
    open: Vec<Part>,
    /// Index in `open` of the part that received the last row.
    last: usize,
    profile_type: Option<ProfileTypeId>,
    schema: SchemaRef,
    files: Vec<NewFile>,
}

/// The division of rows into files, and the order of stacks in a file.
#[derive(Clone, Copy)]
pub(crate) struct Split {
    /// If true, each hour has its own file.
    pub(crate) by_hour: bool,
    /// If true, each profile type has its own file.
    pub(crate) by_type: bool,
    /// If true, the stacks with the most rows come first in each series.
    pub(crate) stacks_by_rows: bool,
}

struct Part {
    hour: i64,
    output: Output,
    stats: FileStats,
    rows: Columns,
}

#[derive(Default)]
struct Columns {
    time: Vec<i64>,
    series: Vec<SeriesId>,
    stack: Vec<StackId>,
    value: Vec<i64>,
    /// The profile types of the rows, in ascending order.
    types: Vec<TypeRows>,
    /// Span and trace ids; `None` until a row has a span or trace id.
    links: Option<(StringBuilder, StringBuilder)>,
    /// Index of the first row of the current series and type.
    stretch: usize,
}

/// Consecutive rows of one profile type.
struct TypeRows {
    profile_type: ProfileTypeId,
    /// Index of the first row after these rows.
    end: usize,
}

impl Parts {
    pub(crate) fn new(split: Split) -> Self {
        Self {
            split,
            open: Vec::new(),
            last: 0,
            profile_type: None,
            schema: Table::Samples.file_schema(),
            files: Vec::new(),
        }
    }

    /// Adds a row of a profile type. `create` creates an output file.
    pub(crate) fn push(
        &mut self,
        profile_type: &ProfileTypeId,
        row: &Row<'_>,
        create: &mut dyn FnMut() -> Result<Output, StoreError>,
    ) -> Result<(), StoreError> {
        if self.split.by_type && self.profile_type.as_ref() != Some(profile_type) {
            self.close()?;
            self.profile_type = Some(profile_type.clone());
        }
        let hour = if self.split.by_hour {
            row.time.div_euclid(HOUR_US)
        } else {
            0
        };
        if self.open.get(self.last).is_none_or(|part| part.hour != hour) {
            self.last = if let Some(index) = self.open.iter().position(|part| part.hour == hour) {
                index
            } else {
                self.open.push(Part {
                    hour,
                    output: create()?,
                    stats: FileStats::default(),
                    rows: Columns::default(),
                });
                self.open.len() - 1
            };
        }
        let part = &mut self.open[self.last];
        if self.split.stacks_by_rows {
            let rows = &mut part.rows;
            if !rows.continues(profile_type, row) || rows.value.len() - rows.stretch >= REORDER_ROWS {
                rows.end_stretch();
                if rows.value.len() >= BATCH_ROWS {
                    part.write(&self.schema)?;
                    part.output.end_group()?;
                }
            }
            part.rows.push(profile_type, row);
            return Ok(());
        }
        part.rows.push(profile_type, row);
        if part.rows.value.len() >= BATCH_ROWS {
            part.write(&self.schema)?;
        }
        Ok(())
    }

    /// Ends all files and returns them.
    pub(crate) fn finish(mut self) -> Result<Vec<NewFile>, StoreError> {
        self.close()?;
        Ok(self.files)
    }

    fn close(&mut self) -> Result<(), StoreError> {
        for mut part in self.open.drain(..) {
            if self.split.stacks_by_rows {
                part.rows.end_stretch();
            }
            part.write(&self.schema)?;
            self.files.push(part.output.finish(part.stats)?);
        }
        self.last = 0;
        Ok(())
    }
}

impl Part {
    fn write(&mut self, schema: &SchemaRef) -> Result<(), StoreError> {
        if self.rows.value.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.rows);
        rows.extend(&mut self.stats);
        let batch = RecordBatch::try_new(schema.clone(), rows.arrays()).map_err(|error| StoreError::Parquet {
            path: self.output.path().to_owned(),
            reason: error.to_string(),
        })?;
        self.output.write(&batch)
    }
}

impl Columns {
    /// Returns true if a row has the same series and type as the last row.
    fn continues(&self, profile_type: &ProfileTypeId, row: &Row<'_>) -> bool {
        let last_type = self.types.last().map(|last| &last.profile_type);
        self.series.last() == Some(&row.series) && last_type == Some(profile_type)
    }

    /// Ends the current series and type, and puts its stacks with the most rows first. If any gathered row has a span
    /// or trace id, the order stays. Such rows are few, and their ids are gathered as text, which is costly to reorder.
    fn end_stretch(&mut self) {
        let start = std::mem::replace(&mut self.stretch, self.value.len());
        if self.links.is_some() {
            return;
        }
        let mut runs: Vec<Range<usize>> = Vec::new();
        let mut end = start;
        for run in self.stack[start..].chunk_by(|left, right| left == right) {
            runs.push(end..end + run.len());
            end += run.len();
        }
        // The sort is stable: stacks with the same number of rows stay in the order of their ids.
        runs.sort_by_key(|rows| std::cmp::Reverse(rows.len()));
        reorder(&mut self.time, start, &runs);
        reorder(&mut self.stack, start, &runs);
        reorder(&mut self.value, start, &runs);
    }

    #[inline]
    fn push(&mut self, profile_type: &ProfileTypeId, row: &Row<'_>) {
        if self.links.is_none() && (row.span.is_some() || row.trace.is_some()) {
            let nulls = || {
                let mut builder = StringBuilder::new();
                (0..self.value.len()).for_each(|_| builder.append_null());
                builder
            };
            self.links = Some((nulls(), nulls()));
        }
        self.time.push(row.time);
        self.series.push(row.series);
        self.stack.push(row.stack);
        self.value.push(row.value);
        let end = self.value.len();
        match self.types.last_mut() {
            Some(last) if last.profile_type == *profile_type => last.end = end,
            _ => self.types.push(TypeRows {
                profile_type: profile_type.clone(),
                end,
            }),
        }
        if let Some((spans, traces)) = &mut self.links {
            spans.append_option(row.span);
            traces.append_option(row.trace);
        }
    }

    fn extend(&self, stats: &mut FileStats) {
        stats.rows += self.value.len() as u64;
        extend(&mut stats.time, self.time.iter().copied());
        extend(&mut stats.series, self.series.iter().copied());
        extend(&mut stats.stack, self.stack.iter().copied());
        for TypeRows { profile_type, .. } in &self.types {
            // Types come in ascending order.
            match &mut stats.profile_type {
                None => stats.profile_type = Some(Bounds::new(profile_type.clone(), profile_type.clone())),
                Some(bounds) => bounds.max = profile_type.clone(),
            }
        }
    }

    fn arrays(mut self) -> Vec<ArrayRef> {
        let rows = self.value.len();
        let mut types = StringBuilder::new();
        let mut start = 0;
        for TypeRows { profile_type, end } in &self.types {
            (start..*end).for_each(|_| types.append_value(profile_type.as_str()));
            start = *end;
        }
        let links: [ArrayRef; 2] = match &mut self.links {
            None => [(); 2].map(|()| new_null_array(&DataType::Utf8, rows)),
            Some((spans, traces)) => [spans, traces].map(|builder| Arc::new(builder.finish()) as Arc<_>),
        };
        let [span, trace] = links;
        let types: StringArray = types.finish();
        vec![
            Arc::new(TimestampMicrosecondArray::from(self.time).with_timezone("UTC")),
            Arc::new(Int64Array::from_iter_values(self.series.into_iter().map(|id| id.0))),
            Arc::new(types),
            Arc::new(Int64Array::from_iter_values(self.stack.into_iter().map(|id| id.0))),
            Arc::new(Int64Array::from(self.value)),
            span,
            trace,
        ]
    }
}

/// Reorders the rows of a column from `start` to the end by `runs`. Each run is a range of rows of the whole column.
fn reorder<T: Copy>(column: &mut Vec<T>, start: usize, runs: &[Range<usize>]) {
    let rows = column.split_off(start);
    column.extend(runs.iter().flat_map(|run| &rows[run.start - start..run.end - start]));
}

#[cfg(test)]
mod tests {
    use parquet::file::metadata::RowGroupMetaData;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;
    use crate::store::common::fault::Faults;
    use crate::store::flush::files::{SETTLED, Target};
    use crate::store::tables::root::Root;
    use alluvium_testing::tenant_id;

    #[test]
    fn stacks_with_most_rows_come_first_within_their_series() {
        let profile_type = ProfileTypeId::from("k");
        let mut rows = Columns::default();
        for (series, stack, time) in [
            (1, 5, 1),
            (1, 7, 1),
            (1, 7, 2),
            (1, 9, 3),
            (2, 3, 1),
            (2, 8, 1),
            (2, 8, 2),
        ] {
            let row = Row {
                profile_type: 0,
                series: SeriesId(series),
                stack: StackId(stack),
                time,
                value: stack * 10 + time,
                span: None,
                trace: None,
            };
            if !rows.continues(&profile_type, &row) {
                rows.end_stretch();
            }
            rows.push(&profile_type, &row);
        }
        rows.end_stretch();
        assert_eq!(rows.series, [1, 1, 1, 1, 2, 2, 2].map(SeriesId));
        assert_eq!(rows.stack, [7, 7, 5, 9, 8, 8, 3].map(StackId));
        assert_eq!(rows.time, [1, 2, 1, 3, 1, 2, 1]);
        assert_eq!(rows.value, [71, 72, 51, 93, 81, 82, 31]);
    }

    #[test]
    fn row_groups_of_settled_samples_end_where_a_series_ends() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::Folder(dir.path().to_owned());
        let target = Target {
            root: &root,
            table: Table::Samples,
            tenant: &tenant_id("t"),
            day: 0,
        };
        let mut create = || Output::create(target, "a.parquet", SETTLED, &Faults::default());
        let profile_type = ProfileTypeId::from("k");
        let mut parts = Parts::new(Split {
            by_hour: false,
            by_type: false,
            stacks_by_rows: true,
        });
        // The first two series share a row group, the next two have one row group each, and the last has one row.
        for (series, count) in [(1, 9_000), (2, 9_000), (3, 20_000), (4, 70_000), (5, 1)] {
            for time in 0..count {
                let row = Row {
                    profile_type: 0,
                    series: SeriesId(series),
                    stack: StackId(1),
                    time,
                    value: 1,
                    span: None,
                    trace: None,
                };
                parts.push(&profile_type, &row, &mut create).unwrap();
            }
        }
        let files = parts.finish().unwrap();
        let file = std::fs::File::open(dir.path().join("samples").join(&files[0].path)).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let groups = reader.metadata().row_groups().iter();
        let rows: Vec<i64> = groups.map(RowGroupMetaData::num_rows).collect();
        assert_eq!(rows, [18_000, 20_000, 70_000, 1]);
    }
}
