//! Tests of a store in which a thread ends, and of a store with records that cannot be replayed or flushed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrow::array::AsArray;
use arrow::record_batch::RecordBatch;
use bytes::Bytes;

use crate::store::common::fault::{FaultHook, FaultPoint, Faults};
use crate::store::common::schema::Table;
use crate::store::log::damaged;
use crate::store::log::record;
use crate::store::log::wal;
use crate::store::maintenance::Work;
use crate::store::tables::snapshot::ScanFilter;
use crate::store::tables::snapshot::SnapshotSource;
use crate::store::tests::scratch;
use crate::store::tools::findings::Severity;
use crate::store::tools::{inspect, repair};
use crate::store::*;
use alluvium_base::segment;
use alluvium_profile::RawProfile;
use alluvium_profile::pprof::{self, SampleLabel};
use alluvium_profile::{Labels, SinkErrorKind};
use alluvium_telemetry::metrics::Scope;
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};
use alluvium_testing::tenant_id;

const SHAPE: Shape = Shape {
    functions: 20,
    samples: 20,
    depth: 6,
    labelled_every: 0,
};

fn profile(id: &str) -> RawProfile {
    let names = Names::new(SHAPE.functions);
    let mut profile = cpu_profile(&names, SHAPE, 1);
    profile.time_nanos = chrono::Utc::now().timestamp_nanos_opt().unwrap();
    RawProfile {
        labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", "shop")]),
        id: id.into(),
        pprof: pprof::encode(&profile).into(),
    }
}

fn open(dir: &Path, hook: Option<Arc<dyn FaultHook>>) -> Arc<Store> {
    let config = StoreConfig {
        faults: hook.map_or_else(Faults::default, Faults::new),
        ..StoreConfig::new(dir)
    };
    Store::open(config, &Scope::new()).unwrap()
}

/// Returns the sorted ids of the profiles in heads and files, without duplicates.
fn ids(dir: &Path) -> Vec<String> {
    let snapshot = Store::open_read_only(dir).unwrap().snapshot();
    let mut profile_ids: Vec<String> = Vec::new();
    let mut add = |batch: &RecordBatch| {
        let column = batch.column_by_name("profile_id").unwrap().as_string::<i32>();
        profile_ids.extend(column.iter().flatten().map(str::to_owned));
    };
    for head in &snapshot.heads {
        head.scan(Table::Profiles, &ScanFilter::default())
            .iter()
            .for_each(&mut add);
    }
    for file in snapshot.files.iter().filter(|file| file.table == Table::Profiles) {
        let file = std::fs::File::open(dir.join("tables").join(&file.path)).unwrap();
        let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        for batch in reader.build().unwrap() {
            add(&batch.unwrap());
        }
    }
    profile_ids.sort();
    profile_ids.dedup();
    profile_ids
}

/// A hook that panics at a fault point instead of returning an error.
struct Panics(FaultPoint);

impl FaultHook for Panics {
    fn check(&self, point: FaultPoint) -> std::io::Result<()> {
        self.done(point);
        Ok(())
    }

    fn done(&self, point: FaultPoint) {
        assert!(point != self.0, "made to panic");
    }
}

#[tokio::test]
async fn a_thread_that_ends_is_seen_and_nobody_waits_for_it() {
    for (point, thread) in [
        (FaultPoint::LogWrite, "write-ahead log"),
        (FaultPoint::Acknowledge, "store-apply"),
        (FaultPoint::FlushStart, "store-flush"),
        (FaultPoint::Job("compact"), "store-maintain"),
    ] {
        let dir = scratch();
        let store = open(dir.path(), Some(Arc::new(Panics(point))));
        let wait = Duration::from_secs(30);
        let first = tokio::time::timeout(wait, store.append(&tenant_id("t"), vec![profile("1")]))
            .await
            .unwrap();
        let _ = tokio::time::timeout(wait, store.flush()).await.unwrap();
        // This push makes a second file, so that two files can be merged.
        let _ = tokio::time::timeout(wait, store.append(&tenant_id("t"), vec![profile("0")]))
            .await
            .unwrap();
        let _ = tokio::time::timeout(wait, store.flush()).await.unwrap();
        let _ = tokio::time::timeout(wait, store.maintain(Work::Compact)).await.unwrap();
        // A panic first ends the wait of the caller, and is recorded a moment later.
        let deadline = Instant::now() + wait;
        let reason = loop {
            if let Some(reason) = store.unavailable() {
                break reason;
            }
            assert!(Instant::now() < deadline, "{thread}: the store reports no error");
            tokio::task::yield_now().await;
        };
        assert!(
            reason.contains(thread) && reason.contains("made to panic"),
            "{thread}: {reason}"
        );
        let errors = tokio::time::timeout(wait, store.append(&tenant_id("t"), vec![profile("2")]))
            .await
            .unwrap();
        assert_eq!(errors[0].error.kind, SinkErrorKind::Unavailable, "{thread}");
        assert!(errors[0].error.message.contains(thread), "{}", errors[0].error.message);
        let flushed = tokio::time::timeout(wait, store.flush()).await.unwrap();
        // If the thread of the log has ended, no profile reaches the memory, so there is nothing to flush.
        assert!(flushed.is_err() || point == FaultPoint::LogWrite, "{thread}");
        drop(store);
        // An acknowledged profile exists after a restart.
        drop(open(dir.path(), None));
        let stored_ids = ids(dir.path());
        assert!(
            !first.is_empty() || stored_ids.contains(&"1".to_owned()),
            "{thread}: {stored_ids:?}"
        );
    }
}

