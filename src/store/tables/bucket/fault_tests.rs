//! Tests with a fault at each request that changes a bucket. The change fails, or it succeeds and its response is lost.
//! Afterwards the bucket is unreachable or works again at once. Then the server continues, or dies and starts again.
//!
//! Guarantee: at every moment, and for another server too, each acknowledged profile is exactly once in the bucket or
//! in a head. When the failed work is repeated, its result is the same as without the fault. The bucket is in memory.
//! `integration/objects.rs` uses a real server.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::memory::InMemory;
use object_store::path::Path as Location;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use parking_lot::Mutex;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::store::Store;
use crate::store::common::fault::{FaultHook, FaultPoint, Faults};
use crate::store::common::schema::Table;
use crate::store::config::StoreConfig;
use crate::store::maintenance::deletion::request::Deletion;
use crate::store::maintenance::{MaintenanceConfig, Work};
use crate::store::rules::limits::Limits;
use crate::store::tables::bucket::options::CustomStore;
use crate::store::tables::bucket::{BucketOptions, Provider};
use crate::store::tables::snapshot::{ScanFilter, SnapshotSource};
use crate::store::tests::scratch;
use alluvium_profile::pprof::{self, Function, Line, Location as Frame, Profile, ValueType};
use alluvium_profile::{Labels, RawProfile};
use alluvium_telemetry::metrics::Scope;
use alluvium_testing::tenant_id;

/// The effect of a fault on the chosen change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The change fails, and the bucket becomes unreachable.
    Refused,
    /// The change succeeds, its response is lost, and the bucket becomes unreachable.
    Unanswered,
    /// The change succeeds, and its response is lost, once.
    AnswerLost,
    /// The put of an entry of a table's log fails, and the bucket becomes unreachable. The entry is put later, after
    /// its client has given up and before the next data file is put or deleted. No other change has this fault.
    Late,
}

/// A put that has not happened yet.
type Put = (Location, PutPayload, PutOptions);

/// A bucket with a pending fault.
#[derive(Debug, Clone)]
pub(super) struct Faulty {
    inner: Arc<InMemory>,
    fault: Fault,
    /// Number of changes up to the change with the fault; 0 for no fault.
    left: Arc<AtomicUsize>,
    away: Arc<AtomicBool>,
    /// The entry that is put late.
    late: Arc<Mutex<Option<Put>>>,
    /// The contents of a listing that lags behind; `None` while listings are up to date.
    shown: Arc<Mutex<Option<BTreeSet<Location>>>>,
}

impl Faulty {
    pub(super) fn new(fault: Fault) -> Self {
        Self {
            inner: Arc::default(),
            fault,
            left: Arc::default(),
            away: Arc::default(),
            late: Arc::default(),
            shown: Arc::default(),
        }
    }

    /// Makes listings hide all later writes.
    async fn lag(&self) {
        let all: Vec<ObjectMeta> = self.inner.list(None).try_collect().await.unwrap();
        *self.shown.lock() = Some(all.into_iter().map(|object| object.location).collect());
    }

    /// Makes listings up to date again.
    fn catch_up(&self) {
        *self.shown.lock() = None;
    }

    /// Returns another client of the same objects, without faults.
    fn without_faults(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            ..Self::new(self.fault)
        }
    }

    /// Returns whether a change of an object happens, and whether its response arrives.
    fn change(&self, location: &Location) -> (bool, bool) {
        if self.away.load(Ordering::SeqCst) {
            return (false, false);
        }
        if self.fault == Fault::Late && location.extension() != Some("json") {
            return (true, true);
        }
        let counted = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, counted) != Ok(1) {
            return (true, true);
        }
        self.away.store(self.fault != Fault::AnswerLost, Ordering::SeqCst);
        (!matches!(self.fault, Fault::Refused | Fault::Late), false)
    }

    /// Puts the late entry, unless another entry has its number.
    async fn land(&self, location: &Location) {
        if location.extension() != Some("parquet") || location.as_ref().contains("_delta_log") {
            return;
        }
        let late = self.late.lock().take();
        if let Some((location, payload, options)) = late {
            let _ = self.inner.put_opts(&location, payload, options).await;
        }
    }

    fn read(&self) -> Result<()> {
        if self.away.load(Ordering::SeqCst) {
            Err(timeout_error())
        } else {
            Ok(())
        }
    }
}

