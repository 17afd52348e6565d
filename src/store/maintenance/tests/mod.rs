//! Tests of maintenance on a whole store: merges keep the contents and reduce the number of files, and a failure at any
//! write neither loses nor repeats profiles.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Int64Type, TimestampMicrosecondType};
use arrow::record_batch::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;
use crate::store::Store;
use crate::store::common::fault::{FaultHook, FaultPoint, Faults};
use crate::store::common::schema::Table;
use crate::store::config::StoreConfig;
use crate::store::maintenance::deletion::request;
use crate::store::maintenance::merge::rewrite;
use crate::store::maintenance::retention::aging;
use crate::store::rules::limits::Limits;
use crate::store::tables::root::Root;
use crate::store::tables::snapshot::{ScanFilter, Snapshot, SnapshotSource};
use crate::store::tables::stats::Bounds;
use crate::store::tests::scratch;
use alluvium_profile::time::HOUR_US;
use alluvium_profile::{Labels, RawProfile, TimeSpan, pprof};
use alluvium_telemetry::metrics::Scope;
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};
use alluvium_testing::tenant_id;

pub(super) const SHAPE: Shape = Shape {
    functions: 60,
    samples: 80,
    depth: 12,
    labelled_every: 9,
};
/// 2027-01-15 08:00 UTC, in nanoseconds.
pub(super) const START_NS: i64 = 1_800_000_000_000_000_000;

/// Returns the configuration of a store whose maintenance does nothing by itself.
pub(super) fn config(dir: &Path) -> StoreConfig {
    StoreConfig {
        limits: Limits {
            reject_older_than: Duration::ZERO,
            reject_newer_than: Duration::ZERO,
            ..Limits::default()
        }
        .into(),
        maintenance: MaintenanceConfig {
            interval: Duration::from_hours(1),
            ..MaintenanceConfig::default()
        },
        ..StoreConfig::new(dir)
    }
}

pub(super) fn open(config: StoreConfig) -> Arc<Store> {
    Store::open(config, &Scope::new()).unwrap()
}

pub(super) fn profile(names: &Names, service: &str, seed: u64, seconds: i64) -> RawProfile {
    let mut profile = cpu_profile(names, SHAPE, seed % 5);
    profile.time_nanos = START_NS + seconds * 1_000_000_000;
    RawProfile {
        labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", service)]),
        id: format!("id-{seed}").into(),
        pprof: pprof::gzip(&pprof::encode(&profile)).into(),
    }
}

/// Flushes profiles `flushes` times. Each flush has profiles of `per_flush` moments, `step` seconds apart.
pub(super) async fn fill(store: &Store, tenant: &str, flushes: i64, per_flush: i64, step: i64) {
    let names = Names::new(SHAPE.functions);
    for flush in 0..flushes {
        for moment in 0..per_flush {
            let number = flush * per_flush + moment;
            let profiles = ["shop", "cart"]
                .iter()
                .map(|service| profile(&names, service, number as u64, number * step))
                .collect();
            assert!(store.append(&tenant_id(tenant), profiles).await.is_empty());
        }
        store.flush().await.unwrap();
    }
}

/// Returns all rows of a tenant in a table, from files and heads.
fn rows(snapshot: &Snapshot, table: Table, tenant: &str) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    for file in snapshot
        .files
        .iter()
        .filter(|file| file.table == table && file.tenant.as_str() == tenant)
    {
        let path = snapshot.root.name(&file.path);
        let bytes = std::fs::read(&path).unwrap();
        let checksum = file.checksum.map(|checksum| checksum.file);
        assert_eq!(checksum, Some(xxhash_rust::xxh3::xxh3_64(&bytes)), "{}", file.path);
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows() as u64, file.rows);
        batches.extend(reader.build().unwrap().map(Result::unwrap));
    }
    let filter = ScanFilter {
        tenants: Some(tenant_id(tenant).into()),
        ..ScanFilter::default()
    };
    for head in &snapshot.heads {
        batches.extend(head.scan(table, &filter).iter().map(|batch| {
            let columns: Vec<usize> = (2..batch.num_columns()).collect();
            batch.project(&columns).unwrap()
        }));
    }
    batches
}

pub(super) type SampleKey = (String, i64, i64, i64, Option<String>);

