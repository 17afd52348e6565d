//! Threads with large stacks for all code that recurses over an SQL plan. This code parses and plans a statement,
//! starts and polls the streams of the operators, and drops the plan and the streams.
//!
//! In: work that plans one query. Out: the result of the work. The result must not contain a plan or its streams,
//! because polling a plan of 200 nested operators overflows the stack of an ordinary thread. Tasks that the work spawns
//! run on the workers of [`Threads`]. The module `guard` limits the depth of a plan.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;

use crate::query::common::error::QueryError;
use crate::query::common::sql_result::Deadline;
use crate::query::common::types::QueryLimits;
use crate::query::sql::watch::Watch;
use alluvium_base::BoxFuture;

/// The threads of one engine. The first SQL query starts them.
pub(crate) struct Threads {
    stack_bytes: usize,
    workers: usize,
    /// Slots for planning threads. A thread keeps its slot until it ends, even if its caller no longer waits.
    planners: Arc<Semaphore>,
    runtime: Mutex<Option<Runtime>>,
}

impl Threads {
    pub(crate) fn new(limits: &QueryLimits, workers: usize) -> Self {
        Self {
            stack_bytes: limits.stack_bytes,
            workers: workers.max(1),
            planners: Arc::new(Semaphore::new(limits.max_concurrent_queries.max(1))),
            runtime: Mutex::new(None),
        }
    }

    /// Runs `work` on its own thread. Tasks that `work` spawns run on the workers. If the returned future is dropped or
    /// the deadline passes, the checks of the watch fail, and `work` is dropped at its next await point.
    pub(crate) async fn plan<T: Send + 'static>(
        &self,
        deadline: Deadline,
        work: impl FnOnce(Watch) -> BoxFuture<'static, Result<T, QueryError>> + Send + 'static,
    ) -> Result<T, QueryError> {
        let permit = deadline.enforce(self.planners.clone().acquire_owned()).await?;
        let handle = self.handle()?;
        let (mut sender, receiver) = tokio::sync::oneshot::channel();
        let (waiting, watch) = Watch::new(deadline);
        std::thread::Builder::new()
            .name("sql planner".to_owned())
            .stack_size(self.stack_bytes)
            .spawn(move || {
                let result = handle.block_on(async {
                    tokio::select! {
                        () = sender.closed() => None,
                        result = work(watch) => Some(result),
                    }
                });
                if let Some(result) = result {
                    // The caller may no longer wait.
                    let _ = sender.send(result);
                }
                drop(permit);
            })
            .map_err(|error| QueryError::internal(format!("cannot start a planning thread: {error}")))?;
        let result = deadline.enforce(receiver).await;
        drop(waiting);
        result?.map_err(|_| QueryError::internal("the planning thread ended without a result"))?
    }

    fn handle(&self) -> Result<Handle, QueryError> {
        let mut runtime = self.runtime.lock();
        if let Some(runtime) = runtime.as_ref() {
            return Ok(runtime.handle().clone());
        }
        let new_runtime = Builder::new_multi_thread()
            .worker_threads(self.workers)
            .thread_name("sql")
            .thread_stack_size(self.stack_bytes)
            .enable_all()
            .build()
            .map_err(|error| QueryError::internal(format!("cannot start the threads of SQL queries: {error}")))?;
        let handle = new_runtime.handle().clone();
        *runtime = Some(new_runtime);
        Ok(handle)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.get_mut().take() {
            // The last query may end on one of these threads, and a thread cannot wait for itself.
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn threads(places: usize) -> Arc<Threads> {
        let limits = QueryLimits {
            max_concurrent_queries: places,
            ..QueryLimits::default()
        };
        Arc::new(Threads::new(&limits, 1))
    }

    #[tokio::test]
    async fn work_and_its_tasks_have_a_large_stack() {
        fn depth(left: usize) -> usize {
            let page = std::hint::black_box([left; 512]);
            if left == 0 { 0 } else { depth(left - 1) + page[0] / left }
        }
        let threads = threads(1);
        let deadline = Deadline::after(Duration::from_mins(1));
        let planned = threads.plan(deadline, |_| {
            Box::pin(async {
                let task = tokio::spawn(async { depth(4000) });
                Ok(depth(4000) + task.await.unwrap())
            })
        });
        assert_eq!(planned.await, Ok(8000));
    }

    #[tokio::test]
    async fn abandoned_planning_ends_and_keeps_its_place_until_then() {
        let threads = threads(1);
        let deadline = Deadline::after(Duration::from_mins(1));
        let (begun, begins) = tokio::sync::oneshot::channel();
        let abandoned = tokio::spawn({
            let threads = threads.clone();
            async move {
                let work = |watch: Watch| -> BoxFuture<'static, Result<(), QueryError>> {
                    Box::pin(async move {
                        let _ = begun.send(());
                        loop {
                            watch.check()?;
                            std::thread::yield_now();
                        }
                    })
                };
                threads.plan(deadline, work).await
            }
        });
        begins.await.unwrap();
        assert_eq!(threads.planners.available_permits(), 0);
        abandoned.abort();
        assert_eq!(threads.plan(deadline, |_| Box::pin(async { Ok(7) })).await, Ok(7));
    }

    #[tokio::test]
    async fn planning_ends_at_the_deadline() {
        let threads = threads(1);
        let limit = Duration::from_millis(1);
        let work = |watch: Watch| -> BoxFuture<'static, Result<(), QueryError>> {
            Box::pin(async move {
                while watch.check().is_ok() {
                    std::thread::yield_now();
                }
                watch.check()
            })
        };
        let planned = threads.plan(Deadline::after(limit), work).await;
        assert_eq!(planned, Err(QueryError::Timeout(limit)));
    }
}
