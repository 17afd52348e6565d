//! Tests with a fault at every operation on the disk in turn, for every job of the store. The disk fails at the nth
//! operation and at all later operations, then heals. In every second run, the process also dies and starts again. Then
//! the job is repeated.
//!
//! Guarantee: every acknowledged profile exists once after the fault, after the start, and after the repeated job. The
//! job ends as if nothing had happened, and no file is left over.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::store::Store;
use crate::store::common::error::StoreError;
use crate::store::common::fault::{FaultHook, FaultPoint, Faults};
use crate::store::config::StoreConfig;
use crate::store::maintenance::Downsampling;
use crate::store::maintenance::deletion::request;
use crate::store::maintenance::retention::aging::Aging;
use crate::store::maintenance::tests::{
    self, Contents, SHAPE, START_NS, contents, copy, count, deletion, files_on_disk, fill, open, profile, sums,
};
use crate::store::maintenance::*;
use crate::store::tables::snapshot::SnapshotSource;
use crate::store::tests::scratch;
use alluvium_testing::synthetic::Names;
use alluvium_testing::tenant_id;

/// The settings of the other tests, with a checkpoint every ten entries.
pub(in crate::store::maintenance) fn config(dir: &Path) -> StoreConfig {
    StoreConfig {
        checkpoint_interval: 10,
        ..tests::config(dir)
    }
}

pub(in crate::store::maintenance) const DAY: Duration = Duration::from_hours(24);

/// A disk that fails at the nth operation and at all later operations.
pub(super) struct FailFrom {
    pub(in crate::store::maintenance) left: AtomicUsize,
    /// A point at which the disk always fails.
    point: Mutex<Option<FaultPoint>>,
}

impl FailFrom {
    pub(in crate::store::maintenance) fn new() -> Arc<Self> {
        Arc::new(Self {
            left: AtomicUsize::new(usize::MAX),
            point: Mutex::new(None),
        })
    }

    /// Makes the disk fail at every operation at `point`, and at no other.
    pub(super) fn fail_from(&self, point: FaultPoint) {
        *self.point.lock() = Some(point);
    }

    /// Heals the disk. Returns true if it has failed.
    pub(super) fn heal(&self) -> bool {
        self.left.swap(usize::MAX, Ordering::SeqCst) == 0
    }
}

impl FaultHook for FailFrom {
    fn check(&self, point: FaultPoint) -> io::Result<()> {
        // The start of a job is not an operation on the disk.
        if matches!(point, FaultPoint::Job(_)) {
            return Ok(());
        }
        if *self.point.lock() == Some(point) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let left = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| match left {
                usize::MAX => Some(left),
                left => Some(left.saturating_sub(1)),
            });
        match left {
            Ok(0 | 1) => Err(io::Error::from(io::ErrorKind::StorageFull)),
            _ => Ok(()),
        }
    }
}

/// Returns the number of operations from one fault to the next: `usually`, or 1 if `ALLUVIUM_ALL_FAULTS` is set (`make
/// faults`), which takes several times as long.
pub(in crate::store::maintenance) fn step(usually: usize) -> usize {
    match std::env::var_os("ALLUVIUM_ALL_FAULTS") {
        Some(_) => 1,
        None => usually,
    }
}

/// The moment at which the contents are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The disk has failed, and the process may have died. The job is done completely, in part, or not at all.
    Between,
    /// The job was repeated on a disk that works.
    Done,
}

/// A job that runs many times, each time with a different failing operation.
struct Case<'a> {
    name: &'static str,
    /// The folder to copy before each run.
    first: &'a Path,
    config: &'a dyn Fn(&Path) -> StoreConfig,
    work: Vec<Work>,
    /// Number of operations from one fault to the next; 1 makes each operation fail. The number must be odd, so that
    /// the process dies in every second run. See [`step`].
    step: usize,
    /// Minimum number of operations of the job. A smaller number means that the job's writes do not reach the hook.
    min: usize,
    check: &'a dyn Fn(&Contents, Stage, &str),
}

