//! Tests of a store whose clock jumps: a wrong clock must not cause the deletion of profiles within their retention.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use parking_lot::Mutex;

use crate::store::common::clock::Clock;
use crate::store::config::StoreConfig;
use crate::store::maintenance::Downsampling;
use crate::store::maintenance::retention::aging::Aging;
use crate::store::maintenance::tests::{SHAPE, START_NS, config, files_on_disk, fill, open, profile};
use crate::store::maintenance::*;
use crate::store::tables::snapshot::SnapshotSource;
use crate::store::tests::scratch;
use alluvium_testing::synthetic::Names;
use alluvium_testing::tenant_id;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// The time of the wall clock since 1970, and the time of the monotonic clock. Only the wall clock jumps.
type Hands = Arc<Mutex<(Duration, Duration)>>;

fn with_clock(dir: &std::path::Path, hands: &Hands) -> StoreConfig {
    let (wall, running) = (hands.clone(), hands.clone());
    let mut config = config(dir);
    config.clock = Clock::set_by(move || UNIX_EPOCH + wall.lock().0, move || running.lock().1);
    config.maintenance.aging = Aging {
        retention: DAY * 7,
        downsample: vec![Downsampling {
            after: DAY * 2,
            interval: Duration::from_mins(5),
        }],
        ..Aging::default()
    };
    config.maintenance.vacuum_interval = Duration::ZERO;
    config.maintenance.compaction = false;
    config
}

#[tokio::test]
async fn nothing_is_deleted_or_made_coarser_after_a_jump_of_the_clock_until_it_has_run_for_a_day() {
    let dir = scratch();
    let start = Duration::from_nanos(START_NS as u64) + HOUR;
    let hands = Hands::new(Mutex::new((start, Duration::ZERO)));
    let pass = |time: Duration| {
        let mut hands = hands.lock();
        hands.0 += time;
        hands.1 += time;
    };
    let store = open(with_clock(dir.path(), &hands));
    fill(&store, "t", 2, 3, 10).await;
    let (live, on_disk) = (store.snapshot().files.len(), files_on_disk(dir.path()));
    assert_eq!(store.maintain(Work::Due).await.unwrap(), Report::default());
    // The clock is set to the year 2036.
    hands.lock().0 += DAY * 3650;
    for _ in 0..3 {
        assert_eq!(store.maintain(Work::Due).await.unwrap(), Report::default());
        pass(HOUR);
    }
    // A server that starts with the wrong clock reads the last trusted time of the previous process.
    store.close(Duration::from_mins(1)).await.unwrap();
    drop(store);
    let store = open(with_clock(dir.path(), &hands));
    assert_eq!(store.maintain(Work::Due).await.unwrap(), Report::default());
    assert_eq!(
        (store.snapshot().files.len(), files_on_disk(dir.path())),
        (live, on_disk)
    );
    // After a day without another jump, the clock is trusted.
    pass(DAY);
    assert!(store.maintain(Work::Due).await.unwrap().jobs > 0);
    assert_eq!(store.snapshot().files.len(), 0);
    pass(DAY);
    store.maintain(Work::Due).await.unwrap();
    assert_eq!(files_on_disk(dir.path()), 0);
}

#[tokio::test]
async fn what_is_old_by_a_clock_that_runs_evenly_goes_as_before() {
    let dir = scratch();
    let start = Duration::from_nanos(START_NS as u64) + HOUR;
    let hands = Hands::new(Mutex::new((start, Duration::ZERO)));
    let store = open(with_clock(dir.path(), &hands));
    fill(&store, "t", 1, 3, 10).await;
    for _ in 0..10 {
        store.maintain(Work::Due).await.unwrap();
        let mut hands = hands.lock();
        hands.0 += DAY;
        hands.1 += DAY;
    }
    store.maintain(Work::Due).await.unwrap();
    assert_eq!(store.snapshot().files.len(), 0);
}

#[tokio::test]
async fn a_profile_of_now_is_taken_after_a_jump_of_the_clock_and_an_old_one_is_refused() {
    let dir = scratch();
    let start = Duration::from_nanos(START_NS as u64);
    let hands = Hands::new(Mutex::new((start, Duration::ZERO)));
    let mut config = with_clock(dir.path(), &hands);
    config.limits = crate::store::rules::limits::Limits::default().into();
    let store = open(config);
    let names = Names::new(SHAPE.functions);
    let mut seed = 0;
    let mut is_taken = async |hours: i64| {
        seed += 1;
        let profile = profile(&names, "shop", seed, hours * 3600);
        store.append(&tenant_id("t"), vec![profile]).await.is_empty()
    };
    assert!(is_taken(0).await && !is_taken(-2).await && !is_taken(1).await);
    hands.lock().0 = start + HOUR * 25;
    assert!(is_taken(0).await && is_taken(25).await && !is_taken(-2).await && !is_taken(26).await);
    hands.lock().0 -= HOUR * 50;
    assert!(is_taken(0).await && is_taken(-25).await && !is_taken(-27).await && !is_taken(1).await);
}