/// The contents of the store: the samples as a multiset, and the rows of the other tables as sets of text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Contents {
    pub(super) samples: HashMap<SampleKey, Vec<i64>>,
    pub(super) profiles: Vec<String>,
    pub(super) stacks: Vec<String>,
    pub(super) series: Vec<String>,
}

pub(super) fn contents(snapshot: &Snapshot, tenant: &str) -> Contents {
    let mut samples: HashMap<SampleKey, Vec<i64>> = HashMap::new();
    for batch in rows(snapshot, Table::Samples, tenant) {
        let integers = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>().clone();
        let (series, stack, value) = (integers("series"), integers("stack"), integers("value"));
        let time = batch
            .column_by_name("time")
            .unwrap()
            .as_primitive::<TimestampMicrosecondType>();
        let kind = batch.column_by_name("profile_type").unwrap().as_string::<i32>();
        let span = batch.column_by_name("span_id").unwrap().as_string::<i32>();
        for row in 0..batch.num_rows() {
            let span = span.is_valid(row).then(|| span.value(row).to_owned());
            let key = (
                kind.value(row).to_owned(),
                series.value(row),
                stack.value(row),
                time.value(row),
                span,
            );
            samples.entry(key).or_default().push(value.value(row));
        }
    }
    samples.values_mut().for_each(|values| values.sort_unstable());
    let text = |table: Table, distinct: bool| {
        let mut lines: Vec<String> = rows(snapshot, table, tenant)
            .iter()
            .flat_map(|batch| {
                let table = arrow::util::pretty::pretty_format_batches(std::slice::from_ref(batch))
                    .unwrap()
                    .to_string();
                let lines: Vec<String> = table
                    .lines()
                    .skip(3)
                    .filter(|line| line.starts_with('|'))
                    .map(|line| line.split_whitespace().collect())
                    .collect();
                lines
            })
            .collect();
        lines.sort();
        if distinct {
            lines.dedup();
        }
        lines
    };
    Contents {
        samples,
        profiles: text(Table::Profiles, false),
        stacks: text(Table::Stacks, true),
        series: text(Table::Series, true),
    }
}

pub(super) fn count(snapshot: &Snapshot, table: Table) -> usize {
    snapshot.files.iter().filter(|file| file.table == table).count()
}

pub(super) fn files_on_disk(dir: &Path) -> usize {
    Table::ALL
        .iter()
        .map(|table| {
            Root::from(dir.join("tables").as_path())
                .parquet_files(*table, |_| true)
                .unwrap()
                .len()
        })
        .sum()
}

#[tokio::test]
async fn merged_files_hold_the_same_rows_and_readers_keep_theirs() {
    let dir = scratch();
    let store = open(config(dir.path()));
    fill(&store, "t", 9, 4, 40).await;
    fill(&store, "other", 2, 2, 40).await;
    let before = store.snapshot();
    let expected = contents(&before, "t");
    assert_eq!(count(&before, Table::Samples), 11);
    let report = store.maintain(Work::Due).await.unwrap();
    assert!(report.jobs >= 3, "{report:?}");
    let after = store.snapshot();
    assert_eq!(contents(&after, "t"), expected);
    // The tenant `t` has one file for the hour. The tenant `other` still has two files, which are too few to merge.
    assert_eq!(count(&after, Table::Samples), 3);
    // An earlier snapshot still has its files.
    assert_eq!(contents(&before, "t"), expected);
    // Readers of the folder see the same contents.
    let read_only = Store::open_read_only(dir.path()).unwrap();
    assert_eq!(contents(&read_only.snapshot(), "t"), expected);
    // Nothing is left to do.
    assert_eq!(store.maintain(Work::Due).await.unwrap().jobs, 0);
    // Within the grace period nothing is deleted. Later, all files that were removed from the tables are deleted.
    let report = store.maintain(Work::Vacuum(Duration::from_mins(1))).await.unwrap();
    assert_eq!(report.vacuumed.files, 0);
    assert!(report.vacuumed.waiting > 0);
    let report = store.maintain(Work::Vacuum(Duration::ZERO)).await.unwrap();
    assert!(report.vacuumed.files > 0);
    assert_eq!(files_on_disk(dir.path()), after.files.len());
    assert_eq!(contents(&store.snapshot(), "t"), expected);
    drop(store);
    let store = open(config(dir.path()));
    assert_eq!(contents(&store.snapshot(), "t"), expected);
    assert_eq!(store.snapshot().files.len(), after.files.len());
}

