//! Connections that have not authenticated yet. Their number is limited. At the limit, a new connection replaces the
//! oldest one, so that idle clients cannot lock others out. A client that knows its password authenticates in a moment,
//! so it is rarely replaced.
//!
//! In: a new connection. Out: [`PendingLogin`], which signals when the connection must be closed. `PortState::slots`
//! limits the authenticated connections.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use alluvium_base::Shutdown;

/// Maximum number of connections that have not authenticated.
pub(super) const MAX_PENDING_LOGINS: usize = 64;

/// All connections that have not authenticated, oldest first.
#[derive(Default)]
pub(super) struct PendingLogins(Mutex<LoginQueue>);

#[derive(Default)]
struct LoginQueue {
    last_number: u64,
    queue: VecDeque<(u64, Shutdown)>,
}

/// The entry of a connection in [`PendingLogins`], removed on drop.
pub(super) struct PendingLogin {
    number: u64,
    replaced: Shutdown,
    all: Arc<PendingLogins>,
}

impl PendingLogins {
    /// Registers a new connection. At the limit, it replaces the oldest one.
    pub(super) fn begin(self: &Arc<Self>) -> PendingLogin {
        let mut waiting = self.0.lock();
        if waiting.queue.len() >= MAX_PENDING_LOGINS
            && let Some((_, oldest)) = waiting.queue.pop_front()
        {
            oldest.cancel();
        }
        waiting.last_number += 1;
        let (number, gives_way) = (waiting.last_number, Shutdown::new());
        waiting.queue.push_back((number, gives_way.clone()));
        PendingLogin {
            number,
            replaced: gives_way,
            all: self.clone(),
        }
    }
}

impl PendingLogin {
    /// Returns when a newer connection has replaced this one.
    pub(super) async fn replaced(&self) {
        self.replaced.cancelled().await;
    }
}

impl Drop for PendingLogin {
    fn drop(&mut self) {
        self.all.0.lock().queue.retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_gives_way_and_a_place_comes_back() {
        let all = Arc::new(PendingLogins::default());
        let mut first: Vec<PendingLogin> = (0..MAX_PENDING_LOGINS).map(|_| all.begin()).collect();
        assert!(first.iter().all(|arrival| !arrival.replaced.is_cancelled()));
        first.pop();
        let _ninth = all.begin();
        assert!(!first[0].replaced.is_cancelled());
        let _tenth = all.begin();
        assert!(first[0].replaced.is_cancelled() && !first[1].replaced.is_cancelled());
        assert_eq!(all.0.lock().queue.len(), MAX_PENDING_LOGINS);
    }
}
