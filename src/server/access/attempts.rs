//! Limits the failed login attempts from each address and for each name.
//!
//! In: an address and a name. Out: whether one more attempt is allowed in this minute. Successful attempts do not
//! count. The table is bounded: if it is full, the oldest count is removed.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The period over which attempts are counted.
const WINDOW: Duration = Duration::from_mins(1);
/// Maximum number of failed attempts of one address in that period. It is higher than [`BY_NAME`], because many people
/// may share an address.
const BY_ADDRESS: u32 = 30;
/// Maximum number of failed attempts for one name in that period.
const BY_NAME: u32 = 10;
/// Maximum number of counted addresses and names.
const MOST: usize = 4096;

pub(super) struct Attempts {
    /// Hashes addresses and names. Strangers choose the names and may choose long ones, so the table stores only
    /// hashes.
    hasher: RandomState,
    counted: Mutex<HashMap<u64, Count>>,
}

struct Count {
    start: Instant,
    failed: u32,
}

/// An attempt that has started.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt([u64; 2]);

impl Attempts {
    pub(super) fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            counted: Mutex::new(HashMap::new()),
        }
    }

    /// Returns true while another attempt is allowed.
    pub(super) fn has_room(&self, address: Option<IpAddr>, name: &str) -> bool {
        is_free(&self.counted.lock(), self.limits(address, name), Instant::now())
    }

    /// Starts an attempt, which counts as failed until [`Self::succeeded`] is called. Returns `None` if a limit is
    /// reached.
    pub(super) fn begin(&self, address: Option<IpAddr>, name: &str) -> Option<Attempt> {
        let limits = self.limits(address, name);
        let mut counted = self.counted.lock();
        let now = Instant::now();
        if !is_free(&counted, limits, now) {
            return None;
        }
        for (key, _) in limits {
            make_room(&mut counted, now, key);
            let count = counted.entry(key).or_insert(Count { start: now, failed: 0 });
            if now.duration_since(count.start) >= WINDOW {
                *count = Count { start: now, failed: 0 };
            }
            count.failed += 1;
        }
        Some(Attempt(limits.map(|(key, _)| key)))
    }

    /// Returns the keys under which an attempt counts, each with its maximum number of failed attempts.
    fn limits(&self, address: Option<IpAddr>, name: &str) -> [(u64, u32); 2] {
        [
            (self.hasher.hash_one(("address", address.map(network))), BY_ADDRESS),
            (self.hasher.hash_one(("name", name)), BY_NAME),
        ]
    }

    /// Removes an attempt that has succeeded from the counts of failed attempts.
    pub(super) fn succeeded(&self, attempt: Attempt) {
        let mut counted = self.counted.lock();
        for key in attempt.0 {
            if let Some(count) = counted.get_mut(&key) {
                count.failed = count.failed.saturating_sub(1);
            }
        }
    }
}

/// Returns true if no limit is reached in this minute.
fn is_free(counted: &HashMap<u64, Count>, limits: [(u64, u32); 2], now: Instant) -> bool {
    limits.iter().all(|(key, max_failed)| {
        let count = counted.get(key);
        count.is_none_or(|count| now.duration_since(count.start) >= WINDOW || count.failed < *max_failed)
    })
}

/// Makes room for `key` in a full table.
fn make_room(counted: &mut HashMap<u64, Count>, now: Instant, key: u64) {
    if counted.len() < MOST || counted.contains_key(&key) {
        return;
    }
    counted.retain(|_, count| now.duration_since(count.start) < WINDOW);
    if counted.len() >= MOST
        && let Some(oldest) = counted.iter().min_by_key(|(_, count)| count.start).map(|(key, _)| *key)
    {
        counted.remove(&oldest);
    }
}

/// Returns the client's address. IPv6 addresses are truncated to /64, because one machine usually owns a whole /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u16) -> Option<IpAddr> {
        Some(IpAddr::from([0xfd00, 0, 0, last, 0, 0, 0, last]))
    }

    #[test]
    fn a_name_and_an_address_have_so_many_failures_a_minute() {
        let attempts = Attempts::new();
        for last in 0..BY_NAME {
            assert!(attempts.begin(address(last as u16), "ada").is_some());
        }
        assert!(attempts.begin(address(99), "ada").is_none());
        assert!(attempts.begin(address(99), "bob").is_some());
        for number in 0..BY_ADDRESS {
            assert!(attempts.begin(address(500), &number.to_string()).is_some());
        }
        assert!(attempts.begin(address(500), "other").is_none());
        assert!(attempts.begin(address(501), "other").is_some());
    }

    #[test]
    fn success_does_not_count_and_a_minute_is_forgotten() {
        let attempts = Attempts::new();
        for _ in 0..100 {
            let attempt = attempts.begin(address(1), "ada").unwrap();
            attempts.succeeded(attempt);
        }
        while attempts.begin(address(1), "ada").is_some() {}
        let start = Instant::now().checked_sub(WINDOW).unwrap();
        attempts
            .counted
            .lock()
            .values_mut()
            .for_each(|count| count.start = start);
        assert!(attempts.begin(address(1), "ada").is_some());
    }

    #[test]
    fn the_table_has_a_bound() {
        let attempts = Attempts::new();
        for number in 0..3 * MOST {
            attempts.begin(address(number as u16), &number.to_string());
        }
        assert!(attempts.counted.lock().len() <= MOST);
    }
}
