//! Tests of folders with parts that do not belong together: copies that write to the same tables, and tables and logs
//! of different moments. Nothing is deleted, and the error names the contradiction.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::store::common::fault;
use crate::store::common::schema::Table;
use crate::store::log::wal;
use crate::store::tables::snapshot::ScanFilter;
use crate::store::tables::snapshot::SnapshotSource;
use crate::store::tests::scratch;
use crate::store::tools::{inspect, repair};
use crate::store::*;
use alluvium_profile::RawProfile;
use alluvium_profile::{Labels, pprof};
use alluvium_telemetry::metrics::Scope;
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};
use alluvium_testing::tenant_id;

const SHAPE: Shape = Shape {
    functions: 20,
    samples: 20,
    depth: 6,
    labelled_every: 0,
};

fn config(dir: &Path) -> StoreConfig {
    StoreConfig {
        limits: Limits {
            reject_older_than: Duration::ZERO,
            ..Limits::default()
        }
        .into(),
        ..StoreConfig::new(dir)
    }
}

fn try_open(dir: &Path) -> Result<Arc<Store>, StoreError> {
    Store::open(config(dir), &Scope::new())
}

async fn push(store: &Store, seed: u64) {
    let names = Names::new(SHAPE.functions);
    let profile = RawProfile {
        labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", "shop")]),
        id: "".into(),
        pprof: pprof::encode(&cpu_profile(&names, SHAPE, seed)).into(),
    };
    assert!(store.append(&tenant_id("t"), vec![profile]).await.is_empty());
}

/// Returns the number of profiles that queries find. Each profile has two types.
fn profiles(store: &impl SnapshotSource) -> u64 {
    let snapshot = store.snapshot();
    let in_files = snapshot.files.iter().filter(|file| file.table == Table::Profiles);
    let in_heads = snapshot.heads.iter();
    let in_heads = in_heads.flat_map(|head| head.scan(Table::Profiles, &ScanFilter::default()));
    let rows = in_files.map(|file| file.rows).sum::<u64>() + in_heads.map(|batch| batch.num_rows() as u64).sum::<u64>();
    rows / 2
}

/// Returns all files below a folder, except the lock.
fn files(dir: &Path) -> BTreeSet<PathBuf> {
    let mut paths = BTreeSet::new();
    let mut open = vec![dir.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if !path.ends_with("LOCK") {
                paths.insert(path);
            }
        }
    }
    paths
}

fn kinds(dir: &Path) -> Vec<&'static str> {
    let checked = inspect::check(dir).unwrap();
    checked.findings.iter().map(|finding| finding.kind).collect()
}

/// Copies a folder without its tables. The copy shares the tables of the original.
fn copy_with_tables_in_common(from: &Path, to: &Path) {
    for path in files(from) {
        let relative = path.strip_prefix(from).unwrap();
        if !relative.starts_with("tables") {
            fs::create_dir_all(to.join(relative).parent().unwrap()).unwrap();
            fs::copy(&path, to.join(relative)).unwrap();
        }
    }
    std::os::unix::fs::symlink(from.join("tables"), to.join("tables")).unwrap();
}

