//! Tests of the queue alone: order, restart, limits, damage.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::common::sending::outbox::metrics::{EndpointMetrics, MetricNames, OutboxMetrics};
use crate::common::sending::outbox::queue::age::{Moment, QueueClock};
use crate::common::sending::outbox::queue::state::SEGMENT_BYTES;
use crate::common::sending::outbox::queue::{Limits, Queue, now_ms, record};
use alluvium_profile::{Labels, RawProfile};
use alluvium_telemetry::metrics::Scope;

const LIMITS: Limits = Limits {
    max_bytes: 64 << 20,
    max_age: Duration::from_hours(1),
};

const NAMES: MetricNames = MetricNames {
    sent_profiles: "test_sent_profiles",
    sent_bytes: "test_sent_bytes",
    dropped_profiles: "test_dropped_profiles",
    dropped_bytes: "test_dropped_bytes",
    dropped_profiles_by_reason: "test_dropped_profiles_by_reason",
    retries: "test_retries",
    requests: "test_requests",
    latency: "test_latency",
    queue_profiles: "test_queue_profiles",
    queue_bytes: "test_queue_bytes",
    queue_oldest_age: "test_queue_oldest_age_seconds",
};

fn metrics() -> EndpointMetrics {
    OutboxMetrics::new(&Scope::new(), &NAMES).endpoint("test")
}

fn open(folder: &Path) -> Queue {
    Queue::open(folder, LIMITS, metrics()).unwrap()
}

fn profile(id: usize, bytes: usize) -> RawProfile {
    RawProfile {
        labels: Labels::from_pairs([("__name__", "cpu")]),
        id: id.to_string().into(),
        pprof: vec![7; bytes].into(),
    }
}

fn append(queue: &Queue, ids: std::ops::Range<usize>, bytes: usize) {
    for id in ids {
        queue.append(&record::encode(&[profile(id, bytes)], now_ms())).unwrap();
    }
}

/// Takes all profiles, in batches of up to seven, and returns their ids.
fn drain(queue: &Queue) -> Vec<usize> {
    let mut ids = Vec::new();
    loop {
        let batch = queue.take(u64::MAX, 7);
        if batch.ids.is_empty() {
            return ids;
        }
        ids.extend(
            batch
                .profiles
                .iter()
                .map(|profile| profile.id.parse::<usize>().unwrap()),
        );
        queue.finish(&batch.ids);
    }
}

#[test]
fn profiles_come_out_in_order_and_once() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    append(&queue, 0..20, 100);
    assert_eq!(queue.waiting().profiles, 20);
    assert_eq!(drain(&queue), (0..20).collect::<Vec<_>>());
    assert_eq!(queue.waiting(), super::Waiting::default());
}

#[test]
fn what_waits_is_there_after_a_restart_and_what_is_done_is_not() {
    let folder = tempfile::tempdir().unwrap();
    {
        let queue = open(folder.path());
        append(&queue, 0..10, 100);
        let batch = queue.take(u64::MAX, 4);
        queue.finish(&batch.ids);
        // This batch is being sent when the process ends, so it is sent again.
        let unfinished_batch = queue.take(u64::MAX, 2);
        assert_eq!(unfinished_batch.profiles[0].id.as_ref(), "4");
    }
    let queue = open(folder.path());
    append(&queue, 10..12, 100);
    assert_eq!(drain(&queue), (4..12).collect::<Vec<_>>());
    drop(queue);
    assert!(drain(&open(folder.path())).is_empty());
}

#[test]
fn what_is_not_done_of_a_batch_waits_again() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    append(&queue, 0..4, 100);
    let batch = queue.take(u64::MAX, 3);
    queue.finish(&[batch.ids[1]]);
    assert_eq!(drain(&queue), [0, 2, 3]);
}

#[test]
fn segments_are_deleted_when_they_are_done() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    append(&queue, 0..40, SEGMENT_BYTES as usize / 8);
    let segments = || {
        let files = fs::read_dir(folder.path()).unwrap();
        let is_segment = |path: &std::path::PathBuf| path.extension().is_some_and(|extension| extension == "seg");
        files.map(|file| file.unwrap().path()).filter(is_segment).count()
    };
    assert!(segments() >= 5);
    assert_eq!(drain(&queue).len(), 40);
    assert_eq!(segments(), 1);
}

