//! Tests of deletions that are finished late or twice: profiles that were acknowledged after the request for a deletion
//! stay in all tables, and files that no waiting deletion covers are still maintained.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::store::Store;
use crate::store::common::error::StoreError;
use crate::store::common::fault::{FaultHook, FaultPoint, Faults};
use crate::store::common::schema::Table;
use crate::store::config::StoreConfig;
use crate::store::maintenance::deletion::request;
use crate::store::maintenance::deletion::request::Deletion;
use crate::store::maintenance::tests::{Contents, SHAPE, START_NS, config, contents, deletion, fill, open, profile};
use crate::store::maintenance::{Downsampling, Work};
use crate::store::tables::snapshot::SnapshotSource;
use crate::store::tests::scratch;
use alluvium_testing::synthetic::Names;
use alluvium_testing::tenant_id;

const CARTS: &str = "{service_name=\"cart\"}";

/// While the flag is true, requests cannot be removed.
#[derive(Default)]
struct Keep(AtomicBool);

impl FaultHook for Keep {
    fn check(&self, point: FaultPoint) -> io::Result<()> {
        if point == FaultPoint::RequestRemove && self.0.load(Ordering::SeqCst) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        Ok(())
    }
}

async fn push(store: &Store, tenant: &str, service: &str, seeds: std::ops::Range<u64>, seconds: i64) {
    let names = Names::new(SHAPE.functions);
    for seed in seeds {
        let profiles = vec![profile(&names, service, seed, seconds)];
        assert!(store.append(&tenant_id(tenant), profiles).await.is_empty());
        store.flush().await.unwrap();
    }
}

fn files(store: &Store, table: Table, tenant: &str) -> usize {
    let snapshot = store.snapshot();
    let live_files = snapshot.files.iter();
    live_files
        .filter(|file| file.table == table && file.tenant.as_str() == tenant)
        .count()
}

/// Returns the number of profiles at 08:15, which are pushed after the request for the deletion.
fn late_profiles(contents: &Contents) -> usize {
    let lines = contents.profiles.iter();
    lines.filter(|line| line.contains("08:15:00")).count()
}

/// Returns the number of keys of samples at 08:15.
fn late_samples(contents: &Contents) -> usize {
    contents
        .samples
        .keys()
        .filter(|key| key.3 == 1_800_000_900_000_000)
        .count()
}

fn pending(dir: &Path) -> Vec<PathBuf> {
    request::pending(dir).unwrap()
}

#[tokio::test]
async fn a_finished_request_that_comes_back_deletes_nothing_that_came_later() {
    let dir = scratch();
    let keep = Arc::new(Keep::default());
    let store = open(StoreConfig {
        faults: Faults::new(keep.clone()),
        ..config(dir.path())
    });
    fill(&store, "t", 2, 2, 40).await;
    keep.0.store(true, Ordering::SeqCst);
    store.maintain(Work::Delete(deletion(CARTS))).await.unwrap_err();
    let [request] = pending(dir.path()).try_into().unwrap();
    let text = fs::read(&request).unwrap();
    keep.0.store(false, Ordering::SeqCst);
    store.maintain(Work::Due).await.unwrap();
    assert_eq!(pending(dir.path()).len(), 0);
    push(&store, "t", "cart", 0..3, 900).await;
    store.maintain(Work::Compact).await.unwrap();
    assert_eq!(files(&store, Table::Samples, "t"), 1);
    let expected = contents(&store.snapshot(), "t");
    assert!(late_profiles(&expected) > 0 && late_samples(&expected) > 0);
    let recheck = async |store: &Store| {
        store.maintain(Work::Due).await.unwrap();
        assert_eq!(contents(&store.snapshot(), "t"), expected);
        assert_eq!(pending(dir.path()).len(), 0);
    };
    fs::write(&request, &text).unwrap();
    recheck(&store).await;
    // A power cut leaves this state if the removal of the request was not durable yet.
    drop(store);
    fs::write(&request, &text).unwrap();
    recheck(&open(config(dir.path()))).await;
}

