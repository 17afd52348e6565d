//! A limit for the large responses that components hold in memory for their callers, such as goroutine dumps.
//!
//! In: a component that wants to read a large response. Out: a reservation, or none while too many are held. The limit
//! applies to all components together, because a configuration may have any number of them.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of large responses in memory.
const MAX_RESPONSES: usize = 2;

/// The limit for large responses. Clones share it.
#[derive(Clone, Debug)]
pub struct LargeResponses(Arc<Semaphore>);

impl Default for LargeResponses {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_RESPONSES)))
    }
}

impl LargeResponses {
    /// Reserves room for one response; `None` while the maximum number of responses is in memory.
    pub fn reserve(&self) -> Option<Reservation> {
        let permit = self.0.clone().try_acquire_owned().ok()?;
        Some(Reservation { _permit: permit })
    }
}

/// Room for one response. It becomes free when the reservation is dropped.
#[derive(Debug)]
pub struct Reservation {
    _permit: OwnedSemaphorePermit,
}

impl Reservation {
    /// Returns the same body, which keeps the reservation until its last reference is dropped. So a client that reads
    /// the response slowly still counts.
    pub fn hold(self, body: Bytes) -> Bytes {
        Bytes::from_owner(Held {
            body,
            _reservation: self,
        })
    }
}

/// A body with its reservation.
struct Held {
    body: Bytes,
    _reservation: Reservation,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_keeps_its_reservation_until_its_last_part_is_dropped() {
        let responses = LargeResponses::default();
        let mut reservations: Vec<Reservation> = (0..MAX_RESPONSES).filter_map(|_| responses.reserve()).collect();
        assert_eq!(reservations.len(), MAX_RESPONSES);
        assert!(responses.clone().reserve().is_none());
        let body = reservations.pop().unwrap().hold(Bytes::from_static(b"goroutine 1"));
        let part = body.slice(10..);
        drop(body);
        assert_eq!(part, "1");
        assert!(responses.reserve().is_none());
        drop(part);
        assert!(responses.reserve().is_some());
    }
}