#[test]
fn the_oldest_go_when_the_queue_is_full_and_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = metrics();
    let limits = Limits {
        max_bytes: 10_000,
        ..LIMITS
    };
    let queue = Queue::open(folder.path(), limits, metrics.clone()).unwrap();
    append(&queue, 0..3, 1000);
    // Profiles that are being sent are not dropped.
    let unfinished_batch = queue.take(u64::MAX, 2);
    append(&queue, 3..20, 1000);
    assert!(queue.waiting().bytes <= 10_000);
    queue.finish(&unfinished_batch.ids);
    let left = drain(&queue);
    assert_eq!(left.last(), Some(&19));
    assert_eq!(left.len() as u64 + 2 + metrics.totals().1, 20);
    assert!(left.is_sorted() && left[0] > 2);
}

#[test]
fn room_is_made_by_the_oldest_that_is_neither_sent_nor_written_now() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = metrics();
    let queue = Queue::open(folder.path(), LIMITS, metrics.clone()).unwrap();
    append(&queue, 0..40, SEGMENT_BYTES as usize / 8);
    let unfinished_batch = queue.take(u64::MAX, 2);
    let before = queue.waiting();
    let mut dropped = 0;
    while let Some(profiles) = queue.make_room() {
        dropped += profiles;
    }
    let after = queue.waiting();
    assert_eq!(
        (before.profiles - after.profiles, metrics.totals().1),
        (dropped, dropped)
    );
    assert!(
        dropped >= 24 && before.bytes - after.bytes > 3 * SEGMENT_BYTES,
        "{after:?}"
    );
    queue.finish(&unfinished_batch.ids);
    drop(queue);
    // After a restart neither the sent nor the dropped profiles are found.
    let left = drain(&open(folder.path()));
    assert_eq!(left.len() as u64, 38 - dropped);
    assert_eq!((left[0], left.last()), (2, Some(&39)));
    assert!(left.is_sorted());
}

#[test]
fn the_only_segment_goes_when_nothing_of_it_is_sent_and_from_then_on_little_goes_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = metrics();
    let queue = Queue::open(folder.path(), LIMITS, metrics.clone()).unwrap();
    append(&queue, 0..6, 1000);
    assert_eq!(queue.make_room(), None, "the segment is being written");
    let next = record::encode(&[profile(6, 1000)], now_ms());
    queue.take(u64::MAX, 2);
    assert_eq!(queue.make_room_for(&next), None, "a part of it is being sent");
    queue.finish(&[]);
    let large = record::encode(&[profile(6, 10_000)], now_ms());
    assert_eq!(queue.make_room_for(&large), None, "it is smaller than the new profile");
    assert_eq!((queue.waiting().profiles, metrics.totals().1), (6, 0));
    assert_eq!(queue.make_room_for(&next), Some(6));
    assert_eq!((queue.waiting(), metrics.totals().1), (super::Waiting::default(), 6));
    append(&queue, 6..7, 1000);
    append(&queue, 7..39, 16 << 10);
    assert_eq!(queue.make_room(), Some(5), "the first segment of 64 KiB");
    drop(queue);
    // After a restart, the dropped profiles are not found.
    let queue = open(folder.path());
    assert_eq!(drain(&queue), (11..39).collect::<Vec<_>>());
}

#[test]
fn segments_of_a_queue_that_was_dropped_grow_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    append(&queue, 0..6, 1000);
    let next = record::encode(&[profile(6, 1000)], now_ms());
    assert_eq!(queue.make_room_for(&next), Some(6));
    append(&queue, 6..6 + 2048, 16 << 10);
    let files = fs::read_dir(folder.path()).unwrap().count();
    assert!((16..64).contains(&files), "{files}");
    assert_eq!(drain(&queue).len(), 2048);
    append(&queue, 0..40, 16 << 10);
    assert_eq!(
        queue.make_room(),
        None,
        "after the queue was empty, segments are large again"
    );
}

#[test]
fn what_is_too_old_goes() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = metrics();
    let hands = Hands::default();
    let queue = hands.open(folder.path(), &metrics);
    hands.append(&queue, 0);
    hands.pass(2);
    hands.append(&queue, 1);
    queue.expire();
    assert_eq!(drain(&queue), [1]);
    assert_eq!(metrics.totals().1, 1);
}

/// A wall clock and a monotonic clock that the test sets, in hours.
#[derive(Clone, Default)]
struct Hands(Arc<Mutex<(u64, u64)>>);

impl Hands {
    fn open(&self, folder: &Path, metrics: &EndpointMetrics) -> Queue {
        let hands = self.0.clone();
        let clock = QueueClock::new(move || {
            let (wall, running) = *hands.lock();
            Moment {
                wall_ms: (1_000 + wall) * 3_600_000,
                running: Duration::from_hours(running),
            }
        });
        Queue::open_with(folder, LIMITS, metrics.clone(), clock).unwrap()
    }

