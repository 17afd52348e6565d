//! Reads Parquet files as sorted inputs of a rewrite, in small batches. Verifies each file, and sorts its rows if
//! necessary.
//!
//! A rewrite computes new checksums for its output. If an input were damaged, the new checksums would match
//! the damaged rows. Therefore [`VerifiedFile`] compares the bytes that are read with the checksums in the table's log.
//!
//! The metadata of a file names its order ([`ORDER_KEY`], or the sorting columns of its row groups). If only the stacks
//! of samples are in another order, the samples are sorted one series at a time. A file of unknown order, for example
//! of another program, is read as a whole and sorted in memory.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{AsArray, DictionaryArray, RecordBatch, StringArray};
use arrow::compute::{SortColumn, concat_batches, lexsort_to_indices, take_record_batch};
use arrow::datatypes::{DataType, FieldRef, Int32Type, Schema, SchemaRef};
use arrow::error::ArrowError;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use crate::store::common::error::StoreError;
use crate::store::common::schema;
use crate::store::common::schema::Table;
use crate::store::common::schema::column::{PROFILE_TYPE, SERIES, START_LINES};
use crate::store::tables::checksums::VerifiedFile;
use crate::store::tables::root::Root;
use crate::store::tables::snapshot::FileEntry;
use alluvium_profile::SeriesId;

/// Key in a file's metadata that names the order of the rows.
pub(crate) const ORDER_KEY: &str = "alluvium.order";
/// Rows in a batch of an input. The batches are small, because a few dozen inputs are open at the same time.
const BATCH_ROWS: usize = 8 << 10;
/// Rows in a batch of stacks. A row takes some kilobytes, at most a megabyte.
const STACK_ROWS: usize = 256;
/// Rows in a batch of series. A row takes at most 90 KiB.
const SERIES_ROWS: usize = 1 << 10;

/// Batches of one file in the order of [`order`].
pub(crate) struct Input {
    path: PathBuf,
    batches: Batches,
}

enum Batches {
    Streamed(ParquetRecordBatchReader),
    BySeries(SeriesBatches),
    Sorted(Option<RecordBatch>),
}

/// Reads batches that are sorted by type and series. Returns one completely sorted batch for each type and series.
struct SeriesBatches {
    table: Table,
    reader: ParquetRecordBatchReader,
    /// Rows of the last batch that belong to the next series.
    rest: Option<RecordBatch>,
}

/// Name of the order of samples in files of the effort `flush::files::SETTLED`. Their stacks are not ordered by id.
const BY_SERIES: &str = "profile_type,series";

/// Returns the name of the order in which a table's files are written.
pub(crate) fn order(table: Table) -> &'static str {
    match table {
        Table::Samples => "profile_type,series,stack,time",
        Table::Profiles => "profile_type,series,time",
        Table::Stacks => "stack",
        Table::Series => "series",
    }
}

impl Input {
    /// Opens a file. The profile type of its rows is read as a dictionary.
    pub(crate) fn open(root: &Root, entry: &FileEntry) -> Result<Self, StoreError> {
        let table = entry.table;
        let path = root.name(&entry.path);
        let failed = |error: &dyn Display| StoreError::Damaged {
            path: path.clone(),
            reason: error.to_string(),
        };
        let file = root
            .open_file(&entry.path, entry.size)
            .map_err(StoreError::io("open", &path))?;
        let (file, metadata) = VerifiedFile::open(file, entry).map_err(|error| failed(&error))?;
        let metadata = prepare_metadata(metadata, table).map_err(|error| failed(&error))?;
        // Stacks are merged in memory, whatever their order.
        let claimed = order_of(metadata.metadata());
        let sorted = table == Table::Stacks || claimed.as_deref() == Some(order(table));
        let rows = match table {
            Table::Stacks => STACK_ROWS,
            Table::Series => SERIES_ROWS,
            _ => BATCH_ROWS,
        };
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
            .with_batch_size(rows)
            .build()
            .map_err(|error| failed(&error))?;
        let batches = match claimed.as_deref() {
            _ if sorted => Batches::Streamed(reader),
            Some(BY_SERIES) if table == Table::Samples => Batches::BySeries(SeriesBatches {
                table,
                reader,
                rest: None,
            }),
            _ => {
                let batches: Result<Vec<RecordBatch>, _> = reader.collect();
                let batches = batches.map_err(|error| failed(&error))?;
                Batches::Sorted(Some(sort(&batches, table).map_err(|error| failed(&error))?))
            }
        };
        Ok(Self { path, batches })
    }

    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>, StoreError> {
        let batch = match &mut self.batches {
            Batches::Streamed(reader) => reader.next().transpose(),
            Batches::BySeries(stretches) => stretches.next(),
            Batches::Sorted(batch) => Ok(batch.take()),
        };
        batch.map_err(|error| self.failed(&error))
    }

