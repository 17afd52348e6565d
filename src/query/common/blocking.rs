//! Runs CPU work of a query on blocking threads; the work ends soon after the query is dropped.
//!
//! In: a closure that checks its [`Cancellation`] regularly. Out: its result. A thread that computes cannot be stopped
//! from outside. Without the checks, a query that has exceeded its time limit could keep a thread busy indefinitely.

use std::sync::{Arc, Weak};

use crate::query::common::error::QueryError;
use alluvium_base::BoxFuture;

/// A flag with which a closure checks whether its query was dropped.
pub(crate) struct Cancellation(Weak<()>);

impl Cancellation {
    /// Fails if the query was dropped.
    pub(crate) fn check(&self) -> Result<(), QueryError> {
        if self.0.strong_count() == 0 {
            return Err(QueryError::Cancelled);
        }
        Ok(())
    }
}

/// Runs `work` on a blocking thread.
pub(crate) fn run<T: Send + 'static>(
    work: impl FnOnce(&Cancellation) -> Result<T, QueryError> + Send + 'static,
) -> BoxFuture<'static, Result<T, QueryError>> {
    let waiting = Arc::new(());
    let cancellation = Cancellation(Arc::downgrade(&waiting));
    Box::pin(async move {
        let result = tokio::task::spawn_blocking(move || work(&cancellation)).await;
        drop(waiting);
        result.map_err(|error| QueryError::internal(format!("a computing task of the query failed: {error}")))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_ends_when_nobody_waits_for_it() {
        assert_eq!(run(|cancellation| cancellation.check().map(|()| 7)).await, Ok(7));
        let (ended, ends) = tokio::sync::oneshot::channel();
        let (begun, begins) = tokio::sync::oneshot::channel();
        let endless = run(move |cancellation| {
            let _ = begun.send(());
            while cancellation.check().is_ok() {
                std::thread::yield_now();
            }
            let _ = ended.send(());
            Ok(())
        });
        let running = tokio::spawn(endless);
        begins.await.unwrap();
        running.abort();
        ends.await.unwrap();
    }
}
