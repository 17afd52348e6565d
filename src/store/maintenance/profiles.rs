//! Rows of the profiles table of many sorted files as one sorted sequence of batches.
//!
//! Few rows, many columns: cursors choose which row comes next, and the rows are gathered column by column.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::interleave_record_batch;
use arrow::datatypes::{Int32Type, Int64Type, TimestampMicrosecondType};

use crate::store::StoreError;
use crate::store::maintenance::input::Input;

/// Rows of a batch that goes out.
const BATCH_ROWS: usize = 8 << 10;

/// A row as the receiver decides on it.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// Profile type.
    pub kind: &'a str,
    /// Series.
    pub series: i64,
    /// Microseconds since 1970.
    pub time: i64,
}

/// Merges `inputs`. `choose` names the output of a row, `None` for a row that is left out; `receive` gets batches by output.
pub fn merge<O: Copy + PartialEq>(
    inputs: Vec<Input>,
    mut choose: impl FnMut(Row<'_>) -> Option<O>,
    mut receive: impl FnMut(O, RecordBatch) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut cursors = Vec::with_capacity(inputs.len());
    let mut batches: Vec<Arc<RecordBatch>> = Vec::new();
    for input in inputs {
        let mut cursor = Cursor {
            input,
            batch: None,
            slot: 0,
            row: 0,
        };
        if cursor.load(&mut batches)? {
            cursors.push(cursor);
        }
    }
    let mut gathered: Vec<(O, Vec<(usize, usize)>)> = Vec::new();
    let mut count = 0;
    while let Some(first) = (0..cursors.len()).min_by(|left, right| cursors[*left].key().cmp(&cursors[*right].key())) {
        let cursor = &mut cursors[first];
        if let Some(output) = choose(cursor.key().into()) {
            let place = (cursor.slot, cursor.row);
            match gathered.iter_mut().find(|(other, _)| *other == output) {
                Some((_, rows)) => rows.push(place),
                None => gathered.push((output, vec![place])),
            }
            count += 1;
        }
        if !cursor.advance(&mut batches)? {
            cursors.swap_remove(first);
        }
        if count >= BATCH_ROWS || batches.len() > 4 * cursors.len() + 16 {
            flush(&mut gathered, &batches, &mut receive)?;
            count = 0;
            // Only the batches that cursors stand in are still needed.
            batches = cursors
                .iter_mut()
                .enumerate()
                .filter_map(|(slot, cursor)| {
                    cursor.slot = slot;
                    cursor.batch.clone()
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

struct Cursor {
    input: Input,
    batch: Option<Arc<RecordBatch>>,
    /// Where the batch stands among the batches in use.
    slot: usize,
    row: usize,
}

impl<'a> From<(&'a str, i64, i64)> for Row<'a> {
    fn from((kind, series, time): (&'a str, i64, i64)) -> Self {
        Self { kind, series, time }
    }
}

impl Cursor {
    fn load(&mut self, batches: &mut Vec<Arc<RecordBatch>>) -> Result<bool, StoreError> {
        loop {
            match self.input.next()? {
                None => {
                    self.batch = None;
                    return Ok(false);
                }
                Some(batch) if batch.num_rows() == 0 => {}
                Some(batch) => {
                    let batch = Arc::new(batch);
                    self.slot = batches.len();
                    self.row = 0;
                    batches.push(batch.clone());
                    self.batch = Some(batch);
                    return Ok(true);
                }
            }
        }
    }

    fn advance(&mut self, batches: &mut Vec<Arc<RecordBatch>>) -> Result<bool, StoreError> {
        self.row += 1;
        match &self.batch {
            Some(batch) if self.row < batch.num_rows() => Ok(true),
            _ => self.load(batches),
        }
    }

    fn key(&self) -> (&str, i64, i64) {
        let Some(batch) = &self.batch else {
            return ("", 0, 0);
        };
        let kinds = batch.column(2).as_dictionary::<Int32Type>();
        let kind = kinds
            .values()
            .as_string::<i32>()
            .value(kinds.keys().value(self.row).max(0) as usize);
        let series = batch.column(1).as_primitive::<Int64Type>().value(self.row);
        let time = batch
            .column(0)
            .as_primitive::<TimestampMicrosecondType>()
            .value(self.row);
        (kind, series, time)
    }
}