    fn append(&self, queue: &Queue, id: usize) {
        let wall_ms = (1_000 + self.0.lock().0) * 3_600_000;
        queue.append(&record::encode(&[profile(id, 10)], wall_ms)).unwrap();
    }

    fn pass(&self, hours: u64) {
        let mut hands = self.0.lock();
        hands.0 += hours;
        hands.1 += hours;
    }

    fn set_ahead(&self, hours: u64) {
        self.0.lock().0 += hours;
    }
}

#[test]
fn a_jump_of_the_clock_makes_nothing_too_old() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = metrics();
    let hands = Hands::default();
    {
        let queue = hands.open(folder.path(), &metrics);
        hands.append(&queue, 0);
        hands.set_ahead(25);
        queue.expire();
        hands.append(&queue, 1);
        assert_eq!(
            (queue.waiting().profiles, queue.waiting().oldest_age),
            (2, Duration::ZERO)
        );
    }
    // A process that starts with a wrong clock waits, so that the clock can be corrected.
    let queue = hands.open(folder.path(), &metrics);
    queue.expire();
    assert_eq!((queue.waiting().profiles, metrics.totals().1), (2, 0));
    hands.pass(1);
    queue.expire();
    assert_eq!(drain(&queue), [1], "after an hour, profile 0 is too old");
    assert_eq!(metrics.totals().1, 1);
}

#[test]
fn a_torn_tail_and_damage_cost_only_what_they_hit() {
    let folder = tempfile::tempdir().unwrap();
    {
        let queue = open(folder.path());
        append(&queue, 0..5, 100);
    }
    let path = folder.path().join("0000000000000001.seg");
    let mut data = fs::read(&path).unwrap();
    let record = (data.len() - 8) / 5;
    data[8 + record + record / 2] ^= 1;
    data.truncate(data.len() - 3);
    fs::write(&path, data).unwrap();
    let metrics = metrics();
    let queue = Queue::open(folder.path(), LIMITS, metrics.clone()).unwrap();
    append(&queue, 5..6, 100);
    assert_eq!(drain(&queue), [0, 2, 3, 5]);
    assert_eq!(metrics.totals().1, 1);
}

/// Changes the bytes of a segment.
type Damage = fn(&mut Vec<u8>);

#[test]
fn damage_at_the_end_of_a_segment_is_counted_and_the_segment_is_kept() {
    let flipped = |data: &mut Vec<u8>| *data.last_mut().unwrap() ^= 1;
    let shortened = |data: &mut Vec<u8>| data.truncate(data.len() - 3);
    // The last record of the last segment is damaged, or an earlier segment is too short.
    let cases: [(Damage, usize); 2] = [(flipped, 1), (shortened, 2)];
    for (damage, segments) in cases {
        let folder = tempfile::tempdir().unwrap();
        for segment in 0..segments {
            append(&open(folder.path()), segment * 3..segment * 3 + 3, 100);
        }
        let path = folder.path().join("0000000000000001.seg");
        let mut data = fs::read(&path).unwrap();
        damage(&mut data);
        fs::write(&path, data).unwrap();
        // A second start does not count the damage again.
        for counted in [1, 0] {
            let metrics = metrics();
            drop(Queue::open(folder.path(), LIMITS, metrics.clone()).unwrap());
            assert_eq!(metrics.totals().1, counted);
        }
        let expected: Vec<usize> = (0..segments * 3).filter(|id| *id != 2).collect();
        assert_eq!(drain(&open(folder.path())), expected);
        assert!(path.with_extension("damaged").exists());
    }
}

#[test]
fn an_unfinished_write_is_no_damage_however_often_the_queue_starts() {
    let folder = tempfile::tempdir().unwrap();
    append(&open(folder.path()), 0..3, 100);
    let path = folder.path().join("0000000000000001.seg");
    let data = fs::read(&path).unwrap();
    fs::write(&path, &data[..data.len() - 3]).unwrap();
    append(&open(folder.path()), 3..4, 100);
    let metrics = metrics();
    let queue = Queue::open(folder.path(), LIMITS, metrics.clone()).unwrap();
    assert_eq!(drain(&queue), [0, 1, 3]);
    assert_eq!(metrics.totals().1, 0);
    assert!(!path.with_extension("damaged").exists());
}