#[tokio::test]
async fn a_deletion_that_waits_holds_its_own_files_only_and_takes_nothing_that_came_later() {
    for (restart, table) in [(false, Table::Samples), (true, Table::Profiles)] {
        let dir = scratch();
        let mut config = config(dir.path());
        config.maintenance.policy.min_files = 2;
        let mut store = open(config.clone());
        fill(&store, "t", 3, 1, 40).await;
        let snapshot = store.snapshot();
        let victim = snapshot.files.iter().find(|file| file.table == table).unwrap();
        let victim = snapshot.root.name(&victim.path);
        let bytes = fs::read(&victim).unwrap();
        fs::write(&victim, &bytes[..bytes.len() - 1]).unwrap();
        let error = store.maintain(Work::Delete(deletion(CARTS))).await.unwrap_err();
        assert!(error.to_string().contains(&*victim.to_string_lossy()), "{error}");
        let expected = restored_contents(&store, &victim, &bytes, "t");
        // Profiles of this tenant and of another tenant arrive after the request.
        push(&store, "t", "cart", 100..103, 900).await;
        fill(&store, "other", 3, 1, 40).await;
        if restart {
            store.close(Duration::from_mins(1)).await.unwrap();
            drop(store);
            store = open(config.clone());
        }
        let error = store.maintain(Work::Compact).await.unwrap_err();
        assert!(error.to_string().contains(&*victim.to_string_lossy()), "{error}");
        assert_eq!(pending(dir.path()).len(), 1);
        for table in [Table::Samples, Table::Profiles] {
            assert_eq!(files(&store, table, "other"), 1, "{table:?}");
            // Three covered files stay, and the later files were merged.
            assert_eq!(files(&store, table, "t"), 4, "{table:?}");
        }
        fs::write(&victim, &bytes).unwrap();
        let before = contents(&store.snapshot(), "t");
        store.maintain(Work::Due).await.unwrap();
        assert_eq!(pending(dir.path()).len(), 0);
        let after = contents(&store.snapshot(), "t");
        assert_eq!(
            (late_profiles(&after), late_samples(&after)),
            (late_profiles(&before), late_samples(&before))
        );
        assert!(late_profiles(&after) > 0 && late_samples(&after) > 0);
        // Half of the covered profiles belong to the other service.
        let early = |contents: &Contents| contents.profiles.len() - late_profiles(contents);
        assert_eq!(early(&after) * 2, expected.profiles.len());
        let early = |contents: &Contents| contents.samples.len() - late_samples(contents);
        assert!(early(&after) < expected.samples.len() && early(&after) > 0);
        store.maintain(Work::Compact).await.unwrap();
        assert_eq!(contents(&store.snapshot(), "t"), after);
    }
}

/// Returns the contents that the tables have if the file `path` contains `bytes`.
fn restored_contents(store: &Store, path: &Path, bytes: &[u8], tenant: &str) -> Contents {
    let altered = fs::read(path).unwrap();
    fs::write(path, bytes).unwrap();
    let contents = contents(&store.snapshot(), tenant);
    fs::write(path, altered).unwrap();
    contents
}

#[tokio::test]
async fn two_deletions_that_wait_for_the_same_files_are_both_carried_out() {
    let dir = scratch();
    let keep = Arc::new(Keep::default());
    let store = open(StoreConfig {
        faults: Faults::new(keep.clone()),
        ..config(dir.path())
    });
    fill(&store, "t", 2, 2, 40).await;
    let snapshot = store.snapshot();
    let victim = snapshot
        .files
        .iter()
        .find(|file| file.table == Table::Profiles)
        .unwrap();
    let victim = snapshot.root.name(&victim.path);
    let bytes = fs::read(&victim).unwrap();
    fs::write(&victim, &bytes[1..]).unwrap();
    for selector in [CARTS, "{service_name=\"shop\"}"] {
        store.maintain(Work::Delete(deletion(selector))).await.unwrap_err();
    }
    fs::write(&victim, &bytes).unwrap();
    push(&store, "t", "cart", 100..102, 900).await;
    store.maintain(Work::Due).await.unwrap();
    assert_eq!(pending(dir.path()).len(), 0);
    let after = contents(&store.snapshot(), "t");
    assert_eq!(after.profiles.len(), late_profiles(&after));
    assert_eq!(after.samples.len(), late_samples(&after));
    assert!(late_profiles(&after) > 0 && late_samples(&after) > 0);
}

