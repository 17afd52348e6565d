//! Tests of disks that do not respond, and of disks on which the log cannot be truncated after a failed sync.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, RwLock};

use crate::store::common::fault::{FaultHook, FaultPoint, Faults};
use crate::store::common::lifecycle::Lifecycle;
use crate::store::common::schema::Table;
use crate::store::log::cut;
use crate::store::log::wal;
use crate::store::tables::snapshot::SnapshotSource;
use crate::store::tests::{Load, check, config, open, scratch};
use crate::store::*;
use alluvium_profile::RawProfile;
use alluvium_profile::SinkErrorKind;
use alluvium_telemetry::metrics::Scope;
use alluvium_testing::tenant_id;

/// Longest time that a test waits for an event.
const PATIENCE: Duration = Duration::from_secs(30);

/// A disk on which operations at one point block while the disk is dead.
struct DeadDisk {
    point: FaultPoint,
    is_dead: Mutex<bool>,
    revived: Condvar,
}

impl DeadDisk {
    fn blocking_at(point: FaultPoint) -> Arc<Self> {
        Arc::new(Self {
            point,
            is_dead: Mutex::new(false),
            revived: Condvar::new(),
        })
    }

    fn die(&self) {
        *self.is_dead.lock() = true;
    }

    fn revive(&self) {
        *self.is_dead.lock() = false;
        self.revived.notify_all();
    }

    /// Opens a store on the disk, with short timeouts.
    fn store(self: &Arc<Self>, dir: &Path, scope: &Scope) -> Arc<Store> {
        let config = StoreConfig {
            faults: Faults::new(self.clone()),
            stuck_after: Duration::from_millis(200),
            answer_after: Duration::from_millis(600),
            ..config(dir)
        };
        Store::open(config, scope).unwrap()
    }
}

impl FaultHook for DeadDisk {
    fn check(&self, point: FaultPoint) -> io::Result<()> {
        let mut is_dead = self.is_dead.lock();
        while point == self.point && *is_dead {
            self.revived.wait(&mut is_dead);
        }
        Ok(())
    }
}

