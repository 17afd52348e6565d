//! Guarantees for producers: a slow receiver does not delay the other receivers, dropped profiles are counted, and a
//! replacement of receivers neither loses nor duplicates profiles.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::common::passing::fanout::Receivers;
use crate::common::passing::fanout::{Fanout, Patience};
use crate::common::testing::{Collector, Recorder, eventually, receivers};
use alluvium_base::BoxFuture;
use alluvium_lang::attribute::FromValue as _;
use alluvium_profile::sink::Receiver;
use alluvium_profile::{Labels, ProfileSink, RawProfile, RefusedProfile, SinkError, SinkErrorKind};

/// Accepts one batch for each permit.
struct Slow {
    permits: Semaphore,
    collector: Collector,
}

impl ProfileSink for Slow {
    fn append(&self, profiles: Vec<RawProfile>) -> BoxFuture<'_, Vec<RefusedProfile>> {
        Box::pin(async move {
            self.permits.acquire().await.unwrap().forget();
            self.collector.append(profiles).await
        })
    }

    fn component_id(&self) -> &str {
        "test.slow.a"
    }
}

/// A receiver whose component has ended. When it is called, it replaces the receivers of the fan-out.
struct Ended {
    then: Box<dyn Fn() + Send + Sync>,
}

impl ProfileSink for Ended {
    fn append(&self, profiles: Vec<RawProfile>) -> BoxFuture<'_, Vec<RefusedProfile>> {
        (self.then)();
        let error = SinkError::new(SinkErrorKind::Gone, "ended");
        Box::pin(async move { error.for_all(profiles.len()) })
    }
}

fn profile(name: &str, bytes: usize) -> RawProfile {
    RawProfile {
        labels: Labels::from_pairs([(Arc::from("name"), Arc::from(name))]),
        id: "".into(),
        pprof: Bytes::from(vec![0; bytes]),
    }
}

fn forward_to(sinks: impl IntoIterator<Item = Receiver>) -> Receivers {
    Receivers::from_value("forward_to", &receivers(sinks)).unwrap()
}

fn names(collector: &Collector) -> Vec<String> {
    let profiles = collector.profiles();
    let name = |profile: &RawProfile| profile.labels.get("name").unwrap_or_default().to_owned();
    profiles.iter().map(name).collect()
}

struct Bench {
    recorder: Recorder,
    fanout: Arc<Fanout>,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::new("test.source.a", folder.path());
        Self {
            fanout: Arc::new(Fanout::new(&recorder.context)),
            recorder,
            _folder: folder,
        }
    }

    fn impatient(mut self) -> Self {
        let patience = Patience {
            sender: Duration::from_millis(20),
            lane: Duration::from_millis(500),
            ..Patience::default()
        };
        self.fanout = Arc::new(Fanout {
            patience,
            ..Fanout::new(&self.recorder.context)
        });
        self
    }

    fn has(&self, line: &str) -> bool {
        self.recorder
            .context
            .metrics
            .encode()
            .lines()
            .any(|other| other == line)
    }
}

#[tokio::test]
async fn a_slow_receiver_holds_up_no_other_and_what_it_loses_is_counted() {
    let bench = Bench::new().impatient();
    let slow = Arc::new(Slow {
        permits: Semaphore::new(0),
        collector: Collector::default(),
    });
    let quick = Arc::new(Collector::default());
    bench
        .fanout
        .update(&forward_to([slow.clone() as Receiver, quick.clone()]));
    // Three batches of 12 MiB: the third is beyond the lane's 32 MiB.
    for name in ["1", "2", "3"] {
        let errors = bench.fanout.append(vec![profile(name, 12 << 20)]).await;
        assert_eq!(errors.len(), usize::from(name == "3"), "{errors:?}");
        for RefusedProfile { error, .. } in errors {
            assert_eq!(
                error.message,
                "the receiver test.slow.a is too slow: 2 profiles wait for it"
            );
        }
    }
    assert_eq!(names(&quick), ["1", "2", "3"]);
    assert!(bench.has("alluvium_forward_waiting_profiles{receiver=\"test.slow.a\"} 2"));
    let dropped = "alluvium_forward_dropped_profiles_total{receiver=\"test.slow.a\",reason=";
    assert!(bench.has(&format!("{dropped}\"receiver_full\"}} 1")));
    // The receiver recovers, and gets the waiting batches in order.
    slow.permits.add_permits(2);
    eventually("the lane is empty", || {
        bench.has("alluvium_forward_waiting_profiles{receiver=\"test.slow.a\"} 0")
    })
    .await;
    assert_eq!(names(&slow.collector), ["1", "2"]);
    // If the receiver hangs, the batch is dropped after a while.
    assert!(bench.fanout.append(vec![profile("4", 1)]).await.is_empty());
    eventually("the batch is dropped after the lane's timeout", || {
        bench.has(&format!("{dropped}\"receiver_timeout\"}} 1"))
    })
    .await;
    assert_eq!(names(&slow.collector), ["1", "2"]);
}

