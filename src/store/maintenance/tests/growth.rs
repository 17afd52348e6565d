//! A test of a server that runs unattended. The test sets the clock. There is a flush every quarter of an hour, and a
//! round of maintenance after each flush.
//!
//! Guarantee: the numbers of live files, of files on disk and of entries of the tables' logs do not grow from one
//! period of retention to the next, even if types have their own periods. No profile of the period is missing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::store::common::clock::Clock;
use crate::store::common::schema::Table;
use crate::store::config::StoreConfig;
use crate::store::maintenance::retention::aging::Aging;
use crate::store::maintenance::tests::{config, files_on_disk, open};
use crate::store::maintenance::*;
use crate::store::tables::snapshot::SnapshotSource;
use crate::store::tests::scratch;
use alluvium_profile::pprof;
use alluvium_profile::{Labels, RawProfile};
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};
use alluvium_testing::tenant_id;

const HOUR: u64 = 3600;
const STEP: u64 = 900;
/// Number of hours of a turn. A turn is as long as the longest retention.
const TURN: u64 = 6;
const TINY: Shape = Shape {
    functions: 10,
    samples: 5,
    depth: 4,
    labelled_every: 0,
};

#[tokio::test]
async fn files_stop_growing_when_a_server_is_left_alone_for_three_times_its_retention() {
    let kinds = ["process_cpu", "mutex"];
    let dir = scratch();
    // The test's clock starts at least nine days after the real time. The modification times of the files are real, so
    // the files look old to maintenance, which may then delete them.
    let start = (SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 86_400 + 10) * 86_400;
    let now = Arc::new(AtomicU64::new(start));
    let clock = now.clone();
    let mut config = StoreConfig {
        clock: Clock::new(move || UNIX_EPOCH + Duration::from_secs(clock.load(Ordering::SeqCst))),
        checkpoint_interval: 10,
        ..config(dir.path())
    };
    config.maintenance.aging = Aging {
        retention: Duration::from_secs(TURN * HOUR),
        types: [("mutex".to_owned(), Duration::from_secs(TURN * HOUR / 2))].into(),
        ..Aging::default()
    };
    config.maintenance.vacuum_interval = Duration::ZERO;
    let store = open(config);
    let names = Names::new(TINY.functions);
    let mut max = Vec::new();
    for turn in 0..3 {
        // Numbers of live files, files on disk, and files of a table's log.
        let mut turn_maxima = [0; 3];
        for step in 0..TURN * HOUR / STEP {
            let time = start + turn * TURN * HOUR + step * STEP;
            now.store(time, Ordering::SeqCst);
            let mut profile = cpu_profile(&names, TINY, step % 5);
            profile.time_nanos = time as i64 * 1_000_000_000;
            let bytes = pprof::encode(&profile);
            let profiles = kinds.iter().map(|kind| RawProfile {
                labels: Labels::from_pairs([("__name__", *kind), ("service_name", "demo")]),
                id: "".into(),
                pprof: bytes.clone().into(),
            });
            assert!(store.append(&tenant_id("t"), profiles.collect()).await.is_empty());
            store.flush().await.unwrap();
            store.maintain(Work::Due).await.unwrap();
            let log = std::fs::read_dir(dir.path().join("tables/samples/_delta_log")).unwrap();
            let counts = [store.snapshot().files.len(), files_on_disk(dir.path()), log.count()];
            for (max, count) in turn_maxima.iter_mut().zip(counts) {
                *max = count.max(*max);
            }
        }
        max.push(turn_maxima);
    }
    println!("most live files, files on disk, files of a log, by turn: {max:?}");
    for (before, after) in max[1].iter().zip(max[2]) {
        assert!(after <= before + before / 10, "{max:?}");
    }
    // No profile of the period is missing.
    let oldest = (now.load(Ordering::SeqCst) - TURN * HOUR / 2) as i64 * 1_000_000;
    let snapshot = store.snapshot();
    let recent_files = snapshot
        .files
        .iter()
        .filter(|file| file.table == Table::Profiles && file.time.is_some_and(|time| time.max >= oldest));
    let rows: u64 = recent_files.map(|file| file.rows).sum();
    // Each step stores two profiles, and each profile has two types.
    assert!(rows >= TURN * HOUR / 2 / STEP * 2 * 2, "{rows} rows");
}
