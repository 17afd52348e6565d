//! Power cuts for the queue of `pyroscope.write`, in the real program.
//!
//! Scenario: a collector whose storage path is on the test disk accepts pushes and forwards them to a server that is
//! available only at times. The test starts the collector three times and kills it each time. Guarantee: when a
//! collector starts after a power cut, it delivers each profile that was acknowledged and synced before the cut, unless
//! the server already had it. (`page.md` of the component promises a sync within 100 ms.)
//!
//! A further test uses a full disk: a collector with two servers, one of them unavailable, accepts every push. The
//! available server receives every profile. The other server, when it is available again, receives only the newest
//! profiles, in order. The collector counts and logs the profiles that it does not deliver. Another test uses a disk
//! that is full before the queue has one whole segment.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use alluvium_base::Shutdown;
use alluvium_profile::{Labels, RawProfile};
use alluvium_wire::connect::{self, Codec};
use alluvium_wire::proto::push::{PushRequest, PushResponse};
use alluvium_wire::push::PushBatch;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use bytes::Bytes;

use super::disk::{Change, Random, Trouble, found};
use super::layer::Disk;
use super::{Luck, copy, folder};
use crate::harness::client;
use crate::kill::numbered_at;
use crate::outage::{self, collector, pusher};
use crate::program::PATIENCE;

/// Number of senders that push to the collector.
const SENDERS: u64 = 4;
/// Duration of each of the three parts of a run of the collector. The server is available or unavailable for a whole
/// part.
const PART: Duration = Duration::from_millis(1200);

/// A server that is available at times. For each profile that it receives, it stores the profile's number and the
/// number of disk changes until then.
#[derive(Clone)]
struct Sink {
    is_there: Arc<AtomicBool>,
    disk: Disk,
    got: Arc<Mutex<Vec<(usize, u64)>>>,
}

impl Sink {
    /// Serves while the test's runtime exists. Returns the URL.
    async fn serve(self) -> String {
        let routes = Router::new()
            .route("/push.v1.PusherService/Push", post(take))
            .with_state(self);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        url
    }

    fn numbers(&self) -> BTreeSet<u64> {
        self.got.lock().unwrap().iter().map(|(_, number)| *number).collect()
    }
}

async fn take(State(sink): State<Sink>, body: Bytes) -> Response {
    if !sink.is_there.load(Ordering::SeqCst) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let request: PushRequest = connect::decode(Codec::Proto, body).unwrap();
    let (profiles, _) = PushBatch::from_request(request).unwrap().split();
    let position = sink.disk.length();
    for profile in profiles {
        let number = profile.labels.get("number").unwrap().parse().unwrap();
        sink.got.lock().unwrap().push((position, number));
    }
    connect::encode(Codec::Proto, &PushResponse::default()).into_response()
}

/// Returns a profile with its number as a label.
fn numbered(number: u64) -> RawProfile {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let raw = numbered_at(number, "queued", now);
    let mut labels: Vec<(String, String)> = raw
        .labels
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    labels.push(("number".to_owned(), number.to_string()));
    RawProfile {
        labels: Labels::from_pairs(labels),
        ..raw
    }
}

/// Sends profiles until `stop` is cancelled. Returns the acknowledged numbers, each with the number of disk changes at
/// that time.
async fn send(receiver: String, disk: Disk, next: Arc<AtomicU64>, stop: Shutdown) -> Vec<(usize, u64)> {
    let pusher = pusher(&receiver);
    let mut kept = Vec::new();
    while !stop.is_cancelled() {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if pusher.push(&[numbered(number)]).await.is_ok() {
            kept.push((disk.length(), number));
        }
    }
    kept
}

