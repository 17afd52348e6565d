//! Reads the rows of heads. These rows are in memory and in no file yet.
//!
//! In: [`Snapshot`], [`ScanFilter`], column names. Out: a stream of batches, or a plan for SQL, with exactly the
//! requested rows. The memory of the rows is charged to the query. If the query exceeds its memory limit, it fails. The
//! scans of heads run on blocking threads, and their number is bounded. If a query is dropped, its scans end at their
//! next batch.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::{Date32Type, Int64Type, Schema, SchemaRef, TimestampMicrosecondType};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use futures::StreamExt;
use futures::stream;

use crate::query::common::blocking;
use crate::query::common::blocking::Cancellation;
use crate::query::common::columns::indices_of;
use crate::query::common::error::QueryError;
use crate::query::common::stream::BatchStream;
use crate::query::resources::runtime::{BATCH_ROWS, Runtime};
use crate::query::scan::provider::{Mapped, RowMap};
use crate::store::common::schema::Table;
use crate::store::common::schema::column::{DAY, PROFILE_TYPE, SERIES, STACK, TENANT, TIME};
use crate::store::tables::snapshot::{HeadScan, ScanFilter, Snapshot};
use alluvium_base::BoxFuture;
use alluvium_profile::{SeriesId, StackId};

/// Returns the rows of the heads that pass the filter, and no other rows. The rows of a head are built when the stream
/// reaches the head. The rows are charged to the query until the reader has received the last row of the head.
pub(crate) fn head_stream(
    runtime: &Arc<Runtime>,
    snapshot: &Snapshot,
    table: Table,
    filter: &ScanFilter,
    columns: &[&str],
) -> Result<BatchStream, QueryError> {
    // Reports wrong arguments here instead of in the stream.
    indices_of(&table.schema(), columns)?;
    let selection = HeadSelection {
        table,
        head_filter: filter.clone(),
        row_filter: filter.clone(),
        columns: columns.iter().map(ToString::to_string).collect(),
    };
    Ok(stream_of(runtime.clone(), snapshot.heads.clone(), Arc::new(selection)))
}

/// Like [`head_stream`], for one head.
pub(crate) fn one_head_stream(
    runtime: &Arc<Runtime>,
    head: Arc<dyn HeadScan>,
    table: Table,
    filter: &ScanFilter,
    columns: &[&str],
) -> Result<BatchStream, QueryError> {
    let snapshot = Snapshot {
        heads: vec![head],
        ..Snapshot::default()
    };
    head_stream(runtime, &snapshot, table, filter, columns)
}

/// Returns the rows of the heads as a plan with the columns of `schema`. The rows are built when the plan runs. Heads
/// may omit rows that do not pass `requested`. The plan returns only rows that pass `checked`.
pub(crate) fn head_plan(
    runtime: &Arc<Runtime>,
    snapshot: &Snapshot,
    table: Table,
    (requested, checked): (&ScanFilter, &ScanFilter),
    schema: SchemaRef,
) -> Arc<dyn ExecutionPlan> {
    let selection = HeadSelection {
        table,
        head_filter: requested.clone(),
        row_filter: checked.clone(),
        columns: schema.fields().iter().map(|field| field.name().clone()).collect(),
    };
    let rows = HeadRows {
        runtime: runtime.clone(),
        heads: snapshot.heads.clone(),
        selection: Arc::new(selection),
        schema: schema.clone(),
    };
    let nothing = Arc::new(PlaceholderRowExec::new(Arc::new(Schema::empty())));
    Arc::new(Mapped::new(nothing, schema, Arc::new(rows)))
}

/// The rows and columns to read from a head.
struct HeadSelection {
    table: Table,
    /// Filter that the head may apply.
    head_filter: ScanFilter,
    /// Filter that is checked for each row.
    row_filter: ScanFilter,
    columns: Vec<String>,
}

/// The function of a plan node that ignores the input of the node and returns the rows of heads.
struct HeadRows {
    runtime: Arc<Runtime>,
    heads: Vec<Arc<dyn HeadScan>>,
    selection: Arc<HeadSelection>,
    schema: SchemaRef,
}

impl std::fmt::Debug for HeadRows {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

impl RowMap for HeadRows {
    fn name(&self) -> &'static str {
        "Heads"
    }