fn timeout_error() -> Error {
    Error::Generic {
        store: "faulty",
        source: "the bucket does not answer".into(),
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("faulty")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, location: &Location, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let was_away = self.away.load(Ordering::SeqCst);
        let (done, answered) = self.change(location);
        if !done {
            if self.fault == Fault::Late && !was_away {
                *self.late.lock() = Some((location.clone(), payload, options));
            }
            return Err(timeout_error());
        }
        self.land(location).await;
        let result = self.inner.put_opts(location, payload, options).await;
        if answered { result } else { Err(timeout_error()) }
    }

    async fn put_multipart_opts(
        &self,
        location: &Location,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.read()?;
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Location, options: GetOptions) -> Result<GetResult> {
        self.read()?;
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Location, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.read()?;
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Location>>) -> BoxStream<'static, Result<Location>> {
        let own = self.clone();
        locations
            .and_then(move |location| {
                let own = own.clone();
                async move {
                    let (done, answered) = own.change(&location);
                    if done {
                        own.land(&location).await;
                        own.inner.delete(&location).await?;
                    }
                    if answered { Ok(location) } else { Err(timeout_error()) }
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Location>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.read() {
            Ok(()) => {
                let shown = self.shown.lock().clone();
                let is_shown = move |object: &ObjectMeta| {
                    let shown = shown.as_ref();
                    shown.is_none_or(|shown| shown.contains(&object.location))
                };
                self.inner
                    .list(prefix)
                    .try_filter(move |object| std::future::ready(is_shown(object)))
                    .boxed()
            }
            Err(error) => stream::once(async { Err(error) }).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Location>) -> Result<ListResult> {
        self.read()?;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Location, to: &Location, options: CopyOptions) -> Result<()> {
        self.read()?;
        self.inner.copy_opts(from, to, options).await
    }
}

/// Returns a profile with its number as its only value.
pub(super) fn numbered(number: i64, service: &str) -> RawProfile {
    let kind = ValueType {
        kind: "cpu",
        unit: "nanoseconds",
    };
    let profile = Profile {
        sample_types: vec![kind],
        period_type: kind,
        period: 1,
        time_nanos: 1_800_000_000_000_000_000 + number * 1_000_000_000,
        functions: vec![Function {
            name: "work",
            ..Function::default()
        }],
        lines: vec![Line::default()],
        locations: vec![Frame {
            mapping: Frame::NO_MAPPING,
            address: 0,
            lines_start: 0,
            lines_end: 1,
            is_folded: false,
        }],
        sample_locations: vec![0],
        sample_starts: vec![0, 1],
        values: vec![number],
        label_starts: vec![0, 0],
        ..Profile::default()
    };
    RawProfile {
        labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", service)]),
        id: "".into(),
        pprof: pprof::encode(&profile).into(),
    }
}

pub(super) fn bucket_options(bucket: &Faulty) -> BucketOptions {
    let custom_store = CustomStore {
        name: "tests".to_owned(),
        store: Arc::new(bucket.clone()),
    };
    BucketOptions {
        cache_bytes: 0,
        sync_interval: Duration::from_hours(1),
        ..BucketOptions::new(Provider::Custom(custom_store))
    }
}

pub(super) fn open(dir: &std::path::Path, bucket: &Faulty) -> Arc<Store> {
    open_on(dir, bucket, Faults::default())
}

pub(super) fn open_on(dir: &std::path::Path, bucket: &Faulty, faults: Faults) -> Arc<Store> {
    let config = StoreConfig {
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
        bucket: Some(bucket_options(bucket)),
        checkpoint_interval: 5,
        faults,
        ..StoreConfig::new(dir)
    };
    Store::open(config, &Scope::new()).unwrap()
}

/// Counts the occurrences of each number in profiles and in samples. All live files must exist.
pub(super) async fn count_numbers(store: &Store, bucket: &Faulty) -> [BTreeMap<i64, usize>; 2] {
    let snapshot = store.snapshot();
    for file in snapshot.files.iter() {
        bucket.inner.head(&Location::parse(&file.path).unwrap()).await.unwrap();
    }
    let mut counts = [BTreeMap::new(), BTreeMap::new()];
    for (occurrences, (table, column)) in counts
        .iter_mut()
        .zip([(Table::Profiles, "total"), (Table::Samples, "value")])
    {
        let mut add = |batch: &RecordBatch| {
            let values = batch.column_by_name(column).unwrap().as_primitive::<Int64Type>();
            for value in values.values() {
                *occurrences.entry(*value).or_default() += 1;
            }
        };
        for file in snapshot.files.iter().filter(|file| file.table == table) {
            let object = bucket.inner.get(&Location::parse(&file.path).unwrap()).await.unwrap();
            let bytes = object.bytes().await.unwrap();
            let reader = ParquetRecordBatchReaderBuilder::try_new(bytes)
                .unwrap()
                .build()
                .unwrap();
            reader.for_each(|batch| add(&batch.unwrap()));
        }
        for head in &snapshot.heads {
            head.scan(table, &ScanFilter::default()).iter().for_each(&mut add);
        }
    }
    counts
}

pub(super) fn once(numbers: impl IntoIterator<Item = i64>) -> [BTreeMap<i64, usize>; 2] {
    let numbers: BTreeMap<i64, usize> = numbers.into_iter().map(|number| (number, 1)).collect();
    [numbers.clone(), numbers]
}

/// Runs all operations that change a bucket: a flush, a deletion, merging and vacuum. Each operation runs even if an
/// earlier operation has failed.
async fn work(store: &Store) -> Vec<String> {
    let mut failed = Vec::new();
    let flushed = store.flush().await;
    failed.extend(flushed.err().map(|error| error.to_string()));
    for work in [
        Work::Delete(Deletion::new(
            tenant_id("t"),
            "{service_name=\"gone\"}",
            alluvium_profile::TimeSpan::ALL,
        )),
        Work::Compact,
        Work::Vacuum(Duration::ZERO),
    ] {
        let worked = store.maintain(work).await;
        failed.extend(worked.err().map(|error| error.to_string()));
    }
    failed
}

/// A disk that has no room at the first of two attempts to create each file.
#[derive(Default)]
struct FullSpool(AtomicUsize);

impl FaultHook for FullSpool {
    fn check(&self, point: FaultPoint) -> std::io::Result<()> {
        match point {
            FaultPoint::FileCreate(_) if self.0.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) => {
                Err(std::io::ErrorKind::StorageFull.into())
            }
            _ => Ok(()),
        }
    }
}

#[tokio::test]
async fn a_flush_to_a_bucket_needs_no_room_on_the_disk() {
    let (dir, bucket) = (scratch(), Faulty::new(Fault::Refused));
    let spool = Arc::new(FullSpool::default());
    let store = open_on(dir.path(), &bucket, Faults::new(spool.clone()));
    for number in 1..=3 {
        assert!(
            store
                .append(&tenant_id("t"), vec![numbered(number, "kept")])
                .await
                .is_empty()
        );
    }
    store.flush().await.unwrap();
    // There are four tables. The creation of each file is tried on the disk and then in memory.
    assert_eq!(spool.0.load(Ordering::SeqCst), 8);
    assert_eq!(count_numbers(&store, &bucket).await, once(1..=3));
}

/// A disk that the log fills. A further segment can only be created after a segment was deleted.
#[derive(Default)]
struct FullOfLog(AtomicBool);

impl FaultHook for FullOfLog {
    fn check(&self, point: FaultPoint) -> std::io::Result<()> {
        if point == FaultPoint::LogCreate && !self.0.load(Ordering::SeqCst) {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn done(&self, point: FaultPoint) {
        if point == FaultPoint::LogDelete {
            self.0.store(true, Ordering::SeqCst);
        }
    }
}

#[tokio::test]
async fn a_start_on_a_disk_that_the_log_fills_gets_its_room_back_by_a_flush() {
    let (dir, bucket) = (scratch(), Faulty::new(Fault::Refused));
    let store = open(dir.path(), &bucket);
    let push = async |store: &Store, number| store.append(&tenant_id("t"), vec![numbered(number, "kept")]).await;
    assert!(push(&store, 1).await.is_empty());
    drop(store);
    let store = open_on(dir.path(), &bucket, Faults::new(Arc::new(FullOfLog::default())));
    assert!(!push(&store, 2).await.is_empty(), "there is no log to write to");
    store.flush().await.unwrap();
    let retries = async {
        while !push(&store, 3).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), retries).await.unwrap();
    store.flush().await.unwrap();
    assert_eq!(count_numbers(&store, &bucket).await, once([1, 3]));
}

#[tokio::test]
async fn a_fault_at_any_change_of_a_bucket_loses_and_repeats_nothing() {
    // Each change in turn has one kind of fault. All kinds for each change would take a minute.
    for (change, fault) in (1..).zip(
        [Fault::Refused, Fault::Unanswered, Fault::AnswerLost]
            .into_iter()
            .cycle(),
    ) {
        let (dir, other) = (scratch(), scratch());
        let bucket = Faulty::new(fault);
        let store = open(dir.path(), &bucket);
        // One profile is deleted, some are in files, and some are in memory.
        assert!(
            store
                .append(&tenant_id("t"), vec![numbered(1, "gone")])
                .await
                .is_empty()
        );
        for number in [2, 3] {
            assert!(
                store
                    .append(&tenant_id("t"), vec![numbered(number, "shop")])
                    .await
                    .is_empty()
            );
            store.flush().await.unwrap();
        }
        bucket.left.store(change, Ordering::SeqCst);
        // The log is on the local disk, so the push is acknowledged regardless of the bucket.
        assert!(
            store
                .append(&tenant_id("t"), vec![numbered(4, "shop")])
                .await
                .is_empty()
        );
        let failed = work(&store).await;
        let was_reached = bucket.left.swap(0, Ordering::SeqCst) == 0;
        bucket.away.store(false, Ordering::SeqCst);
        let case = format!("{fault:?}, change {change}: {failed:?}");
        let check = |counts: [BTreeMap<i64, usize>; 2], stage: &str, done: bool| {
            let is_complete = counts == once([1, 2, 3, 4]) || counts == once([2, 3, 4]);
            // A deletion is published after all tables contain it.
            assert!(
                is_complete && (!done || counts == once([2, 3, 4])),
                "{case}, {stage}: {counts:?}"
            );
        };
        check(
            count_numbers(&store, &bucket).await,
            "after the fault",
            failed.is_empty(),
        );
        let crashes = change % 2 == 0;
        let store = if crashes {
            drop(store);
            open(dir.path(), &bucket)
        } else {
            store
        };
        assert!(
            store
                .append(&tenant_id("t"), vec![numbered(5, "shop")])
                .await
                .is_empty()
        );
        let failures = work(&store).await;
        assert!(failures.is_empty(), "{case}: {failures:?}");
        assert_eq!(
            count_numbers(&store, &bucket).await,
            once([2, 3, 4, 5]),
            "{case}, at the end"
        );
        drop(store);
        let reader = open(other.path(), &bucket.without_faults());
        assert_eq!(
            count_numbers(&reader, &bucket).await,
            once([2, 3, 4, 5]),
            "{case}, by another server"
        );
        if !was_reached {
            assert!(change > 20, "{case}: the work must make at least 20 changes");
            break;
        }
    }
}

#[tokio::test]
async fn an_entry_that_is_put_after_its_client_gave_up_names_files_that_are_there() {
    for crashes in [false, true] {
        for entry in 1.. {
            let (dir, other) = (scratch(), scratch());
            let bucket = Faulty::new(Fault::Late);
            let store = open(dir.path(), &bucket);
            let refused = store.append(&tenant_id("t"), vec![numbered(1, "gone")]).await;
            assert!(refused.is_empty(), "{refused:?}");
            for number in [2, 3] {
                push(&store, number).await;
                store.flush().await.unwrap();
            }
            bucket.left.store(entry, Ordering::SeqCst);
            push(&store, 4).await;
            let failed = work(&store).await;
            let was_reached = bucket.left.swap(0, Ordering::SeqCst) == 0;
            bucket.away.store(false, Ordering::SeqCst);
            let case = format!("entry {entry}, crash {crashes}: {failed:?}");
            let store = if crashes {
                drop(store);
                open(dir.path(), &bucket)
            } else {
                store
            };
            push(&store, 5).await;
            let failures = work(&store).await;
            assert!(failures.is_empty(), "{case}: {failures:?}");
            assert_eq!(count_numbers(&store, &bucket).await, once([2, 3, 4, 5]), "{case}");
            drop(store);
            let reader = open(other.path(), &bucket.without_faults());
            let counts = count_numbers(&reader, &bucket).await;
            assert_eq!(counts, once([2, 3, 4, 5]), "{case}, by another server");
            if !was_reached {
                assert!(entry > 8, "{case}: the work must put at least 8 entries");
                break;
            }
        }
    }
}

/// Appends a profile that is not deleted.
pub(super) async fn push(store: &Store, number: i64) {
    let refused = store.append(&tenant_id("t"), vec![numbered(number, "shop")]).await;
    assert!(refused.is_empty(), "{refused:?}");
}

/// A process that is killed after its last commit. It neither records the commit nor removes a segment of the log.
#[derive(Default)]
struct Killed {
    is_on: AtomicBool,
    has_committed: AtomicBool,
}

impl FaultHook for Killed {
    fn check(&self, point: FaultPoint) -> std::io::Result<()> {
        if self.is_on.load(Ordering::SeqCst) && point == FaultPoint::Committed(Table::Profiles) {
            self.has_committed.store(true, Ordering::SeqCst);
        }
        match point {
            FaultPoint::LogDelete | FaultPoint::FolderWrite if self.has_committed.load(Ordering::SeqCst) => {
                Err(std::io::Error::other("killed"))
            }
            _ => Ok(()),
        }
    }
}

#[tokio::test]
async fn listings_that_lag_behind_hide_no_profile_and_double_none() {
    // The listings begin to lag when there is no table, when there are a few commits, or after a checkpoint.
    for before in [0, 3, 7] {
        let (dir, other) = (scratch(), scratch());
        let bucket = Faulty::new(Fault::Refused);
        if before == 0 {
            bucket.lag().await;
        }
        let store = open(dir.path(), &bucket);
        for number in 1..=before {
            push(&store, number).await;
            store.flush().await.unwrap();
        }
        bucket.lag().await;
        // A checkpoint is written every five commits.
        let last = before + 8;
        for number in before + 1..=last {
            push(&store, number).await;
            store.flush().await.unwrap();
            assert_eq!(
                count_numbers(&store, &bucket).await,
                once(1..=number),
                "{before}, {number}"
            );
        }
        drop(store);
        // The process is killed after the last commit, before it deletes the log segments. The commit must not be
        // repeated.
        let hook = Arc::new(Killed::default());
        let store = open_on(dir.path(), &bucket, Faults::new(hook.clone()));
        assert_eq!(
            count_numbers(&store, &bucket).await,
            once(1..=last),
            "{before}, after a start"
        );
        push(&store, last + 1).await;
        hook.is_on.store(true, Ordering::SeqCst);
        store.flush().await.unwrap();
        drop(store);
        let store = open(dir.path(), &bucket);
        assert_eq!(
            count_numbers(&store, &bucket).await,
            once(1..=last + 1),
            "{before}, after a kill"
        );
        push(&store, last + 2).await;
        let failed = work(&store).await;
        assert!(failed.is_empty(), "{before}: {failed:?}");
        assert_eq!(
            count_numbers(&store, &bucket).await,
            once(1..=last + 2),
            "{before}, after merges"
        );
        // Another server sees all profiles, and commits to the same tables.
        let second = open(other.path(), &bucket.without_faults());
        assert_eq!(
            count_numbers(&second, &bucket).await,
            once(1..=last + 2),
            "{before}, elsewhere"
        );
        push(&second, last + 3).await;
        second.flush().await.unwrap();
        push(&store, last + 4).await;
        store.flush().await.unwrap();
        drop((store, second));
        for is_late in [true, false] {
            let store = open(dir.path(), &bucket);
            assert_eq!(
                count_numbers(&store, &bucket).await,
                once(1..=last + 4),
                "{before}, {is_late}"
            );
            bucket.catch_up();
        }
    }
}

/// Blocks the first operation at a point until the test releases it.
pub(super) struct Waits {
    pub(super) point: Mutex<Option<FaultPoint>>,
    pub(super) reached: SyncSender<()>,
    pub(super) go_on: Mutex<std::sync::mpsc::Receiver<()>>,
}

impl FaultHook for Waits {
    fn check(&self, point: FaultPoint) -> std::io::Result<()> {
        if self.point.lock().take_if(|target| *target == point).is_some() {
            let _ = self.reached.send(());
            let _ = self.go_on.lock().recv_timeout(Duration::from_mins(1));
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_the_folder_that_starts_within_a_flush_or_a_merge_takes_no_file_from_it() {
    for merges in [false, true] {
        start_a_copy_within(merges).await;
    }
}

async fn start_a_copy_within(merges: bool) {
    let (dir, copy) = (scratch(), scratch());
    let bucket = Faulty::new(Fault::Refused);
    let (reached, is_reached) = sync_channel(8);
    let (go_on, goes_on) = sync_channel(8);
    let hook = Arc::new(Waits {
        point: Mutex::default(),
        reached,
        go_on: Mutex::new(goes_on),
    });
    let store = open_on(dir.path(), &bucket, Faults::new(hook.clone()));
    if merges {
        for number in [2, 3] {
            push(&store, number).await;
            store.flush().await.unwrap();
        }
    }
    push(&store, 1).await;
    let expected = if merges { once([1, 2, 3]) } else { once([1]) };
    let point = if merges {
        FaultPoint::EntryLink(Table::Samples)
    } else {
        FaultPoint::Commit(Table::ALL[0])
    };
    *hook.point.lock() = Some(point);
    let working = tokio::spawn({
        let store = store.clone();
        async move {
            if merges {
                store.maintain(Work::Compact).await.map(drop)
            } else {
                store.flush().await
            }
        }
    });
    tokio::task::block_in_place(|| is_reached.recv()).unwrap();
    // The copy of the folder is made at one moment, like a snapshot of the disk.
    let copied = std::process::Command::new("cp")
        .args(["-r", &format!("{}/.", dir.path().display())])
        .arg(copy.path())
        .status();
    assert!(copied.unwrap().success());
    let second = open(copy.path(), &bucket.without_faults());
    assert_eq!(count_numbers(&second, &bucket).await, expected);
    drop(second);
    go_on.send(()).unwrap();
    working.await.unwrap().unwrap();
    assert_eq!(count_numbers(&store, &bucket).await, expected);
}
