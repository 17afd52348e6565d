//! Configuration of a store.

use std::path::PathBuf;
use std::time::Duration;

use crate::store::common::clock::Clock;
use crate::store::common::fault::Faults;
use crate::store::log::segment::SyncMode;
use crate::store::maintenance::MaintenanceConfig;
use crate::store::quota::TenantRules;
use crate::store::rules::tenant_limits::TenantLimits;
use crate::store::tables::bucket::BucketOptions;
use crate::store::tables::delta::CHECKPOINT_INTERVAL;

/// Configuration of a store.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// The data folder; created when it is not there.
    pub dir: PathBuf,
    /// A head of this many bytes in memory is flushed, 32 MiB. While the heads hold twice as much, appends wait for the
    /// flush.
    pub flush_bytes: u64,
    /// A head is flushed when its first profile is this old, 5 minutes.
    pub flush_age: Duration,
    /// Profiles are refused while all heads together hold more than this many bytes because flushes fail or are too
    /// slow, 256 MiB.
    pub head_limit_bytes: u64,
    /// Memory of all profiles between their arrival and the head, 128 MiB; further ones wait.
    pub intake_bytes: usize,
    /// Limits of each tenant on what it may send.
    pub limits: TenantLimits,
    /// Which tenants may send; all may.
    pub tenants: TenantRules,
    /// Whether an acknowledgement waits for the disk.
    pub sync: SyncMode,
    /// From when on a write or sync of the log that does not end means a dead disk, 15 s: pushes are refused and the
    /// store is not healthy until it ends. A flush may take four times as long for one step. A close waits this long
    /// for the threads.
    pub stuck_after: Duration,
    /// Longest time that a push waits for its place in the log, 30 s; then it is refused and may be stored all the
    /// same.
    pub answer_after: Duration,
    /// Commits to a table between checkpoints of its log, 50: opening a table reads at most this many entries one by
    /// one.
    pub checkpoint_interval: u64,
    /// Merging, retention and deletion of files.
    pub maintenance: MaintenanceConfig,
    /// The clocks, which tests set.
    pub clock: Clock,
    /// The bucket of the tables; `None` keeps them in the data folder.
    pub bucket: Option<BucketOptions>,
    /// For tests: makes operations fail.
    pub faults: Faults,
}

impl StoreConfig {
    /// The defaults for a data folder.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            flush_bytes: 32 << 20,
            flush_age: Duration::from_mins(5),
            head_limit_bytes: 256 << 20,
            intake_bytes: 128 << 20,
            limits: TenantLimits::default(),
            tenants: TenantRules::default(),
            sync: SyncMode::Full,
            stuck_after: Duration::from_secs(15),
            answer_after: Duration::from_secs(30),
            checkpoint_interval: CHECKPOINT_INTERVAL,
            maintenance: MaintenanceConfig::default(),
            clock: Clock::default(),
            bucket: None,
            faults: Faults::default(),
        }
    }
}