    fn apply(&self, _input: BatchStream) -> BatchStream {
        let schema = self.schema.clone();
        let rows = stream_of(self.runtime.clone(), self.heads.clone(), self.selection.clone());
        // The limits of functions apply to each call, that is, to each batch. Therefore, the batches must not have more
        // rows than batches of files.
        let rows =
            rows.flat_map(|batch| stream::iter(batch.map_or_else(|error| vec![Err(error)], |batch| split(&batch))));
        rows.map(move |batch| with_types(&batch?, &schema)).boxed()
    }
}

/// Splits a batch into parts of at most [`BATCH_ROWS`] rows, the size of batches from files.
fn split(batch: &RecordBatch) -> Vec<Result<RecordBatch, QueryError>> {
    let starts = (0..batch.num_rows()).step_by(BATCH_ROWS);
    let part = |start| batch.slice(start, BATCH_ROWS.min(batch.num_rows() - start));
    starts.map(|start| Ok(part(start))).collect()
}

/// Casts the columns of a batch to the types of `schema`. Only the string types may differ.
fn with_types(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, QueryError> {
    let columns =
        std::iter::zip(batch.columns(), schema.fields()).map(|(column, field)| cast(column, field.data_type()));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        schema.clone(),
        columns.collect::<Result<_, _>>()?,
        &options,
    )?)
}

/// Sums of values by stack.
type StackSums = Vec<(StackId, i64)>;

/// Returns sums by stack over the rows of a head, see [`HeadScan::sum_stacks`].
pub(crate) fn sums_of(
    runtime: &Arc<Runtime>,
    head: Arc<dyn HeadScan>,
    filter: &ScanFilter,
) -> BoxFuture<'static, Result<Option<StackSums>, QueryError>> {
    let filter = filter.clone();
    run_with_slot(runtime, move |cancellation| {
        cancellation.check()?;
        Ok(head.sum_stacks(&filter))
    })
}

fn stream_of(runtime: Arc<Runtime>, heads: Vec<Arc<dyn HeadScan>>, selection: Arc<HeadSelection>) -> BatchStream {
    let read = stream::iter(heads).then(move |head| {
        let (selection, memory) = (selection.clone(), runtime.reservation("rows in memory"));
        run_with_slot(&runtime, move |cancellation| {
            let batches = one_head(head.as_ref(), &selection, &memory, cancellation)?;
            Ok((batches, memory))
        })
    });
    let rows = read.flat_map(|read| match read {
        Ok((batches, memory)) => stream::iter(batches)
            .map(move |batch| {
                // The closure keeps the charge while this part of the stream exists.
                let _charged = &memory;
                Ok(batch)
            })
            .boxed(),
        Err(error) => stream::iter([Err(error)]).boxed(),
    });
    rows.boxed()
}

/// Waits for one of the slots for scans of heads, and runs `work` on a blocking thread. `work` must not wait for other
/// work of queries.
fn run_with_slot<T: Send + 'static>(
    runtime: &Arc<Runtime>,
    work: impl FnOnce(&Cancellation) -> Result<T, QueryError> + Send + 'static,
) -> BoxFuture<'static, Result<T, QueryError>> {
    let turns = runtime.head_scans.clone();
    Box::pin(async move {
        let turn = turns.acquire_owned().await;
        let turn = turn.map_err(|error| QueryError::internal(error.to_string()))?;
        blocking::run(move |cancellation| {
            // The work keeps its slot until it ends, even if nobody waits for its result any more.
            let _turn = turn;
            work(cancellation)
        })
        .await
    })
}

