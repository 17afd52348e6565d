//! Profiles in memory, queryable at once: columns per series and profile type, stacks and series beside them.
//!
//! In: [`Prepared`] profiles, applied by one thread at a time. Out: record batches for queries ([`scan`]) and sorted ones for the flush
//! ([`sorted`]). A head is a generation: it is filled, frozen, written to tables and dropped. Applying a sample costs one lookup of
//! its stack and no allocation beyond the growth of columns.

mod intern;
mod known;
mod partition;
pub mod rows;
pub mod scan;
pub mod sorted;

use std::collections::BTreeMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::{Mutex, RwLock};

use crate::store::ingest::Prepared;

pub use intern::Texts;
pub use known::KnownStacks;
pub(crate) use partition::Partition;
pub use partition::{Frame, Frames};

/// Microseconds of a day.
pub const DAY_US: i64 = 86_400_000_000;

/// One generation of profiles.
pub struct Head {
    partitions: RwLock<BTreeMap<(Arc<str>, i32), Partition>>,
    known: Arc<KnownStacks>,
    /// Profiles applied so far; a view sees those below the number it was made with.
    applied: AtomicU64,
    bytes: AtomicU64,
    first_applied: Mutex<Option<Instant>>,
}

/// A head as it was at one moment.
pub struct HeadView {
    head: Arc<Head>,
    applied: u64,
}

impl Head {
    /// An empty generation that need not keep the frames of `known` stacks.
    pub fn new(known: Arc<KnownStacks>) -> Self {
        Self {
            partitions: RwLock::default(),
            known,
            applied: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            first_applied: Mutex::new(None),
        }
    }

    /// Adds a profile. Returns the number of sample rows stored.
    pub fn apply(&self, tenant: &Arc<str>, profile: &Prepared) -> u64 {
        self.first_applied.lock().get_or_insert_with(Instant::now);
        let day = day_of(profile.time_us);
        let mut partitions = self.partitions.write();
        let partition = partitions
            .entry((tenant.clone(), day))
            .or_insert_with(|| Partition::new(self.known.day(tenant, day)));
        let before = partition.bytes();
        let rows = partition.apply(self.applied.load(Ordering::Relaxed), profile);
        self.bytes
            .fetch_add(partition.bytes().saturating_sub(before) as u64, Ordering::Relaxed);
        // Readers see the profile once it is complete.
        self.applied.fetch_add(1, Ordering::Release);
        rows
    }

    /// Memory held, in bytes, estimated from the capacities of the columns.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Number of profiles applied.
    pub fn profiles(&self) -> u64 {
        self.applied.load(Ordering::Acquire)
    }

    /// When the first profile was applied.
    pub fn first_applied(&self) -> Option<Instant> {
        *self.first_applied.lock()
    }

    /// The head as of now: later profiles do not show.
    pub fn view(self: &Arc<Self>) -> HeadView {
        HeadView {
            head: self.clone(),
            applied: self.profiles(),
        }
    }

    /// After the head's tables were committed and published: its stacks need not be written again.
    pub fn remember_stacks(&self) {
        for ((tenant, day), partition) in self.partitions.read().iter() {
            self.known.add(tenant, *day, partition.own_stacks());
        }
    }
}

/// Days since 1970 of a time in microseconds.
pub fn day_of(time_us: i64) -> i32 {
    time_us.div_euclid(DAY_US) as i32
}

/// A hasher for keys that are hashes themselves.
pub type Identity = BuildHasherDefault<IdentityHasher>;

/// Passes a 64-bit key through.
#[derive(Default, Clone, Copy)]
pub struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

#[cfg(test)]
mod tests;
