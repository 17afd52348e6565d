//! Tests with a fault at the disk operations of a flush with checkpoints, of a start, and of the trimming of the
//! tables' logs. The disk fails at one operation and at all later operations, then heals. In some cases the process
//! dies in between.
//!
//! Guarantee: every acknowledged profile exists once after the fault and after every start, and the failed work is done
//! later.

use std::io;
use std::mem::{Discriminant, discriminant};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

use crate::store::Store;
use crate::store::common::clock::Clock;
use crate::store::common::fault::{FaultHook, FaultPoint, Faults};
use crate::store::common::schema::Table;
use crate::store::config::StoreConfig;
use crate::store::maintenance::tests::fault::{DAY, FailFrom, config, step};
use crate::store::maintenance::tests::{SHAPE, contents, copy, files_on_disk, fill, open, profile};
use crate::store::maintenance::*;
use crate::store::tables::delta::DeltaTable;
use crate::store::tables::root::Root;
use crate::store::tables::snapshot::SnapshotSource;
use crate::store::tests::scratch;
use alluvium_testing::synthetic::Names;
use alluvium_testing::tenant_id;

/// Adds `entries` entries to the tables' logs, by empty transactions of another writer.
fn lengthen(dir: &Path, entries: i64) {
    for table in crate::store::common::schema::Table::ALL {
        let mut opened = DeltaTable::open(&Root::from(dir.join("tables").as_path()), table).unwrap();
        for version in 1..=entries {
            opened.append(("another", version), None, &[]).unwrap();
        }
    }
}

