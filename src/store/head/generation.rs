//! A generation of profiles in memory, and consistent views of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::{Mutex, RwLock};

use crate::profile::TenantId;
use crate::profile::time::day_of;
use crate::store::head::known::KnownStacks;
use crate::store::head::partition::Partition;
use crate::store::ingest::Prepared;

/// One generation of profiles.
pub(crate) struct Head {
    pub(super) partitions: RwLock<BTreeMap<(TenantId, i32), Partition>>,
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

    /// Adds a profile. Returns the number of sample rows stored.
    pub(crate) fn apply(&self, tenant: &TenantId, profile: &Prepared) -> u64 {
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
        for ((tenant, day), partition) in self.partitions.read().iter() {
            self.known.add(tenant, *day, partition.own_stacks());
        }
    }
}
