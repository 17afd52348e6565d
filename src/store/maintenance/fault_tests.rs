//! A fault at every operation on the disk in turn, for every job of the store: the disk fails at the nth operation and at all after it, heals, and in
//! every second case the process has died in between. Then the job is done again.
//!
//! Guarantee: what was acknowledged is there once after the fault, after the start, and after the job that was repeated; the job ends as if nothing had
//! happened, and no file is left over.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::*;
use crate::profile::synthetic::Names;
use crate::store::clock::Clock;
use crate::store::delta::DeltaTable;
use crate::store::fault::{FaultHook, Faults, Place};
use crate::store::maintenance::aging::Aging;
use crate::store::maintenance::tests::{
    self, Contents, SHAPE, START_NS, Trace, contents, copy, count, deletion, files_on_disk, fill, open, profile, sums,
};
use crate::store::root::Root;
use crate::store::snapshot::SnapshotSource;
use crate::store::{Store, StoreConfig};

/// The settings of the other tests, with a checkpoint every ten entries.
fn config(dir: &Path) -> StoreConfig {
    StoreConfig {
        checkpoint_interval: 10,
        ..tests::config(dir)
    }
}

const DAY: Duration = Duration::from_secs(86_400);

/// A disk that fails at the nth operation and at all after it.
struct FailFrom {
    left: AtomicUsize,
}

impl FailFrom {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            left: AtomicUsize::new(usize::MAX),
        })
    }

    /// Whether it has failed; it is whole afterwards.
    fn heal(&self) -> bool {
        self.left.swap(usize::MAX, Ordering::SeqCst) == 0
    }
}

impl FaultHook for FailFrom {
    fn check(&self, place: Place) -> io::Result<()> {
        // The beginning of a job is no operation.
        if matches!(place, Place::Job(_)) {
            return Ok(());
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

/// How far a check comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The disk has failed, and perhaps the process died: the job is done, or not, or in part.
    Between,
    /// The job was repeated.
    Done,
}

/// One job under faults.
struct Case<'a> {
    name: &'static str,
    /// A folder to start from.
    first: &'a Path,
    config: &'a dyn Fn(&Path) -> StoreConfig,
    work: Vec<Work>,
    /// Fewer operations than the job has: that its writes are places of faults at all.
    least: usize,
    check: &'a dyn Fn(&Contents, Stage, &str),
}

impl Case<'_> {
    async fn run(self) {
        for fails_at in 1.. {
            let dir = tempfile::tempdir().unwrap();
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
            let store = match fails_at % 2 {
                0 => store,
                _ => {
                    drop(store);
                    open((self.config)(dir.path()))
                }
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
                let again = open((self.config)(dir.path()));
                (self.check)(&contents(&again.snapshot(), "t"), Stage::Done, &case);
            }
            if !failed {
                assert!(fails_at > self.least, "{case}: the writes must be places of faults");
                return;
            }
        }
    }
}