impl Case<'_> {
    async fn run(self) {
        for fails_at in (1..).step_by(self.step) {
            let dir = scratch();
            copy(self.first, dir.path());
            let hook = FailFrom::new();
            let faulty = StoreConfig {
                faults: Faults::new(hook.clone()),
                ..(self.config)(dir.path())
            };
            let store = open(faulty);
            hook.left.store(fails_at, Ordering::SeqCst);
            for work in &self.work {
                let _ = store.maintain(work.clone()).await;
            }
            let failed = hook.heal();
            let case = format!("{}, operation {fails_at}", self.name);
            (self.check)(&contents(&store.snapshot(), "t"), Stage::Between, &case);
            let store = if fails_at % 2 == 0 {
                store
            } else {
                drop(store);
                open((self.config)(dir.path()))
            };
            if fails_at % 2 == 1 {
                (self.check)(&contents(&store.snapshot(), "t"), Stage::Between, &case);
            }
            for work in &self.work {
                store.maintain(work.clone()).await.unwrap();
            }
            store.maintain(Work::Vacuum(Duration::ZERO)).await.unwrap();
            let last = store.snapshot();
            (self.check)(&contents(&last, "t"), Stage::Done, &case);
            assert_eq!(files_on_disk(dir.path()), last.files.len(), "{case}: files left over");
            if fails_at % 4 == 0 {
                drop(store);
                let reopened = open((self.config)(dir.path()));
                (self.check)(&contents(&reopened.snapshot(), "t"), Stage::Done, &case);
            }
            if !failed {
                assert!(fails_at > self.min, "{case}: too few operations failed");
                println!("{}: {} operations, every {} failed", self.name, fails_at - 1, self.step);
                return;
            }
        }
    }
}

#[tokio::test]
async fn a_failure_at_any_write_of_downsampling_keeps_every_sum() {
    let first = scratch();
    let store = open(config(first.path()));
    fill(&store, "t", 1, 3, 30).await;
    let before = contents(&store.snapshot(), "t");
    drop(store);
    let coarse = |dir: &Path| {
        let mut config = config(dir);
        config.maintenance.aging.downsample = vec![Downsampling {
            after: Duration::ZERO,
            interval: Duration::from_mins(5),
        }];
        config
    };
    Case {
        name: "downsampling",
        first: first.path(),
        config: &coarse,
        work: vec![Work::Due],
        step: 1,
        min: 8,
        check: &|after, stage, case| {
            assert_eq!(sums(after, 300_000_000), sums(&before, 300_000_000), "{case}");
            assert_eq!(
                (&after.profiles, &after.stacks),
                (&before.profiles, &before.stacks),
                "{case}"
            );
            let is_coarse = after.samples.keys().all(|key| key.3 % 300_000_000 == 0);
            assert!(is_coarse || stage == Stage::Between, "{case}");
        },
    }
    .run()
    .await;
}

/// Fills a folder with profiles that are `days` days old.
async fn fill_days(dir: &Path, days: &[i64]) {
    let store = open(config(dir));
    let names = Names::new(SHAPE.functions);
    let now = chrono::Utc::now().timestamp() - START_NS / 1_000_000_000;
    for day in days {
        let profiles = vec![profile(&names, "shop", *day as u64, now - day * 86_400)];
        assert!(store.append(&tenant_id("t"), profiles).await.is_empty());
    }
    store.flush().await.unwrap();
}

/// Returns the samples of the last `days` days with a type that starts with `kind`.
fn recent_samples(
    contents: &Contents,
    days: i64,
    kind: &str,
) -> std::collections::HashMap<crate::store::maintenance::tests::SampleKey, Vec<i64>> {
    let from = chrono::Utc::now().timestamp_micros() - days * 86_400_000_000;
    let kept = contents
        .samples
        .iter()
        .filter(|(key, _)| key.3 >= from && key.0.starts_with(kind));
    kept.map(|(key, values)| (key.clone(), values.clone())).collect()
}

#[tokio::test]
async fn a_failure_at_any_write_of_retention_takes_nothing_young() {
    let first = scratch();
    fill_days(first.path(), &[0, 40]).await;
    let before = contents(&Store::open_read_only(first.path()).unwrap().snapshot(), "t");
    let kept = recent_samples(&before, 30, "");
    assert!(!kept.is_empty() && kept.len() < before.samples.len());
    let aging = |dir: &Path| {
        let mut config = config(dir);
        config.maintenance.aging.retention = 30 * DAY;
        config
    };
    Case {
        name: "retention",
        first: first.path(),
        config: &aging,
        work: vec![Work::Due],
        step: 1,
        min: 8,
        check: &|after, stage, case| {
            assert_eq!(recent_samples(after, 30, ""), kept, "{case}");
            let is_gone = after.samples.len() == kept.len();
            assert!(is_gone || stage == Stage::Between, "{case}");
            assert!(
                is_gone || after.samples == before.samples,
                "{case}: a part of a file is gone"
            );
        },
    }
    .run()
    .await;
}