#[tokio::test]
async fn a_copied_folder_on_the_same_tables_is_refused_and_keeps_its_log() {
    let (one, two) = (scratch(), scratch());
    let first = try_open(one.path()).unwrap();
    push(&first, 1).await;
    first.flush().await.unwrap();
    drop(first);
    copy_with_tables_in_common(one.path(), two.path());
    let (first, second) = (try_open(one.path()).unwrap(), try_open(two.path()).unwrap());
    push(&first, 2).await;
    push(&second, 3).await;
    push(&second, 4).await;
    first.flush().await.unwrap();
    let error = second.flush().await.unwrap_err();
    assert!(matches!(error, StoreError::CopiedFolder { .. }), "{error}");
    // The second store still answers queries, and accepts profiles into its log.
    push(&second, 5).await;
    assert_eq!((profiles(first.as_ref()), profiles(second.as_ref())), (2, 4));
    drop((first, second));
    for _ in 0..2 {
        let before = files(two.path());
        let error = try_open(two.path()).err().unwrap();
        assert!(error.to_string().contains("was copied"), "{error}");
        assert!(Store::open_read_only(two.path()).is_err());
        assert!(kinds(two.path()).contains(&"copied"));
        repair::repair(two.path(), false).unwrap();
        assert_eq!(files(two.path()), before);
    }
    // The first store is not affected.
    assert_eq!(kinds(one.path()), [""; 0]);
    assert_eq!(profiles(try_open(one.path()).unwrap().as_ref()), 2);
    // With an identity of its own, the copy commits the profiles that it has.
    fs::remove_file(two.path().join("WRITER")).unwrap();
    let second = try_open(two.path()).unwrap();
    second.flush().await.unwrap();
    assert_eq!(profiles(second.as_ref()), 5);
    drop(second);
    assert_eq!(kinds(two.path()), [""; 0]);
    assert_eq!(profiles(try_open(one.path()).unwrap().as_ref()), 5);
}

#[tokio::test]
async fn a_start_that_lacks_an_entry_deletes_nothing_until_the_loss_is_accepted() {
    let dir = scratch();
    let store = try_open(dir.path()).unwrap();
    for seed in 1..=2 {
        push(&store, seed).await;
        store.flush().await.unwrap();
    }
    push(&store, 3).await;
    drop(store);
    let log = dir.path().join("tables/profiles/_delta_log");
    let (entry, sums) = (format!("{:020}.json", 2), format!(".{:020}.json.crc", 2));
    let saved: Vec<Vec<u8>> = [&entry, &sums].map(|name| fs::read(log.join(name)).unwrap()).into();
    for name in [&entry, &sums] {
        fs::remove_file(log.join(name)).unwrap();
    }
    let before = files(dir.path());
    let error = try_open(dir.path()).err().unwrap();
    assert!(matches!(error, StoreError::MissingEntry { .. }), "{error}");
    assert_eq!(kinds(dir.path()), ["uncommitted", "entry-missing"]);
    assert_eq!(repair::repair(dir.path(), false).unwrap(), []);
    assert_eq!(files(dir.path()), before);
    // The result is the same if all tables have lost their last entry and are therefore of the same moment.
    let others = [Table::Stacks, Table::Series, Table::Samples].map(|table| {
        let path = dir.path().join(format!("tables/{}/_delta_log/{entry}", table.name()));
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        (path, bytes)
    });
    let before = files(dir.path());
    let error = try_open(dir.path()).err().unwrap();
    assert!(matches!(error, StoreError::MissingEntry { .. }), "{error}");
    assert_eq!(files(dir.path()), before);
    for (path, bytes) in others {
        fs::write(path, bytes).unwrap();
    }
    // With the files restored, the store opens.
    for (name, bytes) in [&entry, &sums].iter().zip(&saved) {
        fs::write(log.join(name), bytes).unwrap();
    }
    assert_eq!(profiles(try_open(dir.path()).unwrap().as_ref()), 3);
    // The store also opens after the loss is accepted.
    for name in [&entry, &sums] {
        fs::remove_file(log.join(name)).unwrap();
    }
    assert!(try_open(dir.path()).is_err());
    assert!(!repair::repair(dir.path(), true).unwrap().is_empty());
    let store = try_open(dir.path()).unwrap();
    push(&store, 4).await;
    store.flush().await.unwrap();
    assert_eq!(profiles(store.as_ref()), 3);
    drop(store);
    assert_eq!(kinds(dir.path()), [""; 0]);
}

/// Makes every commit to the series table fail.
struct Broken;

