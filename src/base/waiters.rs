//! Counts the tasks that wait for a resource. While a task waits, the holders of the resource can release it early.
//!
//! In: the begin and the end of each wait. Out: whether a task waits. This module only counts; it wakes no task.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the tasks that wait for one resource.
#[derive(Debug, Default)]
pub struct Waiters(AtomicUsize);

/// A wait, which ends when this value is dropped, also if the task is cancelled.
#[derive(Debug)]
pub struct Waiting<'a>(&'a Waiters);

impl Waiters {
    /// Counts a wait until the returned value is dropped.
    pub fn begin(&self) -> Waiting<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Waiting(self)
    }

    /// Returns true while at least one task waits.
    pub fn is_any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_counts_until_it_is_dropped() {
        let waiters = Waiters::default();
        assert!(!waiters.is_any());
        let (first, second) = (waiters.begin(), waiters.begin());
        drop(first);
        assert!(waiters.is_any());
        drop(second);
        assert!(!waiters.is_any());
    }
}
