//! Settings of the maintenance of a store.

use std::time::Duration;

use crate::store::maintenance::plan::Policy;
use crate::store::maintenance::retention::aging::Aging;
use crate::store::maintenance::retention::space::SpaceLimits;

/// Settings of maintenance: which work is done, when, and how fast.
#[derive(Debug, Clone)]
pub struct MaintenanceConfig {
    /// If true, files are merged. Defaults to true.
    pub compaction: bool,
    /// Rules that decide when files are merged.
    pub policy: Policy,
    /// Time between two rounds of maintenance. Defaults to 10 seconds.
    pub interval: Duration,
    /// Share of one core that the maintenance thread may use. Defaults to 0.5; 1 means no limit.
    pub cpu_share: f64,
    /// Maximum memory in bytes for the stacks or series that a merge holds. Defaults to 64 MiB. If the stacks or series
    /// need more memory, the merge works in pieces.
    pub memory_bytes: usize,
    /// How long a removed file is kept for readers that opened the table before its removal. Defaults to 1 hour.
    pub deletion_delay: Duration,
    /// Retention and downsampling. Both are off by default.
    pub aging: Aging,
    /// Retention by size. Off by default.
    pub space: SpaceLimits,
    /// Interval between searches for files to delete. Defaults to 10 minutes.
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
    /// Returns the rules for merges. If any profile type has a retention of its own, merges keep types apart.
    pub(super) fn merging(&self) -> Policy {
        if self.aging.by_type() {
            self.policy.by_type()
        } else {
            self.policy.clone()
        }
    }
}