#[tokio::test]
async fn late_profiles_are_split_by_hour_and_names_are_kept_once() {
    let dir = scratch();
    let store = open(config(dir.path()));
    // Each flush spans three hours.
    fill(&store, "t", 9, 4, 2700).await;
    let expected = contents(&store.snapshot(), "t");
    store.maintain(Work::Due).await.unwrap();
    let after = store.snapshot();
    assert_eq!(contents(&after, "t"), expected);
    for file in after
        .files
        .iter()
        .filter(|file| file.table == Table::Samples && file.rows > 0)
    {
        let Bounds { min: low, max: high } = file.time.unwrap();
        let merged = rewrite::MergedName::of(&file.path).level > 0;
        assert!(!merged || low / HOUR_US == high / HOUR_US, "{file:?}");
    }
    // After a restart the same stacks are written again. A merge keeps each stack once.
    drop(store);
    let store = open(config(dir.path()));
    fill(&store, "t", 9, 4, 2700).await;
    store.maintain(Work::Compact).await.unwrap();
    let days = 2;
    assert_eq!(count(&store.snapshot(), Table::Stacks), days);
    let stacks: usize = rows(&store.snapshot(), Table::Stacks, "t")
        .iter()
        .map(RecordBatch::num_rows)
        .sum();
    let distinct = contents(&store.snapshot(), "t").stacks.len();
    assert!(stacks <= distinct * days);
}

pub(super) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, target) = entry.map(|entry| (entry.path(), to.join(entry.file_name()))).unwrap();
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

/// A disk that fails once: at the operation that counts `left` down to 0.
struct FailOnce {
    left: AtomicUsize,
}

impl FaultHook for FailOnce {
    fn check(&self, _point: FaultPoint) -> io::Result<()> {
        match self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
        {
            Ok(1) => Err(io::Error::from(io::ErrorKind::StorageFull)),
            _ => Ok(()),
        }
    }
}

#[tokio::test]
async fn a_failure_at_any_write_of_maintenance_loses_and_repeats_nothing() {
    let first = scratch();
    let expected = {
        let store = open(config(first.path()));
        fill(&store, "t", 2, 1, 40).await;
        contents(&store.snapshot(), "t")
    };
    for fails_at in 1.. {
        let dir = scratch();
        copy(first.path(), dir.path());
        let hook = Arc::new(FailOnce {
            left: AtomicUsize::new(usize::MAX),
        });
        let store = open(StoreConfig {
            faults: Faults::new(hook.clone()),
            ..config(dir.path())
        });
        hook.left.store(fails_at, Ordering::SeqCst);
        let merged = store.maintain(Work::Compact).await;
        let vacuumed = store.maintain(Work::Vacuum(Duration::ZERO)).await;
        let failed = hook.left.swap(usize::MAX, Ordering::SeqCst) == 0;
        assert_eq!(
            contents(&store.snapshot(), "t"),
            expected,
            "{fails_at}: {merged:?} {vacuumed:?}"
        );
        // The process crashes here, or continues. Both cases end with the same contents.
        let store = if fails_at % 2 == 0 {
            store
        } else {
            drop(store);
            open(config(dir.path()))
        };
        assert_eq!(
            contents(&store.snapshot(), "t"),
            expected,
            "{fails_at}: after the start"
        );
        store.maintain(Work::Compact).await.unwrap();
        store.maintain(Work::Vacuum(Duration::ZERO)).await.unwrap();
        let last = store.snapshot();
        assert_eq!(
            contents(&last, "t"),
            expected,
            "{fails_at}: the contents differ after further maintenance"
        );
        assert_eq!(count(&last, Table::Samples), 1, "{fails_at}");
        assert_eq!(
            files_on_disk(dir.path()),
            last.files.len(),
            "{fails_at}: the vacuum left files that no table lists"
        );
        if !failed {
            assert!(
                fails_at > 40,
                "maintenance has only {fails_at} fault points, not 40: each write must be a fault point"
            );
            break;
        }
    }
}