    /// Returns the error for a file with wrong content, or without the columns of the layout.
    pub(crate) fn failed(&self, error: &dyn Display) -> StoreError {
        StoreError::Damaged {
            path: self.path.clone(),
            reason: error.to_string(),
        }
    }
}

/// Returns the profile types of a batch of samples or profiles.
pub(crate) fn types(batch: &RecordBatch) -> Result<&DictionaryArray<Int32Type>, ArrowError> {
    let column = batch.column_by_name(PROFILE_TYPE);
    let types = column.and_then(|column| column.as_dictionary_opt::<Int32Type>());
    types.ok_or_else(|| ArrowError::SchemaError("the profile types are not a dictionary".to_owned()))
}

impl SeriesBatches {
    fn next(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let mut parts: Vec<RecordBatch> = Vec::new();
        loop {
            let batch = match self.rest.take() {
                Some(batch) => batch,
                None => match self.reader.next() {
                    Some(batch) => batch?,
                    None => break,
                },
            };
            if batch.num_rows() == 0 {
                continue;
            }
            let keys = Keys::of(&batch)?;
            let first_key = keys.key(0);
            if let Some(first) = parts.first()
                && Keys::of(first)?.key(0) != first_key
            {
                self.rest = Some(batch);
                break;
            }
            let end = (1..batch.num_rows()).find(|row| keys.key(*row) != first_key);
            let Some(end) = end else {
                parts.push(batch);
                continue;
            };
            parts.push(batch.slice(0, end));
            self.rest = Some(batch.slice(end, batch.num_rows() - end));
            break;
        }
        if parts.is_empty() {
            return Ok(None);
        }
        sort(&parts, self.table).map(Some)
    }
}

/// Profile types and series of a batch of samples with the schema of [`read_schema`].
struct Keys<'a> {
    types: &'a DictionaryArray<Int32Type>,
    names: &'a StringArray,
    series: &'a [i64],
}

impl<'a> Keys<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Self, ArrowError> {
        let types = types(batch)?;
        Ok(Self {
            types,
            names: types.values().as_string::<i32>(),
            series: schema::integers(batch, SERIES)?,
        })
    }

    fn key(&self, row: usize) -> (&'a str, SeriesId) {
        let name = self.types.key(row).map_or("", |key| self.names.value(key));
        (name, SeriesId(self.series[row]))
    }
}

/// Returns the order that a file claims to have.
pub(crate) fn order_of(metadata: &ParquetMetaData) -> Option<String> {
    let file = metadata.file_metadata();
    if let Some(named) = file.key_value_metadata().and_then(|pairs| {
        let pair = pairs.iter().find(|pair| pair.key == ORDER_KEY)?;
        pair.value.clone()
    }) {
        return Some(named);
    }
    let columns = file.schema_descr().root_schema().get_fields();
    let mut order: Option<String> = None;
    for group in metadata.row_groups() {
        let names: Option<Vec<&str>> = group
            .sorting_columns()?
            .iter()
            .map(|column| columns.get(column.column_idx as usize).map(|field| field.name()))
            .collect();
        let names = names?.join(",");
        if order.as_ref().is_some_and(|before| *before != names) {
            return None;
        }
        order = Some(names);
    }
    order
}

