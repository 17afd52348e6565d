//! A cache that queries share, limited in bytes.
//!
//! At the limit, the cache first evicts entries that were used only once. Below the limit, it also drops entries that
//! were not used for some minutes ([`Cache::forget_unused`]), so that rarely used data does not keep the cache
//! full.

use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;
use quick_cache::unsync::Cache as Entries;
use quick_cache::{Equivalent, Weighter};

/// Interval of the calls of [`Cache::forget_unused`].
pub(crate) const FORGET_INTERVAL: Duration = Duration::from_mins(1);
/// Number of calls of [`Cache::forget_unused`] after which an unused entry is dropped.
const UNUSED_ROUNDS: u32 = 5;
const ENTRY_BYTES: usize = 128;
/// Estimated average size of an entry in bytes. It determines how many evicted keys the cache remembers.
const AVERAGE_ENTRY_BYTES: usize = 16 << 10;

/// A value that can estimate its memory.
pub(crate) trait Bytes {
    fn bytes(&self) -> usize;
}

impl<T: Bytes + ?Sized> Bytes for std::sync::Arc<T> {
    fn bytes(&self) -> usize {
        T::bytes(self)
    }
}

pub(crate) struct Cache<K, V> {
    limit: usize,
    state: Mutex<State<K, V>>,
}

struct State<K, V> {
    entries: Entries<K, Entry<V>, EntryWeighter>,
    /// Number of calls of [`Cache::forget_unused`] so far.
    rounds: u32,
}

struct Entry<V> {
    value: V,
    bytes: usize,
    /// Value of `rounds` at the last use.
    last_round: u32,
}

/// Weight of an entry: its size in bytes.
struct EntryWeighter;

impl<K, V> Weighter<K, Entry<V>> for EntryWeighter {
    fn weight(&self, _key: &K, entry: &Entry<V>) -> u64 {
        (ENTRY_BYTES + entry.bytes) as u64
    }
}

impl<K: Eq + Hash + Clone, V: Bytes> Cache<K, V> {
    /// Creates a cache of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            state: Mutex::new(State {
                entries: Entries::with_weighter((limit / AVERAGE_ENTRY_BYTES).max(1), limit as u64, EntryWeighter),
                rounds: 0,
            }),
        }
    }

    /// Returns the limit of the cache in bytes.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn get<Q>(&self, key: &Q) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        V: Clone,
    {
        self.with(key, V::clone)
    }

    /// Applies `read` to the value of a key, if it is cached.
    pub(crate) fn with<Q, R>(&self, key: &Q, read: impl FnOnce(&V) -> R) -> Option<R>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let mut state = self.state.lock();
        let looks = state.rounds;
        let mut entry = state.entries.get_mut(key)?;
        entry.last_round = looks;
        Some(read(&entry.value))
    }

    /// Inserts or replaces a value. A value larger than the limit is dropped.
    pub(crate) fn insert(&self, key: K, value: V) {
        let mut state = self.state.lock();
        let used = state.rounds;
        let bytes = value.bytes();
        state.entries.insert(
            key,
            Entry {
                value,
                bytes,
                last_round: used,
            },
        );
    }

    /// Changes the value of a key, starting from the default if the key is not cached.
    pub(crate) fn change<R>(&self, key: &K, change: impl FnOnce(&mut V) -> R) -> R
    where
        V: Default,
    {
        let mut state = self.state.lock();
        let used = state.rounds;
        if let Some(mut entry) = state.entries.get_mut(key) {
            let current = &mut *entry;
            let result = change(&mut current.value);
            (current.bytes, current.last_round) = (current.value.bytes(), used);
            drop(entry);
            // Only an insertion evicts entries, so an entry that has grown too large is inserted again.
            if state.entries.weight() > self.limit as u64
                && let Some((key, entry)) = state.entries.remove(key)
            {
                state.entries.insert(key, entry);
            }
            return result;
        }
        let mut value = V::default();
        let result = change(&mut value);
        let bytes = value.bytes();
        state.entries.insert(
            key.clone(),
            Entry {
                value,
                bytes,
                last_round: used,
            },
        );
        result
    }

    /// Keeps only the entries whose key satisfies `keep`.
    pub(crate) fn retain(&self, keep: impl Fn(&K) -> bool) {
        self.state.lock().entries.retain(|key, _| keep(key));
    }

    /// Drops all entries to free memory.
    pub(crate) fn clear(&self) {
        self.state.lock().entries.clear();
    }

    /// Calls `visit` with every value.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&V)) {
        self.state
            .lock()
            .entries
            .iter()
            .for_each(|(_, entry)| visit(&entry.value));
    }

    /// Drops entries that were not used during the last [`UNUSED_ROUNDS`] calls of this function, that is, for some
    /// minutes.
    pub(crate) fn forget_unused(&self) {
        let mut state = self.state.lock();
        state.rounds += 1;
        let looks = state.rounds;
        state
            .entries
            .retain(|_, entry| looks - entry.last_round <= UNUSED_ROUNDS);
    }

    /// Returns the size of all entries in bytes, including their overhead.
    pub(crate) fn bytes(&self) -> u64 {
        self.state.lock().entries.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value with a size in bytes.
    #[derive(Clone, Default, PartialEq, Debug)]
    struct Load(usize);

    impl Bytes for Load {
        fn bytes(&self) -> usize {
            self.0
        }
    }

    #[test]
    fn what_is_asked_for_again_and_again_stays_and_the_bytes_stay_below_the_limit() {
        let cache: Cache<u64, Load> = Cache::new(20 << 10);
        for key in 0..200 {
            cache.insert(key, Load(1000));
            cache.get(&0);
            assert!(cache.bytes() <= 20 << 10);
        }
        assert_eq!(cache.get(&0), Some(Load(1000)));
        assert_eq!(cache.get(&199), Some(Load(1000)));
        assert!((1..200).filter(|key| cache.get(key).is_some()).count() < 20);
    }

    #[test]
    fn a_value_that_grows_is_weighed_again_and_one_that_is_too_large_is_not_kept() {
        let cache: Cache<u64, Load> = Cache::new(10 << 10);
        cache.insert(1, Load(4000));
        cache.change(&2, |load| load.0 = 1000);
        cache.change(&2, |load| load.0 += 2000);
        assert_eq!(cache.bytes(), 7000 + 2 * ENTRY_BYTES as u64);
        cache.change(&2, |load| load.0 += 5000);
        assert!(cache.bytes() <= 10 << 10);
        cache.insert(3, Load(11 << 10));
        assert_eq!(cache.get(&3), None);
    }

    #[test]
    fn what_nobody_asks_for_in_five_looks_is_forgotten() {
        let cache: Cache<u64, Load> = Cache::new(10 << 10);
        cache.insert(1, Load(10));
        cache.insert(2, Load(10));
        for _ in 0..5 {
            cache.forget_unused();
            assert!(cache.get(&1).is_some());
        }
        cache.forget_unused();
        assert!(cache.get(&1).is_some());
        assert_eq!(cache.get(&2), None);
        assert_eq!(cache.bytes(), 10 + ENTRY_BYTES as u64);
    }
}
