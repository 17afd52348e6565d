//! The threads of a store as others see them: one that ends before it was told to is remembered with its reason, and from then on the
//! store takes nothing, says so to health checks, and lets nobody wait for an answer that cannot come.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parking_lot::Mutex;

/// What became of the threads.
#[derive(Default)]
pub struct Health(Mutex<Option<String>>);

impl Health {
    /// Why the store cannot work any more; `None` while all threads run. The first cause stays.
    pub fn failure(&self) -> Option<String> {
        self.0.lock().clone()
    }

    /// Runs the body of a thread; true when it ended by itself, false when it panicked.
    pub fn watch(&self, thread: &'static str, body: impl FnOnce()) -> bool {
        let Err(reason) = caught(body) else {
            return true;
        };
        tracing::error!(
            thread,
            reason,
            "a thread of the store has ended, no profiles are taken until a restart"
        );
        let text = format!("the thread `{thread}` of the store has ended: {reason}; restart the server");
        self.0.lock().get_or_insert(text);
        false
    }
}

/// The result of `work`, or the message of its panic. What `work` has changed may be half-done: the caller drops it.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| message(panic.as_ref()))
}

/// What a panic said.
pub fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}
