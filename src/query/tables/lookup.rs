//! Adds to samples the columns of `flat` that come from series and stacks.
//!
//! In: batches of `samples`. Out: the same rows with labels and frames. The columns of distinct series and stacks are
//! built once for each query. A row then costs one hash lookup, and its text is a view of shared bytes.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int32Array, Int64Array, ListArray, MapBuilder, MapFieldNames, StringArray,
    StringBuilder, StringViewArray, StructArray, UInt32Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::MemoryReservation;
use futures::{StreamExt, TryStreamExt, stream};
use hashbrown::HashMap;
use tokio::sync::OnceCell;

use crate::query::common::error::QueryError;
use crate::query::common::stream::BatchStream;
use crate::query::decoded::context::Context;
use crate::query::decoded::stack_table::StackTable;
use crate::query::resources::runtime::Runtime;
use crate::query::scan::frame_columns;
use crate::query::scan::provider::RowMap;
use crate::query::stacks::sums;
use crate::store::common::schema;
use crate::store::common::schema::column::{SERIES, STACK};
use crate::store::tables::snapshot::ScanFilter;
use alluvium_profile::ids::Id;
use alluvium_profile::labels::SERVICE_NAME;
use alluvium_profile::{Labels, SeriesId, StackId, TimeSpan};

/// Size in bytes of one frame in a list, not counting the frame's texts: its numbers and offsets.
const ROW_BYTES: usize = 44;
/// Maximum size of the frames in one batch in bytes. A batch of a single row may have more.
const PART_BYTES: usize = 16 << 20;
/// Number of stacks whose frames are processed together.
const STACKS_PER_BATCH: usize = 4096;
/// Maximum size of a column in bytes. The offsets in a column are signed 32-bit integers.
const MAX_COLUMN_BYTES: usize = i32::MAX as usize;

/// Labels of distinct series as columns, built once for each query.
#[derive(Debug)]
pub(crate) struct SeriesColumns {
    pub(crate) ids: Vec<SeriesId>,
    pub(crate) service_name: ArrayRef,
    pub(crate) labels: ArrayRef,
    index: HashMap<SeriesId, u32>,
}

/// Leaf frames, and optionally all frames, of distinct stacks as columns.
#[derive(Debug)]
pub(crate) struct StackColumns {
    function: ArrayRef,
    file: ArrayRef,
    line: ArrayRef,
    mapping: ArrayRef,
    frames: Option<ArrayRef>,
    /// Size of the frames of each stack in bytes; empty for [`Frames::Leaf`].
    frame_bytes: Vec<usize>,
    index: HashMap<StackId, u32>,
    _memory: MemoryReservation,
}

/// The columns of frames that [`StackColumns`] contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frames {
    /// The leaf's function, file, line and binary.
    Leaf,
    /// The leaf's columns, and the list of all frames.
    All,
}

/// Adds columns of series and stacks to batches of samples.
pub(crate) struct AddedColumns(Arc<Inner>);

struct Inner {
    context: Arc<Context>,
    filter: ScanFilter,
    time: TimeSpan,
    series: Option<SeriesColumns>,
    output: SchemaRef,
    /// The columns of stacks to add, if any.
    frames: Option<Frames>,
    /// The columns of stacks. The first partition that runs computes them, and the other partitions wait.
    stacks: OnceCell<StackColumns>,
}

impl SeriesColumns {
    pub(crate) fn new(all: &HashMap<SeriesId, Labels>) -> Self {
        let mut ids: Vec<SeriesId> = all.keys().copied().collect();
        ids.sort_unstable();
        let names = MapFieldNames {
            entry: "key_value".to_owned(),
            key: "key".to_owned(),
            value: "value".to_owned(),
        };
        let mut labels = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
        let mut services = Vec::with_capacity(ids.len());
        for id in &ids {
            let series_labels = all.get(id).cloned().unwrap_or_default();
            for (name, value) in series_labels.iter() {
                labels.keys().append_value(name);
                labels.values().append_value(value);
            }
            // This fails only if the numbers of keys and values differ, which cannot happen here.
            let _ = labels.append(true);
            services.push(series_labels.get(SERVICE_NAME).map(str::to_owned));
        }
        let index = ids.iter().zip(0..).map(|(id, row)| (*id, row)).collect();
        Self {
            ids,
            service_name: Arc::new(StringViewArray::from_iter(services)),
            labels: Arc::new(labels.finish()),
            index,
        }
    }
}