#[tokio::test]
async fn files_that_another_server_has_merged_are_deleted_from_when_somebody_asks_again() {
    let (one, two) = (scratch(), scratch());
    let tables = one.path().join("tables");
    fs::create_dir(&tables).unwrap();
    std::os::unix::fs::symlink(&tables, two.path().join("tables")).unwrap();
    let keep = Arc::new(Keep::default());
    let store = open(config(one.path()));
    fill(&store, "t", 9, 1, 40).await;
    let requester = open(StoreConfig {
        faults: Faults::new(keep.clone()),
        ..config(two.path())
    });
    let snapshot = store.snapshot();
    let victim = snapshot.files.iter().find(|file| file.table == Table::Samples).unwrap();
    let victim = snapshot.root.name(&victim.path);
    let bytes = fs::read(&victim).unwrap();
    fs::write(&victim, b"").unwrap();
    requester.maintain(Work::Delete(deletion(CARTS))).await.unwrap_err();
    fs::write(&victim, &bytes).unwrap();
    drop(requester);
    push(&store, "t", "cart", 100..101, 900).await;
    store.maintain(Work::Compact).await.unwrap();
    store.maintain(Work::Vacuum(Duration::ZERO)).await.unwrap();
    push(&store, "t", "cart", 101..102, 900).await;
    let before = contents(&store.snapshot(), "t");
    let requester = open(config(two.path()));
    // The deletion still waits after this server has merged all files that it may merge.
    for work in [Work::Due, Work::Compact, Work::Compact, Work::Due] {
        let error = requester.maintain(work).await.unwrap_err();
        assert!(matches!(error, StoreError::Unfinished { .. }), "{error}");
        assert_eq!(contents(&requester.snapshot(), "t"), before);
        assert_eq!(pending(two.path()).len(), 1);
    }
    requester.maintain(Work::Delete(deletion(CARTS))).await.unwrap();
    assert_eq!(
        pending(two.path()).len(),
        0,
        "this request also carries out the earlier one"
    );
    let after = contents(&requester.snapshot(), "t");
    assert!(late_profiles(&after) == 0 && late_samples(&after) == 0);
    assert!(after.samples.len() < before.samples.len() && !after.samples.is_empty());
}

#[tokio::test]
async fn a_deletion_reaches_what_another_server_has_merged_since_the_list_was_made() {
    let (one, two) = (scratch(), scratch());
    let tables = one.path().join("tables");
    fs::create_dir(&tables).unwrap();
    std::os::unix::fs::symlink(&tables, two.path().join("tables")).unwrap();
    let store = open(config(one.path()));
    fill(&store, "t", 8, 1, 40).await;
    // The deletion leaves no rows, so its commit adds no file by which the commit could be recognised.
    let requester = open(config(two.path()));
    store.maintain(Work::Compact).await.unwrap();
    requester.maintain(Work::Delete(deletion("{}"))).await.unwrap();
    assert_eq!(pending(two.path()).len(), 0);
    let left = contents(&Store::open_read_only(one.path()).unwrap().snapshot(), "t");
    assert_eq!((left.samples.len(), left.profiles.len()), (0, 0));
    assert_eq!(contents(&requester.snapshot(), "t"), left);
}

/// Returns an error for the next `left` syncs of the log folder of the table `samples`. Records all operations.
#[derive(Default)]
struct UnsyncedFiles {
    left: AtomicUsize,
    trace: crate::store::maintenance::tests::Trace,
}

impl FaultHook for UnsyncedFiles {
    fn check(&self, point: FaultPoint) -> io::Result<()> {
        let counted = |left: usize| left.checked_sub(1);
        if point == FaultPoint::EntryFolderSync(Table::Samples)
            && self
                .left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, counted)
                .is_ok()
        {
            return Err(io::Error::other("the disk does not sync"));
        }
        Ok(())
    }

    fn done(&self, point: FaultPoint) {
        self.trace.done(point);
    }
}

