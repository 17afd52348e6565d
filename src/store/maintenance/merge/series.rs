//! Merges the series of many files. Each series is written once, in the order of the ids.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use arrow::array::{Array, RecordBatch};
use arrow::error::ArrowError;

use crate::store::common::error::StoreError;
use crate::store::common::fault::Faults;
use crate::store::common::schema;
use crate::store::common::schema::column::{LABELS, SERIES};
use crate::store::common::schema::{PARTITION_COLUMNS, Table};
use crate::store::flush::files::{Effort, Output, Target};
use crate::store::head::SharedTexts;
use crate::store::head::rows::{self, Shared};
use crate::store::maintenance::merge::input::Input;
use crate::store::tables::delta::NewFile;
use crate::store::tables::stats::{Bounds, FileStats};
use alluvium_profile::{Labels, SeriesId};

/// Number of series in an output batch.
const BATCH_SERIES: usize = 4 << 10;

/// Passes the series of a file to `visit`, one by one.
pub(crate) fn each_series(input: &mut Input, mut visit: impl FnMut(SeriesId, Labels)) -> Result<(), StoreError> {
    while let Some(batch) = input.next()? {
        let ids = series_ids(&batch).map_err(|error| input.failed(&error))?;
        for (row, id) in ids.into_iter().enumerate() {
            visit(id, labels_of(&batch, row).map_err(|error| input.failed(&error))?);
        }
    }
    Ok(())
}

/// Merges series by their ids, and returns each series once. Only one batch of each input is in memory, however many
/// series there are.
pub(crate) struct SeriesMerge {
    sources: Vec<SeriesSource>,
    /// For each source that is not at its end: the id of its next series, and the index of the source. The smallest id
    /// comes first.
    next: BinaryHeap<Reverse<(SeriesId, usize)>>,
}

/// An input file of a merge of series.
struct SeriesSource {
    input: Input,
    batch: Option<RecordBatch>,
    ids: Vec<SeriesId>,
    row: usize,
}

impl SeriesMerge {
    /// Starts to read the files.
    pub(crate) fn new(inputs: Vec<Input>) -> Result<Self, StoreError> {
        let mut merge = Self {
            sources: Vec::new(),
            next: BinaryHeap::new(),
        };
        for input in inputs {
            let mut source = SeriesSource {
                input,
                batch: None,
                ids: Vec::new(),
                row: 0,
            };
            if let Some(id) = source.advance()? {
                merge.next.push(Reverse((id, merge.sources.len())));
            }
            merge.sources.push(source);
        }
        Ok(merge)
    }

    /// Returns the next batch of series, which is empty at the end.
    pub(crate) fn batch(&mut self) -> Result<Vec<(SeriesId, Labels)>, StoreError> {
        let mut batch: Vec<(SeriesId, Labels)> = Vec::new();
        while let Some(Reverse((id, index))) = self.next.peek().copied() {
            let is_known = batch.last().is_some_and(|(last, _)| *last == id);
            if batch.len() >= BATCH_SERIES && !is_known {
                break;
            }
            self.next.pop();
            let source = &mut self.sources[index];
            if !is_known {
                batch.push((id, source.labels()?));
            }
            if let Some(following) = source.advance()? {
                if following < id {
                    return Err(source
                        .input
                        .failed(&"its series are not in the order that its metadata names"));
                }
                self.next.push(Reverse((following, index)));
            }
        }
        Ok(batch)
    }

    /// Estimates the memory of the batches, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let bytes = |source: &SeriesSource| source.batch.as_ref().map_or(0, RecordBatch::get_array_memory_size);
        self.sources.iter().map(bytes).sum()
    }

    /// Writes the series to a file. Returns `None` if there are no series. `throttle` is called after each batch with
    /// the memory in use, in bytes.
    pub(crate) fn write(
        mut self,
        target: Target<'_>,
        name: &str,
        (effort, faults): (Effort, &Faults),
        memory_bytes: usize,
        throttle: &mut dyn FnMut(usize) -> Result<(), StoreError>,
    ) -> Result<Option<NewFile>, StoreError> {
        let mut batch = self.batch()?;
        let Some((first, _)) = batch.first() else {
            return Ok(None);
        };
        let mut bounds = Bounds::new(*first, *first);
        let mut output = Output::create(target, name, effort, faults)?;
        let texts = SharedTexts::default();
        let columns: Vec<usize> = (PARTITION_COLUMNS..Table::Series.schema().fields().len()).collect();
        let shared = Shared {
            tenant: target.tenant,
            day: target.day,
            texts: &texts,
            projection: Some(&columns),
        };
        let mut count = 0;
        while let Some((last, _)) = batch.last() {
            bounds.max = *last;
            count += batch.len() as u64;
            let rows: Vec<(SeriesId, &Labels)> = batch.iter().map(|(id, labels)| (*id, labels)).collect();
            for chunk in rows::series_chunks(&rows, BATCH_SERIES) {
                let batch = rows::series_batch(shared, chunk).map_err(|error| StoreError::Parquet {
                    path: output.path().to_owned(),
                    reason: error.to_string(),
                })?;
                output.write(&batch)?;
            }
            let held_bytes = output.held_bytes();
            throttle(self.bytes() + held_bytes)?;
            if held_bytes > memory_bytes / 2 {
                output.end_group()?;
            }
            batch = self.batch()?;
        }
        let stats = FileStats {
            rows: count,
            series: Some(bounds),
            ..FileStats::default()
        };
        output.finish(stats).map(Some)
    }
}

impl SeriesSource {
    /// Advances to the next series and returns its id.
    fn advance(&mut self) -> Result<Option<SeriesId>, StoreError> {
        self.row += 1;
        while self.row >= self.ids.len() {
            self.batch = self.input.next()?;
            let Some(batch) = &self.batch else {
                self.ids = Vec::new();
                return Ok(None);
            };
            self.ids = series_ids(batch).map_err(|error| self.input.failed(&error))?;
            self.row = 0;
        }
        Ok(Some(self.ids[self.row]))
    }

    fn labels(&self) -> Result<Labels, StoreError> {
        let Some(batch) = &self.batch else {
            return Ok(Labels::default());
        };
        labels_of(batch, self.row).map_err(|error| self.input.failed(&error))
    }
}

fn series_ids(batch: &RecordBatch) -> Result<Vec<SeriesId>, ArrowError> {
    let ids = schema::integers(batch, SERIES)?;
    Ok(ids.iter().map(|id| SeriesId(*id)).collect())
}

fn labels_of(batch: &RecordBatch, row: usize) -> Result<Labels, ArrowError> {
    let (maps, keys, values) = schema::maps(batch, LABELS)?;
    let offsets = maps.value_offsets();
    let pairs = (offsets[row] as usize..offsets[row + 1] as usize).filter(|index| values.is_valid(*index));
    Ok(Labels::from_pairs(
        pairs.map(|index| (keys.value(index), values.value(index))),
    ))
}
