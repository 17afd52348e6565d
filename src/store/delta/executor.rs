//! The executor under delta_kernel's default engine: everything runs on the calling thread.
//!
//! The store speaks to the kernel from threads of its own and keeps its tables on a local disk, where `object_store` works without a
//! runtime. So no runtime is made for it, and calls may nest, as a checkpoint's do. Object stores in the network will need
//! the kernel's tokio executor in this place.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use delta_kernel::KernelResult;
use delta_kernel_default_engine::executor::TaskExecutor;
use futures::future::BoxFuture;

/// Runs futures where they are waited for.
#[derive(Debug)]
pub struct InlineExecutor;

impl TaskExecutor for InlineExecutor {
    type Guard<'a> = ();

    fn block_on<T>(&self, task: T) -> T::Output
    where
        T: Future + Send + 'static,
        T::Output: Send + 'static,
    {
        block_on(task)
    }

    fn spawn<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        std::thread::spawn(move || block_on(task));
    }

    fn spawn_blocking<T, R>(&self, task: T) -> BoxFuture<'_, KernelResult<R>>
    where
        T: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        Box::pin(async move { Ok(task()) })
    }

    fn enter(&self) -> Self::Guard<'_> {}
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T: Future>(task: T) -> T::Output {
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
