//! Tests of several servers on one bucket: one server queries or deletes profiles during or after a flush of another
//! server.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use parking_lot::Mutex;

use super::fault_tests::{Fault, Faulty, Waits, bucket_options, count_numbers, numbered, once, open, open_on, push};
use crate::store::Store;
use crate::store::common::fault::{FaultPoint, Faults};
use crate::store::common::schema::Table;
use crate::store::maintenance::Work;
use crate::store::maintenance::deletion::request::Deletion;
use crate::store::tables::root::DataLocation;
use crate::store::tables::snapshot::{FileEntry, SnapshotSource as _};
use crate::store::tests::scratch;
use alluvium_profile::TimeSpan;
use alluvium_testing::tenant_id;

fn deletion(service: &str) -> Work {
    let selector = format!("{{service_name=\"{service}\"}}");
    Work::Delete(Deletion::new(tenant_id("t"), selector, TimeSpan::ALL))
}

#[tokio::test]
async fn a_deletion_reaches_what_another_server_flushed_before_it_was_asked_for() {
    let (one, two, three) = (scratch(), scratch(), scratch());
    let bucket = Faulty::new(Fault::Refused);
    // The poll intervals are an hour, so no server polls the tables on its own.
    let requested = open(one.path(), &bucket);
    let other = open(two.path(), &bucket);
    let refused = other.append(&tenant_id("t"), vec![numbered(1, "gone")]).await;
    assert!(refused.is_empty(), "{refused:?}");
    push(&other, 2).await;
    other.flush().await.unwrap();
    requested.maintain(deletion("gone")).await.unwrap();
    assert_eq!(count_numbers(&requested, &bucket).await, once([2]));
    let reader = open(three.path(), &bucket);
    assert_eq!(count_numbers(&reader, &bucket).await, once([2]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_within_a_flush_of_another_shows_and_merges_all_of_it_or_nothing() {
    let (one, two, three) = (scratch(), scratch(), scratch());
    let bucket = Faulty::new(Fault::Refused);
    let (reached, is_reached) = sync_channel(8);
    let (go_on, goes_on) = sync_channel(8);
    let hook = Waits {
        point: Mutex::new(Some(FaultPoint::Commit(Table::Profiles))),
        reached,
        go_on: Mutex::new(goes_on),
    };
    let flushing = open_on(one.path(), &bucket, Faults::new(Arc::new(hook)));
    push(&flushing, 1).await;
    let flush = tokio::spawn({
        let flushing = flushing.clone();
        async move { flushing.flush().await }
    });
    tokio::task::block_in_place(|| is_reached.recv()).unwrap();
    let started = open(two.path(), &bucket);
    assert_eq!(count_numbers(&started, &bucket).await, once([]));
    push(&started, 2).await;
    started.flush().await.unwrap();
    started.maintain(Work::Compact).await.unwrap();
    assert_eq!(count_numbers(&started, &bucket).await, once([2]));
    let options = bucket_options(&bucket);
    let location = DataLocation {
        dir: three.path(),
        bucket: Some(&options),
    };
    let read = tokio::task::block_in_place(|| Store::open_read_only(location)).unwrap();
    let samples = |file: &&FileEntry| file.table == Table::Samples;
    assert_eq!(read.snapshot().files.iter().filter(samples).count(), 1);
    go_on.send(()).unwrap();
    flush.await.unwrap().unwrap();
    // A deletion first reads the commits of other servers, so `started` learns of the flush of `flushing`.
    started.maintain(deletion("nothing")).await.unwrap();
    assert_eq!(count_numbers(&started, &bucket).await, once([1, 2]));
    let reader = open(three.path(), &bucket);
    assert_eq!(count_numbers(&reader, &bucket).await, once([1, 2]));
}
