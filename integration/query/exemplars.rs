//! Exemplars for points in time lines and for cells in heatmaps. An exemplar names a profile or a span by its id.

use std::sync::Arc;

use alluvium::query::{
    Aggregation, ExemplarKind, FrameFilter, HeatmapQuery, HeatmapSource, QueryEngine, SeriesQuery, TimeRange,
};
use alluvium_profile::selector::parse;

use super::fixture::{CPU, NOON, TestProfile, TestStore, profile};
use super::{engine, stacks_of};
use crate::harness::tenants;

/// Returns a profile with one sample for each element of `spans`. An element consists of the sample's span, if any, and
/// the sample's value.
fn of_spans(service: &str, at_ms: i64, id: &str, spans: &[(Option<&str>, i64)]) -> TestProfile {
    let samples: Vec<(&[super::fixture::TestFrame], i64)> = spans
        .iter()
        .map(|(_, value)| (&[("work", "w.go", 1)][..], *value))
        .collect();
    let mut made = profile(
        "one",
        &[("service_name", service), ("pod", id)],
        CPU,
        NOON + at_ms,
        &samples,
    );
    id.clone_into(&mut made.id);
    for (sample, (span, _)) in made.samples.iter_mut().zip(spans) {
        sample.2 = span.map(str::to_owned);
    }
    made
}

/// Returns a store with two profiles of `shop` in the first step, a profile of `shop` without an id in the second step,
/// and a profile of `cart`. The first two are in files, the others in a head.
fn shop() -> Arc<TestStore> {
    let store = TestStore::new();
    store.add(of_spans(
        "shop",
        1000,
        "first",
        &[(None, 5), (Some("00000000000000aa"), 2)],
    ));
    store.add(of_spans(
        "shop",
        2000,
        "larger",
        &[(Some("00000000000000bb"), 4), (Some("00000000000000bb"), 5)],
    ));
    store.to_files();
    store.add(of_spans("shop", 16_000, "", &[(Some("00000000000000cc"), 3)]));
    store.add(of_spans("cart", 2000, "other", &[(None, 100)]));
    store.to_head();
    store
}

fn lines(selector: &str, group_by: &[&str], exemplars: ExemplarKind) -> SeriesQuery {
    SeriesQuery {
        profile_type: CPU.parse().unwrap(),
        matchers: parse(selector).unwrap(),
        range: TimeRange::new(NOON, NOON + 60_000),
        call_site: Vec::new(),
        frames: FrameFilter::default(),
        step: 15.0,
        group_by: group_by.iter().map(ToString::to_string).collect(),
        aggregation: Aggregation::Sum,
        limit: 0,
        exemplars,
    }
}

