//! Cancel requests: maps the key of a connection to its running query.
//!
//! In: the number and the key that the server has assigned to a connection. Out: a stopped query. The server ignores a
//! wrong key and sends no response, so that nobody can guess keys.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use parking_lot::Mutex;

use alluvium_base::Shutdown;

/// The cancellation token of the running query, if there is one.
pub(super) type Running = Arc<Mutex<Option<Shutdown>>>;

/// Number, key and running query of every connection.
#[derive(Default)]
pub(super) struct Cancels {
    last: AtomicI32,
    known: Arc<Mutex<HashMap<i32, (i32, Running)>>>,
}

/// The entry of a connection in [`Cancels`], removed on drop.
pub(super) struct CancelKey {
    pub(super) number: i32,
    pub(super) key: i32,
    running: Running,
    known: Arc<Mutex<HashMap<i32, (i32, Running)>>>,
}

impl Cancels {
    /// Adds an entry for a new connection.
    pub(super) fn register(&self) -> CancelKey {
        // The number is never 0, which means "no key" to clients.
        let number = (self.last.fetch_add(1, Ordering::Relaxed) & (i32::MAX >> 1)) + 1;
        let key = rand::random::<i32>();
        let running = Running::default();
        self.known.lock().insert(number, (key, running.clone()));
        CancelKey {
            number,
            key,
            running,
            known: self.known.clone(),
        }
    }

    /// Stops the query of the connection with this number if the key is right.
    pub(super) fn cancel(&self, number: i32, key: i32) {
        let running = match self.known.lock().get(&number) {
            Some((expected, running)) if *expected == key => running.clone(),
            _ => return,
        };
        if let Some(token) = running.lock().as_ref() {
            token.cancel();
        }
    }
}

impl CancelKey {
    /// Returns the token of a query that starts.
    pub(super) fn begin(&self) -> Shutdown {
        let token = Shutdown::new();
        *self.running.lock() = Some(token.clone());
        token
    }

    /// Clears the token, so that a late cancel request does not stop the next query.
    pub(super) fn end(&self) {
        *self.running.lock() = None;
    }
}

impl Drop for CancelKey {
    fn drop(&mut self) {
        self.known.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_key_stops_the_query_that_runs() {
        let cancels = Cancels::default();
        let (one, two) = (cancels.register(), cancels.register());
        let (first, second) = (one.begin(), two.begin());
        cancels.cancel(one.number, one.key.wrapping_add(1));
        cancels.cancel(77, one.key);
        assert!(!first.is_cancelled());
        cancels.cancel(one.number, one.key);
        assert!(first.is_cancelled() && !second.is_cancelled());
        two.end();
        cancels.cancel(two.number, two.key);
        assert!(!second.is_cancelled());
    }
}