/// Returns the sums of values by profile type, series and interval.
#[expect(clippy::iter_over_hash_type, reason = "sums do not depend on the order")]
pub(super) fn sums(contents: &Contents, interval_us: i64) -> HashMap<(String, i64, i64), i64> {
    let mut sums = HashMap::new();
    for ((kind, series, _, time, _), values) in &contents.samples {
        let key = (kind.clone(), *series, time.div_euclid(interval_us));
        *sums.entry(key).or_default() += values.iter().sum::<i64>();
    }
    sums
}

#[tokio::test]
async fn downsampled_samples_keep_every_sum_and_profiles_stay() {
    let dir = scratch();
    let interval = Duration::from_mins(5);
    let aging = aging::Aging {
        // The profiles are from the future, so their age is zero.
        downsample: vec![Downsampling {
            after: Duration::ZERO,
            interval,
        }],
        ..aging::Aging::default()
    };
    let store = open(config(dir.path()));
    fill(&store, "t", 3, 5, 30).await;
    let before = contents(&store.snapshot(), "t");
    drop(store);
    let mut config = config(dir.path());
    config.maintenance.aging = aging;
    let store = open(config.clone());
    let report = store.maintain(Work::Due).await.unwrap();
    assert!(report.rows_out < report.rows_in, "{report:?}");
    let after = contents(&store.snapshot(), "t");
    assert_eq!(sums(&after, 300_000_000), sums(&before, 300_000_000));
    assert!(after.samples.len() < before.samples.len());
    assert!(after.samples.keys().all(|key| key.3 % 300_000_000 == 0));
    assert_eq!(
        (&after.profiles, &after.stacks, &after.series),
        (&before.profiles, &before.stacks, &before.series)
    );
    // Samples are not downsampled a second time, even after a restart.
    assert_eq!(store.maintain(Work::Due).await.unwrap().jobs, 0);
    drop(store);
    let store = open(config);
    assert_eq!(store.maintain(Work::Due).await.unwrap().jobs, 0);
    assert_eq!(contents(&store.snapshot(), "t"), after);
}

#[tokio::test]
async fn a_retention_takes_old_days_with_their_names_and_leaves_the_others() {
    let dir = scratch();
    let mut config = config(dir.path());
    config.maintenance.aging.retention = Duration::from_hours(720);
    let store = open(config);
    let names = Names::new(SHAPE.functions);
    let now = chrono::Utc::now().timestamp() - START_NS / 1_000_000_000;
    for days in [0, 29, 31, 40] {
        let profiles = vec![profile(&names, "shop", days as u64, now - days * 86_400)];
        assert!(store.append(&tenant_id("t"), profiles).await.is_empty());
    }
    store.flush().await.unwrap();
    assert_eq!(store.snapshot().files.len(), 16);
    let report = store.maintain(Work::Due).await.unwrap();
    // The samples and profiles of two days are removed. Stacks and series are kept for a day longer, in case a late
    // profile needs them, so they are removed only for the oldest day.
    assert_eq!(report.files_in, 6, "{report:?}");
    let left = store.snapshot();
    assert_eq!((count(&left, Table::Samples), count(&left, Table::Stacks)), (2, 3));
    store.maintain(Work::Vacuum(Duration::ZERO)).await.unwrap();
    assert_eq!(files_on_disk(dir.path()), left.files.len());
}

#[tokio::test]
async fn tables_that_are_too_large_lose_their_oldest_profiles() {
    let dir = scratch();
    let mut config = config(dir.path());
    config.maintenance.compaction = false;
    // The profiles cover eight hours. The newest hour stays, whatever the limit.
    config.maintenance.space.whole = Some(1);
    let store = open(config);
    fill(&store, "t", 8, 1, 3600).await;
    let before = store.snapshot();
    assert_eq!(
        (count(&before, Table::Samples), count(&before, Table::Profiles)),
        (8, 8)
    );
    store.maintain(Work::Due).await.unwrap();
    let left = store.snapshot();
    assert_eq!((count(&left, Table::Samples), count(&left, Table::Profiles)), (2, 2));
    // A late profile may need the stacks and series of the day.
    assert_eq!(count(&left, Table::Stacks), count(&before, Table::Stacks));
    let report = store.maintain(Work::Due).await.unwrap();
    assert_eq!(report.jobs, 0, "{report:?}");
}

