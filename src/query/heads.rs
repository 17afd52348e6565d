//! Rows that are in no file yet: those of the heads.
//!
//! In: [`Snapshot`], [`ScanFilter`], column names. Out: batches, or a stream of them, that hold exactly the rows asked for.

use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Date32Type, Int64Type, SchemaRef, TimestampMicrosecondType};
use arrow::record_batch::RecordBatch;
use futures::StreamExt;
use futures::stream;

use crate::query::QueryError;
use crate::query::scan::{BatchStream, days_of, indices_of};
use crate::store::schema::Table;
use crate::store::snapshot::{HeadScan, ScanFilter, Snapshot};

/// The rows of the heads, filtered to the letter.
pub(crate) fn head_stream(
    snapshot: &Arc<Snapshot>,
    table: Table,
    filter: &ScanFilter,
    columns: &[&str],
) -> Result<BatchStream, QueryError> {
    // Faults of the arguments are found here and not in the stream.
    indices_of(&table.schema(), columns)?;
    let columns: Arc<[String]> = columns.iter().map(ToString::to_string).collect();
    let filter = filter.clone();
    let batches = stream::iter(snapshot.heads.clone()).flat_map(move |head| {
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        stream::iter(one_head(head.as_ref(), table, &filter, &filter, &names))
    });
    Ok(batches.boxed())
}

/// As [`head_stream`] for one head.
pub(crate) fn one_head_stream(
    head: Arc<dyn HeadScan>,
    table: Table,
    filter: &ScanFilter,
    columns: &[&str],
) -> Result<BatchStream, QueryError> {
    let snapshot = Snapshot {
        heads: vec![head],
        ..Snapshot::default()
    };
    head_stream(&Arc::new(snapshot), table, filter, columns)
}

/// Rows of the heads: `asked` is what they may leave out, `checked` what is checked here row by row.
pub(crate) fn head_batches(
    snapshot: &Snapshot,
    table: Table,
    asked: &ScanFilter,
    checked: &ScanFilter,
    columns: &[&str],
) -> Result<Vec<RecordBatch>, QueryError> {
    let mut batches = Vec::new();
    for head in &snapshot.heads {
        for batch in one_head(head.as_ref(), table, asked, checked, columns) {
            let batch = batch?;
            if batch.num_rows() > 0 {
                batches.push(batch);
            }
        }
    }
    Ok(batches)
}

/// The rows of one head, with these columns.
fn one_head(
    head: &dyn HeadScan,
    table: Table,
    asked: &ScanFilter,
    checked: &ScanFilter,
    columns: &[&str],
) -> Vec<Result<RecordBatch, QueryError>> {
    // What the head applies to the letter needs no second look, and no column for it.
    let checked = match head.is_exact() {
        true => ScanFilter {
            stacks: checked.stacks.clone(),
            ..ScanFilter::default()
        },
        false => checked.clone(),
    };
    let projection = match head_columns(&table.schema(), &checked, columns) {
        Ok(projection) => Some(projection),
        Err(error) => return vec![Err(error)],
    };
    let asked = ScanFilter {
        projection,
        ..asked.clone()
    };
    let batches = head.scan(table, &asked).into_iter();
    batches.map(|batch| select(&batch, &checked, columns)).collect()
}

/// What to ask a head for: the columns wanted and those that the filter is checked on.
fn head_columns(schema: &SchemaRef, filter: &ScanFilter, columns: &[&str]) -> Result<Arc<[usize]>, QueryError> {
    let mut indices = indices_of(schema, columns)?;
    let checked = [
        ("tenant", filter.tenant.is_some()),
        ("day", filter.time.is_some()),
        ("time", filter.time.is_some()),
        ("profile_type", filter.profile_type.is_some()),
        ("series", filter.series.is_some()),
        ("stack", filter.stacks.is_some()),
    ];
    for (name, needed) in checked {
        // The day is checked only where there is no time.
        let needed = needed && !(name == "day" && schema.index_of("time").is_ok());
        if let Ok(index) = schema.index_of(name)
            && needed
            && !indices.contains(&index)
        {
            indices.push(index);
        }
    }
    Ok(indices.into())
}

/// The rows of a head's batch that the filter lets through, with these columns.
fn select(batch: &RecordBatch, filter: &ScanFilter, columns: &[&str]) -> Result<RecordBatch, QueryError> {
    let rows = batch.num_rows();
    let mut keep: Option<BooleanBuffer> = None;
    let mut also = |mask: BooleanBuffer| {
        if mask.count_set_bits() < rows || keep.is_some() {
            keep = Some(match keep.take() {
                Some(before) => &before & &mask,
                None => mask,
            });
        }
    };
    if let (Some(tenant), Some(column)) = (&filter.tenant, batch.column_by_name("tenant")) {
        let values = column.as_string::<i32>();
        also(BooleanBuffer::collect_bool(rows, |row| {
            values.value(row) == tenant.as_ref()
        }));
    }
    if let Some((start, end)) = filter.time {
        if let Some(column) = batch.column_by_name("time") {
            let values = column.as_primitive::<TimestampMicrosecondType>().values();
            also(BooleanBuffer::collect_bool(rows, |row| {
                values[row] >= start && values[row] < end
            }));
        } else if let Some(column) = batch.column_by_name("day") {
            let (first, last) = days_of((start, end));
            let values = column.as_primitive::<Date32Type>().values();
            also(BooleanBuffer::collect_bool(rows, |row| {
                values[row] >= first && values[row] <= last
            }));
        }
    }
    if let (Some(wanted), Some(column)) = (&filter.profile_type, batch.column_by_name("profile_type")) {
        let values = column.as_string::<i32>();
        also(BooleanBuffer::collect_bool(rows, |row| {
            values.value(row) == wanted.as_ref()
        }));
    }
    for (name, set) in [("series", &filter.series), ("stack", &filter.stacks)] {
        if let (Some(set), Some(column)) = (set, batch.column_by_name(name)) {
            let values = column.as_primitive::<Int64Type>().values();
            also(BooleanBuffer::collect_bool(rows, |row| set.contains(&values[row])));
        }
    }
    let narrow = batch.project(&indices_of(&batch.schema(), columns)?)?;
    match keep {
        Some(mask) => Ok(filter_record_batch(&narrow, &BooleanArray::new(mask, None))?),
        None => Ok(narrow),
    }
}
