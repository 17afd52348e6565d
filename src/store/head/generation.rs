//! A generation of profiles in memory, and consistent views of it.
//!
//! Each partition has a lock of its own. Readers hold it for a bounded number of rows at a time ([`scan`]), so the
//! thread that applies profiles never waits for a whole scan, and never for what a reader does with its rows.
//!
//! [`scan`]: crate::store::head::scan

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::{Mutex, RwLock};

use crate::profile::TenantId;
use crate::profile::time::day_of;
use crate::store::head::known::KnownStacks;
use crate::store::head::partition::Partition;
use crate::store::ingest::Prepared;

/// Number of partitions that a reader lists under the lock at one time.
const LISTED: usize = 1024;

/// Whose profiles a partition has, and of which day since 1970.
pub(super) type Key = (TenantId, i32);
/// A partition with its lock.
pub(super) type Locked = Arc<RwLock<Partition>>;

/// One generation of profiles.
pub(crate) struct Head {
    /// Changed only for the first profile of a tenant and day.
    partitions: RwLock<BTreeMap<Key, Locked>>,
    known: Arc<KnownStacks>,
    /// Number of profiles applied so far; a view sees those below the number it was made with.
    applied: AtomicU64,
    bytes: AtomicU64,
    first_applied: Mutex<Option<Instant>>,
}

/// A view of a head at one moment.
pub(crate) struct HeadView {
    pub(super) head: Arc<Head>,
    pub(super) applied: u64,
}

impl Head {
    /// An empty generation that may omit the frames of `known` stacks.
    pub(crate) fn new(known: Arc<KnownStacks>) -> Self {
        Self {
            partitions: RwLock::default(),
            known,
            applied: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            first_applied: Mutex::new(None),
        }
    }

    /// Adds a profile. Returns the number of sample rows stored. One thread at a time may call it.
    pub(crate) fn apply(&self, tenant: &TenantId, profile: &Prepared) -> u64 {
        self.first_applied.lock().get_or_insert_with(Instant::now);
        let key = (tenant.clone(), day_of(profile.time_us));
        let partition = self.partition(&key).unwrap_or_else(|| {
            let new = Partition::new(self.known.day(tenant, key.1));
            let mut partitions = self.partitions.write();
            partitions
                .entry(key)
                .or_insert_with(|| Arc::new(RwLock::new(new)))
                .clone()
        });
        let mut partition = partition.write();
        let before = partition.bytes();
        let rows = partition.apply(self.applied.load(Ordering::Relaxed), profile);
        self.bytes
            .fetch_add(partition.bytes().saturating_sub(before) as u64, Ordering::Relaxed);
        // Readers see the profile once it is complete.
        self.applied.fetch_add(1, Ordering::Release);
        rows
    }

    /// Memory held, in bytes, estimated from the capacities of the columns.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Number of profiles applied.
    pub(crate) fn profiles(&self) -> u64 {
        self.applied.load(Ordering::Acquire)
    }

    /// The tenants of which it has profiles.
    pub(crate) fn tenants(&self) -> Vec<TenantId> {
        self.partitions
            .read()
            .keys()
            .map(|(tenant, _)| tenant.clone())
            .collect()
    }

    /// The tenants and days that the head has rows of.
    pub(crate) fn days(&self) -> Vec<Key> {
        self.partitions.read().keys().cloned().collect()
    }

    /// When the first profile was applied.
    pub(crate) fn first_applied(&self) -> Option<Instant> {
        *self.first_applied.lock()
    }

    /// A view of the head as of now: later profiles are not in it.
    pub(crate) fn view(self: &Arc<Self>) -> HeadView {
        HeadView {
            head: self.clone(),
            applied: self.profiles(),
        }
    }

    /// Marks the stacks of the head as known, so that they are not written again. For after the commit and publication.
    pub(crate) fn remember_stacks(&self) {
        for ((tenant, day), partition) in self.all() {
            self.known.add(&tenant, day, partition.read().own_stacks());
        }
    }

    /// The partition of a tenant and day.
    pub(super) fn partition(&self, key: &Key) -> Option<Locked> {
        self.partitions.read().get(key).cloned()
    }

    /// All partitions, ascending. The lock of their list is held only while the iterator takes some more of them.
    pub(super) fn all(&self) -> impl Iterator<Item = (Key, Locked)> {
        let mut listed: std::vec::IntoIter<(Key, Locked)> = Vec::new().into_iter();
        let mut last: Option<Key> = None;
        std::iter::from_fn(move || {
            if listed.as_slice().is_empty() {
                let after = last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
                let partitions = self.partitions.read();
                let next = partitions.range::<Key, _>((after, Bound::Unbounded)).take(LISTED);
                listed = next
                    .map(|(key, partition)| (key.clone(), partition.clone()))
                    .collect::<Vec<_>>()
                    .into_iter();
            }
            let next = listed.next()?;
            last = Some(next.0.clone());
            Some(next)
        })
    }
}