async fn total_of_profile(engine: &QueryEngine, selector: &str, id: &str) -> i64 {
    let mut query = stacks_of(CPU, selector, TimeRange::new(NOON, NOON + 60_000));
    query.profile_ids = vec![id.to_owned()];
    engine.merge_stacktraces(&tenants("one"), query).await.unwrap().total()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_profile_stands_for_a_point_and_its_id_finds_it() {
    let engine = engine(shop());
    let query = lines("{}", &["service_name"], ExemplarKind::Profile);
    let found = engine.select_series(&tenants("one"), query).await.unwrap();
    let [cart, shop] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(shop.points, [(NOON + 15_000, 16.0), (NOON + 30_000, 3.0)]);
    let first = &shop.exemplars[&(NOON + 15_000)];
    assert_eq!(
        (first.time_ms, first.value, first.profile_id.as_ref()),
        (NOON + 2000, 9, "larger")
    );
    assert_eq!(first.labels.get("pod"), Some("larger"));
    assert!(first.span_id.is_empty() && first.trace_id.is_empty());
    assert_eq!(cart.exemplars[&(NOON + 15_000)].profile_id.as_ref(), "other");
    // An exemplar has a profile id even if the sender set none.
    let second = &shop.exemplars[&(NOON + 30_000)];
    for (id, total) in [("larger", 9), (second.profile_id.as_ref(), 3)] {
        assert_eq!(total_of_profile(&engine, "{}", id).await, total, "{id}");
        assert_eq!(
            total_of_profile(&engine, "{service_name=\"shop\"}", id).await,
            total,
            "{id}"
        );
        assert_eq!(
            total_of_profile(&engine, "{service_name=\"cart\"}", id).await,
            0,
            "{id}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_span_stands_for_a_point_where_there_are_spans() {
    let engine = engine(shop());
    let query = lines("{}", &["service_name"], ExemplarKind::Span);
    let found = engine.select_series(&tenants("one"), query).await.unwrap();
    let spans: Vec<Vec<(i64, &str, &str, i64)>> = found
        .iter()
        .map(|line| {
            let all = line.exemplars.iter();
            all.map(|(at, found)| {
                (
                    at - NOON,
                    found.span_id.as_str(),
                    found.profile_id.as_ref(),
                    found.value,
                )
            })
            .map(|(at, span, id, value)| (at, span, if at == 15_000 { id } else { "made" }, value))
            .collect()
        })
        .collect();
    let of_shop = vec![
        (15_000, "00000000000000bb", "larger", 9),
        (30_000, "00000000000000cc", "made", 3),
    ];
    assert_eq!(spans, [vec![], of_shop]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_stands_for_a_point_unless_it_is_asked_for() {
    let engine = engine(shop());
    let found = engine
        .select_series(&tenants("one"), lines("{}", &[], ExemplarKind::None))
        .await
        .unwrap();
    assert_eq!(found[0].points.len(), 2);
    assert!(found[0].exemplars.is_empty());
}

fn heatmap(of: HeatmapSource, exemplars: ExemplarKind) -> HeatmapQuery {
    HeatmapQuery {
        profile_type: CPU.parse().unwrap(),
        matchers: Vec::new(),
        range: TimeRange::new(NOON, NOON + 60_000),
        step: 15.0,
        group_by: vec!["service_name".to_owned()],
        source: of,
        exemplars,
        limit: 0,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heatmap_counts_profiles_by_their_values_on_one_scale() {
    let engine = engine(shop());
    let query = heatmap(HeatmapSource::Profiles, ExemplarKind::Profile);
    let found = engine.select_heatmap(&tenants("one"), query).await.unwrap();
    let [cart, shop] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(shop.labels.get("service_name"), Some("shop"));
    // Values of 3 to 100 in ranges of five: 3 to 7, 8 to 12, ... 98 to 102.
    let cells: Vec<Vec<(i64, i64, u64)>> = [cart, shop]
        .map(|line| {
            let slots = line.slots.iter();
            slots
                .flat_map(|slot| {
                    slot.cells
                        .iter()
                        .map(|cell| (slot.end_ms - NOON, line.starts[cell.row], cell.count))
                })
                .collect()
        })
        .to_vec();
    assert_eq!(cells[0], [(15_000, 98, 1)]);
    assert_eq!(cells[1], [(15_000, 3, 1), (15_000, 8, 1), (30_000, 3, 1)]);
    let ids: Vec<&str> = shop.slots[0]
        .cells
        .iter()
        .map(|cell| cell.exemplar.as_ref().unwrap().profile_id.as_ref())
        .collect();
    assert_eq!(ids, ["first", "larger"]);

    let mut largest = heatmap(HeatmapSource::Profiles, ExemplarKind::None);
    largest.limit = 1;
    let found = engine.select_heatmap(&tenants("one"), largest).await.unwrap();
    assert_eq!((found.len(), found[0].labels.get("service_name")), (1, Some("cart")));
    let cell = &found[0].slots[0].cells[0];
    assert_eq!((found[0].starts[cell.row], &cell.exemplar), (100, &None));
    assert_eq!(found[0].starts.len(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heatmap_of_spans_counts_what_each_took_in_a_profile() {
    let engine = engine(shop());
    let query = heatmap(HeatmapSource::Spans, ExemplarKind::Span);
    let found = engine.select_heatmap(&tenants("one"), query).await.unwrap();
    assert_eq!(found.len(), 1, "the cart has no spans");
    let cells: Vec<(i64, i64, u64, &str)> = found[0]
        .slots
        .iter()
        .flat_map(|slot| {
            slot.cells.iter().map(|cell| {
                let span = cell.exemplar.as_ref().unwrap().span_id.as_str();
                (slot.end_ms - NOON, found[0].starts[cell.row], cell.count, &span[14..])
            })
        })
        .collect();
    assert_eq!(
        cells,
        [(15_000, 2, 1, "aa"), (15_000, 9, 1, "bb"), (30_000, 3, 1, "cc")]
    );
}