#[tokio::test]
async fn names_that_went_for_size_come_again_with_a_late_profile_and_stay_while_memory_needs_them() {
    let dir = scratch();
    let mut config = config(dir.path());
    config.maintenance.compaction = false;
    config.maintenance.space.whole = Some(1);
    let store = open(config);
    let names = Names::new(SHAPE.functions);
    let push = async |seconds: i64| {
        let profiles = vec![profile(&names, "shop", 1, seconds)];
        assert!(store.append(&tenant_id("t"), profiles).await.is_empty());
    };
    let stacks = || count(&store.snapshot(), Table::Stacks);
    for seconds in [0, 3 * 86_400] {
        push(seconds).await;
        store.flush().await.unwrap();
    }
    store.maintain(Work::Due).await.unwrap();
    assert_eq!(stacks(), 1, "the stacks of the first day must be deleted");
    push(60).await;
    store.flush().await.unwrap();
    assert_eq!(stacks(), 2);
    push(120).await;
    store.maintain(Work::Due).await.unwrap();
    assert_eq!((count(&store.snapshot(), Table::Samples), stacks()), (1, 2));
    store.flush().await.unwrap();
    store.maintain(Work::Due).await.unwrap();
    assert_eq!(stacks(), 1);
}

/// Number of free bytes on the disk of a test.
static FREE: AtomicU64 = AtomicU64::new(0);

#[tokio::test]
async fn a_disk_that_is_nearly_full_is_relieved_of_the_oldest_profiles_once() {
    let dir = scratch();
    let mut config = config(dir.path());
    config.maintenance.compaction = false;
    config.maintenance.deletion_delay = Duration::ZERO;
    config.maintenance.space.floor = Some(FreeFloor {
        bytes: 1000,
        measure: |_| Ok(FREE.load(Ordering::Relaxed)),
    });
    let store = open(config);
    FREE.store(1000, Ordering::Relaxed);
    fill(&store, "t", 8, 1, 3600).await;
    let all = store.snapshot();
    store.maintain(Work::Due).await.unwrap();
    assert_eq!(store.snapshot().files.len(), all.files.len());
    FREE.store(999, Ordering::Relaxed);
    store.maintain(Work::Due).await.unwrap();
    let left = store.snapshot();
    assert_eq!((count(&left, Table::Samples), count(&left, Table::Profiles)), (7, 7));
    // The next round deletes the removed files. Until these files are deleted, no other file is removed.
    store.maintain(Work::Due).await.unwrap();
    assert_eq!(store.snapshot().files.len(), left.files.len());
    assert_eq!(files_on_disk(dir.path()), left.files.len());
}

pub(super) fn deletion(selector: &str) -> crate::store::maintenance::deletion::request::Deletion {
    crate::store::maintenance::deletion::request::Deletion::new(tenant_id("t"), selector, TimeSpan::ALL)
}

fn samples_without(contents: &Contents, series: i64) -> HashMap<SampleKey, Vec<i64>> {
    let kept = contents.samples.iter().filter(|(key, _)| key.1 != series);
    kept.map(|(key, values)| (key.clone(), values.clone())).collect()
}