#[test]
fn damage_while_running_costs_only_what_it_hits() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    append(&queue, 0..3, 100);
    let path = folder.path().join("0000000000000001.seg");
    let mut data = fs::read(&path).unwrap();
    data[8 + 20] ^= 1;
    fs::write(&path, data).unwrap();
    assert_eq!(drain(&queue), [1, 2]);
}

#[test]
fn a_folder_is_used_by_one_queue_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path());
    let folder_path = folder.path().to_owned();
    let second = std::thread::spawn(move || open(&folder_path).waiting().profiles);
    append(&first, 0..3, 10);
    drop(first);
    assert_eq!(second.join().unwrap(), 3);
}

mod model {
    //! Compares the queue with a trivially correct model: a list.

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Append(usize, usize),
        /// Takes this many profiles, and finishes each profile whose bit is set. The first profile has the lowest bit.
        Send(usize, u32),
        /// Takes this many profiles and restarts without finishing them.
        Restart(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (1..5usize, prop_oneof![1..300usize, Just(SEGMENT_BYTES as usize / 3)])
                .prop_map(|(count, bytes)| Step::Append(count, bytes)),
            3 => (1..6usize, any::<u32>()).prop_map(|(count, bits)| Step::Send(count, bits)),
            // About half of the batches are finished completely.
            3 => (1..6usize).prop_map(|count| Step::Send(count, u32::MAX)),
            1 => (0..4usize).prop_map(Step::Restart),
        ]
    }

    fn contents(queue: &Queue) -> Vec<usize> {
        let batch = queue.take(u64::MAX, usize::MAX);
        queue.finish(&[]);
        batch
            .profiles
            .iter()
            .map(|profile| profile.id.parse().unwrap())
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn nothing_waiting_is_lost_and_order_holds(steps in proptest::collection::vec(step(), 1..30)) {
            let folder = tempfile::tempdir().unwrap();
            let limits = Limits { max_bytes: u64::MAX, ..LIMITS };
            let reopen = || Queue::open(folder.path(), limits, metrics()).unwrap();
            let mut queue = reopen();
            let mut waiting: Vec<usize> = Vec::new();
            let mut next = 0;
            for step in steps {
                match step {
                    Step::Append(count, bytes) => {
                        let profiles: Vec<_> = (next..next + count).map(|id| profile(id, bytes)).collect();
                        queue.append(&record::encode(&profiles, now_ms())).unwrap();
                        waiting.extend(next..next + count);
                        next += count;
                    }
                    Step::Send(count, bits) => {
                        let batch = queue.take(u64::MAX, count);
                        let is_done = |index: usize| bits >> index & 1 == 1;
                        let done = batch.ids.iter().enumerate().filter(|(index, _)| is_done(*index));
                        let done: Vec<u64> = done.map(|(_, id)| *id).collect();
                        queue.finish(&done);
                        let mut visited = 0;
                        waiting.retain(|_| {
                            visited += 1;
                            visited > batch.ids.len() || !is_done(visited - 1)
                        });
                    }
                    Step::Restart(count) => {
                        queue.take(u64::MAX, count);
                        drop(queue);
                        queue = reopen();
                        let remaining = contents(&queue);
                        // Profiles that were finished after an unfinished profile may be sent again. Other finished
                        // profiles must not be sent again.
                        let first = waiting.first().copied().unwrap_or(usize::MAX);
                        prop_assert!(remaining.is_sorted() && remaining.iter().all(|id| *id >= first));
                        prop_assert!(waiting.iter().all(|id| remaining.contains(id)));
                        waiting = remaining;
                    }
                }
                prop_assert_eq!(contents(&queue), waiting.clone());
                prop_assert_eq!(queue.waiting().profiles, waiting.len() as u64);
            }
            let segments = segment_bytes(folder.path());
            drain(&queue);
            prop_assert_eq!(queue.waiting().bytes, 0);
            prop_assert!(segment_bytes(folder.path()) <= segments);
        }
    }

    fn segment_bytes(folder: &Path) -> u64 {
        let files = fs::read_dir(folder).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
    }
}

#[test]
fn a_look_at_a_queue_whose_disk_does_not_answer_ends() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    append(&queue, 0..1, 100);
    let before = queue.waiting();
    assert_eq!(before.profiles, 1);
    let guard = queue.state.lock();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(queue.waiting(), before);
            assert!(!queue.is_expired());
        });
    });
    drop(guard);
    append(&queue, 1..2, 100);
    assert_eq!(queue.waiting().profiles, 2);
}
