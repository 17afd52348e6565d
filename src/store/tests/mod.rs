//! Tests of the whole store: each acknowledged profile exists exactly once, whatever fails and wherever the process
//! dies.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use arrow::record_batch::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;
use crate::store::common::error::StoreError;
use crate::store::common::fault::{FaultHook, FaultPoint, Faults};
use crate::store::common::schema::{LAYOUT_VERSION, Table};
use crate::store::log::wal;
use crate::store::tables::snapshot::ScanFilter;
use crate::store::tables::snapshot::{Snapshot, SnapshotSource};
use alluvium_base::segment;
use alluvium_profile::DecodedProfile;
use alluvium_profile::RawProfile;
use alluvium_profile::decoded::Columns;
use alluvium_profile::pprof::{self, Profile};
use alluvium_profile::{Labels, RefusedProfile, SinkErrorKind};
use alluvium_telemetry::metrics::Scope;
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};
use alluvium_testing::tenant_id;

const SHAPE: Shape = Shape {
    functions: 40,
    samples: 100,
    depth: 10,
    labelled_every: 7,
};

/// Creates a folder, in memory if the system has room for it. Some tests make one write after the other fail, and
/// sync ten thousand times. On a real disk they would be slower and prove no more, because no test cuts the power of
/// the disk.
pub(in crate::store) fn scratch() -> tempfile::TempDir {
    static IN_MEMORY: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| {
        let room = || fs::write(tempfile::NamedTempFile::new_in("/dev/shm")?.path(), vec![1; 32 << 20]);
        room().is_ok()
    });
    if *IN_MEMORY {
        tempfile::tempdir_in("/dev/shm").unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

/// A disk that fails at one point while the fault is on, after `skip` operations at the point have succeeded.
struct FailAt {
    point: FaultPoint,
    skip: AtomicUsize,
    is_on: AtomicBool,
}

impl FailAt {
    fn new(point: FaultPoint, skip: usize) -> Arc<Self> {
        Arc::new(Self {
            point,
            skip: AtomicUsize::new(skip),
            is_on: AtomicBool::new(true),
        })
    }
}

impl FaultHook for FailAt {
    fn check(&self, point: FaultPoint) -> io::Result<()> {
        if point != self.point || !self.is_on.load(Ordering::SeqCst) {
            return Ok(());
        }
        match self
            .skip
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
        {
            Ok(_) => Ok(()),
            Err(_) => Err(io::Error::from(io::ErrorKind::StorageFull)),
        }
    }
}

pub(in crate::store) fn config(dir: &Path) -> StoreConfig {
    StoreConfig {
        limits: Limits {
            reject_older_than: Duration::ZERO,
            ..Limits::default()
        }
        .into(),
        ..StoreConfig::new(dir)
    }
}

pub(in crate::store) fn open(config: StoreConfig) -> Arc<Store> {
    Store::open(config, &Scope::new()).unwrap()
}

fn raw(name: &str, profile: &Profile<'_>) -> RawProfile {
    RawProfile {
        labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", name)]),
        id: format!("{name}-id").into(),
        pprof: pprof::gzip(&pprof::encode(profile)).into(),
    }
}

/// A sequence of profiles, each with a distinct number of nanoseconds.
pub(in crate::store) struct Load {
    names: Names,
    next: u64,
    /// Part of the ids. A second round sends equal profiles with other ids, so that the store does not treat them as
    /// retries.
    round: u64,
}

impl Load {
    pub(in crate::store) fn new() -> Self {
        Self {
            names: Names::new(SHAPE.functions),
            next: 0,
            round: 0,
        }
    }

    /// Returns the next profile and the sum of its values.
    pub(in crate::store) fn next(&mut self) -> (RawProfile, i64) {
        self.next += 1;
        let profile = cpu_profile(&self.names, SHAPE, self.next);
        let raw = RawProfile {
            id: format!("{}-{}", self.round, self.next).into(),
            ..raw("shop", &profile)
        };
        (raw, profile.values.iter().sum())
    }

    /// Appends profiles and returns the sum of the acknowledged profiles.
    pub(in crate::store) async fn append(&mut self, store: &Store, tenant: &str, count: usize) -> i64 {
        let mut total = 0;
        for _ in 0..count {
            let (profile, sum) = self.next();
            if store.append(&tenant_id(tenant), vec![profile]).await.is_empty() {
                total += sum;
            }
        }
        total
    }
}

/// Returns all rows of a table in files and heads, without the partition columns.
fn rows(snapshot: &Snapshot, table: Table, tenant: &str) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    for file in snapshot
        .files
        .iter()
        .filter(|file| file.table == table && file.tenant.as_str() == tenant)
    {
        let path = snapshot.root.name(&file.path);
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows() as u64, file.rows);
        assert_eq!(fs::metadata(&path).unwrap().len(), file.size);
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

fn sum(batches: &[RecordBatch], name: &str) -> i64 {
    batches
        .iter()
        .map(|batch| {
            let column = batch.column_by_name(name).unwrap().as_primitive::<Int64Type>();
            column.iter().flatten().sum::<i64>()
        })
        .sum()
}

/// Checks that a tenant's samples and profiles each sum to exactly `total`, and that every stack and series to which
/// samples refer has a row.
#[track_caller]
pub(in crate::store) fn check(snapshot: &Snapshot, tenant: &str, total: i64) {
    let samples = rows(snapshot, Table::Samples, tenant);
    assert_eq!(sum(&samples, "value"), total, "samples of {tenant}");
    assert_eq!(
        sum(&rows(snapshot, Table::Profiles, tenant), "total"),
        total,
        "profiles of {tenant}"
    );
    for (table, column) in [(Table::Stacks, "stack"), (Table::Series, "series")] {
        let mut names: HashMap<i64, usize> = HashMap::new();
        for batch in rows(snapshot, table, tenant) {
            for id in batch
                .column_by_name(column)
                .unwrap()
                .as_primitive::<Int64Type>()
                .values()
            {
                *names.entry(*id).or_default() += 1;
            }
        }
        for batch in &samples {
            for id in batch
                .column_by_name(column)
                .unwrap()
                .as_primitive::<Int64Type>()
                .values()
            {
                assert!(names.contains_key(id), "{column} {id} of a sample has no row");
            }
        }
    }
}

fn segments_of(dir: &Path) -> Vec<PathBuf> {
    let folder = dir.join("wal");
    wal::segments(&folder)
        .unwrap()
        .into_iter()
        .map(|number| wal::segment_path(&folder, number))
        .collect()
}

#[tokio::test]
async fn profiles_that_came_decoded_are_replayed_from_the_log() {
    let dir = scratch();
    let store = open(config(dir.path()));
    let names = Names::new(SHAPE.functions);
    let profile = cpu_profile(&names, SHAPE, 1);
    let total = profile.values.iter().sum();
    let RawProfile { labels, id, pprof } = raw("shop", &profile);
    let plain = pprof::gunzip(&pprof, 1 << 20).unwrap();
    for (tenant, pprof) in [("bytes", Some(pprof)), ("none", None)] {
        let decoded = DecodedProfile {
            labels: labels.clone(),
            id: id.clone(),
            columns: Columns::read(plain.clone(), |plain| pprof::decode(plain)).unwrap(),
            pprof,
        };
        let errors = store.sink(&tenant_id(tenant)).append_decoded(vec![decoded]).await;
        assert!(errors.is_empty(), "{errors:?}");
        check(&store.snapshot(), tenant, total);
    }
    drop(store);
    let reopened = open(config(dir.path()));
    check(&reopened.snapshot(), "bytes", total);
    check(&reopened.snapshot(), "none", total);
}

#[tokio::test]
async fn what_is_acknowledged_is_queryable_before_and_after_a_flush() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    let mut load = Load::new();
    let one = load.append(&store, "one", 5).await;
    let two = load.append(&store, "two", 3).await;
    check(&store.snapshot(), "one", one);
    check(&store.snapshot(), "two", two);
    let before = store.snapshot();
    store.flush().await.unwrap();
    let after = store.snapshot();
    assert!(after.files.iter().any(|file| file.table == Table::Stacks));
    assert!(
        after
            .heads
            .iter()
            .all(|head| head.scan(Table::Samples, &ScanFilter::default()).is_empty())
    );
    check(&after, "one", one);
    check(&after, "two", two);
    // An earlier snapshot does not change.
    check(&before, "one", one);
    // The same stacks arrive again. No frames are written a second time on that day, and the stacks and series are
    // still found.
    let stacks = rows(&after, Table::Stacks, "one")
        .iter()
        .map(RecordBatch::num_rows)
        .sum::<usize>();
    (load.next, load.round) = (0, 1);
    let added = load.append(&store, "one", 5).await;
    check(&store.snapshot(), "one", one + added);
    store.flush().await.unwrap();
    let last = store.snapshot();
    check(&last, "one", one + added);
    assert_eq!(
        rows(&last, Table::Stacks, "one")
            .iter()
            .map(RecordBatch::num_rows)
            .sum::<usize>(),
        stacks
    );
    assert_eq!(segments_of(dir.path()).len(), 1);
    store.close(Duration::from_secs(30)).await.unwrap();
    drop(store);
    let reopened = open(config(dir.path()));
    check(&reopened.snapshot(), "one", one + added);
    check(&reopened.snapshot(), "two", two);
}

