//! Synchronisation between the flush thread and those who wait for it: callers of a flush, and appends that wait for
//! room in memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Notify, oneshot};

use crate::store::common::error::StoreError;

/// How often the flusher looks at the age of the head.
const TICK: Duration = Duration::from_millis(500);

/// A caller that waits for the result of a flush.
pub(crate) struct Caller {
    reply: oneshot::Sender<Result<(), StoreError>>,
    /// What other servers have committed is to be published too before the answer.
    pub(crate) wants_sync: bool,
}

/// Callers of a flush, and the signals for the thread and for waiting appends.
#[derive(Default)]
pub(crate) struct Flushes {
    callers: Mutex<Vec<Caller>>,
    wake: Condvar,
    room: Notify,
    /// True while flushes fail; then nobody waits for room.
    fails: AtomicBool,
}

impl Flushes {
    /// Asks for a flush, of which the answer has the result.
    pub(crate) fn ask(&self) -> oneshot::Receiver<Result<(), StoreError>> {
        self.ask_by(false)
    }

    /// Asks for a flush that is followed by a look at the commits of other servers.
    pub(crate) fn ask_with_sync(&self) -> oneshot::Receiver<Result<(), StoreError>> {
        self.ask_by(true)
    }

    fn ask_by(&self, wants_sync: bool) -> oneshot::Receiver<Result<(), StoreError>> {
        let (reply, answer) = oneshot::channel();
        self.callers.lock().push(Caller { reply, wants_sync });
        self.wake.notify_one();
        answer
    }

    /// Wakes the thread to check what is due.
    pub(crate) fn wake(&self) {
        // Not between the thread's check of what is due and its wait: the notification would be lost.
        drop(self.callers.lock());
        self.wake.notify_one();
    }

    /// For the thread: waits until `due` returns a value, and takes the callers. The argument of `due` says whether
    /// there are callers.
    pub(crate) fn next<T>(&self, due: impl Fn(bool) -> Option<T>) -> (T, Vec<Caller>) {
        let mut callers = self.callers.lock();
        loop {
            if let Some(what) = due(!callers.is_empty()) {
                return (what, std::mem::take(&mut *callers));
            }
            self.wake.wait_for(&mut callers, TICK);
        }
    }

    /// For the thread: a flush has ended with this result.
    pub(crate) fn done(&self, callers: Vec<Caller>, result: Result<(), StoreError>) {
        self.fails.store(result.is_err(), Ordering::Release);
        self.release_appends();
        Self::answer(callers, result);
    }

    /// Sends a result to callers.
    pub(crate) fn answer(callers: Vec<Caller>, result: Result<(), StoreError>) {
        let mut result = Some(result);
        for caller in callers {
            // Errors are not cloned: the first caller gets the error, the others a pointer to the log.
            let answer = match result.take() {
                Some(first) => {
                    result = first.is_ok().then_some(Ok(()));
                    first
                }
                None => Err(StoreError::LogUnavailable("the flush failed, see the log".to_owned())),
            };
            let _ = caller.reply.send(answer);
        }
    }

    /// Returns when there is room, or when waiting is pointless because flushes fail.
    pub(crate) async fn wait_for_room(&self, is_crowded: impl Fn() -> bool) {
        loop {
            let mut notified = std::pin::pin!(self.room.notified());
            notified.as_mut().enable();
            if self.fails.load(Ordering::Acquire) || !is_crowded() {
                return;
            }
            notified.await;
        }
    }

    /// Makes the waiting appends check again.
    pub(crate) fn release_appends(&self) {
        self.room.notify_waiters();
    }

    /// Ends all waits after the last flush; callers get `error`.
    pub(crate) fn end(&self, error: impl Fn() -> StoreError) {
        self.release_appends();
        for caller in std::mem::take(&mut *self.callers.lock()) {
            let _ = caller.reply.send(Err(error()));
        }
    }
}
