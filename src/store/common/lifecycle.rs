//! State of a store: open, closing, stopped, or broken because one of its threads ended early.
//!
//! The reason of a thread that ended is kept. From then on the store accepts no profiles, reports itself unhealthy, and
//! lets nobody wait for an answer that cannot come.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::store::common::error::StoreError;

/// State that the store and its threads share.
#[derive(Default)]
pub(crate) struct Lifecycle {
    closing: AtomicBool,
    stopped: AtomicBool,
    failure: Mutex<Option<String>>,
}

impl Lifecycle {
    /// Makes the store refuse profiles from now on.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    /// Tells the threads to end as soon as they can. The caller must wake them.
    pub(crate) fn stop(&self) {
        self.close();
        self.stopped.store(true, Ordering::Release);
    }

    /// True once the store takes no more profiles.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// True once the threads must end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Why the store cannot work any more; `None` while all threads run. The first cause stays.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    /// The error of every request after a thread has ended.
    pub(crate) fn ended(&self) -> StoreError {
        self.failure().map_or(StoreError::Closed, StoreError::ThreadEnded)
    }

    /// Runs the body of a thread. When it panics, the reason is kept and `release` ends the waits of those who wait for
    /// the thread.
    pub(crate) fn watch(&self, thread: &'static str, body: impl FnOnce(), release: impl FnOnce()) {
        let Err(reason) = caught(body) else { return };
        tracing::error!(
            thread,
            reason,
            "a thread of the store has ended, no profiles are taken until a restart"
        );
        let text = format!("the thread `{thread}` of the store has ended: {reason}; restart the server");
        self.failure.lock().get_or_insert(text);
        release();
    }
}

/// The result of `work`, or the message of its panic. State that `work` was changing may be inconsistent: the caller
/// drops it.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| message(panic.as_ref()))
}

pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}
