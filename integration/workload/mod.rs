//! The work that tests of kills and power cuts do with a store, and the comparison afterwards.
//!
//! Work: pushes of tenants of every kind while the store flushes, merges, removes old profiles, downsamples, deletes
//! and vacuums. Each step is reported before or after it is done, so that a [`Ledger`] knows the required contents of
//! the folder whenever the work ends.

mod ledger;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alluvium::store::maintenance::deletion::request::Deletion;
use alluvium::store::maintenance::{Downsampling, FreeFloor, MaintenanceConfig, SpaceLimits, Work};
use alluvium::store::tools::inspect;
use alluvium::store::{Limits, Store, StoreConfig};
use alluvium_profile::{RawProfile, TimeSpan};
use alluvium_telemetry::metrics::Scope;

use crate::harness::tenant;
use crate::kill::numbered_at;

pub(crate) use ledger::Ledger;

/// Distance between the first profile numbers of successive rounds (in `unsynced`: successive starts of the store).
pub(crate) const STRIDE: u64 = 1_000_000;

/// Receives the reports of the work, one line per step.
pub(crate) type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// Pause of a pusher between two profiles.
const PUSH_EVERY: Duration = Duration::from_millis(10);

const DAY: u64 = 86_400;

/// Tenants and the age of their profiles in seconds. The profiles of `coarse` are downsampled, those of `old` removed
/// for their age, and those of `gone` deleted. Every second profile of `full` is a day older. The older profiles are
/// removed because the files of the tenant are larger than its limit.
pub(crate) const TENANTS: [(&str, u64); 5] = [
    ("young", 0),
    ("coarse", 3 * 3600),
    ("old", 40 * DAY),
    ("gone", 0),
    ("full", 2 * DAY),
];

pub(crate) fn config(dir: &Path) -> StoreConfig {
    let mut maintenance = MaintenanceConfig {
        // Maintenance runs only when the test calls it.
        interval: Duration::from_hours(1),
        ..MaintenanceConfig::default()
    };
    maintenance.policy.min_files = 3;
    maintenance.aging.tenants = [(tenant("old"), Duration::from_hours(720))].into();
    // The limit of 1 byte removes everything except the newest hour.
    maintenance.space.tenants = [(tenant("full"), 1)].into();
    maintenance.aging.downsample = vec![Downsampling {
        after: Duration::from_hours(2),
        interval: Duration::from_mins(5),
    }];
    StoreConfig {
        checkpoint_interval: 10,
        limits: Limits {
            reject_older_than: Duration::ZERO,
            ..Limits::default()
        }
        .into(),
        maintenance,
        ..StoreConfig::new(dir)
    }
}

/// Like [`config`], but instead of the limit for the tenant `full`, the store must keep one byte of the disk free.
/// While the folder contains the file [`SHORT`], the disk appears to have no free byte.
pub(crate) fn config_with_floor(dir: &Path) -> StoreConfig {
    let mut config = config(dir);
    config.maintenance.space = SpaceLimits {
        floor: Some(FreeFloor {
            bytes: 1,
            measure: |dir| Ok(u64::from(!dir.join(SHORT).exists())),
        }),
        ..SpaceLimits::default()
    };
    config
}

/// Name of the file that marks the disk as short of space.
pub(crate) const SHORT: &str = "short";

/// Pushes profiles of one tenant, without end.
pub(crate) async fn push(store: Arc<Store>, (tenant, age): (&'static str, u64), next: Arc<AtomicU64>, say: Say) {
    for count in 0u64.. {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let goes = tenant == "full" && count % 2 == 1;
        let age = if goes { age + DAY } else { age };
        let time = now.checked_sub(Duration::from_secs(age)).unwrap();
        if goes || matches!(tenant, "gone" | "old") {
            say(&format!("sent {tenant} {number}"));
        }
        let profile: RawProfile = numbered_at(number, &format!("service-{}", number % 3), time);
        assert!(store.append(&tenant.parse().unwrap(), vec![profile]).await.is_empty());
        say(&format!("kept {tenant} {number}"));
        tokio::time::sleep(PUSH_EVERY).await;
    }
}

/// Does every kind of work in turn, `cycles` times.
pub(crate) async fn work(store: &Store, cycles: u64, say: Say) {
    for cycle in 0..cycles {
        say("mark old");
        say("mark full");
        store.flush().await.unwrap();
        say("taking old");
        say("taking full");
        store.maintain(Work::Due).await.unwrap();
        say("took old");
        say("took full");
        store.maintain(Work::Vacuum(Duration::ZERO)).await.unwrap();
        if cycle % 3 == 2 {
            store.maintain(Work::Compact).await.unwrap();
        }
        say("mark gone");
        say("taking gone");
        let everything = Deletion::new(tenant("gone"), "{}", TimeSpan::ALL);
        store.maintain(Work::Delete(everything)).await.unwrap();
        say("took gone");
    }
}

/// Returns a number that differs from round to round, but is the same in every run of the test.
pub(crate) fn drawn(round: u64, salt: u64) -> u64 {
    let mut x = round.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Carries out all maintenance and merges all files. Checks the profiles before and after, and that the folder has no
/// errors.
pub(crate) fn finish(dir: &Path, ledger: &mut Ledger, rounds: u64) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::open(config(dir), &Scope::new()).unwrap();
        ledger.check(store.as_ref(), rounds, false);
        ledger.hear("mark old");
        ledger.hear("mark full");
        store.flush().await.unwrap();
        for work in [Work::Due, Work::Compact, Work::Due, Work::Vacuum(Duration::ZERO)] {
            store.maintain(work).await.unwrap();
        }
        ledger.hear("took old");
        ledger.hear("took full");
        ledger.check(store.as_ref(), rounds, true);
        store.close(Duration::from_mins(1)).await.unwrap();
    });
    let checked = inspect::check(dir).unwrap();
    assert!(!checked.has_errors(), "{:?}", checked.findings);
}