/// Returns the number of disk changes after which a profile is surely synced. `position` is the number of changes
/// before its acknowledgement. The last counted change is the next sync of the segment that was then written last.
/// If the profile is in an earlier segment, the collector synced that segment before it began the last one.
fn synced(changes: &[Change], segments: &BTreeSet<u64>, position: usize) -> Option<usize> {
    let segment = changes[..position].iter().rev().find_map(|change| match change {
        Change::Write { node, .. } => segments.get(node),
        _ => None,
    })?;
    let is_sync = |change: &Change| matches!(change, Change::Sync { node } if node == segment);
    let after = changes[position..].iter().position(is_sync)?;
    Some(position + after + 1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_delivers_after_a_power_cut_what_it_had_synced() {
    let seeds = super::seeds() / 20;
    let disk = Disk::new();
    let at = tempfile::tempdir().unwrap();
    let Some(mounted) = super::mount(&disk, at.path()) else {
        return;
    };
    let logs = tempfile::tempdir().unwrap();
    let sink = Sink {
        is_there: Arc::default(),
        disk: disk.clone(),
        got: Arc::default(),
    };
    let url = sink.clone().serve().await;
    let (next, mut kept) = (Arc::new(AtomicU64::new(1)), Vec::new());
    for life in 0..3 {
        let (receiver, _own, mut program) = collector(&at.path().join("data"), &[&url], &logs.path().join("log")).await;
        let stop = Shutdown::new();
        let senders: Vec<_> = (0..SENDERS)
            .map(|_| tokio::spawn(send(receiver.to_string(), disk.clone(), next.clone(), stop.clone())))
            .collect();
        for is_there in [false, true, life == 1] {
            sink.is_there.store(is_there, Ordering::SeqCst);
            tokio::time::sleep(PART).await;
        }
        stop.cancel();
        program.kill();
        for sender in senders {
            kept.extend(sender.await.unwrap());
        }
    }
    drop(mounted);
    let changes = disk.changes();
    let segments = changes.iter().filter_map(|change| match change {
        Change::Name { name, node, .. } if name.ends_with(".seg") => Some(*node),
        _ => None,
    });
    let segments: BTreeSet<u64> = segments.collect();
    let kept: Vec<(usize, u64)> = kept
        .into_iter()
        .filter_map(|(position, number)| Some((synced(&changes, &segments, position)?, number)))
        .collect();
    assert!(kept.len() > 100, "only {} accepted profiles were synced", kept.len());

    // A queue belongs to the URL of its endpoint. So the collectors after the cuts must push to the same server.
    let before = std::mem::take(&mut *sink.got.lock().unwrap());
    sink.is_there.store(true, Ordering::SeqCst);
    let started = Instant::now();
    let (mut owed_in_all, mut again) = (0, 0);
    for seed in 0..seeds {
        let mut random = Random(seed);
        let moment = random.below(changes.len() + 1);
        let luck = Luck::drawn(seed, &mut random);
        let found_there = folder();
        found(&changes[..moment], luck, &mut random)
            .write(found_there.path())
            .unwrap();
        let before = before.iter().filter(|(position, _)| *position <= moment);
        let got: BTreeSet<u64> = before.map(|(_, number)| *number).collect();
        let owed: BTreeSet<u64> = kept
            .iter()
            .filter(|(position, number)| *position <= moment && !got.contains(number))
            .map(|(_, number)| *number)
            .collect();
        sink.got.lock().unwrap().clear();
        let storage = folder();
        copy(found_there.path(), storage.path()).unwrap();
        let log = logs.path().join(format!("log-{seed}"));
        let (_receiver, _own, mut program) = collector(&storage.path().join("data"), &[&url], &log).await;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let delivered = sink.numbers();
            if owed.is_subset(&delivered) {
                again += delivered.intersection(&got).count();
                break;
            }
            program.check();
            if Instant::now() > deadline {
                let lost: Vec<_> = owed.difference(&delivered).take(10).collect();
                let kept_folder = found_there.keep();
                panic!(
                    "seed {seed}: power cut after change {moment} of {} with {luck:?}: {lost:?} are lost, and \
                     perhaps more of {} profiles; the surviving folder is {}\n{}",
                    changes.len(),
                    owed.len(),
                    kept_folder.display(),
                    program.tail()
                );
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        program.kill();
        owed_in_all += owed.len();
    }
    println!(
        "{seeds} power cuts among {} changes of a queue's disk in {:?}; {owed_in_all} profiles delivered afterwards, 0 \
         lost, {again} delivered twice",
        changes.len(),
        started.elapsed()
    );
    assert!(seeds < 10 || owed_in_all > 0);
}

/// Size of a profile in bytes.
const BYTES: usize = 256 << 10;
/// Number of pushed profiles.
const PUSHES: u64 = 160;
/// After each group of this many pushes, the test waits until the available server has received all pushed profiles.
const TOGETHER: u64 = 16;
/// Free space of the disk in bytes.
const ROOM: usize = 32 << 20;

/// Free space of a disk with room for less than one segment of a queue, in bytes.
const LITTLE_ROOM: usize = 4 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_disk_with_room_for_less_than_a_segment_the_oldest_go_and_the_newest_stay() {
    let (disk, mount_point, logs) = (Disk::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some(_mounted) = super::mount(&disk, mount_point.path()) else {
        return;
    };
    let sink = outage::Sink::default();
    let url = sink.serve().await;
    let (receiver, own, mut program) =
        collector(&mount_point.path().join("data"), &[&url], &logs.path().join("log")).await;
    disk.trouble(Trouble {
        most_bytes: Some(disk.bytes() + LITTLE_ROOM),
        ..Trouble::default()
    });
    let (pusher, pprof) = (pusher(&receiver), Bytes::from(vec![7; BYTES]));
    let mut refusals = 0;
    for number in 1..=PUSHES {
        let profiles = [outage::numbered(number, &pprof)];
        let deadline = Instant::now() + PATIENCE;
        // The collector refuses a profile while it sends a part of its only segment. It may be sent again.
        while let Err(error) = pusher.push(&profiles).await {
            assert!(Instant::now() < deadline, "{number}: {error}\n{}", program.tail());
            refusals += 1;
        }
    }
    sink.is_there.store(true, Ordering::SeqCst);
    sink.has(PUSHES, &mut program).await;
    let taken = sink.taken();
    assert!(taken.is_sorted_by(|left, right| left < right), "{taken:?}");
    let lost = PUSHES - taken.len() as u64;
    assert!(lost > 0 && taken.len() > 8, "{taken:?}");
    let counted = dropped_on_disk(&own, &url).await;
    assert_eq!(counted, lost + refusals, "{refusals} refusals, {taken:?}");
}

/// Returns the number of profiles that a collector dropped because of its disk, by its metrics.
async fn dropped_on_disk(collector: &str, endpoint: &str) -> u64 {
    let metrics = client()
        .get(format!("http://{collector}/metrics"))
        .send()
        .await
        .unwrap();
    let metrics = metrics.text().await.unwrap();
    let parts = ["by_reason_total{", "reason=\"disk\"", endpoint];
    let line = metrics
        .lines()
        .find(|line| parts.iter().all(|part| line.contains(part)));
    let line = line.unwrap_or_else(|| panic!("{metrics}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_full_disk_the_oldest_for_a_dead_endpoint_go_and_a_living_one_gets_everything() {
    let (disk, at, logs) = (Disk::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some(_mounted) = super::mount(&disk, at.path()) else {
        return;
    };
    let (dead, living) = (outage::Sink::default(), outage::Sink::default());
    let (dead_url, living_url) = (dead.serve().await, living.serve().await);
    living.is_there.store(true, Ordering::SeqCst);
    let log = logs.path().join("log");
    let (receiver, own, mut program) = collector(&at.path().join("data"), &[&dead_url, &living_url], &log).await;
    disk.trouble(Trouble {
        most_bytes: Some(disk.bytes() + ROOM),
        ..Trouble::default()
    });
    let (pusher, pprof) = (pusher(&receiver), Bytes::from(vec![7; BYTES]));
    for number in 1..=PUSHES {
        let pushed = pusher.push(&[outage::numbered(number, &pprof)]).await;
        assert!(pushed.is_ok(), "{number}: {pushed:?}\n{}", program.tail());
        if number % TOGETHER == 0 {
            living.has(number, &mut program).await;
        }
    }
    assert!(living.taken().into_iter().eq(1..=PUSHES), "{:?}", living.taken());
    dead.is_there.store(true, Ordering::SeqCst);
    dead.has(PUSHES, &mut program).await;
    let taken = dead.taken();
    assert!(taken.is_sorted_by(|left, right| left < right), "{taken:?}");
    let lost = PUSHES - taken.len() as u64;
    assert!(lost > 0 && taken.len() > 16, "{taken:?}");
    assert_eq!(dropped_on_disk(&own, &dead_url).await, lost);
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(
        said.contains("the disk is full, the oldest queued profiles are dropped"),
        "{said}"
    );
}