#[tokio::test]
async fn a_request_goes_when_the_entries_that_carry_it_out_are_durable_also_those_of_an_earlier_process() {
    for is_killed in [false, true] {
        let dir = scratch();
        let hook = Arc::new(UnsyncedFiles::default());
        let faulty = || StoreConfig {
            faults: Faults::new(hook.clone()),
            ..config(dir.path())
        };
        let mut store = open(faulty());
        fill(&store, "t", 2, 1, 40).await;
        hook.trace.take();
        hook.left
            .store(if is_killed { usize::MAX } else { 1 }, Ordering::SeqCst);
        let deleted = store.maintain(Work::Delete(deletion("{}"))).await;
        assert_eq!(deleted.is_err(), is_killed, "{deleted:?}");
        if is_killed {
            drop(store);
            hook.left.store(0, Ordering::SeqCst);
            store = open(faulty());
            assert_eq!(files(&store, Table::Samples, "t"), 0, "the deletion has no entry");
            hook.trace.take();
            store.maintain(Work::Due).await.unwrap();
        }
        let points = hook.trace.take();
        let synced = points
            .iter()
            .position(|point| *point == FaultPoint::EntryFolderSync(Table::Samples));
        let removed = points.iter().position(|point| *point == FaultPoint::RequestRemove);
        assert!(synced.is_some() && synced < removed, "killed {is_killed}: {points:?}");
        assert_eq!((pending(dir.path()).len(), files(&store, Table::Profiles, "t")), (0, 0));
    }
}

#[tokio::test]
async fn a_deletion_that_begins_or_ends_within_a_summed_interval_is_refused_with_the_times_that_are_possible() {
    const MINUTE: i64 = 60_000_000;
    const START: i64 = START_NS / 1000;
    let dir = scratch();
    let store = open(config(dir.path()));
    // The profiles are from 08:00 to 08:57, and from the next hour.
    fill(&store, "t", 2, 20, 180).await;
    drop(store);
    let mut config = config(dir.path());
    config.maintenance.aging.downsample = vec![Downsampling {
        after: Duration::ZERO,
        interval: Duration::from_hours(1),
    }];
    let store = open(config);
    store.maintain(Work::Due).await.unwrap();
    let before = contents(&store.snapshot(), "t");
    assert!(before.samples.keys().all(|key| key.3 % (60 * MINUTE) == 0));
    let deletion_in = |start: i64, end: i64| Deletion {
        from_us: START + start * MINUTE,
        until_us: START + end * MINUTE,
        ..deletion(CARTS)
    };
    for (start, end) in [(0, 2), (30, 60), (30, 40), (-60, 1), (59, 1000)] {
        let error = store.maintain(Work::Delete(deletion_in(start, end))).await.unwrap_err();
        assert!(matches!(error, StoreError::Request(_)), "{error}");
        let message = error.to_string();
        assert!(
            message.contains("from 2027-01-15T08:00:00Z to 2027-01-15T09:00:00Z"),
            "{start} to {end}: {message}"
        );
        assert_eq!(
            (contents(&store.snapshot(), "t"), pending(dir.path()).len()),
            (before.clone(), 0)
        );
    }
    // Two ranges are possible: one ends at a time without samples, and the other has the times that the error names.
    store.maintain(Work::Delete(deletion_in(-1000, -7))).await.unwrap();
    assert_eq!(contents(&store.snapshot(), "t"), before);
    store.maintain(Work::Delete(deletion_in(0, 60))).await.unwrap();
    let after = contents(&store.snapshot(), "t");
    let in_the_hour = |contents: &Contents| contents.samples.keys().filter(|key| key.3 == START).count();
    assert!(0 < in_the_hour(&after) && in_the_hour(&after) < in_the_hour(&before));
    let later = |contents: &Contents| contents.samples.len() - in_the_hour(contents);
    assert!(later(&before) > 0);
    assert_eq!(later(&after), later(&before));
}

#[tokio::test]
async fn the_removal_of_a_request_is_synced() {
    let dir = scratch();
    let trace = Arc::new(crate::store::maintenance::tests::Trace::default());
    let store = open(StoreConfig {
        faults: Faults::new(trace.clone()),
        ..config(dir.path())
    });
    fill(&store, "t", 1, 1, 40).await;
    trace.take();
    store.maintain(Work::Delete(deletion(CARTS))).await.unwrap();
    let points = trace.take();
    let requests: Vec<FaultPoint> = points
        .into_iter()
        .filter(|point| format!("{point:?}").starts_with("Request"))
        .collect();
    let removed = requests
        .iter()
        .position(|point| *point == FaultPoint::RequestRemove)
        .unwrap();
    assert_eq!(requests[removed + 1..], [FaultPoint::RequestRemoveSync], "{requests:?}");
}
