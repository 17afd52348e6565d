//! Synchronisation between the flush thread and the tasks that wait for it: callers of a flush, and appends that wait
//! for room in memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Notify, oneshot};

use crate::store::common::error::StoreError;

/// Interval at which the flush thread checks the age of the head.
const TICK: Duration = Duration::from_millis(500);

/// A caller that waits for the result of a flush.
pub(crate) struct Caller {
    reply: oneshot::Sender<Result<(), StoreError>>,
    /// True if the commits of other servers must also be published before the result is sent.
    pub(crate) wants_sync: bool,
}

/// The callers of a flush, and the signals for the flush thread and for waiting appends.
#[derive(Default)]
pub(crate) struct Flushes {
    callers: Mutex<Vec<Caller>>,
    wake: Condvar,
    room: Notify,
    /// True while flushes fail. Appends then do not wait for room.
    is_failing: AtomicBool,
}

impl Flushes {
    /// Requests a flush. The returned receiver yields the result of the flush.
    pub(crate) fn request(&self) -> oneshot::Receiver<Result<(), StoreError>> {
        self.request_by(false)
    }

    /// Requests a flush, followed by a check for commits of other servers.
    pub(crate) fn request_with_sync(&self) -> oneshot::Receiver<Result<(), StoreError>> {
        self.request_by(true)
    }

    fn request_by(&self, wants_sync: bool) -> oneshot::Receiver<Result<(), StoreError>> {
        let (reply, receiver) = oneshot::channel();
        self.callers.lock().push(Caller { reply, wants_sync });
        self.wake.notify_one();
        receiver
    }

    /// Wakes the flush thread, so that the thread checks whether work is due.
    pub(crate) fn wake(&self) {
        // The lock prevents a notification between the thread's check and its wait. Such a notification would be lost.
        drop(self.callers.lock());
        self.wake.notify_one();
    }

    /// Waits, on the flush thread, until `due` returns a value. Returns that value and the waiting callers. The
    /// argument of `due` is true if callers are waiting.
    pub(crate) fn next<T>(&self, due: impl Fn(bool) -> Option<T>) -> (T, Vec<Caller>) {
        let mut callers = self.callers.lock();
        loop {
            if let Some(value) = due(!callers.is_empty()) {
                return (value, std::mem::take(&mut *callers));
            }
            self.wake.wait_for(&mut callers, TICK);
        }
    }

    /// Reports, from the flush thread, that a flush has ended with this result.
    pub(crate) fn finish(&self, callers: Vec<Caller>, result: Result<(), StoreError>) {
        self.is_failing.store(result.is_err(), Ordering::Release);
        self.release_appends();
        Self::respond(callers, result);
    }

    /// Sends a result to callers.
    pub(crate) fn respond(callers: Vec<Caller>, result: Result<(), StoreError>) {
        let mut result = Some(result);
        for caller in callers {
            // Errors cannot be cloned, so only the first caller receives the error itself.
            let caller_result = match result.take() {
                Some(first) => {
                    result = first.is_ok().then_some(Ok(()));
                    first
                }
                None => Err(StoreError::FlushFailed),
            };
            let _ = caller.reply.send(caller_result);
        }
    }

    /// Waits until `is_crowded` returns false. While flushes fail, returns at once: a failing flush makes no room.
    pub(crate) async fn wait_for_room(&self, is_crowded: impl Fn() -> bool) {
        loop {
            let mut notified = std::pin::pin!(self.room.notified());
            notified.as_mut().enable();
            if self.is_failing.load(Ordering::Acquire) || !is_crowded() {
                return;
            }
            notified.await;
        }
    }

    /// Makes the waiting appends check for room again.
    pub(crate) fn release_appends(&self) {
        self.room.notify_waiters();
    }

    /// Ends all waits after the last flush. Waiting callers receive `error`.
    pub(crate) fn end(&self, error: impl Fn() -> StoreError) {
        self.release_appends();
        for caller in std::mem::take(&mut *self.callers.lock()) {
            let _ = caller.reply.send(Err(error()));
        }
    }
}