/// Waits until the log accepts profiles again.
async fn healed(store: &Store) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while store.unavailable().is_some() {
        assert!(
            Instant::now() < deadline,
            "the log still refuses profiles after a minute"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn checkpoints(dir: &Path) -> usize {
    crate::store::common::schema::Table::ALL
        .iter()
        .filter(|table| {
            dir.join("tables")
                .join(table.name())
                .join("_delta_log/_last_checkpoint")
                .exists()
        })
        .count()
}

/// Records the kinds of operations in their order, with the number of operations of each kind.
#[derive(Default)]
struct Kinds(Mutex<Vec<(FaultPoint, usize)>>);

impl FaultHook for Kinds {
    fn check(&self, point: FaultPoint) -> io::Result<()> {
        let mut kinds = self.0.lock();
        match kinds
            .iter_mut()
            .find(|(kind, _)| discriminant(kind) == discriminant(&point))
        {
            Some((_, count)) => *count += 1,
            None => kinds.push((point, 1)),
        }
        Ok(())
    }
}

/// A disk that fails at the nth operation of a kind, and at all later operations of any kind.
struct FailKind {
    kind: Discriminant<FaultPoint>,
    left: AtomicUsize,
}

impl FailKind {
    /// Value of `left` for a disk that never fails.
    const WHOLE: usize = usize::MAX;

    /// Heals the disk. Returns true if it has failed.
    fn heal(&self) -> bool {
        self.left.swap(Self::WHOLE, Ordering::SeqCst) == 0
    }
}

impl FaultHook for FailKind {
    fn check(&self, point: FaultPoint) -> io::Result<()> {
        let is_meant = discriminant(&point) == self.kind;
        let left = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| match left {
                Self::WHOLE => None,
                left => Some(left - usize::from(is_meant && left > 0)),
            });
        match left {
            Ok(0) => Err(io::Error::from(io::ErrorKind::StorageFull)),
            Ok(1) if is_meant => Err(io::Error::from(io::ErrorKind::StorageFull)),
            _ => Ok(()),
        }
    }
}

#[tokio::test]
async fn a_failure_at_any_kind_of_write_of_a_flush_with_checkpoints_loses_and_repeats_nothing() {
    let first = scratch();
    let store = open(config(first.path()));
    fill(&store, "t", 1, 1, 40).await;
    drop(store);
    // Each log has an entry of its creation and one of a flush. With 8 more entries, the flush under faults writes
    // entry 10, so a checkpoint is due.
    std::thread::scope(|scope| scope.spawn(|| lengthen(first.path(), 8)).join().unwrap());
    let names = Names::new(SHAPE.functions);
    let late = || vec![profile(&names, "late", 7, 900)];
    let kinds = Arc::new(Kinds::default());
    let flushed_contents = {
        let dir = scratch();
        copy(first.path(), dir.path());
        let store = open(StoreConfig {
            faults: Faults::new(kinds.clone()),
            ..config(dir.path())
        });
        kinds.0.lock().clear();
        assert!(store.append(&tenant_id("t"), late()).await.is_empty());
        store.flush().await.unwrap();
        assert_eq!(checkpoints(dir.path()), 4);
        contents(&store.snapshot(), "t")
    };
    let before = contents(&Store::open_read_only(first.path()).unwrap().snapshot(), "t");
    let kinds = std::mem::take(&mut *kinds.0.lock());
    for point in [
        FaultPoint::LogSync,
        FaultPoint::FileSync(Table::Samples),
        FaultPoint::EntryLink(Table::Samples),
        FaultPoint::CheckpointRename(Table::Samples),
        FaultPoint::LogDeleteSync,
    ] {
        assert!(
            kinds.iter().any(|(kind, _)| discriminant(kind) == discriminant(&point)),
            "{point:?} is not among {kinds:?}"
        );
    }
    // The four tables repeat the same operations, so one failure for each kind of operation suffices. The position of
    // the failure changes from kind to kind, so that it occurs in different tables. In every second case, the process
    // dies. With `ALLUVIUM_ALL_FAULTS`, there is a case for each operation of each kind.
    let cases: Vec<_> = kinds
        .iter()
        .enumerate()
        .flat_map(|(index, (kind, count))| {
            let one = 1 + index % count;
            let occurrences = if step(2) == 1 { 1..=*count } else { one..=one };
            occurrences.map(move |occurrence| (kind, count, occurrence))
        })
        .collect();
    println!("a flush with checkpoints: {} operations fail", cases.len());
    for (index, (kind, count, occurrence)) in cases.into_iter().enumerate() {
        let crashes = index % 2 == 0;
        let dir = scratch();
        copy(first.path(), dir.path());
        let hook = Arc::new(FailKind {
            kind: discriminant(kind),
            left: AtomicUsize::new(FailKind::WHOLE),
        });
        let store = open(StoreConfig {
            faults: Faults::new(hook.clone()),
            ..config(dir.path())
        });
        hook.left.store(occurrence, Ordering::SeqCst);
        let refused = store.append(&tenant_id("t"), late()).await;
        let flushed = store.flush().await;
        let case = format!("{kind:?}, {occurrence} of {count}, crash {crashes}: {refused:?} {flushed:?}");
        assert!(hook.heal(), "{case}: no operation failed");
        let expected = if refused.is_empty() { &flushed_contents } else { &before };
        assert_eq!(&contents(&store.snapshot(), "t"), expected, "{case}");
        let store = if crashes {
            drop(store);
            open(config(dir.path()))
        } else {
            store
        };
        let now = contents(&store.snapshot(), "t");
        // After a crash, either all or none of the refused profiles reappear. All acknowledged profiles must exist.
        assert!(
            &now == expected || (!refused.is_empty() && now == flushed_contents),
            "{case}"
        );
        healed(&store).await;
        // A table writes a failed checkpoint later, after one of the next entries of its log.
        for flush in 0..6 {
            if flush > 0 && checkpoints(dir.path()) == 4 {
                break;
            }
            // Each profile differs, because a repeated profile would not be stored again.
            let profiles = vec![profile(&names, "late", 8 + flush, 900)];
            assert!(store.append(&tenant_id("t"), profiles).await.is_empty(), "{case}");
            store.flush().await.unwrap();
        }
        assert_eq!(checkpoints(dir.path()), 4, "{case}");
        let last = contents(&store.snapshot(), "t");
        drop(store);
        let reopened = open(config(dir.path()));
        assert_eq!(contents(&reopened.snapshot(), "t"), last, "{case}");
        assert_eq!(files_on_disk(dir.path()), reopened.snapshot().files.len(), "{case}");
    }
}

#[tokio::test]
async fn a_failure_at_any_write_of_a_start_loses_and_repeats_nothing() {
    // The flush of this folder has reached only one table.
    let first = scratch();
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
                .append(&tenant_id("t"), vec![profile(&names, "late", 7, 900)])
                .await
                .is_empty()
        );
        assert!(
            store
                .append(&tenant_id("u"), vec![profile(&names, "late", 8, 900)])
                .await
                .is_empty()
        );
        // The disk fails after the files of all tables and the first entry are written.
        hook.fail_from(FaultPoint::Commit(Table::ALL[1]));
        // The fault persists, so that no retry of the flush succeeds before the end.
        store.flush().await.unwrap_err();
        (contents(&store.snapshot(), "t"), contents(&store.snapshot(), "u"))
    };
    for fails_at in 1.. {
        let dir = scratch();
        copy(first.path(), dir.path());
        let hook = FailFrom::new();
        hook.left.store(fails_at, Ordering::SeqCst);
        let opened = Store::open(
            StoreConfig {
                faults: Faults::new(hook.clone()),
                ..config(dir.path())
            },
            &alluvium_telemetry::metrics::Scope::new(),
        );
        // If the disk is full, the store may open only for reading. It contains each profile once and accepts no
        // new profile.
        let reads = opened.as_ref().is_ok_and(|store| store.unavailable().is_some());
        if let Ok(store) = &opened {
            let now = store.snapshot();
            assert_eq!(
                (contents(&now, "t"), contents(&now, "u")),
                (expected.clone(), other.clone()),
                "{fails_at}"
            );
        }
        let failed = hook.heal();
        assert_eq!(opened.is_err() || reads, failed, "{fails_at}");
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
            assert!(fails_at > 10, "too few operations of a start can fail: {fails_at}");
            return;
        }
    }
}