#[tokio::test]
async fn a_failure_at_any_write_of_a_retention_by_type_takes_only_that_type() {
    const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
    let first = scratch();
    fill_days(first.path(), &[20]).await;
    let before = contents(&Store::open_read_only(first.path()).unwrap().snapshot(), "t");
    let kept = recent_samples(&before, 30, CPU);
    assert!(!kept.is_empty() && kept.len() < before.samples.len());
    let aging = |dir: &Path| {
        let mut config = config(dir);
        config.maintenance.aging = Aging {
            retention: 30 * DAY,
            types: [("process_cpu:samples:count:cpu:nanoseconds".to_owned(), 10 * DAY)].into(),
            ..Aging::default()
        };
        config
    };
    Case {
        name: "retention by type",
        first: first.path(),
        config: &aging,
        // The first round splits the files, the second round removes some files.
        work: vec![Work::Due, Work::Due],
        // Each operation occurs for several files, so a fault at every third operation is enough.
        step: step(3),
        min: 20,
        check: &|after, stage, case| {
            assert_eq!(recent_samples(after, 30, CPU), kept, "{case}");
            assert!(
                after.samples == before.samples || after.samples == kept,
                "{case}: not exactly the samples of one type are gone"
            );
            assert!(after.samples == kept || stage == Stage::Between, "{case}");
        },
    }
    .run()
    .await;
}

