//! Parquet files as sorted inputs of a rewrite: opened, checked for their order, read in small batches.
//!
//! A file says its order in its metadata ([`ORDER_KEY`], or the sorting columns of its row groups). A file of another order, as another program
//! may have left it, is read whole and sorted in memory.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::{SortColumn, concat_batches, lexsort_to_indices, take_record_batch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::ParquetMetaData;

use crate::store::StoreError;
use crate::store::root::Root;
use crate::store::schema::Table;
use crate::store::snapshot::FileEntry;

/// Key of the file metadata that names the order of the rows.
pub const ORDER_KEY: &str = "alluvium.order";
/// Rows of a batch of an input: some dozens of inputs are open at once.
const BATCH_ROWS: usize = 8 << 10;
/// The same for stacks, whose rows are kilobytes.
const STACK_ROWS: usize = 256;

/// Batches of one file in the order of [`order`].
pub struct Input {
    path: PathBuf,
    batches: Batches,
}

enum Batches {
    Streamed(ParquetRecordBatchReader),
    Sorted(Option<RecordBatch>),
}

/// The name of the order in which a table's files are written.
pub fn order(table: Table) -> &'static str {
    match table {
        Table::Samples => "profile_type,series,stack,time",
        Table::Profiles => "profile_type,series,time",
        Table::Stacks => "stack",
        Table::Series => "series",
    }
}

impl Input {
    /// Opens a file; the profile type of its rows comes as a dictionary.
    pub fn open(root: &Root, entry: &FileEntry) -> Result<Self, StoreError> {
        let table = entry.table;
        let path = root.name(&entry.path);
        let failed = |reason: String| StoreError::Damaged {
            path: path.clone(),
            reason,
        };
        let file = root
            .open_file(&entry.path, entry.size)
            .map_err(StoreError::io("open", &path))?;
        let options = ArrowReaderOptions::new().with_schema(read_schema(table));
        let metadata = ArrowReaderMetadata::load(&file, options).map_err(|error| failed(error.to_string()))?;
        // Stacks are merged in memory, whatever their order.
        let sorted = table == Table::Stacks || order_of(metadata.metadata()).as_deref() == Some(order(table));
        let rows = match table {
            Table::Stacks => STACK_ROWS,
            _ => BATCH_ROWS,
        };
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
            .with_batch_size(rows)
            .build()
            .map_err(|error| failed(error.to_string()))?;
        let batches = match sorted {
            true => Batches::Streamed(reader),
            false => Batches::Sorted(Some(sort(reader, table).map_err(failed)?)),
        };
        Ok(Self { path, batches })
    }

    /// The next rows.
    pub fn next(&mut self) -> Result<Option<RecordBatch>, StoreError> {
        let batch = match &mut self.batches {
            Batches::Streamed(reader) => reader.next().transpose(),
            Batches::Sorted(batch) => Ok(batch.take()),
        };
        batch.map_err(|error| StoreError::Damaged {
            path: self.path.clone(),
            reason: error.to_string(),
        })
    }
}

/// The order that a file claims to have.
pub fn order_of(metadata: &ParquetMetaData) -> Option<String> {
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

/// The table's schema without the partition columns, the profile type as a dictionary.
fn read_schema(table: Table) -> SchemaRef {
    let schema = table.schema();
    let fields: Vec<Field> = schema
        .fields()
        .iter()
        .skip(2)
        .map(|field| match field.name().as_str() {
            "profile_type" => field.as_ref().clone().with_data_type(DataType::Dictionary(
                Box::new(DataType::Int32),
                Box::new(DataType::Utf8),
            )),
            _ => field.as_ref().clone(),
        })
        .collect();
    Arc::new(Schema::new(fields))
}

fn sort(reader: ParquetRecordBatchReader, table: Table) -> Result<RecordBatch, String> {
    let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let all = concat_batches(&read_schema(table), &batches).map_err(|error| error.to_string())?;
    let columns: Vec<SortColumn> = order(table)
        .split(',')
        .filter_map(|name| all.column_by_name(name))
        .map(|values| SortColumn {
            values: values.clone(),
            options: None,
        })
        .collect();
    let indices = lexsort_to_indices(&columns, None).map_err(|error| error.to_string())?;
    take_record_batch(&all, &indices).map_err(|error| error.to_string())
}
