//! Tests of the hub: the cost of an event without a watcher, the bounds of the queues, sampling, the end of a watch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::component::live::{Change, Entry, LabelSet, LiveHandle, LiveHub, Outcome, ProfileFacts, Relabeled, Step};
use alluvium_profile::{Labels, RawProfile};

fn labels(pairs: &[(&str, &str)]) -> LabelSet {
    pairs
        .iter()
        .map(|(name, value)| (Arc::from(*name), Arc::from(*value)))
        .collect()
}

fn target() -> Entry {
    Entry::Target(labels(&[("a", "1")]))
}

fn hub_with(id: &str) -> (LiveHub, LiveHandle) {
    let hub = LiveHub::default();
    hub.enable();
    let handle = hub.handle(&Arc::from(id));
    (hub, handle)
}

#[test]
fn no_entry_is_made_while_nobody_looks() {
    let (hub, handle) = hub_with("a");
    let entry_count = AtomicUsize::new(0);
    let tell = || {
        handle.tell(|| {
            entry_count.fetch_add(1, Ordering::Relaxed);
            target()
        });
    };
    (0..1000).for_each(|_| tell());
    assert_eq!(entry_count.load(Ordering::Relaxed), 0);
    let watch = hub.subscribe("a", 1.0).unwrap();
    tell();
    assert_eq!(entry_count.load(Ordering::Relaxed), 1);
    // All watchers share one entry.
    let second = hub.subscribe("a", 1.0).unwrap();
    tell();
    assert_eq!(entry_count.load(Ordering::Relaxed), 2);
    drop((watch, second));
    tell();
    assert_eq!(entry_count.load(Ordering::Relaxed), 2, "the last watcher has gone");
    assert!(!handle.is_watched());
}

#[test]
fn sampling_is_asked_before_an_entry_is_made() {
    let (hub, handle) = hub_with("a");
    let _watch = hub.subscribe("a", 0.0).unwrap();
    handle.tell(|| panic!("an entry was created although no watcher wanted it"));
    let _half = hub.subscribe("a", 0.5).unwrap();
    let entry_count = AtomicUsize::new(0);
    for _ in 0..1000 {
        handle.tell(|| {
            entry_count.fetch_add(1, Ordering::Relaxed);
            target()
        });
    }
    let entry_count = entry_count.load(Ordering::Relaxed);
    // 500 are expected; the bounds are ten standard deviations of 16.
    assert!((340..660).contains(&entry_count), "{entry_count} of 1000");
}

#[tokio::test]
async fn a_slow_watcher_loses_entries_and_is_told_how_many() {
    let (hub, handle) = hub_with("a");
    let mut watch = hub.subscribe("a", 1.0).unwrap();
    (0..1234).for_each(|_| handle.tell(target));
    let batch = watch.next().await.unwrap();
    assert_eq!((batch.entries.len(), batch.dropped), (1000, 234));
    handle.tell(target);
    let batch = watch.next().await.unwrap();
    assert_eq!((batch.entries.len(), batch.dropped), (1, 0), "there is room again");
}

#[tokio::test]
async fn entries_that_keep_much_alive_are_fewer() {
    let (hub, handle) = hub_with("a");
    let mut watch = hub.subscribe("a", 1.0).unwrap();
    let profile = RawProfile {
        labels: Labels::default(),
        id: "".into(),
        pprof: vec![0; 256 << 10].into(),
    };
    (0..100).for_each(|_| handle.tell(|| Entry::Profile(ProfileFacts::of(&profile))));
    let batch = watch.next().await.unwrap();
    assert_eq!(batch.entries.len(), 31, "8 MiB in total");
    assert_eq!(batch.dropped, 69);
}

#[tokio::test]
async fn a_watch_ends_with_the_component_or_when_it_is_forbidden() {
    let (hub, handle) = hub_with("a");
    let mut watch = hub.subscribe("a", 1.0).unwrap();
    handle.tell(target);
    drop(handle);
    assert_eq!(
        watch.next().await.unwrap().entries.len(),
        1,
        "the entries before the end are still delivered"
    );
    assert!(watch.next().await.is_none());
    assert!(hub.subscribe("a", 1.0).is_none(), "the component has gone");

    let handle = hub.handle(&Arc::from("a"));
    let mut watch = hub.subscribe("a", 1.0).unwrap();
    hub.disable();
    assert!(watch.next().await.is_none());
    handle.tell(|| panic!("an entry was created although nobody watches any more"));
}

#[test]
fn flows_are_counted_by_edge_and_forgotten_with_it() {
    let (hub, handle) = hub_with("scrape");
    let edge = handle.edge("write");
    edge.count(2, 300);
    handle.edge("write").count(1, 50);
    handle.exported_targets(7);
    let (edges, targets) = hub.counts();
    assert_eq!(edges.len(), 1);
    assert_eq!((edges[0].profiles, edges[0].bytes), (3, 350));
    assert_eq!((&*edges[0].from, &*edges[0].to), ("scrape", "write"));
    assert_eq!(targets[0].current, 7);
    drop(edge);
    assert!(hub.counts().0.is_empty());
}

#[test]
fn entries_are_written_as_text_and_as_json() {
    let before = labels(&[("__address__", "a:1"), ("env", "dev")]);
    let after = labels(&[("__address__", "a:1"), ("stage", "d\"v")]);
    let change = Change::between(&before, &after).unwrap();
    let entry = Entry::Relabel {
        of: Relabeled::Target,
        before: before.clone(),
        steps: vec![Step {
            rule: 1,
            action: "replace",
            change,
        }],
        after: Some(after),
    };
    assert_eq!(
        entry.text(),
        r#"{__address__="a:1", env="dev"} => {__address__="a:1", stage="d\"v"}; rule 2 (replace) stage="d\"v" -env"#
    );
    let dropped = Entry::Relabel {
        of: Relabeled::Target,
        before,
        steps: vec![Step {
            rule: 0,
            action: "drop",
            change: Change::Dropped,
        }],
        after: None,
    };
    assert_eq!(
        dropped.text(),
        r#"{__address__="a:1", env="dev"} => dropped; rule 1 (drop) dropped it"#
    );
    let write = Entry::Write {
        endpoint: "http://h".into(),
        profiles: 3,
        bytes: 100,
        duration: Duration::from_millis(12),
        outcome: Outcome::Bad("failed", "connection refused".to_owned()),
    };
    assert_eq!(
        write.text(),
        "3 profiles (100 bytes) to http://h: failed (connection refused) in 0.012s"
    );
}

#[test]
fn samples_are_counted_packed_or_not() {
    // Two samples and a string table entry.
    let plain: &[u8] = &[0x12, 0x02, 0x10, 0x01, 0x12, 0x00, 0x32, 0x01, b'x'];
    for pprof in [plain.to_vec(), alluvium_profile::pprof::gzip(plain)] {
        let profile = RawProfile {
            labels: Labels::from_pairs(BTreeMap::from([("__name__", "cpu")])),
            id: "".into(),
            pprof: pprof.into(),
        };
        let facts = ProfileFacts::of(&profile);
        assert_eq!((facts.samples(), facts.profile_type()), (Some(2), "cpu"));
    }
    let broken = RawProfile {
        labels: Labels::default(),
        id: "".into(),
        pprof: bytes::Bytes::from_static(&[0x12, 0x7f]),
    };
    assert_eq!(ProfileFacts::of(&broken).samples(), None);
}