impl fault::FaultHook for Broken {
    fn check(&self, point: fault::FaultPoint) -> std::io::Result<()> {
        match point {
            fault::FaultPoint::Commit(Table::Series) => Err(std::io::ErrorKind::Other.into()),
            _ => Ok(()),
        }
    }
}

#[tokio::test]
async fn a_log_that_lost_a_part_of_an_unfinished_flush_is_refused() {
    let dir = scratch();
    let store = try_open(dir.path()).unwrap();
    push(&store, 1).await;
    store.flush().await.unwrap();
    push(&store, 2).await;
    drop(store);
    // Each store has its own segment, so the log has two. Their flush commits to only one table, because the next
    // commit fails.
    let faults = fault::Faults::new(Arc::new(Broken));
    let store = Store::open(
        StoreConfig {
            faults,
            ..config(dir.path())
        },
        &Scope::new(),
    )
    .unwrap();
    push(&store, 3).await;
    store.flush().await.unwrap_err();
    drop(store);
    let wal = dir.path().join("wal");
    let lost_segment = wal::segment_path(&wal, wal::segments(&wal).unwrap()[0]);
    let bytes = fs::read(&lost_segment).unwrap();
    fs::remove_file(&lost_segment).unwrap();
    let before = files(dir.path());
    let error = try_open(dir.path()).err().unwrap();
    assert!(
        matches!(
            error,
            StoreError::MissingRecords {
                expected: Some(2),
                logged: 1,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(files(dir.path()), before);
    assert!(kinds(dir.path()).contains(&"records-missing"));
    fs::write(&lost_segment, bytes).unwrap();
    assert_eq!(profiles(try_open(dir.path()).unwrap().as_ref()), 3);
}

#[tokio::test]
async fn a_full_disk_opens_to_be_read_and_takes_profiles_when_it_has_room() {
    use std::sync::atomic::{AtomicBool, Ordering};
    struct Full(AtomicBool);
    impl fault::FaultHook for Full {
        fn check(&self, _point: fault::FaultPoint) -> std::io::Result<()> {
            if self.0.load(Ordering::SeqCst) {
                return Err(std::io::ErrorKind::StorageFull.into());
            }
            Ok(())
        }
    }
    let dir = scratch();
    let store = try_open(dir.path()).unwrap();
    push(&store, 1).await;
    store.flush().await.unwrap();
    push(&store, 2).await;
    drop(store);
    let full = Arc::new(Full(AtomicBool::new(true)));
    // The data folder, the log's folder and the folders of the entries exist already. The operations on them need no
    // room, so they succeed on the full disk.
    let hook: Arc<dyn fault::FaultHook> = full.clone();
    let open = StoreConfig {
        faults: fault::Faults::new(Arc::new(AllBut(hook))),
        ..config(dir.path())
    };
    let store = Store::open(open, &Scope::new()).unwrap();
    assert!(store.unavailable().unwrap().contains("read-only"));
    assert_eq!(profiles(store.as_ref()), 2);
    full.0.store(false, Ordering::SeqCst);
    let deadline = std::time::Instant::now() + Duration::from_mins(1);
    while store.unavailable().is_some() {
        assert!(std::time::Instant::now() < deadline, "it must recover by itself");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    push(&store, 3).await;
    store.flush().await.unwrap();
    drop(store);
    assert_eq!(profiles(try_open(dir.path()).unwrap().as_ref()), 3);
    assert_eq!(kinds(dir.path()), [""; 0]);
}

/// Lets operations that need no room succeed, and passes all others to the inner hook.
struct AllBut(Arc<dyn fault::FaultHook>);

impl fault::FaultHook for AllBut {
    fn check(&self, point: fault::FaultPoint) -> std::io::Result<()> {
        match point {
            fault::FaultPoint::FolderWrite | fault::FaultPoint::LogRenew | fault::FaultPoint::EntryFolderSync(_) => {
                Ok(())
            }
            _ => self.0.check(point),
        }
    }
}
