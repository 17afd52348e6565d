//! Settings of maintenance.

use std::time::Duration;

use crate::store::maintenance::plan::Policy;
use crate::store::maintenance::retention::aging::Aging;
use crate::store::maintenance::retention::space::SpaceLimits;

/// Settings of maintenance: what is done, when, and how fast.
#[derive(Debug, Clone)]
pub struct MaintenanceConfig {
    /// Whether files are merged. On.
    pub compaction: bool,
    /// Rules for when to merge.
    pub policy: Policy,
    /// Time between rounds, 10 seconds.
    pub interval: Duration,
    /// Share of one core that the thread may use, 0.5. 1 for no bound.
    pub cpu_share: f64,
    /// Memory of names (stacks, series) that a merge may hold, 64 MiB. Merges of more work in pieces.
    pub memory_bytes: usize,
    /// How long a removed file is kept for readers that opened the table before, 1 hour.
    pub deletion_delay: Duration,
    /// Retention and downsampling. Off.
    pub aging: Aging,
    /// Retention by size. Off.
    pub space: SpaceLimits,
    /// Interval between searches for files to delete, 10 minutes.
    pub vacuum_interval: Duration,
}

impl Default for MaintenanceConfig {
    fn default() -> Self {
        Self {
            compaction: true,
            policy: Policy::default(),
            interval: Duration::from_secs(10),
            cpu_share: 0.5,
            memory_bytes: 64 << 20,
            deletion_delay: Duration::from_hours(1),
            aging: Aging::default(),
            space: SpaceLimits::default(),
            vacuum_interval: Duration::from_mins(10),
        }
    }
}

impl MaintenanceConfig {
    /// Rules for when to merge, with types kept apart where types have their own retention.
    pub(super) fn merging(&self) -> Policy {
        if self.aging.by_type() {
            self.policy.by_type()
        } else {
            self.policy.clone()
        }
    }
}