#[tokio::test]
async fn a_crash_at_any_place_loses_and_repeats_nothing() {
    let mut points = vec![FaultPoint::FlushStart, FaultPoint::LogDelete, FaultPoint::LogCreate];
    for table in Table::ALL {
        points.extend([
            FaultPoint::FilesWrite(table),
            FaultPoint::Commit(table),
            FaultPoint::Committed(table),
        ]);
    }
    for point in points {
        // Opening the store creates the first segment.
        let skip = usize::from(point == FaultPoint::LogCreate);
        let dir = tempfile::tempdir().unwrap();
        let mut load = Load::new();
        let mut total = {
            let store = open(config(dir.path()));
            let total = load.append(&store, "t", 3).await;
            store.flush().await.unwrap();
            total
        };
        {
            let hook = FailAt::new(point, skip);
            let store = open(StoreConfig {
                faults: Faults::new(hook),
                ..config(dir.path())
            });
            total += load.append(&store, "t", 4).await;
            let flushed = store.flush().await;
            // If a segment cannot be deleted, the flush does not fail.
            assert_eq!(flushed.is_err(), point != FaultPoint::LogDelete, "{point:?}");
            // The store accepts profiles while the flush fails, except if the log itself fails.
            total += load.append(&store, "t", 2).await;
            check(&store.snapshot(), "t", total);
        }
        let read_only = Store::open_read_only(dir.path()).unwrap();
        check(&read_only.snapshot(), "t", total);
        let store = open(config(dir.path()));
        check(&store.snapshot(), "t", total);
        total += load.append(&store, "t", 1).await;
        store.flush().await.unwrap();
        check(&store.snapshot(), "t", total);
        assert_eq!(segments_of(dir.path()).len(), 1, "{point:?}");
        drop(store);
        let store = open(config(dir.path()));
        check(&store.snapshot(), "t", total);
        check_no_garbage(&store.snapshot());
    }
}

