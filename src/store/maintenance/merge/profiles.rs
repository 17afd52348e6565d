//! Merges rows of the profiles table from many sorted files into one sorted sequence of batches.
//!
//! Cursors choose the next row. The chosen rows are gathered column by column, because the table has few rows and many
//! columns.

use std::sync::Arc;

use arrow::array::{AsArray, DictionaryArray, RecordBatch};
use arrow::buffer::ScalarBuffer;
use arrow::compute::interleave_record_batch;
use arrow::datatypes::Int32Type;
use arrow::error::ArrowError;

use crate::store::common::error::StoreError;
use crate::store::common::schema;
use crate::store::common::schema::column::{SERIES, TIME};
use crate::store::maintenance::merge::input;
use crate::store::maintenance::merge::input::Input;
use alluvium_profile::SeriesId;

/// Number of rows in an output batch.
const BATCH_ROWS: usize = 8 << 10;

/// The fields that determine the order of rows, and the output to which a row belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row<'a> {
    /// Text of the profile type.
    pub(crate) profile_type: &'a str,
    pub(crate) series: SeriesId,
    /// Microseconds since 1970.
    pub(crate) time: i64,
}

/// Merges `inputs`. `choose` returns the key of the output to which a row belongs, or `None` to leave the row out.
/// `receive` is called with the key of an output and a batch of its rows.
pub(crate) fn merge<O: Copy + PartialEq>(
    inputs: Vec<Input>,
    mut choose: impl FnMut(Row<'_>) -> Option<O>,
    mut receive: impl FnMut(O, RecordBatch) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut cursors = Vec::with_capacity(inputs.len());
    let mut batches: Vec<Arc<RecordBatch>> = Vec::new();
    for input in inputs {
        let mut cursor = Cursor {
            input,
            rows: None,
            slot: 0,
            row: 0,
        };
        if cursor.load(&mut batches)? {
            cursors.push(cursor);
        }
    }
    let mut gathered: Vec<(O, Vec<(usize, usize)>)> = Vec::new();
    let mut count = 0;
    while let Some(first) = (0..cursors.len()).min_by(|left, right| cursors[*left].row().cmp(&cursors[*right].row())) {
        let cursor = &mut cursors[first];
        if let Some(output) = cursor.row().and_then(&mut choose) {
            let row = (cursor.slot, cursor.row);
            match gathered.iter_mut().find(|(other, _)| *other == output) {
                Some((_, rows)) => rows.push(row),
                None => gathered.push((output, vec![row])),
            }
            count += 1;
        }
        if !cursor.advance(&mut batches)? {
            cursors.swap_remove(first);
        }
        if count >= BATCH_ROWS || batches.len() > 4 * cursors.len() + 16 {
            flush(&mut gathered, &batches, &mut receive)?;
            count = 0;
            // Only the current batch of each cursor is still needed.
            batches = cursors
                .iter_mut()
                .enumerate()
                .filter_map(|(slot, cursor)| {
                    cursor.slot = slot;
                    cursor.rows.as_ref().map(|rows| rows.batch.clone())
                })
                .collect();
        }
    }
    flush(&mut gathered, &batches, &mut receive)
}

fn flush<O: Copy>(
    gathered: &mut Vec<(O, Vec<(usize, usize)>)>,
    batches: &[Arc<RecordBatch>],
    receive: &mut impl FnMut(O, RecordBatch) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let all: Vec<&RecordBatch> = batches.iter().map(AsRef::as_ref).collect();
    for (output, rows) in gathered.drain(..) {
        let batch = interleave_record_batch(&all, &rows).map_err(|error| StoreError::Parquet {
            path: "profiles".into(),
            reason: error.to_string(),
        })?;
        receive(output, batch)?;
    }
    Ok(())
}

/// A batch, and the columns of the fields in [`Row`].
struct Rows {
    batch: Arc<RecordBatch>,
    types: DictionaryArray<Int32Type>,
    series: ScalarBuffer<i64>,
    times: ScalarBuffer<i64>,
}

impl Rows {
    fn new(batch: RecordBatch) -> Result<Self, ArrowError> {
        Ok(Self {
            types: input::types(&batch)?.clone(),
            series: schema::integers(&batch, SERIES)?.clone(),
            times: schema::times(&batch, TIME)?.clone(),
            batch: Arc::new(batch),
        })
    }
}

struct Cursor {
    input: Input,
    rows: Option<Rows>,
    /// Index of the batch among the batches in use.
    slot: usize,
    row: usize,
}

impl Cursor {
    fn load(&mut self, batches: &mut Vec<Arc<RecordBatch>>) -> Result<bool, StoreError> {
        loop {
            match self.input.next()? {
                None => {
                    self.rows = None;
                    return Ok(false);
                }
                Some(batch) if batch.num_rows() == 0 => {}
                Some(batch) => {
                    let rows = Rows::new(batch).map_err(|error| self.input.failed(&error))?;
                    self.slot = batches.len();
                    self.row = 0;
                    batches.push(rows.batch.clone());
                    self.rows = Some(rows);
                    return Ok(true);
                }
            }
        }
    }

    fn advance(&mut self, batches: &mut Vec<Arc<RecordBatch>>) -> Result<bool, StoreError> {
        self.row += 1;
        match &self.rows {
            Some(rows) if self.row < rows.batch.num_rows() => Ok(true),
            _ => self.load(batches),
        }
    }

    /// Returns the current row; `None` at the end.
    fn row(&self) -> Option<Row<'_>> {
        let rows = self.rows.as_ref()?;
        let names = rows.types.values().as_string::<i32>();
        Some(Row {
            profile_type: rows.types.key(self.row).map_or("", |key| names.value(key)),
            series: SeriesId(rows.series[self.row]),
            time: rows.times[self.row],
        })
    }
}