impl StackColumns {
    /// Builds the columns of the stacks `ids` and charges their memory to the query. A stack that is missing in the
    /// table has a null function and no frames.
    pub(crate) fn new(
        runtime: &Runtime,
        table: &StackTable,
        ids: &[StackId],
        frames_to_add: Frames,
    ) -> Result<Self, QueryError> {
        let memory = runtime.reservation("columns of stacks");
        memory.try_grow(table.all_text_bytes() + (table.frame_count() + ids.len()) * ROW_BYTES)?;
        let frame_bytes: Vec<usize> = match frames_to_add {
            Frames::Leaf => Vec::new(),
            Frames::All => ids.iter().map(|id| bytes_of(table, *id)).collect(),
        };
        let bytes = frame_bytes.iter().sum();
        memory.try_grow(bytes)?;
        if bytes > MAX_COLUMN_BYTES {
            return Err(QueryError::Limit(format!(
                "the frames of the stacks need {} MiB, more than {} MiB: select a shorter time range or fewer stacks",
                bytes >> 20,
                MAX_COLUMN_BYTES >> 20
            )));
        }
        // The texts of each distinct frame are in memory once, and stacks refer to them.
        let count = table.frame_count() as u32;
        let texts = |text: fn(&StackTable, u32) -> &str| -> ArrayRef {
            Arc::new(StringViewArray::from_iter_values(
                (0..count).map(|index| text(table, index)),
            ))
        };
        let names = texts(|table, index| table.name(index));
        let files = texts(|table, index| table.frame(index).file);
        let mappings = texts(|table, index| table.frame(index).mapping);
        let lines: Int64Array = (0..count).map(|index| Some(table.frame(index).line)).collect();
        let leaves: UInt32Array = ids
            .iter()
            .map(|id| table.stack(*id).and_then(|frames| frames.first().copied()))
            .collect();
        Ok(Self {
            function: take(&names, &leaves, None)?,
            file: take(&files, &leaves, None)?,
            line: take(&lines, &leaves, None)?,
            mapping: take(&mappings, &leaves, None)?,
            frames: match frames_to_add {
                Frames::All => Some(frames(table, ids)?),
                Frames::Leaf => None,
            },
            frame_bytes,
            index: ids.iter().zip(0..).map(|(id, row)| (*id, row)).collect(),
            _memory: memory,
        })
    }

    /// Returns the columns as a batch with one row for each stack.
    pub(crate) fn batch(&self) -> Result<RecordBatch, QueryError> {
        let mut fields = vec![
            Field::new("function", DataType::Utf8View, true),
            Field::new("file", DataType::Utf8View, true),
            Field::new("line", DataType::Int64, true),
            Field::new("mapping", DataType::Utf8View, true),
        ];
        let mut columns = vec![
            self.function.clone(),
            self.file.clone(),
            self.line.clone(),
            self.mapping.clone(),
        ];
        if let Some(frames) = &self.frames {
            fields.push(Field::new("frames", frames.data_type().clone(), true));
            columns.push(frames.clone());
        }
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }
}

impl AddedColumns {
    pub(crate) fn new(
        context: Arc<Context>,
        filter: ScanFilter,
        time: TimeSpan,
        series: Option<SeriesColumns>,
        output: SchemaRef,
        frames: Option<Frames>,
    ) -> Self {
        Self(Arc::new(Inner {
            context,
            filter,
            time,
            series,
            output,
            frames,
            stacks: OnceCell::new(),
        }))
    }
}

impl std::fmt::Debug for AddedColumns {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Widen")
    }
}

impl RowMap for AddedColumns {
    fn name(&self) -> &'static str {
        "Widen"
    }

    fn apply(&self, input: BatchStream) -> BatchStream {
        let inner = self.0.clone();
        let rows = input.then(move |batch| {
            let inner = inner.clone();
            async move {
                let batch = batch?;
                if let Some(frames) = inner.frames {
                    inner.stacks.get_or_try_init(|| inner.load(frames)).await?;
                }
                let parts = inner.parts(&batch);
                Ok::<_, QueryError>(stream::iter(parts).map(move |part| inner.add_columns(&part)))
            }
        });
        rows.try_flatten().boxed()
    }
}

impl Inner {
    async fn load(&self, frames: Frames) -> Result<StackColumns, QueryError> {
        let stack_sums = sums::sorted_by_stack(&self.context, &self.filter).await?;
        let ids: Vec<StackId> = stack_sums.values.iter().map(|(stack, _)| *stack).collect();
        let loaded = self.context.frames(self.time, ids.clone()).await?;
        let columns = StackColumns::new(&self.context.runtime, &loaded.table.read(), &ids, frames)?;
        Ok(columns)
    }

    /// Splits a batch so that the frames of no part have more than [`PART_BYTES`] bytes. A part of a single row may
    /// have more.
    fn parts(&self, batch: &RecordBatch) -> Vec<RecordBatch> {
        let columns = self.stacks.get().filter(|columns| !columns.frame_bytes.is_empty());
        let Some((columns, rows)) =
            columns.and_then(|columns| Some((columns, rows(batch, STACK, Some(&columns.index))?)))
        else {
            return vec![batch.clone()];
        };
        let bytes = |index: Option<u32>| {
            index
                .and_then(|index| columns.frame_bytes.get(index as usize))
                .map_or(0, |bytes| *bytes)
        };
        let (mut parts, mut start, mut size) = (Vec::new(), 0, 0);
        for (row, index) in rows.iter().enumerate() {
            let row_bytes = bytes(index);
            if row > start && size + row_bytes > PART_BYTES {
                parts.push(batch.slice(start, row - start));
                (start, size) = (row, 0);
            }
            size += row_bytes;
        }
        parts.push(batch.slice(start, batch.num_rows() - start));
        parts
    }