#[tokio::test]
#[expect(clippy::iter_over_hash_type, reason = "each series is compared by itself")]
async fn a_deletion_takes_what_is_selected_from_files_and_memory_at_once() {
    let dir = scratch();
    let store = open(config(dir.path()));
    fill(&store, "t", 3, 2, 40).await;
    fill(&store, "other", 1, 2, 40).await;
    let names = Names::new(SHAPE.functions);
    // One more profile is only in memory.
    assert!(
        store
            .append(&tenant_id("t"), vec![profile(&names, "cart", 99, 900)])
            .await
            .is_empty()
    );
    let before = contents(&store.snapshot(), "t");
    let other = contents(&store.snapshot(), "other");
    assert!(store.maintain(Work::Delete(deletion("{nonsense"))).await.is_err());
    assert!(
        store
            .maintain(Work::Delete(deletion("{__name__=\"x\"}")))
            .await
            .is_err()
    );
    let report = store
        .maintain(Work::Delete(deletion("{service_name=\"cart\"}")))
        .await
        .unwrap();
    assert!(report.rows_out < report.rows_in, "{report:?}");
    let after = contents(&store.snapshot(), "t");
    let carts: Vec<i64> = before
        .samples
        .keys()
        .map(|key| key.1)
        .filter(|series| !after.samples.keys().any(|key| key.1 == *series))
        .collect();
    assert!(!carts.is_empty());
    for (key, values) in &before.samples {
        assert_eq!(after.samples.get(key), (!carts.contains(&key.1)).then_some(values));
    }
    assert!(after.profiles.len() < before.profiles.len());
    assert_eq!(contents(&store.snapshot(), "other"), other);
    // A type and a time narrow the selection. A selection that matches nothing changes nothing.
    let kind = "process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"shop\"}";
    let empty_deletion = crate::store::maintenance::deletion::request::Deletion {
        until_us: 0,
        ..deletion(kind)
    };
    assert_eq!(store.maintain(Work::Delete(empty_deletion)).await.unwrap().jobs, 0);
    store.maintain(Work::Delete(deletion(kind))).await.unwrap();
    let last = contents(&store.snapshot(), "t");
    assert!(last.samples.keys().all(|key| key.0.starts_with("process_cpu:samples")));
    assert!(!last.samples.is_empty());
    drop(store);
    let store = open(config(dir.path()));
    assert_eq!(contents(&store.snapshot(), "t"), last);
    assert_eq!(request::pending(dir.path()).unwrap().len(), 0);
}

#[tokio::test]
async fn a_deleted_profile_that_is_sent_again_is_stored_again() {
    let dir = scratch();
    let store = open(config(dir.path()));
    let names = Names::new(SHAPE.functions);
    let push = async || {
        let profiles = ["shop", "cart"].map(|service| profile(&names, service, 1, 40));
        assert!(store.append(&tenant_id("t"), profiles.into()).await.is_empty());
        contents(&store.snapshot(), "t")
    };
    let first = push().await;
    assert_eq!(push().await, first);
    store.maintain(Work::Delete(deletion("{}"))).await.unwrap();
    assert!(contents(&store.snapshot(), "t").samples.is_empty());
    assert_eq!(push().await, first);
}

#[tokio::test]
async fn a_failure_at_any_write_of_a_deletion_ends_in_the_whole_deletion_or_none() {
    let first = scratch();
    let store = open(config(first.path()));
    fill(&store, "t", 1, 1, 40).await;
    let before = contents(&store.snapshot(), "t");
    let series = before.samples.keys().map(|key| key.1).min().unwrap();
    drop(store);
    let service = {
        let snapshot = Store::open_read_only(first.path()).unwrap().snapshot();
        let batches = rows(&snapshot, Table::Series, "t");
        let series_row = batches.iter().find_map(|batch| {
            let ids = batch.column(0).as_primitive::<Int64Type>().values();
            let row = ids.iter().position(|id| *id == series)?;
            Some((
                batch.column(1).as_string::<i32>().value(row).to_owned(),
                batch.column(2).as_map().value(row),
            ))
        });
        let (service, labels) = series_row.unwrap();
        let values = labels.column(1).as_string::<i32>();
        let route = (0..labels.len()).find(|pair| labels.column(0).as_string::<i32>().value(*pair) == "http.route");
        match route {
            Some(pair) => format!(
                "{{service_name=\"{service}\", \"http.route\"=\"{}\"}}",
                values.value(pair)
            ),
            None => format!("{{service_name=\"{service}\", \"http.route\"=\"\"}}"),
        }
    };
    let expected = samples_without(&before, series);
    for fails_at in 1.. {
        let dir = scratch();
        copy(first.path(), dir.path());
        let hook = Arc::new(FailOnce {
            left: AtomicUsize::new(usize::MAX),
        });
        let store = open(StoreConfig {
            faults: Faults::new(hook.clone()),
            ..config(dir.path())
        });
        hook.left.store(fails_at, Ordering::SeqCst);
        let deleted = store.maintain(Work::Delete(deletion(&service))).await;
        let failed = hook.left.swap(usize::MAX, Ordering::SeqCst) == 0;
        let pending = !request::pending(dir.path()).unwrap().is_empty();
        drop(store);
        let store = open(config(dir.path()));
        store.maintain(Work::Due).await.unwrap();
        let after = contents(&store.snapshot(), "t").samples;
        // If the deletion succeeded or its request is stored, it is carried out. Otherwise nothing has happened.
        if deleted.is_ok() || pending {
            assert_eq!(after, expected, "{fails_at}: {deleted:?}");
        } else {
            assert_eq!(after, before.samples, "{fails_at}: {deleted:?}");
        }
        assert_eq!(request::pending(dir.path()).unwrap().len(), 0);
        if !failed {
            assert!(
                fails_at > 10,
                "a deletion has only {fails_at} fault points, not 10: each write must be a fault point"
            );
            break;
        }
    }
}