#[tokio::test]
async fn a_failure_at_any_write_of_downsampling_keeps_every_sum() {
    let first = tempfile::tempdir().unwrap();
    let store = open(config(first.path()));
    fill(&store, "t", 1, 3, 30).await;
    let before = contents(&store.snapshot(), "t");
    drop(store);
    let coarse = |dir: &Path| {
        let mut config = config(dir);
        config.maintenance.aging.downsample = vec![(Duration::ZERO, Duration::from_secs(300))];
        config
    };
    Case {
        name: "downsampling",
        first: first.path(),
        config: &coarse,
        work: vec![Work::Due],
        least: 8,
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

/// A folder with profiles of so many days ago.
async fn of_days(dir: &Path, days: &[i64]) {
    let store = open(config(dir));
    let names = Names::new(SHAPE.functions);
    let now = chrono::Utc::now().timestamp() - START_NS / 1_000_000_000;
    for day in days {
        let profiles = vec![profile(&names, "shop", *day as u64, now - day * 86_400)];
        assert!(store.append("t", profiles).await.is_empty());
    }
    store.flush().await.unwrap();
}

/// The samples of the last so many days, and of a type where one is given.
fn young(
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
    let first = tempfile::tempdir().unwrap();
    of_days(first.path(), &[0, 40]).await;
    let before = contents(&Store::open_read_only(first.path()).unwrap().snapshot(), "t");
    let kept = young(&before, 30, "");
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
        least: 8,
        check: &|after, stage, case| {
            assert_eq!(young(after, 30, ""), kept, "{case}");
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
    let first = tempfile::tempdir().unwrap();
    of_days(first.path(), &[20]).await;
    let before = contents(&Store::open_read_only(first.path()).unwrap().snapshot(), "t");
    let kept = young(&before, 30, CPU);
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
        // The first round splits, the second takes away.
        work: vec![Work::Due, Work::Due],
        least: 20,
        check: &|after, stage, case| {
            assert_eq!(young(after, 30, CPU), kept, "{case}");
            assert!(
                after.samples == before.samples || after.samples == kept,
                "{case}: a part is gone"
            );
            assert!(after.samples == kept || stage == Stage::Between, "{case}");
        },
    }
    .run()
    .await;
}

/// Brings the tables' logs to so many entries, by transactions of another writer that hold nothing.
fn lengthen(dir: &Path, entries: i64) {
    for table in crate::store::schema::Table::ALL {
        let mut opened = DeltaTable::open(&Root::from(dir.join("tables").as_path()), table).unwrap();
        for version in 1..=entries {
            opened.append("another", version, &[]).unwrap();
        }
    }
}

/// Waits until the log takes profiles again.
async fn healed(store: &Store) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while store.unavailable().is_some() {
        assert!(Instant::now() < deadline, "the store must heal by itself");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn checkpoints(dir: &Path) -> usize {
    crate::store::schema::Table::ALL
        .iter()
        .filter(|table| {
            dir.join("tables")
                .join(table.name())
                .join("_delta_log/_last_checkpoint")
                .exists()
        })
        .count()
}

#[tokio::test]
async fn a_failure_at_any_write_of_a_flush_with_checkpoints_loses_and_repeats_nothing() {
    let first = tempfile::tempdir().unwrap();
    let store = open(config(first.path()));
    fill(&store, "t", 1, 1, 40).await;
    drop(store);
    // Created, flushed once: the flush under faults writes entry 10.
    std::thread::scope(|scope| scope.spawn(|| lengthen(first.path(), 8)).join().unwrap());
    let names = Names::new(SHAPE.functions);
    let whole = {
        let dir = tempfile::tempdir().unwrap();
        copy(first.path(), dir.path());
        let store = open(config(dir.path()));
        assert!(
            store
                .append("t", vec![profile(&names, "late", 7, 900)])
                .await
                .is_empty()
        );
        store.flush().await.unwrap();
        assert_eq!(checkpoints(dir.path()), 4);
        contents(&store.snapshot(), "t")
    };
    let before = contents(&Store::open_read_only(first.path()).unwrap().snapshot(), "t");
    // The four tables repeat the same operations: every third reaches each kind of them, and costs a third.
    for fails_at in (1..).step_by(3) {
        let dir = tempfile::tempdir().unwrap();
        copy(first.path(), dir.path());
        let hook = FailFrom::new();
        let store = open(StoreConfig {
            faults: Faults::new(hook.clone()),
            ..config(dir.path())
        });
        hook.left.store(fails_at, Ordering::SeqCst);
        let refused = store.append("t", vec![profile(&names, "late", 7, 900)]).await;
        let flushed = store.flush().await;
        let failed = hook.heal();
        let expected = if refused.is_empty() { &whole } else { &before };
        let case = format!("operation {fails_at}: {refused:?} {flushed:?}");
        assert_eq!(&contents(&store.snapshot(), "t"), expected, "{case}");
        let store = match fails_at % 2 {
            0 => store,
            _ => {
                drop(store);
                open(config(dir.path()))
            }
        };
        let now = contents(&store.snapshot(), "t");
        // What was refused may come back after a crash, whole; what was acknowledged must.
        assert!(&now == expected || (!refused.is_empty() && now == whole), "{case}");
        healed(&store).await;
        // The checkpoint that failed is made up for by one of the next entries.
        for flush in 0..6 {
            if flush > 0 && checkpoints(dir.path()) == 4 {
                break;
            }
            assert!(
                store
                    .append("t", vec![profile(&names, "late", 7, 900)])
                    .await
                    .is_empty()
            );
            store.flush().await.unwrap();
        }
        assert_eq!(checkpoints(dir.path()), 4, "{case}");
        let last = contents(&store.snapshot(), "t");
        drop(store);
        let again = open(config(dir.path()));
        assert_eq!(contents(&again.snapshot(), "t"), last, "{case}");
        assert_eq!(files_on_disk(dir.path()), again.snapshot().files.len(), "{case}");
        if !failed {
            assert!(fails_at > 60, "{case}: the writes must be places of faults");
            return;
        }
    }
}

#[tokio::test]
async fn a_failure_at_any_write_of_a_start_loses_and_repeats_nothing() {
    // A folder whose flush has reached one table only.
    let first = tempfile::tempdir().unwrap();
    let (expected, other) = {
        let hook = FailFrom::new();
        let store = open(StoreConfig {
            faults: Faults::new(hook.clone()),
            ..config(first.path())
        });
        fill(&store, "t", 1, 1, 40).await;
        let names = Names::new(SHAPE.functions);
        assert!(
            store
                .append("t", vec![profile(&names, "late", 7, 900)])
                .await
                .is_empty()
        );
        assert!(
            store
                .append("u", vec![profile(&names, "late", 8, 900)])
                .await
                .is_empty()
        );
        hook.left.store(32, Ordering::SeqCst);
        // It stays so: the flush is not tried again with success before the end.
        store.flush().await.unwrap_err();
        (contents(&store.snapshot(), "t"), contents(&store.snapshot(), "u"))
    };
    for fails_at in 1.. {
        let dir = tempfile::tempdir().unwrap();
        copy(first.path(), dir.path());
        let hook = FailFrom::new();
        hook.left.store(fails_at, Ordering::SeqCst);
        let opened = Store::open(
            StoreConfig {
                faults: Faults::new(hook.clone()),
                ..config(dir.path())
            },
            &crate::telemetry::metrics::Scope::new(),
        );
        let failed = hook.heal();
        assert_eq!(opened.is_err(), failed, "{fails_at}");
        drop(opened);
        let read = Store::open_read_only(dir.path()).unwrap().snapshot();
        assert_eq!(
            (contents(&read, "t"), contents(&read, "u")),
            (expected.clone(), other.clone()),
            "{fails_at}"
        );
        let store = open(config(dir.path()));
        let now = store.snapshot();
        assert_eq!(
            (contents(&now, "t"), contents(&now, "u")),
            (expected.clone(), other.clone()),
            "{fails_at}"
        );
        store.flush().await.unwrap();
        assert_eq!(files_on_disk(dir.path()), store.snapshot().files.len(), "{fails_at}");
        if !failed {
            assert!(
                fails_at > 10,
                "the writes of a start must be places of faults: {fails_at}"
            );
            return;
        }
    }
}

#[tokio::test]
async fn a_failure_at_any_step_of_trimming_the_log_loses_nothing() {
    let first = tempfile::tempdir().unwrap();
    let store = open(config(first.path()));
    fill(&store, "t", 1, 1, 40).await;
    drop(store);
    std::thread::scope(|scope| scope.spawn(|| lengthen(first.path(), 8)).join().unwrap());
    let store = open(config(first.path()));
    fill(&store, "t", 1, 1, 40).await;
    let before = contents(&store.snapshot(), "t");
    drop(store);
    let later = |dir: &Path| StoreConfig {
        clock: Clock::new(|| SystemTime::now() + 8 * DAY),
        ..config(dir)
    };
    let entries = |dir: &Path| {
        let folder = dir.join("tables/samples/_delta_log");
        std::fs::read_dir(folder).unwrap().count()
    };
    assert!(entries(first.path()) > 20);
    for fails_at in (1..200).step_by(7) {
        let dir = tempfile::tempdir().unwrap();
        copy(first.path(), dir.path());
        let hook = FailFrom::new();
        let store = open(StoreConfig {
            faults: Faults::new(hook.clone()),
            ..later(dir.path())
        });
        hook.left.store(fails_at, Ordering::SeqCst);
        let trimmed = store.maintain(Work::Vacuum(Duration::ZERO)).await;
        let failed = hook.heal();
        assert_eq!(trimmed.is_err(), failed, "{fails_at}");
        drop(store);
        let store = open(later(dir.path()));
        assert_eq!(contents(&store.snapshot(), "t"), before, "{fails_at}");
        store.maintain(Work::Vacuum(Duration::ZERO)).await.unwrap();
        assert!(entries(dir.path()) < 8, "{fails_at}");
        drop(store);
        if !failed {
            assert!(fails_at > 40, "the deletions must be places of faults: {fails_at}");
            assert_eq!(contents(&open(later(dir.path())).snapshot(), "t"), before, "{fails_at}");
            return;
        }
    }
}

#[tokio::test]
async fn a_deletion_that_is_tried_again_takes_nothing_that_came_after_it() {
    for crash in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let hook = FailFrom::new();
        let store = open(StoreConfig {
            faults: Faults::new(hook.clone()),
            ..config(dir.path())
        });
        fill(&store, "t", 1, 2, 40).await;
        // Fails once the request is written down: flush (nothing to do), then six steps of the request.
        hook.left.store(9, Ordering::SeqCst);
        store
            .maintain(Work::Delete(deletion("{service_name=\"cart\"}")))
            .await
            .unwrap_err();
        hook.heal();
        assert_eq!(deletion::pending(dir.path()).unwrap().len(), 1);
        let names = Names::new(SHAPE.functions);
        let mut total = 0;
        // One goes to a file before the deletion is tried again, one stays in the log and the head.
        for (seed, flush) in [(1, true), (2, false)] {
            assert!(
                store
                    .append("t", vec![profile(&names, "cart", seed, 900)])
                    .await
                    .is_empty()
            );
            total += 2;
            if flush {
                store.flush().await.unwrap();
            }
        }
        let store = match crash {
            false => store,
            true => {
                drop(store);
                open(config(dir.path()))
            }
        };
        // Also when somebody asks for a merge first.
        let works = if crash {
            [Work::Due, Work::Compact]
        } else {
            [Work::Compact, Work::Due]
        };
        for work in works {
            store.maintain(work).await.unwrap();
        }
        assert_eq!(deletion::pending(dir.path()).unwrap().len(), 0);
        let left = contents(&store.snapshot(), "t");
        // Two moments of the other service, and what came later; each profile has two types, and one more for a label.
        let late = left.profiles.iter().filter(|line| line.contains("08:15:00")).count();
        assert!(late >= total, "{late} of {total}: {:?}", left.profiles);
        assert!(left.profiles.len() > late, "{:?}", left.profiles);
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_read_does_not_stop_the_maintenance_of_others() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    fill(&store, "broken", 9, 1, 40).await;
    fill(&store, "t", 9, 1, 40).await;
    let before = contents(&store.snapshot(), "t");
    let snapshot = store.snapshot();
    let is_samples = |file: &&crate::store::snapshot::FileEntry| file.table == crate::store::schema::Table::Samples;
    let victim = snapshot
        .files
        .iter()
        .filter(is_samples)
        .find(|file| &*file.tenant == "broken")
        .unwrap();
    let path = snapshot.root.name(&victim.path);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = store.maintain(Work::Due).await.unwrap_err().to_string();
    assert!(error.contains(&*path.to_string_lossy()), "{error}");
    let samples = |tenant: &str| {
        let snapshot = store.snapshot();
        let of = snapshot
            .files
            .iter()
            .filter(is_samples)
            .filter(|file| &*file.tenant == tenant);
        of.count()
    };
    assert_eq!(samples("t"), 1);
    assert_eq!(contents(&store.snapshot(), "t"), before);
    // The next round merges what lies beside it.
    store.maintain(Work::Due).await.unwrap();
    assert_eq!(samples("broken"), 2);
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(count(&store.snapshot(), crate::store::schema::Table::Samples), 3);
}

/// Counts appends that are in the log, that are synced, and that were acknowledged.
#[derive(Default)]
struct Order {
    logged: AtomicU64,
    durable: AtomicU64,
    acknowledged: AtomicU64,
    early: AtomicU64,
    syncs: AtomicU64,
}

impl FaultHook for Order {
    fn check(&self, _place: Place) -> io::Result<()> {
        Ok(())
    }

    fn logged(&self, appends: usize) {
        self.logged.fetch_add(appends as u64, Ordering::SeqCst);
    }

    fn done(&self, place: Place) {
        match place {
            Place::LogSync => {
                self.durable.store(self.logged.load(Ordering::SeqCst), Ordering::SeqCst);
                self.syncs.fetch_add(1, Ordering::SeqCst);
            }
            // Acknowledgements come in the order of the log.
            Place::Acknowledge
                if self.acknowledged.fetch_add(1, Ordering::SeqCst) >= self.durable.load(Ordering::SeqCst) =>
            {
                self.early.fetch_add(1, Ordering::SeqCst);
            }
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_acknowledgement_comes_before_the_sync_of_its_record_however_many_push() {
    let dir = tempfile::tempdir().unwrap();
    let order = Arc::new(Order::default());
    let store = open(StoreConfig {
        faults: Faults::new(order.clone()),
        flush_bytes: 100_000,
        ..config(dir.path())
    });
    let clients: Vec<_> = (0..8u64)
        .map(|client| {
            let store = store.clone();
            tokio::spawn(async move {
                let names = Names::new(SHAPE.functions);
                for number in 0..25u64 {
                    let seed = client * 100 + number;
                    assert!(
                        store
                            .append("t", vec![profile(&names, "shop", seed, seed as i64)])
                            .await
                            .is_empty()
                    );
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let read = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
    assert_eq!((read(&order.acknowledged), read(&order.logged)), (200, 200));
    assert_eq!(read(&order.early), 0);
    // Several shared a sync, or the test would say little of groups.
    assert!(read(&order.syncs) > 0);
}

#[tokio::test]
async fn a_deletion_is_written_down_before_it_is_done_and_forgotten_after_it_is_durable() {
    let dir = tempfile::tempdir().unwrap();
    let trace = Arc::new(Trace::default());
    let store = open(StoreConfig {
        faults: Faults::new(trace.clone()),
        ..config(dir.path())
    });
    fill(&store, "t", 1, 2, 40).await;
    trace.take();
    store
        .maintain(Work::Delete(deletion("{service_name=\"cart\"}")))
        .await
        .unwrap();
    let taken = trace.take();
    let first = |wanted: fn(&Place) -> bool| taken.iter().position(wanted).unwrap();
    let last = |wanted: fn(&Place) -> bool| taken.iter().rposition(wanted).unwrap();
    let written = last(|place| matches!(place, Place::RequestWrite));
    assert!(
        written < first(|place| matches!(place, Place::FileCreate(_))),
        "{taken:?}"
    );
    let durable = last(|place| matches!(place, Place::EntryFolderSync(_)));
    assert!(
        durable < first(|place| matches!(place, Place::RequestRemove)),
        "{taken:?}"
    );
    assert!(
        last(|place| matches!(place, Place::FolderSync(_))) < first(|place| matches!(place, Place::EntryLink(_))),
        "{taken:?}"
    );
    assert!(
        !taken.iter().any(|place| matches!(place, Place::FileDelete(_))),
        "{taken:?}"
    );
}
