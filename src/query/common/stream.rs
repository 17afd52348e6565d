//! Streams of record batches, and folds over them.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use futures::StreamExt;
use futures::stream::BoxStream;

use crate::query::common::error::QueryError;
use alluvium_base::BoxFuture;

/// A stream of batches that may end with an error.
pub(crate) type BatchStream = BoxStream<'static, Result<RecordBatch, QueryError>>;

/// Folds the batches of each stream, and returns the final states in no particular order. If there are several streams,
/// each runs in its own task. The tasks stop when the future is dropped.
pub(crate) fn fold<A: Send + 'static>(
    mut streams: Vec<BatchStream>,
    make: impl Fn() -> A,
    step: impl Fn(&mut A, &RecordBatch) -> Result<(), QueryError> + Send + Sync + 'static,
) -> BoxFuture<'static, Result<Vec<A>, QueryError>> {
    let step = Arc::new(step);
    let run = move |mut stream: BatchStream, mut accumulator: A| {
        let step = step.clone();
        async move {
            while let Some(batch) = stream.next().await {
                step(&mut accumulator, &batch?)?;
            }
            Ok(accumulator)
        }
    };
    if streams.len() <= 1 {
        let single_run = streams.pop().map(|stream| run(stream, make()));
        return Box::pin(async move {
            match single_run {
                Some(running) => Ok(vec![running.await?]),
                None => Ok(Vec::new()),
            }
        });
    }
    let running: Vec<_> = streams.into_iter().map(|stream| run(stream, make())).collect();
    Box::pin(async move {
        let mut tasks: tokio::task::JoinSet<Result<A, QueryError>> = running.into_iter().collect();
        let mut accumulators = Vec::with_capacity(tasks.len());
        while let Some(joined) = tasks.join_next().await {
            let accumulator = joined.map_err(|error| QueryError::internal(format!("a scan task failed: {error}")))?;
            accumulators.push(accumulator?);
        }
        Ok(accumulators)
    })
}