/// Returns the rows of one head. Fails at the first batch that exceeds the query's memory limit, and at the first batch
/// after the query was dropped.
fn one_head(
    head: &dyn HeadScan,
    selection: &HeadSelection,
    memory: &MemoryReservation,
    cancellation: &Cancellation,
) -> Result<Vec<RecordBatch>, QueryError> {
    cancellation.check()?;
    let columns: Vec<&str> = selection.columns.iter().map(String::as_str).collect();
    // An exact head applies all conditions of the filter except the stacks. In this case, only the stacks are checked
    // here, and the columns for the other checks are not requested.
    let checked = if head.is_exact() {
        ScanFilter {
            stacks: selection.row_filter.stacks.clone(),
            ..ScanFilter::default()
        }
    } else {
        selection.row_filter.clone()
    };
    let requested = ScanFilter {
        projection: Some(head_columns(&selection.table.schema(), &checked, &columns)?),
        ..selection.head_filter.clone()
    };
    let mut batches = Vec::new();
    let mut take = |batch: &RecordBatch| -> Result<(), QueryError> {
        cancellation.check()?;
        let batch = select(batch, &checked, &columns)?;
        if batch.num_rows() > 0 {
            memory.try_grow(batch.get_array_memory_size())?;
            batches.push(batch);
        }
        Ok(())
    };
    let mut result = Ok(());
    head.scan_with(selection.table, &requested, &mut |batch| {
        result = take(&batch);
        if result.is_ok() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    result.map(|()| batches)
}

/// Returns the columns to request from a head: the wanted columns and the columns that the filter checks.
fn head_columns(schema: &SchemaRef, filter: &ScanFilter, columns: &[&str]) -> Result<Arc<[usize]>, QueryError> {
    let mut indices = indices_of(schema, columns)?;
    let checked = [
        (TENANT, filter.tenants.is_some()),
        (DAY, filter.time.is_some()),
        (TIME, filter.time.is_some()),
        (PROFILE_TYPE, filter.profile_type.is_some()),
        (SERIES, filter.series.is_some()),
        (STACK, filter.stacks.is_some()),
    ];
    for (name, needed) in checked {
        // The day is checked only in tables without a column for the time.
        let needed = needed && !(name == DAY && schema.index_of(TIME).is_ok());
        if let Ok(index) = schema.index_of(name)
            && needed
            && !indices.contains(&index)
        {
            indices.push(index);
        }
    }
    Ok(indices.into())
}

/// Returns the rows of a batch that pass the filter, with these columns.
fn select(batch: &RecordBatch, filter: &ScanFilter, columns: &[&str]) -> Result<RecordBatch, QueryError> {
    let rows = batch.num_rows();
    let mut row_mask: Option<BooleanBuffer> = None;
    let mut restrict = |mask: BooleanBuffer| {
        if mask.count_set_bits() < rows || row_mask.is_some() {
            row_mask = Some(match row_mask.take() {
                Some(before) => &before & &mask,
                None => mask,
            });
        }
    };
    if let (Some(tenants), Some(column)) = (&filter.tenants, batch.column_by_name(TENANT)) {
        let values = column.as_string::<i32>();
        restrict(BooleanBuffer::collect_bool(rows, |row| {
            tenants.has_id(values.value(row))
        }));
    }
    if let Some(span) = filter.time {
        if let Some(column) = batch.column_by_name(TIME) {
            let values = column.as_primitive::<TimestampMicrosecondType>().values();
            restrict(BooleanBuffer::collect_bool(rows, |row| span.contains(values[row])));
        } else if let Some(column) = batch.column_by_name(DAY) {
            let days = span.days();
            let values = column.as_primitive::<Date32Type>().values();
            restrict(BooleanBuffer::collect_bool(rows, |row| days.contains(&values[row])));
        }
    }
    if let (Some(profile_type), Some(column)) = (&filter.profile_type, batch.column_by_name(PROFILE_TYPE)) {
        let values = column.as_string::<i32>();
        restrict(BooleanBuffer::collect_bool(rows, |row| {
            values.value(row) == profile_type.as_str()
        }));
    }
    if let (Some(set), Some(column)) = (&filter.series, batch.column_by_name(SERIES)) {
        let ids = column.as_primitive::<Int64Type>().values();
        restrict(BooleanBuffer::collect_bool(rows, |row| {
            set.contains(&SeriesId(ids[row]))
        }));
    }
    if let (Some(set), Some(column)) = (&filter.stacks, batch.column_by_name(STACK)) {
        let ids = column.as_primitive::<Int64Type>().values();
        restrict(BooleanBuffer::collect_bool(rows, |row| {
            set.contains(&StackId(ids[row]))
        }));
    }
    let narrow = batch.project(&indices_of(&batch.schema(), columns)?)?;
    match row_mask {
        Some(mask) => Ok(filter_record_batch(&narrow, &BooleanArray::new(mask, None))?),
        None => Ok(narrow),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use parking_lot::Mutex;

    use super::*;
    use crate::query::common::types::QueryLimits;
    use crate::store::tables::snapshot::Receive;

    /// A timeout that is long enough for any machine. Only a failing test waits so long.
    const LONG: Duration = Duration::from_secs(20);

    /// A head that reports when a scan begins, waits for a signal, and then returns batches until it is stopped.
    struct Gated {
        begun: Sender<()>,
        go: Mutex<Receiver<()>>,
        ended: Sender<usize>,
    }

    impl HeadScan for Gated {
        fn scan_with(&self, table: Table, filter: &ScanFilter, receive: &mut Receive<'_>) {
            let _ = self.begun.send(());
            let _ = self.go.lock().recv_timeout(LONG);
            let schema = table.schema();
            let schema = filter
                .projection
                .as_ref()
                .map_or(schema.clone(), |columns| Arc::new(schema.project(columns).unwrap()));
            for count in 1..1000 {
                if receive(RecordBatch::new_empty(schema.clone())).is_break() {
                    let _ = self.ended.send(count);
                    return;
                }
            }
        }

        fn sum_stacks(&self, _filter: &ScanFilter) -> Option<Vec<(StackId, i64)>> {
            let _ = self.begun.send(());
            self.go.lock().recv_timeout(LONG).ok().map(|()| vec![(StackId(1), 2)])
        }

        fn is_exact(&self) -> bool {
            true
        }
    }

    fn runtime() -> Arc<Runtime> {
        Arc::new(Runtime::new(&QueryLimits::default(), None).unwrap())
    }

    /// The runtime has one thread. A scan on this thread would prevent the test from sending the signal.
    #[tokio::test]
    async fn a_scan_of_a_head_takes_no_async_thread_and_ends_when_its_reader_has_gone() {
        let ((begun, begins), (go, gate), (ended, ends)) = (channel(), channel(), channel());
        let head = Arc::new(Gated {
            begun,
            go: Mutex::new(gate),
            ended,
        });
        let runtime = runtime();
        let mut rows =
            one_head_stream(&runtime, head.clone(), Table::Samples, &ScanFilter::default(), &[STACK]).unwrap();
        let reading = tokio::spawn(async move { rows.next().await.is_some() });
        while begins.try_recv().is_err() {
            tokio::task::yield_now().await;
        }
        assert!(!reading.is_finished(), "the scan ran on the async thread");
        reading.abort();
        assert!(reading.await.unwrap_err().is_cancelled());
        go.send(()).unwrap();
        assert_eq!(ends.recv_timeout(LONG), Ok(1));

        let sums = tokio::spawn(sums_of(&runtime, head, &ScanFilter::default()));
        while begins.try_recv().is_err() {
            tokio::task::yield_now().await;
        }
        go.send(()).unwrap();
        assert_eq!(sums.await.unwrap(), Ok(Some(vec![(StackId(1), 2)])));
    }

    #[tokio::test]
    async fn few_scans_of_heads_run_at_one_time() {
        let ((begun, begins), (go, gate), (ended, _ends)) = (channel(), channel(), channel());
        let head = Arc::new(Gated {
            begun,
            go: Mutex::new(gate),
            ended,
        });
        let limits = QueryLimits {
            parallelism: 2,
            ..QueryLimits::default()
        };
        let runtime = Arc::new(Runtime::new(&limits, None).unwrap());
        let all: Vec<_> = (0..6)
            .map(|_| tokio::spawn(sums_of(&runtime, head.clone(), &ScanFilter::default())))
            .collect();
        let mut count = 0;
        while count < 2 {
            count += usize::from(begins.try_recv().is_ok());
            tokio::task::yield_now().await;
        }
        assert_eq!(runtime.head_scans.available_permits(), 0);
        assert!(begins.try_recv().is_err(), "a third scan has begun");
        for _ in &all {
            go.send(()).unwrap();
        }
        for sums in all {
            assert!(sums.await.unwrap().unwrap().is_some());
        }
        assert_eq!(runtime.head_scans.available_permits(), 2);
    }
}
