//! Days of a server that is left alone: the clock is the test's, a flush every ten minutes, a round of maintenance after each.
//!
//! Guarantee: the numbers of live files, of files on disk and of entries of the tables' logs stop growing once the retention has passed, for many profile
//! types and with periods by type too; and the profiles of the period are all there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::*;
use crate::profile::pprof;
use crate::profile::synthetic::{Names, Shape, cpu_profile};
use crate::profile::{Labels, RawProfile};
use crate::store::StoreConfig;
use crate::store::clock::Clock;
use crate::store::maintenance::aging::Aging;
use crate::store::maintenance::tests::{config, files_on_disk, open};
use crate::store::schema::Table;
use crate::store::snapshot::SnapshotSource;

const DAY: u64 = 86_400;
const STEP: u64 = 600;
const TINY: Shape = Shape {
    functions: 10,
    samples: 5,
    depth: 4,
    labelled_every: 0,
};

/// Most live files, files on disk and entries of a log in the course of each day.
async fn days(aging: Aging, kinds: &[&str], count: u64) -> Vec<[usize; 3]> {
    let dir = tempfile::tempdir().unwrap();
    // A while after the files' own times, so that what is old by the clock may go.
    let start = (SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / DAY + 10) * DAY;
    let now = Arc::new(AtomicU64::new(start));
    let clock = now.clone();
    let mut config = StoreConfig {
        clock: Clock::new(move || UNIX_EPOCH + Duration::from_secs(clock.load(Ordering::SeqCst))),
        ..config(dir.path())
    };
    config.maintenance.aging = aging;
    config.maintenance.vacuum_interval = Duration::ZERO;
    let retention = config.maintenance.aging.retention.as_secs();
    let store = open(config);
    let names = Names::new(TINY.functions);
    let mut most = Vec::new();
    for day in 0..count {
        let mut of_day = [0; 3];
        for step in 0..DAY / STEP {
            let time = start + day * DAY + step * STEP;
            now.store(time, Ordering::SeqCst);
            let mut profile = cpu_profile(&names, TINY, step % 5);
            profile.time_nanos = time as i64 * 1_000_000_000;
            let bytes = pprof::encode(&profile);
            let profiles = kinds.iter().map(|kind| RawProfile {
                labels: Labels::from_pairs([("__name__", *kind), ("service_name", "demo")]),
                id: "".into(),
                pprof: bytes.clone().into(),
            });
            assert!(store.append("t", profiles.collect()).await.is_empty());
            store.flush().await.unwrap();
            store.maintain(Work::Due).await.unwrap();
            let live = store.snapshot().files.len();
            of_day[0] = of_day[0].max(live);
            if step % 12 == 11 {
                of_day[1] = of_day[1].max(files_on_disk(dir.path()));
                let log = dir.path().join("tables/samples/_delta_log");
                of_day[2] = of_day[2].max(std::fs::read_dir(log).unwrap().count());
            }
        }
        most.push(of_day);
    }
    // Nothing of the period is missing.
    let oldest = (now.load(Ordering::SeqCst) - retention) as i64 * 1_000_000;
    let snapshot = store.snapshot();
    let kept = snapshot
        .files
        .iter()
        .filter(|file| file.table == Table::Profiles && file.time.is_some_and(|(_, last)| last >= oldest));
    let rows: u64 = kept.map(|file| file.rows).sum();
    // Each has two types.
    assert!(rows >= retention / STEP * 2 * kinds.len() as u64, "{rows} rows");
    most
}

#[tokio::test]
async fn files_stop_growing_when_a_server_is_left_alone_for_days() {
    let aging = Aging {
        retention: Duration::from_secs(DAY),
        ..Aging::default()
    };
    let most = days(aging, &["process_cpu"], 4).await;
    for (day, [live, disk, entries]) in most.iter().enumerate() {
        assert!(*live <= 80 && *disk <= 90 && *entries <= 160, "day {day}: {most:?}");
    }
    assert!(most[3][0] <= most[2][0] + 8, "{most:?}");
    assert!(most[3][2] <= most[2][2] + 20, "{most:?}");
}

#[tokio::test]
async fn files_stop_growing_with_many_types_that_have_periods_of_their_own() {
    let kinds = ["process_cpu", "memory", "mutex"];
    let aging = Aging {
        retention: Duration::from_secs(DAY),
        types: [("mutex".to_owned(), Duration::from_secs(DAY / 2))].into(),
        ..Aging::default()
    };
    let most = days(aging, &kinds, 3).await;
    // Each type has two kinds of value, so six files an hour of the day that is not over, in two tables.
    for (day, [live, disk, entries]) in most.iter().enumerate() {
        assert!(*live <= 500 && *disk <= 520 && *entries <= 200, "day {day}: {most:?}");
    }
    assert!(most[2][0] <= most[1][0] + 24, "{most:?}");
}