/// While the flag is true, panics when profiles with an id that starts with `poison` are encoded.
struct Unwritable(AtomicBool);

impl FaultHook for Unwritable {
    fn check(&self, _point: FaultPoint) -> std::io::Result<()> {
        Ok(())
    }

    fn encode(&self, table: Table, rows: &RecordBatch) {
        if table == Table::Profiles && self.0.load(Ordering::SeqCst) {
            let ids = rows.column_by_name("profile_id").unwrap().as_string::<i32>();
            let is_poisoned = ids.iter().flatten().any(|id| id.starts_with("poison"));
            assert!(!is_poisoned, "cannot encode this");
        }
    }
}

#[tokio::test]
async fn a_record_that_cannot_be_flushed_is_put_aside_and_the_others_are_flushed() {
    let dir = scratch();
    let hook = Arc::new(Unwritable(AtomicBool::new(true)));
    let store = open(dir.path(), Some(hook));
    for id in ["a", "poison 1", "b", "c", "poison 2", "d"] {
        assert!(store.append(&tenant_id("t"), vec![profile(id)]).await.is_empty());
    }
    store.flush().await.unwrap();
    assert_eq!(store.unavailable(), None);
    assert!(store.append(&tenant_id("t"), vec![profile("e")]).await.is_empty());
    store.flush().await.unwrap();
    drop(store);
    assert_eq!(ids(dir.path()), ["a", "b", "c", "d", "e"]);

    let report = inspect::check(dir.path()).unwrap();
    let aside: Vec<_> = report
        .findings
        .iter()
        .filter(|finding| finding.kind == "record-aside")
        .collect();
    assert_eq!(aside.len(), 2);
    assert!(
        aside[0].severity == Severity::Error && aside[0].detail.contains("cannot encode this"),
        "{aside:?}"
    );

    // A program without the fault puts the records back into the log.
    let actions = repair::repair(dir.path(), false).unwrap();
    assert_eq!(actions.len(), 2, "{actions:?}");
    assert!(repair::repair(dir.path(), false).unwrap().is_empty());
    let store = open(dir.path(), None);
    store.flush().await.unwrap();
    drop(store);
    assert_eq!(ids(dir.path()), ["a", "b", "c", "d", "e", "poison 1", "poison 2"]);
    assert!(!inspect::check(dir.path()).unwrap().has_errors());
}

/// Returns a record of the log as a program without limits would write it.
fn record_of(profile: &RawProfile) -> Vec<u8> {
    let now = chrono::Utc::now().timestamp_millis();
    let mut record = record::encode_header(&tenant_id("t"), now, &Limits::default(), profile);
    record.extend_from_slice(&profile.pprof);
    record
}

#[tokio::test]
async fn a_record_beyond_the_bounds_keeps_no_store_from_starting() {
    let dir = scratch();
    drop(open(dir.path(), None));
    let names = Names::new(SHAPE.functions);
    let span = "a".repeat(135_000);
    let mut long_profile = cpu_profile(&names, SHAPE, 1);
    long_profile.labels = vec![SampleLabel::Text("span_id", &span)];
    long_profile.label_starts = vec![1; SHAPE.samples + 1];
    long_profile.label_starts[0] = 0;
    let long_profile = RawProfile {
        pprof: pprof::gzip(&pprof::encode(&long_profile)).into(),
        ..profile("poison")
    };
    let mut bytes = segment::MAGIC.to_vec();
    for raw in [&profile("before"), &long_profile, &profile("after")] {
        segment::encode_record(&record_of(raw), &mut bytes);
    }
    let unreadable = Bytes::from_static(b"\x09 of another version");
    segment::encode_record(&unreadable, &mut bytes);
    std::fs::write(wal::segment_path(&dir.path().join("wal"), 7), bytes).unwrap();

    let store = open(dir.path(), None);
    assert_eq!(store.unavailable(), None);
    store.flush().await.unwrap();
    drop(store);
    assert_eq!(ids(dir.path()), ["after", "before"]);
    let aside = damaged::list(&dir.path().join("wal")).unwrap();
    let reasons: Vec<String> = aside.iter().map(|path| damaged::reason(path)).collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(
        reasons[0].contains("135000 bytes") && reasons[1].contains("version 9"),
        "{reasons:?}"
    );
    // This program can read neither record, so both stay.
    assert!(repair::repair(dir.path(), false).unwrap().is_empty());
    assert_eq!(damaged::list(&dir.path().join("wal")).unwrap(), aside);
}