/// Checks that the folder contains no Parquet files except those of the snapshot.
#[track_caller]
fn check_no_garbage(snapshot: &Snapshot) {
    let mut count = 0;
    let mut folders = vec![snapshot.root.name("")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "parquet")
                && !path.to_string_lossy().contains("_delta_log")
            {
                count += 1;
            }
        }
    }
    assert_eq!(count, snapshot.files.len());
}

#[tokio::test]
async fn a_flush_that_fails_is_tried_again_until_it_succeeds() {
    for point in Table::ALL
        .into_iter()
        .flat_map(|table| [FaultPoint::Commit(table), FaultPoint::Committed(table)])
    {
        let dir = tempfile::tempdir().unwrap();
        let hook = FailAt::new(point, 0);
        let store = open(StoreConfig {
            faults: Faults::new(hook.clone()),
            ..config(dir.path())
        });
        let mut load = Load::new();
        let mut total = load.append(&store, "t", 3).await;
        assert!(store.flush().await.is_err());
        total += load.append(&store, "t", 1).await;
        hook.is_on.store(false, Ordering::SeqCst);
        let deadline = Instant::now() + Duration::from_secs(20);
        while store.snapshot().files.is_empty() {
            assert!(Instant::now() < deadline, "the flush must succeed by itself");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        check(&store.snapshot(), "t", total);
        store.flush().await.unwrap();
        check(&store.snapshot(), "t", total);
        check_no_garbage(&store.snapshot());
    }
}

#[tokio::test]
async fn a_full_disk_refuses_profiles_and_heals_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let hook = FailAt::new(FaultPoint::LogSync, 2);
    let store = open(StoreConfig {
        faults: Faults::new(hook.clone()),
        ..config(dir.path())
    });
    let mut load = Load::new();
    let mut total = load.append(&store, "t", 2).await;
    let (profile, _) = load.next();
    let errors = store.append(&tenant_id("t"), vec![profile]).await;
    assert_eq!(errors[0].error.kind, SinkErrorKind::Unavailable);
    assert!(store.unavailable().is_some());
    check(&store.snapshot(), "t", total);
    hook.is_on.store(false, Ordering::SeqCst);
    let deadline = Instant::now() + Duration::from_secs(20);
    while store.unavailable().is_some() {
        assert!(Instant::now() < deadline, "the store must heal by itself");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    total += load.append(&store, "t", 2).await;
    check(&store.snapshot(), "t", total);
    drop(store);
    check(&open(config(dir.path())).snapshot(), "t", total);
}

#[tokio::test]
async fn torn_and_damaged_segments_lose_only_what_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let mut load = Load::new();
    let mut sums = Vec::new();
    {
        let store = open(config(dir.path()));
        for _ in 0..5 {
            sums.push(load.append(&store, "t", 1).await);
        }
    }
    let path = segments_of(dir.path()).remove(0);
    let clean = fs::read(&path).unwrap();
    let total: i64 = sums.iter().sum();
    // The segment ends in an unfinished sixth record.
    fs::write(&path, [clean.as_slice(), &[9, 0, 0, 0, 1, 2]].concat()).unwrap();
    check(&open(config(dir.path())).snapshot(), "t", total);
    // The start cuts off the unfinished record, which would be treated as damage once another segment follows.
    drop(open(config(dir.path())));
    assert_eq!(fs::read(&path).unwrap(), clean);
    assert!(!path.with_extension("damaged").exists());
    // One bit is flipped in the third record, and then one in the first bytes of the file.
    let records = segment::parse(clean.clone().into()).unwrap().records;
    let third = segment::KEYED_HEADER_BYTES + records[..2].iter().map(|record| record.len() + 8).sum::<usize>() + 40;
    for (position, expected) in [(third, total - sums[2]), (3, total)] {
        let other = tempfile::tempdir().unwrap();
        drop(open(config(other.path())));
        let path = segments_of(other.path()).remove(0);
        let mut damaged = clean.clone();
        damaged[position] ^= 0x10;
        fs::write(&path, damaged).unwrap();
        let store = open(config(other.path()));
        check(&store.snapshot(), "t", expected);
        assert!(path.with_extension("damaged").exists());
    }
}

