//! Connections that have not authenticated yet. Their number is limited. At the limit, a new connection replaces the
//! oldest one, so that idle clients cannot lock others out. A client that knows its password needs only a moment to
//! authenticate.
//!
//! In: a new connection. Out: [`Arrival`], which signals when the connection must be closed. `Port::slots` limits the
//! authenticated connections.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use alluvium_base::Shutdown;

/// Maximum number of connections that have not authenticated.
pub(super) const MOST: usize = 64;

/// All connections that have not authenticated, oldest first.
#[derive(Default)]
pub(super) struct Arrivals(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    last: u64,
    queue: VecDeque<(u64, Shutdown)>,
}

/// The entry of a connection in [`Arrivals`], removed on drop.
pub(super) struct Arrival {
    number: u64,
    gives_way: Shutdown,
    all: Arc<Arrivals>,
}

impl Arrivals {
    /// Registers a new connection. At the limit, it replaces the oldest one.
    pub(super) fn begin(self: &Arc<Self>) -> Arrival {
        let mut waiting = self.0.lock();
        if waiting.queue.len() >= MOST
            && let Some((_, oldest)) = waiting.queue.pop_front()
        {
            oldest.cancel();
        }
        waiting.last += 1;
        let (number, gives_way) = (waiting.last, Shutdown::new());
        waiting.queue.push_back((number, gives_way.clone()));
        Arrival {
            number,
            gives_way,
            all: self.clone(),
        }
    }
}

impl Arrival {
    /// Returns when a newer connection has replaced this one.
    pub(super) async fn gives_way(&self) {
        self.gives_way.cancelled().await;
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        self.all.0.lock().queue.retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_gives_way_and_a_place_comes_back() {
        let all = Arc::new(Arrivals::default());
        let mut first: Vec<Arrival> = (0..MOST).map(|_| all.begin()).collect();
        assert!(first.iter().all(|arrival| !arrival.gives_way.is_cancelled()));
        first.pop();
        let _ninth = all.begin();
        assert!(!first[0].gives_way.is_cancelled());
        let _tenth = all.begin();
        assert!(first[0].gives_way.is_cancelled() && !first[1].gives_way.is_cancelled());
        assert_eq!(all.0.lock().queue.len(), MOST);
    }
}
