//! The configuration of a store.

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

/// The configuration of a store.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// The data folder. The store creates it if it does not exist.
    pub dir: PathBuf,
    /// A head is flushed when its memory reaches this size in bytes. Defaults to 32 MiB. While the heads hold more than
    /// twice this size, appends wait for a flush.
    pub flush_bytes: u64,
    /// A head is flushed when its first profile reaches this age. Defaults to 5 minutes.
    pub flush_age: Duration,
    /// Maximum memory of all heads together in bytes. Defaults to 256 MiB. If flushes fail or are too slow and the
    /// heads exceed this limit, the store refuses profiles.
    pub head_limit_bytes: u64,
    /// Maximum memory in bytes of all profiles that have arrived but are not in the head yet. Defaults to 128 MiB.
    /// Further profiles wait.
    pub intake_bytes: usize,
    /// Limits on the profiles of each tenant.
    pub limits: TenantLimits,
    /// Rules for the tenants that may send. By default, all tenants may send.
    pub tenants: TenantRules,
    /// Whether the acknowledgement of a profile waits for the disk.
    pub sync: SyncMode,
    /// If a write or sync of the log takes longer than this time, the store considers the disk dead. Defaults to 15 s.
    /// Until the write or sync finishes, the store refuses pushes and is unhealthy. If the tables are in the data
    /// folder, the store is also unhealthy while one step of a flush takes longer than four times this time. When the
    /// store closes, it waits at most `stuck_after` for its threads to end.
    pub stuck_after: Duration,
    /// Maximum time that a push waits until its records are in the log. Defaults to 30 s. After this time, the store
    /// refuses the push, but may still store its records.
    pub answer_after: Duration,
    /// Number of commits to a table between two checkpoints of its log. Defaults to 50. Opening a table reads at most
    /// this many commits one by one.
    pub checkpoint_interval: u64,
    /// Merging, retention and deletion of files.
    pub maintenance: MaintenanceConfig,
    /// The clocks. Tests set them.
    pub clock: Clock,
    /// The bucket that holds the tables. With `None`, the tables are in the data folder.
    pub bucket: Option<BucketOptions>,
    /// Makes operations fail, for tests.
    pub faults: Faults,
}

impl StoreConfig {
    /// Returns the default configuration for a data folder.
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