#[tokio::test]
async fn a_failure_at_any_step_of_trimming_the_log_loses_nothing() {
    let first = scratch();
    let store = open(config(first.path()));
    fill(&store, "t", 1, 1, 40).await;
    drop(store);
    std::thread::scope(|scope| scope.spawn(|| lengthen(first.path(), 8)).join().unwrap());
    let store = open(config(first.path()));
    fill(&store, "t", 1, 1, 40).await;
    let before = contents(&store.snapshot(), "t");
    drop(store);
    let late_config = |dir: &Path| StoreConfig {
        clock: Clock::new(|| SystemTime::now() + 8 * DAY),
        ..config(dir)
    };
    let entries = |dir: &Path| {
        let folder = dir.join("tables/samples/_delta_log");
        std::fs::read_dir(folder).unwrap().count()
    };
    assert!(entries(first.path()) > 20);
    for fails_at in (1..400).step_by(step(7)) {
        let dir = scratch();
        copy(first.path(), dir.path());
        let hook = FailFrom::new();
        let store = open(StoreConfig {
            faults: Faults::new(hook.clone()),
            ..late_config(dir.path())
        });
        hook.left.store(fails_at, Ordering::SeqCst);
        let trimmed = store.maintain(Work::Vacuum(Duration::ZERO)).await;
        let failed = hook.heal();
        assert_eq!(trimmed.is_err(), failed, "{fails_at}");
        drop(store);
        let store = open(late_config(dir.path()));
        assert_eq!(contents(&store.snapshot(), "t"), before, "{fails_at}");
        store.maintain(Work::Vacuum(Duration::ZERO)).await.unwrap();
        assert!(entries(dir.path()) < 8, "{fails_at}");
        drop(store);
        if !failed {
            assert!(fails_at > 40, "too few operations of the trimming can fail: {fails_at}");
            println!("trimming: {} operations", fails_at - 1);
            assert_eq!(
                contents(&open(late_config(dir.path())).snapshot(), "t"),
                before,
                "{fails_at}"
            );
            return;
        }
    }
}