/// Waits until the store is unavailable for a reason that contains `text`. If `text` is empty, waits until the store is
/// available.
async fn until_unavailable(store: &Store, text: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let reason = store.unavailable();
        if reason
            .as_ref()
            .map_or(text.is_empty(), |reason| !text.is_empty() && reason.contains(text))
        {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "the reason is {reason:?} instead of {text:?}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Returns the value of the metric line that begins with `name`, or 0 if there is no such line.
fn metric(scope: &Scope, name: &str) -> f64 {
    let text = scope.encode();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.map_or(0.0, |value| value.trim().parse().unwrap())
}

#[tokio::test]
async fn a_push_that_the_disk_never_syncs_is_refused_and_the_store_is_unavailable_until_it_does() {
    let (dir, scope) = (scratch(), Scope::new());
    let disk = DeadDisk::blocking_at(FaultPoint::LogSync);
    let store = disk.store(dir.path(), &scope);
    let mut load = Load::new();
    let total = load.append(&store, "t", 1).await;
    disk.die();
    let (profile, sum) = load.next();
    let push = || store.append(&tenant_id("t"), vec![profile.clone()]);
    let refused = tokio::time::timeout(PATIENCE, push())
        .await
        .expect("the push got no response");
    assert_eq!(refused[0].error.kind, SinkErrorKind::Unavailable);
    assert!(refused[0].error.message.contains("may be stored"), "{refused:?}");
    until_unavailable(&store, "a write or sync of the write-ahead log has not finished").await;
    assert!(metric(&scope, "alluvium_store_disk_wait_seconds{thread=\"log\"}") > 0.2);
    // The store queues no more profiles.
    let refused = push().await;
    assert!(refused[0].error.message.contains("does not respond"), "{refused:?}");
    assert_eq!(
        metric(&scope, "alluvium_store_rejected_profiles_total{reason=\"log_stalled\"}"),
        2.0
    );
    disk.revive();
    until_unavailable(&store, "").await;
    // The sync may have stored the refused profile. Otherwise, one of these pushes stores it.
    let deadline = Instant::now() + PATIENCE;
    while !push().await.is_empty() {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    check(&store.snapshot(), "t", total + sum);
    drop(store);
    check(&open(config(dir.path())).snapshot(), "t", total + sum);
    assert_eq!(metric(&scope, "alluvium_store_disk_wait_seconds{thread=\"log\"}"), 0.0);
}

#[tokio::test]
async fn a_close_gives_up_on_a_disk_that_does_not_answer_and_keeps_others_out_of_the_folder() {
    let (dir, scope) = (scratch(), Scope::new());
    let disk = DeadDisk::blocking_at(FaultPoint::LogSync);
    let store = disk.store(dir.path(), &scope);
    let mut load = Load::new();
    load.append(&store, "t", 1).await;
    disk.die();
    assert_eq!(load.append(&store, "t", 1).await, 0);
    let closed = tokio::time::timeout(PATIENCE, store.close(Duration::from_millis(10))).await;
    let error = closed.expect("the close did not end").unwrap_err();
    assert!(
        matches!(&error, StoreError::Stuck { threads, .. } if threads.contains("store-log")),
        "{error}"
    );
    drop(store);
    let error = Store::open(config(dir.path()), &Scope::new()).err().unwrap();
    assert!(matches!(error, StoreError::Locked(_)), "{error}");
    disk.revive();
}

#[tokio::test]
async fn a_flush_that_the_disk_does_not_answer_makes_the_store_unavailable_until_it_goes_on() {
    let (dir, scope) = (scratch(), Scope::new());
    let disk = DeadDisk::blocking_at(FaultPoint::FileSync(Table::Samples));
    let store = disk.store(dir.path(), &scope);
    let mut load = Load::new();
    let mut total = load.append(&store, "t", 2).await;
    disk.die();
    let flushed = tokio::spawn(store.flush());
    until_unavailable(&store, "a flush has made no progress").await;
    total += load.append(&store, "t", 1).await;
    disk.revive();
    flushed.await.unwrap().unwrap();
    until_unavailable(&store, "").await;
    check(&store.snapshot(), "t", total);
}

/// Lets the flush sync three files, and then waits at the next file until the store begins to stop.
#[derive(Default)]
struct SlowFlush {
    lifecycle: RwLock<Option<Arc<Lifecycle>>>,
    files: AtomicUsize,
}

impl FaultHook for SlowFlush {
    fn check(&self, point: FaultPoint) -> io::Result<()> {
        if !matches!(point, FaultPoint::FileSync(_)) || self.files.fetch_add(1, Ordering::SeqCst) < 3 {
            return Ok(());
        }
        let deadline = Instant::now() + PATIENCE;
        let is_stopped = || {
            self.lifecycle
                .read()
                .as_ref()
                .is_none_or(|lifecycle| lifecycle.is_stopped())
        };
        while !is_stopped() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_close_breaks_off_a_long_flush_and_has_let_go_of_the_folder_when_it_returns() {
    let dir = scratch();
    let hook = Arc::new(SlowFlush::default());
    let store = open(StoreConfig {
        faults: Faults::new(hook.clone()),
        ..config(dir.path())
    });
    *hook.lifecycle.write() = Some(store.lifecycle.clone());
    let mut load = Load::new();
    let mut totals = Vec::new();
    for tenant in 0..20 {
        totals.push(load.append(&store, &format!("t{tenant}"), 1).await);
    }
    let error = store.close(Duration::from_millis(10)).await.unwrap_err();
    assert!(matches!(error, StoreError::Deadline(_)), "{error}");
    assert!(
        hook.files.load(Ordering::SeqCst) <= 5,
        "the close did not break off the flush"
    );
    // The first store still exists, but the folder is unlocked.
    let next = open(config(dir.path()));
    for (tenant, total) in totals.iter().enumerate() {
        check(&next.snapshot(), &format!("t{tenant}"), *total);
    }
    drop(store);
}

/// A disk that fails at some points.
struct Failing(Mutex<Vec<FaultPoint>>);

impl FaultHook for Failing {
    fn check(&self, point: FaultPoint) -> io::Result<()> {
        if self.0.lock().contains(&point) {
            return Err(io::Error::other("injected"));
        }
        Ok(())
    }
}

/// Opens a store and stores one profile, then lets the disk fail at `points`. Pushes another profile, which the store
/// refuses, and kills the store. Returns the sum of the first profile, the refused profile, and the sum of the refused
/// profile.
async fn refused_and_killed(dir: &Path, points: &[FaultPoint], has_id: bool) -> (i64, RawProfile, i64) {
    let disk = Arc::new(Failing(Mutex::default()));
    let store = open(StoreConfig {
        faults: Faults::new(disk.clone()),
        ..config(dir)
    });
    let mut load = Load::new();
    let total = load.append(&store, "t", 1).await;
    let (mut refused, sum) = load.next();
    if !has_id {
        refused.id = "".into();
    }
    *disk.0.lock() = points.to_vec();
    let errors = store.append(&tenant_id("t"), vec![refused.clone()]).await;
    assert_eq!(errors[0].error.kind, SinkErrorKind::Unavailable);
    drop(store);
    (total, refused, sum)
}

async fn push(store: &Store, profile: &RawProfile) {
    assert!(store.append(&tenant_id("t"), vec![profile.clone()]).await.is_empty());
}

#[tokio::test]
async fn what_was_refused_does_not_come_back_when_it_could_be_neither_synced_nor_cut_off() {
    let dir = scratch();
    let points = [FaultPoint::LogSync, FaultPoint::LogCut];
    let (total, refused, sum) = refused_and_killed(dir.path(), &points, false).await;
    check(&Store::open_read_only(dir.path()).unwrap().snapshot(), "t", total);
    let store = open(config(dir.path()));
    check(&store.snapshot(), "t", total);
    push(&store, &refused).await;
    check(&store.snapshot(), "t", total + sum);
    store.flush().await.unwrap();
    check(&store.snapshot(), "t", total + sum);
    drop(store);
    check(&open(config(dir.path())).snapshot(), "t", total + sum);
    let left = std::fs::read_dir(dir.path().join("wal")).unwrap();
    let cuts = left.filter(|file| {
        file.as_ref()
            .unwrap()
            .path()
            .extension()
            .is_some_and(|end| end == "cut")
    });
    assert_eq!(cuts.count(), 0, "a `.cut` file outlives its segment");
}

#[tokio::test]
async fn a_refused_profile_with_an_id_is_stored_once_even_when_nothing_could_be_written_about_it() {
    let dir = scratch();
    let points = [FaultPoint::LogSync, FaultPoint::LogCut, FaultPoint::LogMark];
    let (total, refused, sum) = refused_and_killed(dir.path(), &points, true).await;
    let store = open(config(dir.path()));
    push(&store, &refused).await;
    check(&store.snapshot(), "t", total + sum);
    store.flush().await.unwrap();
    push(&store, &refused).await;
    check(&store.snapshot(), "t", total + sum);
}

/// Records the operations on a disk, and fails at some points.
#[derive(Default)]
struct Noting {
    operations: Mutex<Vec<FaultPoint>>,
    failing: Mutex<Vec<FaultPoint>>,
}

impl FaultHook for Noting {
    fn check(&self, point: FaultPoint) -> io::Result<()> {
        if self.failing.lock().contains(&point) {
            return Err(io::Error::other("injected"));
        }
        Ok(())
    }

    fn done(&self, point: FaultPoint) {
        self.operations.lock().push(point);
    }
}

#[tokio::test]
async fn a_start_writes_what_it_found_again_before_it_says_that_it_is_stored() {
    let dir = scratch();
    let points = [FaultPoint::LogSync, FaultPoint::LogCut, FaultPoint::LogMark];
    let (total, refused, sum) = refused_and_killed(dir.path(), &points, true).await;
    let disk = Arc::new(Noting::default());
    let on_it = || StoreConfig {
        faults: Faults::new(disk.clone()),
        ..config(dir.path())
    };
    *disk.failing.lock() = vec![FaultPoint::LogRenew];
    let error = Store::open(on_it(), &Scope::new()).err().unwrap();
    assert!(error.to_string().contains("000000000001.seg"), "{error}");
    disk.failing.lock().clear();
    let store = open(on_it());
    assert!(disk.operations.lock().contains(&FaultPoint::LogRenew));
    push(&store, &refused).await;
    check(&store.snapshot(), "t", total + sum);
}

#[tokio::test]
async fn a_start_syncs_the_names_of_entries_before_it_deletes_the_log_for_them() {
    let dir = scratch();
    let disk = Arc::new(Noting::default());
    let on_it = || StoreConfig {
        faults: Faults::new(disk.clone()),
        ..config(dir.path())
    };
    let store = open(on_it());
    let total = Load::new().append(&store, "t", 3).await;
    // The last table has its entry, but the name of the entry is not synced.
    *disk.failing.lock() = vec![FaultPoint::EntryFolderSync(Table::Profiles)];
    store.flush().await.unwrap_err();
    drop(store);
    disk.failing.lock().clear();
    disk.operations.lock().clear();
    let store = open(on_it());
    let operations = disk.operations.lock().clone();
    let index_of = |point| operations.iter().position(|one| *one == point).unwrap();
    for table in Table::ALL {
        assert!(
            index_of(FaultPoint::EntryFolderSync(table)) < index_of(FaultPoint::LogDelete),
            "{operations:?}"
        );
    }
    check(&store.snapshot(), "t", total);
}

#[tokio::test]
async fn a_log_whose_segment_cannot_be_cut_goes_on_in_the_next_one() {
    let dir = scratch();
    let disk = Arc::new(Failing(Mutex::default()));
    let store = open(StoreConfig {
        faults: Faults::new(disk.clone()),
        ..config(dir.path())
    });
    let mut load = Load::new();
    let mut total = load.append(&store, "t", 1).await;
    *disk.0.lock() = vec![FaultPoint::LogSync];
    assert_eq!(load.append(&store, "t", 1).await, 0);
    until_unavailable(&store, "write-ahead log").await;
    disk.0.lock().clear();
    until_unavailable(&store, "").await;
    total += load.append(&store, "t", 2).await;
    drop(store);
    check(&open(config(dir.path())).snapshot(), "t", total);
}

#[tokio::test]
async fn a_length_that_was_left_behind_does_not_cut_a_later_segment_of_the_same_number() {
    let dir = scratch();
    drop(open(config(dir.path())));
    for number in 1..5 {
        cut::write(&wal::segment_path(&dir.path().join("wal"), number), 8).unwrap();
    }
    let store = open(config(dir.path()));
    let total = Load::new().append(&store, "t", 3).await;
    drop(store);
    check(&open(config(dir.path())).snapshot(), "t", total);
}
