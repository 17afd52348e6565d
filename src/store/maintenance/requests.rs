//! The queue of requests from callers to the maintenance thread.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::store::common::error::StoreError;
use crate::store::maintenance::deletion::request::Deletion;
use crate::store::maintenance::report::Report;

/// Work to do at once, without the limit on the CPU.
#[derive(Debug, Clone)]
pub enum Work {
    /// The work that a round of the thread would do.
    Due,
    /// Merge everything that can be merged, as if every hour and day were over.
    Compact,
    /// Delete files that were removed from their table longer ago than this duration.
    Vacuum(Duration),
    /// Delete the profiles that the request selects.
    Delete(Deletion),
}

/// The requests that wait for the maintenance thread.
#[derive(Default)]
pub(crate) struct Requests {
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Request>,
    /// True once the thread has ended. Further requests would receive no result.
    closed: bool,
}

/// A piece of work that a caller has requested.
pub(crate) struct Request {
    pub(crate) work: Work,
    /// Sends the result to the caller.
    pub(crate) reply: oneshot::Sender<Result<Report, StoreError>>,
}

impl Requests {
    pub(crate) fn request(&self, work: Work) -> oneshot::Receiver<Result<Report, StoreError>> {
        let (reply, answer) = oneshot::channel();
        let mut queue = self.queue.lock();
        if !queue.closed {
            queue.waiting.push(Request { work, reply });
        }
        drop(queue);
        self.wake.notify_one();
        answer
    }

    /// Refuses further requests, and ends the waits of all callers.
    pub(crate) fn close(&self) {
        let mut queue = self.queue.lock();
        queue.closed = true;
        queue.waiting.clear();
    }

    /// Wakes the thread, so that it checks whether it must end.
    pub(crate) fn wake(&self) {
        // The thread holds the lock from its check until its wait begins. Without the lock here, a notification between
        // the two would be lost, and the wait is long.
        drop(self.queue.lock());
        self.wake.notify_one();
    }

    /// Waits for requests and returns them. Only the maintenance thread may call this function. `wait` returns the
    /// remaining time and is called again after each wake-up. If it returns zero before a request arrives, the list is
    /// empty. Returns `None` if `must_end` returns true.
    pub(crate) fn next(&self, must_end: impl Fn() -> bool, wait: impl Fn() -> Duration) -> Option<Vec<Request>> {
        let mut queue = self.queue.lock();
        loop {
            if must_end() {
                drop(queue);
                self.close();
                return None;
            }
            if !queue.waiting.is_empty() || wait().is_zero() {
                return Some(std::mem::take(&mut queue.waiting));
            }
            self.wake.wait_for(&mut queue, wait());
        }
    }
}