/// Returns the metadata of a file, prepared for reading the columns of [`read_schema`]. Files of layout 1 lack one of
/// these columns.
fn prepare_metadata(metadata: Arc<ParquetMetaData>, table: Table) -> Result<ArrowReaderMetadata, ParquetError> {
    let arrow_metadata = ArrowReaderMetadata::try_new(metadata, ArrowReaderOptions::new())?;
    let expected = read_schema(table);
    let in_file = arrow_metadata.schema();
    let is_present = |field: &&FieldRef| field.name() != START_LINES || in_file.field_with_name(START_LINES).is_ok();
    let fields: Vec<FieldRef> = expected.fields().iter().filter(is_present).cloned().collect();
    let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(fields)));
    ArrowReaderMetadata::try_new(arrow_metadata.metadata().clone(), options)
}

/// Returns the table's schema without the partition columns, with the profile type as a dictionary.
fn read_schema(table: Table) -> SchemaRef {
    let schema = table.file_schema();
    let fields = schema.fields().iter().map(|field| {
        if field.name() != PROFILE_TYPE {
            return field.clone();
        }
        let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        Arc::new(field.as_ref().clone().with_data_type(dictionary))
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn sort(batches: &[RecordBatch], table: Table) -> Result<RecordBatch, ArrowError> {
    let all = concat_batches(&read_schema(table), batches)?;
    let columns: Vec<SortColumn> = order(table)
        .split(',')
        .filter_map(|name| all.column_by_name(name))
        .map(|values| SortColumn {
            values: values.clone(),
            options: None,
        })
        .collect();
    let indices = lexsort_to_indices(&columns, None)?;
    take_record_batch(&all, &indices)
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, DictionaryArray, Int64Array, TimestampMicrosecondArray, new_null_array};
    use parquet::arrow::ArrowWriter;

    use super::*;

    /// Builds a batch from rows of type, series, stack and time.
    fn batch(rows: &[(&str, i64, i64, i64)]) -> RecordBatch {
        let integers = |field: fn(&(&str, i64, i64, i64)) -> i64| -> Vec<i64> { rows.iter().map(field).collect() };
        let types: DictionaryArray<Int32Type> = rows.iter().map(|row| row.0).collect();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(TimestampMicrosecondArray::from(integers(|row| row.3)).with_timezone("UTC")),
            Arc::new(Int64Array::from(integers(|row| row.1))),
            Arc::new(types),
            Arc::new(Int64Array::from(integers(|row| row.2))),
            Arc::new(Int64Array::from(integers(|row| row.2 * 100 + row.3))),
            new_null_array(&DataType::Utf8, rows.len()),
            new_null_array(&DataType::Utf8, rows.len()),
        ];
        RecordBatch::try_new(read_schema(Table::Samples), columns).unwrap()
    }

    #[test]
    fn a_series_whose_stacks_stand_in_another_order_is_read_sorted_whatever_the_batches() {
        let mut rows = Vec::new();
        for (profile_type, series) in [("a", 1), ("a", 2), ("b", 1), ("b", 1 << 40)] {
            for stack in [9, 3, 7, 1] {
                rows.extend((0..stack).map(|time| (profile_type, series, stack, time)));
            }
        }
        let mut sorted = rows.clone();
        sorted.sort_unstable();
        for size in [1, 3, 8, 1000] {
            let mut bytes = Vec::new();
            let mut writer = ArrowWriter::try_new(&mut bytes, read_schema(Table::Samples), None).unwrap();
            writer.write(&batch(&rows)).unwrap();
            writer.close().unwrap();
            let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
            let mut stretches = SeriesBatches {
                table: Table::Samples,
                reader: reader.with_batch_size(size).build().unwrap(),
                rest: None,
            };
            let mut parts = Vec::new();
            while let Some(part) = stretches.next().unwrap() {
                parts.push(part);
            }
            assert_eq!(parts.len(), 4, "one batch per series and type");
            let read = concat_batches(&read_schema(Table::Samples), &parts).unwrap();
            assert_eq!(read, batch(&sorted), "batches of {size} rows");
        }
    }
}