#[tokio::test]
async fn late_profiles_go_to_their_own_day() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    let names = Names::new(SHAPE.functions);
    let mut total = 0;
    for days in 0..3 {
        let mut profile = cpu_profile(&names, SHAPE, 1);
        profile.time_nanos += days * 86_400 * 1_000_000_000;
        total += profile.values.iter().sum::<i64>();
        assert!(
            store
                .append(&tenant_id("t"), vec![raw("shop", &profile)])
                .await
                .is_empty()
        );
    }
    store.flush().await.unwrap();
    let snapshot = store.snapshot();
    check(&snapshot, "t", total);
    for table in Table::ALL {
        let mut days: Vec<i32> = snapshot
            .files
            .iter()
            .filter(|file| file.table == table)
            .map(|file| file.day)
            .collect();
        days.sort_unstable();
        assert_eq!((days.len(), days[2] - days[0]), (3, 2), "{table:?}");
    }
}

#[tokio::test]
async fn a_batch_answers_for_each_profile() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    let mut load = Load::new();
    let (valid, sum) = load.next();
    let garbage = RawProfile {
        pprof: bytes::Bytes::from_static(b"\x1f\x8bgarbage"),
        ..valid.clone()
    };
    let errors = store
        .append(&tenant_id("t"), vec![garbage.clone(), valid.clone(), garbage])
        .await;
    let kinds: Vec<_> = errors
        .iter()
        .map(|refused| (refused.index, refused.error.kind))
        .collect();
    assert_eq!(kinds, [(0, SinkErrorKind::Invalid), (2, SinkErrorKind::Invalid)]);
    check(&store.snapshot(), "t", sum);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_clients_at_once_lose_nothing_while_heads_are_flushed() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(StoreConfig {
        flush_bytes: 60_000,
        ..config(dir.path())
    });
    let clients: Vec<_> = (0..8)
        .map(|client| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut load = Load::new();
                load.next = client * 1000;
                load.append(&store, "t", 20).await
            })
        })
        .collect();
    let mut total = 0;
    for client in clients {
        total += client.await.unwrap();
    }
    check(&store.snapshot(), "t", total);
    store.close(Duration::from_secs(30)).await.unwrap();
    let files = store.snapshot().files.len();
    assert!(files >= 8, "{files} files");
    check(&store.snapshot(), "t", total);
    let (profile, _) = Load::new().next();
    assert_eq!(
        store.append(&tenant_id("t"), vec![profile]).await[0].error.kind,
        SinkErrorKind::Unavailable
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn appends_wait_for_the_flush_before_memory_grows() {
    let dir = tempfile::tempdir().unwrap();
    let flush_bytes = 100_000;
    let store = open(StoreConfig {
        flush_bytes,
        ..config(dir.path())
    });
    let clients: Vec<_> = (0..8)
        .map(|client| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut load = Load::new();
                load.next = client * 1000;
                let mut max = 0;
                for _ in 0..40 {
                    let (profile, _) = load.next();
                    assert!(store.append(&tenant_id("t"), vec![profile]).await.is_empty());
                    max = max.max(store.published.head_bytes());
                }
                max
            })
        })
        .collect();
    let mut max = 0;
    for client in clients {
        max = max.max(client.await.unwrap());
    }
    store.flush().await.unwrap();
    let rows: u64 = store.snapshot().files.iter().map(|file| file.rows).sum();
    assert!(rows > 0);
    // The limit leaves room for one more profile of each client, and for the names that the first profile of a head
    // adds.
    assert!(max < flush_bytes * 6, "the heads had {max} bytes at a time");
    store.close(Duration::from_secs(30)).await.unwrap();
}

