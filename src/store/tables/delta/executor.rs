//! The executor for delta_kernel's default engine. It runs all work on the calling thread.
//!
//! The store calls delta_kernel from its own threads. On a local disk `object_store` works without a runtime, so the
//! executor then has none. For a bucket, the thread enters the bucket's runtime, which drives timers and connections.
//! Calls may nest, as in a checkpoint.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use delta_kernel::KernelResult;
use delta_kernel_default_engine::executor::TaskExecutor;
use futures::future::BoxFuture;
use tokio::runtime::{EnterGuard, Handle};

/// Runs each future on the thread that waits for it.
#[derive(Debug)]
pub(crate) struct InlineExecutor {
    pub(crate) handle: Option<Handle>,
}

impl TaskExecutor for InlineExecutor {
    type Guard<'a> = Option<EnterGuard<'a>>;

    fn block_on<T>(&self, task: T) -> T::Output
    where
        T: Future + Send + 'static,
        T::Output: Send + 'static,
    {
        let _entered = self.enter();
        block_on(task)
    }

    fn spawn<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        match &self.handle {
            Some(handle) => drop(handle.spawn(task)),
            None => drop(std::thread::spawn(move || block_on(task))),
        }
    }

    fn spawn_blocking<T, R>(&self, task: T) -> BoxFuture<'_, KernelResult<R>>
    where
        T: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        Box::pin(async move { Ok(task()) })
    }

    fn enter(&self) -> Self::Guard<'_> {
        self.handle.as_ref().map(Handle::enter)
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls a future on this thread until it completes.
pub(crate) fn block_on<T: Future>(task: T) -> T::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut task = pin!(task);
    loop {
        match task.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
