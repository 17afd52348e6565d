//! Processes bodies and responses on separate threads, because the work would block an async thread for too long. The
//! number of threads is limited.
//!
//! In: the work, and the maximum number of bytes that it reads or writes. Out: its result. The larger of input and
//! output counts, because a few kilobytes of gzip may decompress to many megabytes. Long work has its own, lower limit,
//! so that threads always remain for short work.

use std::sync::Arc;

use tokio::sync::Semaphore;

use alluvium_wire::connect::{Code, ConnectError};

/// Work on up to this many bytes runs inline. It takes less than the half millisecond that a thread switch costs.
pub(crate) const MAX_INLINE_BYTES: usize = 64 << 10;

/// Estimated work of building or encoding a tree or a graph, in bytes, for [`Workers::run`]. The value is so large that
/// the work runs on a separate thread.
pub(crate) const LARGE_WORK: usize = 1 << 20;

/// Work on up to this many bytes is short. It takes some milliseconds.
const MAX_SHORT_BYTES: usize = 4 << 20;

/// Limits on the number of threads. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Workers {
    short_work: Arc<Semaphore>,
    long_work: Arc<Semaphore>,
}

impl Workers {
    /// Allows as many threads for short work as there are CPUs, and half as many for long work.
    pub(crate) fn new() -> Self {
        let cpus = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            short_work: Arc::new(Semaphore::new(cpus.max(2))),
            long_work: Arc::new(Semaphore::new((cpus / 2).max(1))),
        }
    }

    /// Runs work on at most `bytes` bytes. The closure must own its input and the charge for its memory: once it has
    /// started, it runs to its end even if the caller is dropped.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> Result<T, ConnectError> + Send + 'static,
    ) -> Result<T, ConnectError> {
        if bytes <= MAX_INLINE_BYTES {
            return work();
        }
        let permits = if bytes <= MAX_SHORT_BYTES {
            &self.short_work
        } else {
            &self.long_work
        };
        let failed = |error: &dyn std::fmt::Display| {
            ConnectError::new(Code::Internal, format!("cannot process the body: {error}"))
        };
        let permit = permits.clone().acquire_owned().await.map_err(|error| failed(&error))?;
        let result = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        result.await.map_err(|error| failed(&error))?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread::ThreadId;

    use super::*;

    fn thread() -> Result<ThreadId, ConnectError> {
        Ok(std::thread::current().id())
    }

    #[tokio::test]
    async fn only_small_work_is_done_on_the_thread_of_the_caller() {
        let workers = Workers::new();
        let own_thread = thread().unwrap();
        assert_eq!(workers.run(MAX_INLINE_BYTES, thread).await.unwrap(), own_thread);
        for bytes in [MAX_INLINE_BYTES + 1, MAX_SHORT_BYTES + 1] {
            assert_ne!(workers.run(bytes, thread).await.unwrap(), own_thread);
        }
    }

    #[tokio::test]
    async fn long_work_leaves_places_for_short_work() {
        let workers = Workers {
            short_work: Arc::new(Semaphore::new(1)),
            long_work: Arc::new(Semaphore::new(1)),
        };
        let gate = Arc::new(Barrier::new(2));
        let worker_gate = gate.clone();
        let mut first = std::pin::pin!(workers.run(usize::MAX, move || {
            worker_gate.wait();
            Ok(())
        }));
        assert!(futures::poll!(&mut first).is_pending());
        let mut second = std::pin::pin!(workers.run(usize::MAX, thread));
        assert!(futures::poll!(&mut second).is_pending());
        workers.run(MAX_SHORT_BYTES, thread).await.unwrap();
        // The second call cannot have started, because the first one holds the only permit until the gate opens.
        assert!(futures::poll!(&mut second).is_pending());
        gate.wait();
        first.await.unwrap();
        second.await.unwrap();
    }
}
