//! Merges the stacks and series of many files, each written once.
//!
//! Stacks are kept in memory as numbers of distinct frames, so hundreds of thousands of them take some tens of
//! megabytes. They are written in the order of their paths from the root, so that neighbours share most of their frames
//! and the file compresses well. Series are few.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use hashbrown::HashMap;

use crate::profile::{Labels, SeriesId, StackId};
use crate::store::StoreError;
use crate::store::delta::NewFile;
use crate::store::fault::Faults;
use crate::store::files::{Effort, Output, Target};
use crate::store::head::rows::{self, Shared, StackRows};
use crate::store::head::{Frame, Frames, SharedTexts, TextId, Texts};
use crate::store::maintenance::input::Input;
use crate::store::schema::column::{FRAMES, LABELS, SERIES, STACK};
use crate::store::schema::{self, PARTITION_COLUMNS, StartLines, Table};
use crate::store::stats::{Bounds, FileStats, extend};

/// Frames of an output batch.
const BATCH_FRAMES: usize = 32 << 10;
/// Series of an output batch.
const BATCH_SERIES: usize = 4 << 10;

#[derive(Default)]
pub(crate) struct StackSet {
    texts: Texts,
    frames: Frames,
    /// Id of each stack, with its start and end in `paths`.
    stacks: Vec<(StackId, u32, u32)>,
    /// For each stack its place in `stacks`, and whether first lines of its functions are known.
    known: HashMap<StackId, (u32, bool)>,
    paths: Vec<u32>,
}

impl StackSet {
    /// Adds all stacks of a file.
    pub(crate) fn read(
        &mut self,
        input: &mut Input,
        throttle: &mut dyn FnMut() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        while let Some(batch) = input.next()? {
            self.insert(&batch).map_err(|reason| input.failed(reason))?;
            throttle()?;
        }
        Ok(())
    }

    fn insert(&mut self, batch: &RecordBatch) -> Result<(), String> {
        let lacks = |name: &str| format!("the frames have no column `{name}` of the layout's type");
        let ids = schema::integers(batch, STACK).map_err(|error| error.to_string())?;
        let lists = schema::lists(batch, FRAMES).map_err(|error| error.to_string())?;
        let start_lines = StartLines::of(batch).map_err(|error| error.to_string())?;
        let frames = lists.values().as_struct_opt().ok_or("the frames are no struct")?;
        let text = |name: &'static str| -> Result<&StringArray, String> {
            let column = frames
                .column_by_name(name)
                .and_then(|column| column.as_string_opt::<i32>());
            column.ok_or_else(|| lacks(name))
        };
        let number = |name: &'static str| -> Result<&Int64Array, String> {
            let column = frames
                .column_by_name(name)
                .and_then(|column| column.as_primitive_opt::<Int64Type>());
            column.ok_or_else(|| lacks(name))
        };
        let texts = [text("function")?, text("file")?, text("mapping")?, text("build_id")?];
        let (line, address) = (number("line")?, number("address")?);
        let inlined: &BooleanArray = frames
            .column_by_name("inlined")
            .and_then(|column| column.as_boolean_opt())
            .ok_or_else(|| lacks("inlined"))?;
        let offsets = lists.value_offsets();
        for (row, id) in ids.iter().map(|id| StackId(*id)).enumerate() {
            let start_lines = start_lines.row(row);
            let has_start_lines = !start_lines.is_empty();
            let known = self.known.get(&id).copied();
            if known.is_some_and(|(_, has_them)| has_them || !has_start_lines) {
                continue;
            }
            let start = self.paths.len() as u32;
            for (depth, at) in (offsets[row] as usize..offsets[row + 1] as usize).enumerate() {
                let [function, file, mapping, build_id] = texts.map(|column| self.texts.insert(column.value(at)));
                self.paths.push(self.frames.insert(Frame {
                    function,
                    file,
                    line: line.value(at),
                    mapping,
                    build_id,
                    address: address.value(at) as u64,
                    inlined: inlined.value(at),
                    start_line: start_lines.get(depth).copied().unwrap_or(0),
                }));
            }
            let stack = (id, start, self.paths.len() as u32);
            let place = if let Some((place, _)) = known {
                self.stacks[place as usize] = stack;
                place
            } else {
                self.stacks.push(stack);
                self.stacks.len() as u32 - 1
            };
            self.known.insert(id, (place, has_start_lines));
        }
        Ok(())
    }

    /// Writes the stacks to a file; `None` when there are none.
    pub(crate) fn write(
        mut self,
        target: Target<'_>,
        name: &str,
        effort: Effort,
        faults: &Faults,
    ) -> Result<Option<NewFile>, StoreError> {
        if self.stacks.is_empty() {
            return Ok(None);
        }
        let ranks = self.ranks();
        let paths = &self.paths;
        self.stacks.sort_unstable_by(|left, right| {
            let path = |stack: &(StackId, u32, u32)| {
                let frames = &paths[stack.1 as usize..stack.2 as usize];
                frames.iter().rev().map(|frame| ranks[*frame as usize])
            };
            path(left).cmp(path(right)).then(left.0.cmp(&right.0))
        });
        let mut output = Output::create(target, name, effort, faults)?;
        let columns: Vec<usize> = (PARTITION_COLUMNS..Table::Stacks.schema().fields().len()).collect();
        let shared = Shared {
            tenant: target.tenant,
            day: target.day,
            texts: self.texts.shared(),
            projection: Some(&columns),
        };
        let mut stats = FileStats {
            rows: self.stacks.len() as u64,
            ..FileStats::default()
        };
        let mut rows = StackRows::default();
        let failed = |path: &std::path::Path, error: arrow::error::ArrowError| StoreError::Parquet {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        for (id, start, end) in &self.stacks {
            let frames = &self.paths[*start as usize..*end as usize];
            rows.push(
                *id,
                frames.iter().map(|frame| self.frames.get(*frame)),
                self.texts.shared(),
            );
            extend(&mut stats.stack, [*id]);
            if rows.is_full(BATCH_FRAMES) {
                let batch = rows.take(shared).map_err(|error| failed(output.path(), error))?;
                output.write(&batch)?;
            }
        }
        if rows.len() > 0 {
            let batch = rows.take(shared).map_err(|error| failed(output.path(), error))?;
            output.write(&batch)?;
        }
        output.finish(stats).map(Some)
    }

    /// Rank of each frame among all frames, sorted by names.
    fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.frames.len() as u32).collect();
        let key = |index: &u32| {
            let frame = self.frames.get(*index);
            let text = |id: TextId| self.texts.get(id);
            (
                text(frame.mapping),
                text(frame.function),
                text(frame.file),
                frame.line,
                frame.address,
                frame.start_line,
                *index,
            )
        };
        order.sort_unstable_by(|left, right| key(left).cmp(&key(right)));
        let mut ranks = vec![0; order.len()];
        for (rank, index) in order.iter().enumerate() {
            ranks[*index as usize] = rank as u32;
        }
        ranks
    }
}

