//! CPU work of a question beside the async threads, which ends soon after nobody waits for it any more.
//!
//! In: a closure that looks at its [`Asker`] from time to time. Out: its result. A thread that computes cannot be
//! stopped from outside, so without the look questions that ran into their time limit would go on without end, each on
//! a thread of its own.

use std::sync::{Arc, Weak};

use crate::base::BoxFuture;
use crate::query::QueryError;

/// Who waits for the work.
pub(crate) struct Asker(Weak<()>);

impl Asker {
    /// Fails when nobody waits any more.
    pub(crate) fn check(&self) -> Result<(), QueryError> {
        if self.0.strong_count() == 0 {
            return Err(QueryError::Cancelled);
        }
        Ok(())
    }
}

/// Runs `work` on a thread for blocking work.
pub(crate) fn aside<T: Send + 'static>(
    work: impl FnOnce(&Asker) -> Result<T, QueryError> + Send + 'static,
) -> BoxFuture<'static, Result<T, QueryError>> {
    let waits = Arc::new(());
    let asker = Asker(Arc::downgrade(&waits));
    Box::pin(async move {
        let done = tokio::task::spawn_blocking(move || work(&asker)).await;
        drop(waits);
        done.map_err(|error| QueryError::internal(format!("work on an answer failed: {error}")))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_ends_when_nobody_waits_for_it() {
        assert_eq!(aside(|asker| asker.check().map(|()| 7)).await, Ok(7));
        let (ended, ends) = tokio::sync::oneshot::channel();
        let (begun, begins) = tokio::sync::oneshot::channel();
        let endless = aside(move |asker| {
            let _ = begun.send(());
            while asker.check().is_ok() {
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
