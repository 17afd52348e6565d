//! What is kept between questions, bounded by bytes.
//!
//! When there is no room, what was asked for only once goes first. A bound in bytes alone would let memory grow to it,
//! however little of it is still asked about: what nobody has asked for in some minutes goes too
//! ([`Cache::forget_unused`]).

use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;
use quick_cache::unsync::Cache as Entries;
use quick_cache::{Equivalent, Weighter};

/// How often [`Cache::forget_unused`] is called.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_mins(1);
/// After so many looks without a use an entry goes.
const LOOKS: u32 = 5;
const ENTRY_BYTES: usize = 128;
/// What an entry weighs on average, as a guess that decides how many entries are remembered that have gone.
const USUAL_BYTES: usize = 16 << 10;

/// Memory that a value holds, estimated.
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
    entries: Entries<K, Entry<V>, Held>,
    /// Looks for what is unused so far.
    looks: u32,
}

struct Entry<V> {
    value: V,
    bytes: usize,
    /// Number of looks before its last use.
    used: u32,
}

/// Weighs an entry by its bytes.
struct Held;

impl<K, V> Weighter<K, Entry<V>> for Held {
    fn weight(&self, _key: &K, entry: &Entry<V>) -> u64 {
        (ENTRY_BYTES + entry.bytes) as u64
    }
}

impl<K: Eq + Hash + Clone, V: Bytes> Cache<K, V> {
    /// A cache that holds `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            state: Mutex::new(State {
                entries: Entries::with_weighter((limit / USUAL_BYTES).max(1), limit as u64, Held),
                looks: 0,
            }),
        }
    }

    /// Most bytes that it holds.
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

    /// What `read` makes of the value of a key.
    pub(crate) fn with<Q, R>(&self, key: &Q, read: impl FnOnce(&V) -> R) -> Option<R>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let mut state = self.state.lock();
        let looks = state.looks;
        let mut entry = state.entries.get_mut(key)?;
        entry.used = looks;
        Some(read(&entry.value))
    }

    /// Puts a value in the place of what there was. One that is larger than the cache is not kept.
    pub(crate) fn put(&self, key: K, value: V) {
        let mut state = self.state.lock();
        let used = state.looks;
        let bytes = value.bytes();
        state.entries.insert(key, Entry { value, bytes, used });
    }

    /// Changes the value of a key, which is an empty one if there was none.
    pub(crate) fn change<R>(&self, key: &K, change: impl FnOnce(&mut V) -> R) -> R
    where
        V: Default,
    {
        let mut state = self.state.lock();
        let used = state.looks;
        if let Some(mut entry) = state.entries.get_mut(key) {
            let held = &mut *entry;
            let result = change(&mut held.value);
            (held.bytes, held.used) = (held.value.bytes(), used);
            drop(entry);
            // Room is made for what is put, not for what grows.
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
        state.entries.insert(key.clone(), Entry { value, bytes, used });
        result
    }

    /// Keeps only the values that `keep` says.
    pub(crate) fn retain(&self, keep: impl Fn(&K) -> bool) {
        self.state.lock().entries.retain(|key, _| keep(key));
    }

    /// Calls `each` with every value.
    pub(crate) fn for_each(&self, mut each: impl FnMut(&V)) {
        self.state
            .lock()
            .entries
            .iter()
            .for_each(|(_, entry)| each(&entry.value));
    }

    /// Drops what was not used since so many looks ago as make some minutes.
    pub(crate) fn forget_unused(&self) {
        let mut state = self.state.lock();
        state.looks += 1;
        let looks = state.looks;
        state.entries.retain(|_, entry| looks - entry.used <= LOOKS);
    }

    /// Bytes held, with those of the entries themselves.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.state.lock().entries.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value of so many bytes.
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
            cache.put(key, Load(1000));
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
        cache.put(1, Load(4000));
        cache.change(&2, |load| load.0 = 1000);
        cache.change(&2, |load| load.0 += 2000);
        assert_eq!(cache.bytes(), 7000 + 2 * ENTRY_BYTES as u64);
        cache.change(&2, |load| load.0 += 5000);
        assert!(cache.bytes() <= 10 << 10);
        cache.put(3, Load(11 << 10));
        assert_eq!(cache.get(&3), None);
    }

    #[test]
    fn what_nobody_asks_for_in_five_looks_is_forgotten() {
        let cache: Cache<u64, Load> = Cache::new(10 << 10);
        cache.put(1, Load(10));
        cache.put(2, Load(10));
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
