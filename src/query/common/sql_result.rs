//! Limits the time, the number of rows and the bytes of a query's result. If a query panics, only that query ends.
//!
//! In: the stream of a running plan. Out: batches of plain types (no views, no dictionaries). The query stops when the
//! stream is dropped, and at the deadline, even if nobody reads the stream.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, ArrayRef};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::query::common::error::QueryError;
use crate::query::common::stream::BatchStream;
use crate::query::common::types::QueryLimits;

/// Error message of a query that panicked.
const FAULT: &str = "the query failed because of a bug in the query engine";

/// The result of a SQL query.
pub struct SqlResult {
    /// Schema of the rows, with plain types.
    pub schema: SchemaRef,
    /// The rows. The last item is an error if the query failed or exceeded a limit after it had started. At the
    /// deadline the query releases its slot and its memory, even if its rows have not been read.
    pub stream: BatchStream,
    pub(crate) deadline: Deadline,
    /// Maximum size of the rows in bytes. The maximum applies to the columns in memory, and also to the text if the
    /// result is written as text.
    pub(crate) max_output_bytes: usize,
}

impl SqlResult {
    /// Returns the deadline of the stream. A caller that buffers rows drops them at this time.
    pub(crate) fn ends_at(&self) -> Instant {
        self.deadline.instant
    }

    /// Ends the query and releases its resources. A later read fails as if the time limit had passed.
    pub fn end(&mut self) {
        let passed = self.deadline.timeout_error();
        self.stream = stream::once(async { Err(passed) }).boxed();
    }

    /// Collects all rows in memory.
    pub async fn collect(mut self) -> Result<Vec<RecordBatch>, QueryError> {
        let mut batches = Vec::new();
        while let Some(batch) = self.stream.next().await {
            batches.push(batch?);
        }
        Ok(batches)
    }
}

/// The time at which a query must end at the latest, and the time limit from which that time was computed.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    instant: Instant,
    length: Duration,
}

impl Deadline {
    /// Creates a deadline that is `length` from now.
    pub fn after(length: Duration) -> Self {
        Self {
            instant: Instant::now() + length,
            length,
        }
    }

    /// Returns the error for a deadline that has passed.
    fn timeout_error(self) -> QueryError {
        QueryError::Timeout(self.length)
    }

    /// Fails if the deadline has passed.
    pub(crate) fn check(self) -> Result<(), QueryError> {
        if Instant::now() >= self.instant {
            return Err(self.timeout_error());
        }
        Ok(())
    }

    /// Waits for `work`. If the deadline passes first, drops `work` and fails.
    pub(crate) async fn enforce<T>(self, work: impl Future<Output = T>) -> Result<T, QueryError> {
        self.check()?;
        tokio::time::timeout_at(self.instant, work)
            .await
            .map_err(|_| self.timeout_error())
    }
}

/// Runs a stream in a task that ends at the deadline. The task computes an item only when the reader requests it. At
/// the deadline the task drops the source with its resources, even if nobody reads, and the timeout error replaces the
/// remaining items.
pub fn run_until<T: Send + 'static>(
    deadline: Deadline,
    mut items: BoxStream<'static, Result<T, QueryError>>,
) -> BoxStream<'static, Result<T, QueryError>> {
    let (sender, receiver) = mpsc::channel::<Result<Option<T>, QueryError>>(1);
    tokio::spawn(async move {
        let slots = &sender;
        let making = async move {
            while let Ok(permit) = slots.reserve().await {
                let item = items.next().await.transpose();
                let is_last = !matches!(item, Ok(Some(_)));
                permit.send(item);
                if is_last {
                    break;
                }
            }
        };
        let outcome = tokio::select! {
            () = sender.closed() => return,
            outcome = deadline.enforce(making) => outcome,
        };
        if let Err(error) = outcome {
            // The task may wait for the reader here, because the resources of the query are already released.
            let _ = sender.send(Err(error)).await;
        }
    });
    let received = stream::unfold(Some(receiver), |receiver| async {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Ok(Some(item))) => Some((Ok(item), Some(receiver))),
            Some(Ok(None)) => None,
            Some(Err(error)) => Some((Err(error), None)),
            // The task always sends an end marker. If the marker is missing, the task panicked.
            None => Some((Err(QueryError::internal(FAULT)), None)),
        }
    });
    received.boxed()
}

/// Returns the result with limits on its time, rows and bytes. `resources` contains the slot of the query and its
/// threads. The stream drops `resources` when it ends or is dropped, at the latest at the deadline.
pub(crate) fn limit_result(
    schema: &SchemaRef,
    rows: BatchStream,
    deadline: Deadline,
    limits: &QueryLimits,
    resources: Box<dyn Any + Send>,
) -> SqlResult {
    let schema = plain_schema(schema);
    let guarded = LimitedRows {
        rows,
        schema: schema.clone(),
        deadline,
        rows_left: limits.max_rows,
        bytes_left: limits.max_output_bytes,
        max_rows: limits.max_rows,
        max_bytes: limits.max_output_bytes,
        _resources: resources,
    };
    SqlResult {
        schema,
        stream: run_until(deadline, stream::try_unfold(guarded, LimitedRows::next).boxed()),
        deadline,
        max_output_bytes: limits.max_output_bytes,
    }
}

/// Returns the error for a result of more than `max` bytes.
pub(crate) fn too_large(max: usize) -> QueryError {
    QueryError::Limit(format!(
        "the result has more than {} MiB: select fewer columns or rows, or raise sql.max_output in the server's \
            configuration",
        max >> 20
    ))
}

struct LimitedRows {
    rows: BatchStream,
    schema: SchemaRef,
    deadline: Deadline,
    rows_left: usize,
    bytes_left: usize,
    max_rows: usize,
    max_bytes: usize,
    _resources: Box<dyn Any + Send>,
}

impl LimitedRows {
    async fn next(mut self) -> Result<Option<(RecordBatch, Self)>, QueryError> {
        let next = AssertUnwindSafe(self.rows.next()).catch_unwind();
        let next = self.deadline.enforce(next).await?.map_err(|_| {
            tracing::error!("a query panicked");
            QueryError::internal(FAULT)
        })?;
        let Some(batch) = next.transpose()? else {
            return Ok(None);
        };
        self.rows_left = self.rows_left.checked_sub(batch.num_rows()).ok_or_else(|| {
            QueryError::Limit(format!(
                "the result has more than {} rows: add a LIMIT or aggregate, or raise sql.max_rows in the server's \
                    configuration",
                self.max_rows
            ))
        })?;
        let batch = plain(&batch, &self.schema)?;
        let left = self.bytes_left.checked_sub(bytes_of(&batch));
        self.bytes_left = left.ok_or_else(|| too_large(self.max_bytes))?;
        Ok(Some((batch, self)))
    }
}

/// Returns the size of the rows of a batch in bytes. If a buffer is shared, only the range that the rows use is
/// counted.
pub(crate) fn bytes_of(batch: &RecordBatch) -> usize {
    let column_bytes = |column: &ArrayRef| {
        let data = column.to_data();
        data.get_slice_memory_size().unwrap_or(column.get_array_memory_size())
    };
    batch.columns().iter().map(column_bytes).sum()
}

/// Returns the schema with plain types instead of views and dictionaries, which some clients cannot read.
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
        .map(|(column, field)| {
            if column.data_type() == field.data_type() {
                Ok(column.clone())
            } else {
                cast(column, field.data_type())
            }
        })
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns?, &options)?)
}