    fn add_columns(&self, batch: &RecordBatch) -> Result<RecordBatch, QueryError> {
        let series = rows(batch, SERIES, self.series.as_ref().map(|columns| &columns.index));
        let stack = rows(batch, STACK, self.stacks.get().map(|columns| &columns.index));
        let mut columns = Vec::with_capacity(self.output.fields().len());
        for field in self.output.fields() {
            let name = field.name().as_str();
            if let Some(column) = batch.column_by_name(name) {
                columns.push(column.clone());
                continue;
            }
            let of_series = self.series.as_ref().zip(series.as_ref()).and_then(|(columns, rows)| {
                let column = match name {
                    "service_name" => &columns.service_name,
                    "labels" => &columns.labels,
                    _ => return None,
                };
                Some((column, rows))
            });
            let of_stack = self.stacks.get().zip(stack.as_ref()).and_then(|(columns, rows)| {
                let column = match name {
                    "function" => &columns.function,
                    "file" => &columns.file,
                    "line" => &columns.line,
                    "mapping" => &columns.mapping,
                    "frames" => columns.frames.as_ref()?,
                    _ => return None,
                };
                Some((column, rows))
            });
            let Some((column, rows)) = of_series.or(of_stack) else {
                return Err(QueryError::internal(format!("column `{name}` of flat has no source")));
            };
            columns.push(take(column, rows, None)?);
        }
        Ok(RecordBatch::try_new(self.output.clone(), columns)?)
    }
}

/// Splits the ids into parts of at most [`STACKS_PER_BATCH`] stacks and [`PART_BYTES`] of frames.
pub(crate) fn pieces<'a>(table: &StackTable, ids: &'a [StackId]) -> Vec<&'a [StackId]> {
    let (mut pieces, mut start, mut size) = (Vec::new(), 0, 0);
    for (index, id) in ids.iter().enumerate() {
        let stack_bytes = bytes_of(table, *id);
        if index > start && (size + stack_bytes > PART_BYTES || index - start >= STACKS_PER_BATCH) {
            pieces.push(&ids[start..index]);
            (start, size) = (index, 0);
        }
        size += stack_bytes;
    }
    pieces.push(&ids[start..]);
    pieces
}

/// Returns the size of the frames of a stack as a list, in bytes.
fn bytes_of(table: &StackTable, id: StackId) -> usize {
    table.stack(id).map_or(0, <[u32]>::len) * ROW_BYTES + table.text_bytes(id)
}

/// Returns for each row the index of its id in the columns of distinct ids.
fn rows<T: Id>(batch: &RecordBatch, name: &str, index: Option<&HashMap<T, u32>>) -> Option<UInt32Array> {
    let ids = batch.column_by_name(name)?.as_primitive_opt::<Int64Type>()?.values();
    let index = index?;
    Some(ids.iter().map(|id| index.get(&T::from_bits(*id)).copied()).collect())
}

/// Returns all frames of the stacks as the list column of `flat`.
fn frames(table: &StackTable, ids: &[StackId]) -> Result<ArrayRef, QueryError> {
    let stacks: Vec<&[u32]> = ids.iter().map(|id| table.stack(*id).unwrap_or_default()).collect();
    let offsets = OffsetBuffer::<i32>::from_lengths(stacks.iter().map(|frames| frames.len()));
    let all = || {
        stacks
            .iter()
            .flat_map(|frames| frames.iter().map(|index| table.frame(*index)))
    };
    let text = |values: Vec<&str>| -> ArrayRef { Arc::new(StringArray::from_iter_values(values)) };
    let columns: Vec<ArrayRef> = vec![
        text(all().map(|frame| frame.function).collect()),
        text(all().map(|frame| frame.file).collect()),
        Arc::new(Int64Array::from_iter_values(
            all().map(|frame| frame.mapped.map_or(frame.line, schema::in_file)),
        )),
        text(all().map(|frame| frame.mapping).collect()),
        Arc::new(Int64Array::from_iter_values(all().map(|frame| frame.address))),
        text(all().map(|frame| frame.build_id).collect()),
        Arc::new(all().map(|frame| Some(frame.inlined)).collect::<BooleanArray>()),
        Arc::new(Int32Array::from_iter_values(all().map(|frame| frame.start_line))),
    ];
    let values = StructArray::try_new(frame_columns::flat_frame_fields(), columns, None)?;
    Ok(Arc::new(ListArray::try_new(
        frame_columns::flat_frame(),
        offsets,
        Arc::new(values),
        None,
    )?))
}