#[tokio::test]
async fn a_push_that_holds_more_than_the_budget_is_taken_whole() {
    let dir = scratch();
    let store = open(dir.path(), None);
    // Each profile has 3.6 MB of text, for which `ingest::memory_for` returns 61 MB, but four kilobytes on the wire.
    let name = "n".repeat(60_000);
    let names: Vec<String> = (0..60).map(|number| format!("{number}{name}")).collect();
    let few_names = Names::new(5);
    let mut large = cpu_profile(
        &few_names,
        Shape {
            functions: 5,
            samples: 1,
            ..SHAPE
        },
        1,
    );
    large.time_nanos = chrono::Utc::now().timestamp_nanos_opt().unwrap();
    large.functions.extend(names.iter().map(|name| pprof::Function {
        name,
        ..pprof::Function::default()
    }));
    let body: Bytes = pprof::gzip(&pprof::encode(&large)).into();
    let profiles: Vec<RawProfile> = (0..40)
        .map(|number| RawProfile {
            pprof: body.clone(),
            ..profile(&number.to_string())
        })
        .collect();
    assert!(40 * ingest::memory_for(3_600_000) > StoreConfig::new("").intake_bytes);
    let errors = store.append(&tenant_id("t"), profiles).await;
    assert!(errors.is_empty(), "{errors:?}");
    // The last profile returns its memory to the budget a moment after the response.
    let deadline = Instant::now() + Duration::from_secs(30);
    while store.intake.budget.used() > 0 {
        assert!(Instant::now() < deadline, "{} bytes used", store.intake.budget.used());
        tokio::task::yield_now().await;
    }
    drop(store);
    assert_eq!(ids(dir.path()).len(), 40);
}

#[tokio::test]
async fn a_record_of_a_flushed_segment_is_restored_although_the_segment_is_still_there() {
    let dir = scratch();
    let store = open(dir.path(), Some(Arc::new(Unwritable(AtomicBool::new(true)))));
    for id in ["a", "poison"] {
        assert!(store.append(&tenant_id("t"), vec![profile(id)]).await.is_empty());
    }
    let log = dir.path().join("wal");
    let segments: Vec<_> = wal::segments(&log)
        .unwrap()
        .into_iter()
        .map(|number| wal::segment_path(&log, number))
        .map(|path| (std::fs::read(&path).unwrap(), path))
        .collect();
    store.flush().await.unwrap();
    drop(store);
    // If the process dies before the flush deletes its segments, they stay in the folder.
    for (bytes, path) in segments {
        std::fs::write(path, bytes).unwrap();
    }
    let actions = repair::repair(dir.path(), false).unwrap();
    assert!(
        actions.iter().any(|action| action.done.contains("became segment")),
        "{actions:?}"
    );
    let store = open(dir.path(), None);
    store.flush().await.unwrap();
    drop(store);
    assert_eq!(ids(dir.path()), ["a", "poison"]);
}

#[tokio::test]
async fn a_record_whose_segment_is_still_there_is_not_taken_up_twice() {
    let dir = scratch();
    let store = open(dir.path(), None);
    assert!(store.append(&tenant_id("t"), vec![profile("a")]).await.is_empty());
    drop(store);
    let log = dir.path().join("wal");
    let segments = wal::segments(&log).unwrap();
    let damaged_record = damaged::DamagedRecord {
        position: damaged::RecordPosition {
            segment: *segments.last().unwrap(),
            record: 0,
        },
        payload: record_of(&profile("a")).into(),
        reason: "an older program could not read it".to_owned(),
    };
    damaged::save_damaged(&log, &damaged_record).unwrap();
    assert_eq!(repair::repair(dir.path(), false).unwrap().len(), 1);
    assert!(damaged::list(&log).unwrap().is_empty());
    assert_eq!(wal::segments(&log).unwrap(), segments);
}