/// Records the operations in their order.
#[derive(Default)]
pub(super) struct Trace(parking_lot::Mutex<Vec<FaultPoint>>);

impl Trace {
    /// Returns the operations since the last call.
    pub(super) fn take(&self) -> Vec<FaultPoint> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl FaultHook for Trace {
    fn check(&self, _point: FaultPoint) -> io::Result<()> {
        Ok(())
    }

    fn done(&self, point: FaultPoint) {
        self.0.lock().push(point);
    }
}

#[tokio::test]
async fn syncs_come_before_what_relies_on_them() {
    let dir = scratch();
    let trace = Arc::new(Trace::default());
    let store = open(StoreConfig {
        faults: Faults::new(trace.clone()),
        ..config(dir.path())
    });
    fill(&store, "t", 2, 2, 40).await;
    let points = trace.take();
    // Each acknowledgement follows a sync of the log, which follows the write.
    let mut unsynced = false;
    for point in &points {
        match point {
            FaultPoint::LogWrite => unsynced = true,
            FaultPoint::LogSync => unsynced = false,
            FaultPoint::Acknowledge => assert!(!unsynced, "acknowledged before the sync: {points:?}"),
            _ => {}
        }
    }
    assert_eq!(
        points.iter().filter(|point| **point == FaultPoint::Acknowledge).count(),
        4
    );
    let position = |from: usize, expected: FaultPoint| {
        points[from..]
            .iter()
            .position(|point| *point == expected)
            .map(|index| index + from)
    };
    let deleted = position(0, FaultPoint::LogDelete).unwrap();
    let mut last = 0;
    // First, the files of each table are created and synced, then their folders. After that, the entry of each table is
    // written, synced and renamed, and the folder of the log is synced. Stacks and series come before the other tables.
    let files = Table::ALL.map(|table| {
        [
            FaultPoint::FileCreate(table),
            FaultPoint::FileWrite(table),
            FaultPoint::FileSync(table),
            FaultPoint::FolderSync(table),
        ]
    });
    let entries = Table::ALL.map(|table| {
        [
            FaultPoint::EntryWrite(table),
            FaultPoint::EntrySync(table),
            FaultPoint::EntryLink(table),
            FaultPoint::EntryFolderSync(table),
        ]
    });
    for steps in files.into_iter().chain(entries) {
        for step in steps {
            let index = position(last, step).unwrap_or_else(|| panic!("{step:?} is missing after {last}: {points:?}"));
            assert!(
                index >= last && index < deleted,
                "{step:?} must come before the log is deleted"
            );
            last = index;
        }
    }
    // A merge makes its files durable before its entry, and deletes nothing itself.
    store.maintain(Work::Compact).await.unwrap();
    let merged = trace.take();
    let index_of = |expected: FaultPoint| merged.iter().position(|point| *point == expected).unwrap();
    let table = Table::Samples;
    assert!(index_of(FaultPoint::FileSync(table)) < index_of(FaultPoint::FolderSync(table)));
    assert!(index_of(FaultPoint::FolderSync(table)) < index_of(FaultPoint::EntryLink(table)));
    assert!(
        !merged
            .iter()
            .any(|point| matches!(point, FaultPoint::FileDelete(_) | FaultPoint::LogDelete))
    );
    store.maintain(Work::Vacuum(Duration::ZERO)).await.unwrap();
    assert!(trace.0.lock().contains(&FaultPoint::FileDelete(table)));
}
mod clock;
mod damaged_file;
mod deletion;
mod exchange;
mod fault;
mod flush_fault;
mod growth;
mod memory;
mod order;
