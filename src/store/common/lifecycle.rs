//! The state of a store: open, closing, stopped, or broken because one of its threads ended early.
//!
//! If a thread ends early, the store records the reason. From then on the store accepts no profiles and reports itself
//! unhealthy. Callers that wait for the thread are woken, so that no caller waits forever.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::store::common::error::StoreError;

/// The state that the store and its threads share.
#[derive(Default)]
pub(crate) struct Lifecycle {
    closing: AtomicBool,
    stopped: AtomicBool,
    failure: Mutex<Option<String>>,
}

impl Lifecycle {
    /// Makes the store refuse all further profiles.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    /// Tells the threads to end as soon as possible. The caller must wake them.
    pub(crate) fn stop(&self) {
        self.close();
        self.stopped.store(true, Ordering::Release);
    }

    /// Returns true once the store accepts no more profiles.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Returns true once the threads must end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Returns the reason why a thread of the store has ended early, or `None` if no thread has. If several threads
    /// have ended early, returns the reason of the first.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    /// Returns the error for requests after the store has closed or one of its threads has ended.
    pub(crate) fn ended(&self) -> StoreError {
        self.failure().map_or(StoreError::Closed, StoreError::ThreadEnded)
    }

    /// Runs the body of a thread. If the body panics, records the reason and calls `release`, which must wake the
    /// callers that wait for the thread.
    pub(crate) fn watch(&self, thread: &'static str, body: impl FnOnce(), release: impl FnOnce()) {
        let Err(reason) = catch_panic(body) else { return };
        tracing::error!(
            thread,
            %reason,
            "a thread of the store has ended, the store accepts no profiles until a restart"
        );
        let text = format!("the thread `{thread}` of the store has ended: {reason}; restart the server");
        self.failure.lock().get_or_insert(text);
        release();
    }
}

/// The message of a panic.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct PanicMessage(String);

/// Returns the result of `work`, or the message of its panic. If `work` panics, the state that it was changing may be
/// inconsistent, so the caller must drop that state.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, PanicMessage> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| PanicMessage(message(panic.as_ref())))
}

pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}