#[tokio::test]
async fn a_deletion_that_is_tried_again_takes_nothing_that_came_after_it() {
    for crash in [false, true] {
        let dir = scratch();
        let hook = FailFrom::new();
        let store = open(StoreConfig {
            faults: Faults::new(hook.clone()),
            ..config(dir.path())
        });
        fill(&store, "t", 1, 2, 40).await;
        // The disk fails after the request is stored. The earlier operations are the flush, which has nothing to do,
        // and the six steps of the request.
        hook.left.store(9, Ordering::SeqCst);
        store
            .maintain(Work::Delete(deletion("{service_name=\"cart\"}")))
            .await
            .unwrap_err();
        hook.heal();
        assert_eq!(request::pending(dir.path()).unwrap().len(), 1);
        let names = Names::new(SHAPE.functions);
        let mut total = 0;
        // One profile is flushed to a file before the deletion is tried again. The other stays in the log and the head.
        for (seed, flush) in [(1, true), (2, false)] {
            assert!(
                store
                    .append(&tenant_id("t"), vec![profile(&names, "cart", seed, 900)])
                    .await
                    .is_empty()
            );
            total += 2;
            if flush {
                store.flush().await.unwrap();
            }
        }
        let store = if crash {
            drop(store);
            open(config(dir.path()))
        } else {
            store
        };
        // The result is the same if a merge is requested first.
        let works = if crash {
            [Work::Due, Work::Compact]
        } else {
            [Work::Compact, Work::Due]
        };
        for work in works {
            store.maintain(work).await.unwrap();
        }
        assert_eq!(request::pending(dir.path()).unwrap().len(), 0);
        let left = contents(&store.snapshot(), "t");
        // The later profiles, and the earlier profiles of the other service, are left. Each profile has at least two
        // rows, one for each of its types.
        let late = left.profiles.iter().filter(|line| line.contains("08:15:00")).count();
        assert!(late >= total, "{late} of {total}: {:?}", left.profiles);
        assert!(left.profiles.len() > late, "{:?}", left.profiles);
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_read_does_not_stop_the_maintenance_of_others() {
    let dir = scratch();
    let store = open(config(dir.path()));
    fill(&store, "broken", 9, 1, 40).await;
    fill(&store, "t", 9, 1, 40).await;
    let before = contents(&store.snapshot(), "t");
    let snapshot = store.snapshot();
    let is_samples =
        |file: &&crate::store::tables::snapshot::FileEntry| file.table == crate::store::common::schema::Table::Samples;
    let victim = snapshot
        .files
        .iter()
        .filter(is_samples)
        .find(|file| file.tenant.as_str() == "broken")
        .unwrap();
    let path = snapshot.root.name(&victim.path);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = store.maintain(Work::Due).await.unwrap_err().to_string();
    assert!(error.contains(&*path.to_string_lossy()), "{error}");
    let samples = |tenant: &str| {
        let snapshot = store.snapshot();
        let files = snapshot
            .files
            .iter()
            .filter(is_samples)
            .filter(|file| file.tenant.as_str() == tenant);
        files.count()
    };
    // Other files are merged nevertheless, and the next rounds do not touch the unreadable file.
    assert_eq!((samples("t"), samples("broken")), (1, 2));
    assert_eq!(contents(&store.snapshot(), "t"), before);
    store.maintain(Work::Due).await.unwrap();
    // Each request to merge everything fails with an error that names the unreadable file.
    for _ in 0..2 {
        let error = store.maintain(Work::Compact).await.unwrap_err().to_string();
        assert!(error.contains(&*path.to_string_lossy()), "{error}");
    }
    assert_eq!(samples("broken"), 2);
    std::fs::write(&path, bytes).unwrap();
    store.maintain(Work::Compact).await.unwrap();
    assert_eq!(
        count(&store.snapshot(), crate::store::common::schema::Table::Samples),
        2
    );
}

#[tokio::test]
async fn files_that_another_server_has_replaced_are_given_way_to_and_not_called_unreadable() {
    let (one, two) = (scratch(), scratch());
    let tables = one.path().join("tables");
    std::fs::create_dir(&tables).unwrap();
    std::os::unix::fs::symlink(&tables, two.path().join("tables")).unwrap();
    let store = open(config(one.path()));
    fill(&store, "t", 9, 1, 40).await;
    let expected = contents(&store.snapshot(), "t");
    // This server reads the present list of files, and uses the list later.
    let late = open(config(two.path()));
    assert_eq!(contents(&late.snapshot(), "t"), expected);
    store.maintain(Work::Compact).await.unwrap();
    store.maintain(Work::Vacuum(Duration::ZERO)).await.unwrap();
    let error = late.maintain(Work::Due).await.unwrap_err();
    assert!(matches!(error, StoreError::Outdated(_)), "{error}");
    late.maintain(Work::Due).await.unwrap();
    assert_eq!(contents(&late.snapshot(), "t"), expected);
    assert_eq!(late.snapshot().files.len(), store.snapshot().files.len());
    drop(late);
    // If another server has replaced the files, requested work starts again by itself.
    let names = Names::new(SHAPE.functions);
    for seed in [1, 2] {
        assert!(
            store
                .append(&tenant_id("t"), vec![profile(&names, "cart", seed, 900)])
                .await
                .is_empty()
        );
        store.flush().await.unwrap();
    }
    let late = open(config(two.path()));
    store.maintain(Work::Compact).await.unwrap();
    store.maintain(Work::Vacuum(Duration::ZERO)).await.unwrap();
    late.maintain(Work::Delete(deletion("{service_name=\"cart\"}")))
        .await
        .unwrap();
    let left = Store::open_read_only(one.path()).unwrap().snapshot();
    let series = contents(&left, "t").samples.keys().map(|key| key.1).collect::<Vec<_>>();
    let removed = expected.samples.keys().filter(|key| !series.contains(&key.1)).count();
    assert!(removed > 0 && removed < expected.samples.len(), "{removed}");
    assert_eq!(contents(&late.snapshot(), "t"), contents(&left, "t"));
}

#[tokio::test]
async fn a_retention_gives_way_to_a_merge_of_another_server_once_and_plans_again() {
    let (one, two) = (scratch(), scratch());
    let tables = one.path().join("tables");
    std::fs::create_dir(&tables).unwrap();
    std::os::unix::fs::symlink(&tables, two.path().join("tables")).unwrap();
    for _ in 0..2 {
        fill_days(one.path(), &[40]).await;
    }
    let mut retiring = config(two.path());
    retiring.maintenance.aging.retention = 30 * DAY;
    let retiring = open(retiring);
    let store = open(config(one.path()));
    store.maintain(Work::Compact).await.unwrap();
    let error = retiring.maintain(Work::Due).await.unwrap_err();
    assert!(matches!(error, StoreError::Outdated(_)), "{error}");
    retiring.maintain(Work::Due).await.unwrap();
    let left = Store::open_read_only(one.path()).unwrap().snapshot();
    assert_eq!(left.files.len(), 0, "{:?}", left.files);
}