#[derive(Default)]
pub(crate) struct SeriesSet(BTreeMap<SeriesId, Labels>);

impl SeriesSet {
    /// Adds all series of a file.
    pub(crate) fn read(&mut self, input: &mut Input) -> Result<(), StoreError> {
        while let Some(batch) = input.next()? {
            let ids = schema::integers(&batch, SERIES).map_err(|error| input.damaged(&error))?;
            let (maps, keys, values) = schema::maps(&batch, LABELS).map_err(|error| input.damaged(&error))?;
            let offsets = maps.value_offsets();
            for (row, id) in ids.iter().enumerate() {
                self.0.entry(SeriesId(*id)).or_insert_with(|| {
                    Labels::from_pairs(
                        (offsets[row] as usize..offsets[row + 1] as usize)
                            .filter(|at| values.is_valid(*at))
                            .map(|at| (keys.value(at), values.value(at))),
                    )
                });
            }
        }
        Ok(())
    }

    pub(crate) fn labels(&self) -> &BTreeMap<SeriesId, Labels> {
        &self.0
    }

    /// Writes the series to a file; `None` when there are none.
    pub(crate) fn write(
        &self,
        target: Target<'_>,
        name: &str,
        effort: Effort,
        faults: &Faults,
    ) -> Result<Option<NewFile>, StoreError> {
        let (Some((first, _)), Some((last, _))) = (self.0.first_key_value(), self.0.last_key_value()) else {
            return Ok(None);
        };
        let mut output = Output::create(target, name, effort, faults)?;
        let texts = SharedTexts::default();
        let columns: Vec<usize> = (PARTITION_COLUMNS..Table::Series.schema().fields().len()).collect();
        let shared = Shared {
            tenant: target.tenant,
            day: target.day,
            texts: &texts,
            projection: Some(&columns),
        };
        let all: Vec<(SeriesId, &Labels)> = self.0.iter().map(|(id, labels)| (*id, labels)).collect();
        for chunk in rows::series_chunks(&all, BATCH_SERIES) {
            let batch = rows::series_batch(shared, chunk).map_err(|error| StoreError::Parquet {
                path: output.path().to_owned(),
                reason: error.to_string(),
            })?;
            output.write(&batch)?;
        }
        let stats = FileStats {
            rows: all.len() as u64,
            series: Some(Bounds::new(*first, *last)),
            ..FileStats::default()
        };
        output.finish(stats).map(Some)
    }
}
