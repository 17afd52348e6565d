//! A head: one generation of profiles in memory, which is filled, frozen, flushed and dropped. A view contains the
//! profiles of a head at one moment.
//!
//! Each partition has its own lock. Readers hold a lock for a bounded number of rows at a time ([`scan`]). The thread
//! that applies profiles therefore never waits for a whole scan, or for a reader to process its rows.
//!
//! [`scan`]: crate::store::head::scan

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::{Mutex, RwLock};

use crate::store::head::known::KnownStacks;
use crate::store::head::partition::Partition;
use crate::store::ingest::Prepared;
use alluvium_profile::TenantId;
use alluvium_profile::time::day_of;

/// Number of partitions that a reader lists at a time under the lock.
const LISTED: usize = 1024;

/// The tenant and the day of a partition, in days since 1970.
pub(super) type Key = (TenantId, i32);
/// A partition with its lock.
pub(super) type Locked = Arc<RwLock<Partition>>;

/// One generation of profiles in memory.
pub(crate) struct Head {
    /// The partitions by tenant and day. The first profile of a tenant and day adds a partition.
    partitions: RwLock<BTreeMap<Key, Locked>>,
    known: Arc<KnownStacks>,
    /// Number of profiles applied so far. A view contains the profiles that were applied before its creation.
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
    /// Creates an empty head, which may omit the frames of stacks in `known`.
    pub(crate) fn new(known: Arc<KnownStacks>) -> Self {
        Self {
            partitions: RwLock::default(),
            known,
            applied: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            first_applied: Mutex::new(None),
        }
    }

    /// Adds a profile. Returns the number of stored sample rows. Only one thread at a time may call this function.
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
        // The count grows last, so that readers see only complete profiles.
        self.applied.fetch_add(1, Ordering::Release);
        rows
    }

    /// Returns the memory in bytes, estimated from the capacities of the columns.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of profiles applied.
    pub(crate) fn profiles(&self) -> u64 {
        self.applied.load(Ordering::Acquire)
    }

    /// Returns the tenants that have profiles in the head.
    pub(crate) fn tenants(&self) -> Vec<TenantId> {
        self.partitions
            .read()
            .keys()
            .map(|(tenant, _)| tenant.clone())
            .collect()
    }

    /// Returns the tenants and days that have rows in the head.
    pub(crate) fn days(&self) -> Vec<Key> {
        self.partitions.read().keys().cloned().collect()
    }

    /// Returns the time at which the first profile was applied; `None` for an empty head.
    pub(crate) fn first_applied(&self) -> Option<Instant> {
        *self.first_applied.lock()
    }

    /// Returns a view of the present head. Later profiles are not in it.
    pub(crate) fn view(self: &Arc<Self>) -> HeadView {
        HeadView {
            head: self.clone(),
            applied: self.profiles(),
        }
    }

    /// Marks the stacks of the head as known, so that they are not written again. The caller must publish the commit of
    /// the stacks before this call.
    pub(crate) fn remember_stacks(&self) {
        for ((tenant, day), partition) in self.all() {
            self.known.add(&tenant, day, partition.read().own_stacks());
        }
    }

    /// Returns the partition of a tenant and day.
    pub(super) fn partition(&self, key: &Key) -> Option<Locked> {
        self.partitions.read().get(key).cloned()
    }

    /// Returns all partitions in ascending order. The lock of the list is held only while the iterator fetches more
    /// partitions.
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
