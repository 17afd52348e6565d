//! The rows of an answer under its limits: time, rows, bytes, and a fault of the engine that ends one query and nothing else.
//!
//! In: the stream of a running plan. Out: batches of plain types (no views, no dictionaries). Whoever drops the stream stops the query.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, ArrayRef};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use futures::{FutureExt, StreamExt, stream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::query::scan::BatchStream;
use crate::query::sql::SqlResult;
use crate::query::{QueryError, QueryLimits};

/// When a query began and when it ends at the latest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Instant,
    length: Duration,
}

impl Deadline {
    /// From now on for `length`.
    pub(crate) fn after(length: Duration) -> Self {
        Self {
            at: Instant::now() + length,
            length,
        }
    }

    /// Waits for `work` until the deadline.
    pub(crate) async fn hold<T>(self, work: impl Future<Output = T>) -> Result<T, QueryError> {
        if Instant::now() >= self.at {
            return Err(QueryError::Timeout(self.length));
        }
        tokio::time::timeout_at(self.at, work)
            .await
            .map_err(|_| QueryError::Timeout(self.length))
    }
}

/// The answer with its limits. The slot is given back when the stream ends or is dropped.
pub(crate) fn guarded(
    schema: &SchemaRef,
    rows: BatchStream,
    deadline: Deadline,
    limits: &QueryLimits,
    slot: Arc<OwnedSemaphorePermit>,
) -> SqlResult {
    let schema = plain_schema(schema);
    let guarded = Guarded {
        rows,
        schema: schema.clone(),
        deadline,
        rows_left: limits.max_rows,
        bytes_left: limits.max_output_bytes,
        max_rows: limits.max_rows,
        max_bytes: limits.max_output_bytes,
        _slot: slot,
    };
    SqlResult {
        schema,
        stream: stream::try_unfold(guarded, Guarded::next).boxed(),
    }
}

struct Guarded {
    rows: BatchStream,
    schema: SchemaRef,
    deadline: Deadline,
    rows_left: usize,
    bytes_left: usize,
    max_rows: usize,
    max_bytes: usize,
    _slot: Arc<OwnedSemaphorePermit>,
}

impl Guarded {
    async fn next(mut self) -> Result<Option<(RecordBatch, Self)>, QueryError> {
        let next = AssertUnwindSafe(self.rows.next()).catch_unwind();
        let next = self.deadline.hold(next).await?.map_err(|_| {
            tracing::error!("a query ended in a panic of the engine");
            QueryError::internal("the query ended in a fault of the engine")
        })?;
        let Some(batch) = next.transpose()? else {
            return Ok(None);
        };
        self.rows_left = self.rows_left.checked_sub(batch.num_rows()).ok_or_else(|| {
            QueryError::Limit(format!(
                "the answer has more than {} rows: add a LIMIT or aggregate, or raise sql.max_rows in the server's configuration",
                self.max_rows
            ))
        })?;
        let batch = plain(&batch, &self.schema)?;
        self.bytes_left = self.bytes_left.checked_sub(bytes_of(&batch)).ok_or_else(|| {
            QueryError::Limit(format!(
                "the answer has more than {} MiB: ask for fewer columns or rows, or raise sql.max_output in the server's configuration",
                self.max_bytes >> 20
            ))
        })?;
        Ok(Some((batch, self)))
    }
}

/// Bytes of the rows of a batch, shared buffers counted as far as the rows reach.
pub(crate) fn bytes_of(batch: &RecordBatch) -> usize {
    let of = |column: &ArrayRef| {
        let data = column.to_data();
        data.get_slice_memory_size().unwrap_or(column.get_array_memory_size())
    };
    batch.columns().iter().map(of).sum()
}

/// The schema with plain types in place of views and dictionaries, which not every client reads.
fn plain_schema(schema: &SchemaRef) -> SchemaRef {
    let fields: Vec<Field> = schema
        .fields()
        .iter()
        .map(|field| match plain_type(field.data_type()) {
            Some(kind) => field.as_ref().clone().with_data_type(kind),
            None => field.as_ref().clone(),
        })
        .collect();
    Arc::new(Schema::new(fields))
}

fn plain_type(kind: &DataType) -> Option<DataType> {
    match kind {
        DataType::Utf8View => Some(DataType::Utf8),
        DataType::BinaryView => Some(DataType::Binary),
        DataType::Dictionary(_, value) => Some(plain_type(value).unwrap_or_else(|| value.as_ref().clone())),
        _ => None,
    }
}

fn plain(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, QueryError> {
    let columns: Result<Vec<_>, _> = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| match column.data_type() == field.data_type() {
            true => Ok(column.clone()),
            false => cast(column, field.data_type()),
        })
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns?, &options)?)
}
