//! Work on bodies and answers that takes longer than an async thread may be held up: on threads of its own, a bounded
//! number at a time.
//!
//! In: how many bytes the work reads and writes at most, and the work. Out: its result. Small is judged by the larger
//! of the two: a few kilobytes of gzip may be many megabytes. Long work has few threads, so that there are always some
//! for what is soon done.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::wire::connect::{Code, ConnectError};

/// Work on so many bytes is done at once: it takes less than the half millisecond that a change of threads is worth.
pub(crate) const AT_ONCE_BYTES: usize = 64 << 10;

/// Work on so many bytes is soon done: some milliseconds.
const SOON_BYTES: usize = 4 << 20;

/// Threads for work, as places. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Workers {
    soon: Arc<Semaphore>,
    long: Arc<Semaphore>,
}

impl Workers {
    /// As many places for short work as there are CPUs, half as many for long work.
    pub(crate) fn new() -> Self {
        let cpus = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            soon: Arc::new(Semaphore::new(cpus.max(2))),
            long: Arc::new(Semaphore::new((cpus / 2).max(1))),
        }
    }

    /// Runs work on at most `bytes` bytes. It owns what it works on and the share of the budget for that: when the
    /// caller goes away, it still runs to its end.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> Result<T, ConnectError> + Send + 'static,
    ) -> Result<T, ConnectError> {
        if bytes <= AT_ONCE_BYTES {
            return work();
        }
        let places = if bytes <= SOON_BYTES { &self.soon } else { &self.long };
        let failed = |error: &dyn std::fmt::Display| {
            ConnectError::new(Code::Internal, format!("work on the body failed: {error}"))
        };
        let place = places.clone().acquire_owned().await.map_err(|error| failed(&error))?;
        let done = tokio::task::spawn_blocking(move || {
            let _place = place;
            work()
        });
        done.await.map_err(|error| failed(&error))?
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
        let here = thread().unwrap();
        assert_eq!(workers.run(AT_ONCE_BYTES, thread).await.unwrap(), here);
        for bytes in [AT_ONCE_BYTES + 1, SOON_BYTES + 1] {
            assert_ne!(workers.run(bytes, thread).await.unwrap(), here);
        }
    }

    #[tokio::test]
    async fn long_work_leaves_places_for_short_work() {
        let workers = Workers {
            soon: Arc::new(Semaphore::new(1)),
            long: Arc::new(Semaphore::new(1)),
        };
        let gate = Arc::new(Barrier::new(2));
        let held = gate.clone();
        let mut first = std::pin::pin!(workers.run(usize::MAX, move || {
            held.wait();
            Ok(())
        }));
        assert!(futures::poll!(&mut first).is_pending());
        let mut second = std::pin::pin!(workers.run(usize::MAX, thread));
        assert!(futures::poll!(&mut second).is_pending());
        workers.run(SOON_BYTES, thread).await.unwrap();
        // It cannot have begun: the only place is taken until the gate opens.
        assert!(futures::poll!(&mut second).is_pending());
        gate.wait();
        first.await.unwrap();
        second.await.unwrap();
    }
}
