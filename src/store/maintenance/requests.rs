//! Between the thread of maintenance and those who ask it for work.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::store::StoreError;
use crate::store::maintenance::deletion::Deletion;
use crate::store::maintenance::report::Report;

/// What to do at once, without the bound on the CPU.
#[derive(Debug, Clone)]
pub enum Work {
    /// What a round of the thread would do.
    Due,
    /// Everything that can be merged, as if every hour and day were over.
    Compact,
    /// Delete files that left their table so long ago.
    Vacuum(Duration),
    /// Delete the profiles that are named.
    Delete(Deletion),
}

/// Work that was asked for and is not done yet.
#[derive(Default)]
pub(crate) struct Requests {
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Request>,
    /// The thread has ended: nobody would answer.
    closed: bool,
}

/// Work, and where its result goes.
pub(crate) struct Request {
    pub(crate) work: Work,
    /// Takes the result to the caller.
    pub(crate) reply: oneshot::Sender<Result<Report, StoreError>>,
}

impl Requests {
    pub(crate) fn ask(&self, work: Work) -> oneshot::Receiver<Result<Report, StoreError>> {
        let (reply, answer) = oneshot::channel();
        let mut queue = self.queue.lock();
        if !queue.closed {
            queue.waiting.push(Request { work, reply });
        }
        drop(queue);
        self.wake.notify_one();
        answer
    }

    /// Takes no requests any more, and lets nobody wait for an answer.
    pub(crate) fn close(&self) {
        let mut queue = self.queue.lock();
        queue.closed = true;
        queue.waiting.clear();
    }

    /// Wakes the thread, so that it sees that it must end.
    pub(crate) fn wake(&self) {
        // The thread looks whether it must end while it holds the lock. A call between that look and its wait would be
        // lost, and the wait is long.
        drop(self.queue.lock());
        self.wake.notify_one();
    }

    /// For the thread: waits for requests for as long as `wait` says, which is asked anew after each wake-up. `None`
    /// when `must_end` says so.
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