#[tokio::test]
async fn a_single_receiver_sets_the_pace() {
    let bench = Bench::new().impatient();
    let slow = Arc::new(Slow {
        permits: Semaphore::new(0),
        collector: Collector::default(),
    });
    bench.fanout.update(&forward_to([slow.clone() as Receiver]));
    let fanout = bench.fanout.clone();
    let append = tokio::spawn(async move { fanout.append(vec![profile("1", 1)]).await });
    let waited = tokio::time::timeout(Duration::from_millis(600), async {
        while !append.is_finished() {
            tokio::task::yield_now().await;
        }
    });
    assert!(
        waited.await.is_err(),
        "the append ended although the only receiver had not accepted the batch"
    );
    slow.permits.add_permits(1);
    assert!(append.await.unwrap().is_empty());
    assert_eq!(names(&slow.collector), ["1"]);
}

#[tokio::test]
async fn what_meets_a_receiver_that_has_ended_goes_to_the_one_in_its_place() {
    for stays in [false, true] {
        let bench = Bench::new();
        let (kept, new) = (Arc::new(Collector::default()), Arc::new(Collector::default()));
        let (mut before, mut after) = (Vec::<Receiver>::new(), Vec::<Receiver>::new());
        if stays {
            before.push(kept.clone());
            after.push(kept.clone());
        }
        after.push(new.clone());
        let fanout = bench.fanout.clone();
        let swap = move || fanout.update(&forward_to(after.clone()));
        before.push(Arc::new(Ended { then: Box::new(swap) }));
        bench.fanout.update(&forward_to(before));
        assert!(
            bench
                .fanout
                .append(vec![profile("1", 1), profile("2", 1)])
                .await
                .is_empty()
        );
        assert_eq!(names(&new), ["1", "2"]);
        assert_eq!(names(&kept).len(), if stays { 2 } else { 0 }, "nobody has them twice");
    }
    // Without a replacement, the sender learns that the receiver has ended.
    let bench = Bench::new();
    bench
        .fanout
        .update(&forward_to([Arc::new(Ended { then: Box::new(|| {}) }) as Receiver]));
    assert_eq!(
        bench.fanout.append(vec![profile("1", 1)]).await[0].error.kind,
        SinkErrorKind::Gone
    );
    // Another receiver accepted the profile. `Gone` would make the sender pass it on again.
    bench.fanout.update(&forward_to([
        Arc::new(Ended { then: Box::new(|| {}) }) as Receiver,
        Arc::new(Collector::default()),
    ]));
    assert_eq!(
        bench.fanout.append(vec![profile("1", 1)]).await[0].error.kind,
        SinkErrorKind::Unavailable
    );
}

#[tokio::test]
async fn what_waits_in_lanes_is_in_flight_until_the_receivers_have_it() {
    let bench = Bench::new().impatient();
    let slow = Arc::new(Slow {
        permits: Semaphore::new(0),
        collector: Collector::default(),
    });
    let other = Arc::new(Collector::default());
    bench
        .fanout
        .update(&forward_to([slow.clone() as Receiver, other.clone()]));
    let in_flight = bench.recorder.context.in_flight.clone();
    in_flight.ended().await;
    // The sender sees the batch as accepted, while the batch waits for the slow receiver.
    assert!(bench.fanout.append(vec![profile("a", 1)]).await.is_empty());
    let mut ended = std::pin::pin!(in_flight.ended());
    assert!(futures::poll!(&mut ended).is_pending());
    slow.permits.add_permits(1);
    ended.await;
    assert_eq!(
        (names(&slow.collector), names(&other)),
        (vec!["a".to_owned()], vec!["a".to_owned()])
    );
}