#[tokio::test]
async fn heads_that_cannot_be_flushed_push_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(StoreConfig {
        head_limit_bytes: 100_000,
        flush_bytes: 10_000,
        faults: Faults::new(FailAt::new(FaultPoint::FlushStart, 0)),
        ..config(dir.path())
    });
    let mut load = Load::new();
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let (profile, _) = load.next();
        if let Some(RefusedProfile { error, .. }) = store.append(&tenant_id("t"), vec![profile]).await.first() {
            assert_eq!(error.kind, SinkErrorKind::Unavailable);
            return;
        }
        assert!(Instant::now() < deadline);
    }
}

#[test]
fn a_folder_has_one_writer_and_no_newer_layout() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(config(dir.path()));
    let error = Store::open(config(dir.path()), &Scope::new()).err().unwrap();
    assert!(matches!(error, StoreError::Locked(_)), "{error}");
    assert!(Store::open_read_only(dir.path()).is_ok());
    drop(store);
    fs::write(dir.path().join("VERSION"), "7\n").unwrap();
    for error in [
        Store::open(config(dir.path()), &Scope::new()).err().unwrap(),
        Store::open_read_only(dir.path()).err().unwrap(),
    ] {
        let text = error.to_string();
        assert!(
            text.contains('7') && text.contains(&LAYOUT_VERSION.to_string()),
            "{text}"
        );
    }
    let missing = Store::open_read_only(&dir.path().join("missing")).err().unwrap();
    assert!(missing.to_string().contains("missing"), "{missing}");
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(Store::open(config(&file), &Scope::new()).is_err());
}

/// A reader may hold a batch of the head for any length of time. A push does not wait for the reader.
#[tokio::test(flavor = "multi_thread")]
async fn readers_that_are_paused_in_a_scan_hold_up_no_push() {
    let dir = scratch();
    let store = open(config(dir.path()));
    let mut load = Load::new();
    let before = load.append(&store, "t", 3).await;
    let snapshot = store.snapshot();
    let (paused, pauses) = std::sync::mpsc::channel();
    let (mut gates, mut readers) = (Vec::new(), Vec::new());
    for table in Table::ALL.into_iter().cycle().take(16) {
        let (gate, gated) = std::sync::mpsc::channel::<()>();
        let (paused, snapshot) = (paused.clone(), snapshot.clone());
        gates.push(gate);
        readers.push(std::thread::spawn(move || {
            let mut rows = 0;
            for head in &snapshot.heads {
                head.scan_with(table, &ScanFilter::default(), &mut |batch| {
                    let _ = paused.send(());
                    let _ = gated.recv_timeout(Duration::from_secs(30));
                    rows += batch.num_rows();
                    std::ops::ControlFlow::Continue(())
                });
            }
            rows
        }));
    }
    for _ in &readers {
        pauses.recv_timeout(Duration::from_secs(30)).unwrap();
    }
    let push = tokio::time::timeout(Duration::from_secs(10), load.append(&store, "t", 3));
    let pushed = push.await.expect("a push waited for readers of the head");
    drop(gates);
    for reader in readers {
        assert!(reader.join().unwrap() > 0);
    }
    check(&snapshot, "t", before);
    check(&store.snapshot(), "t", before + pushed);
}
mod damage;
mod disk;
mod lineage;
mod poison;
mod quota;
