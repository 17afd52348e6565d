//! The queries of Pyroscope's API, run by the query engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium::query::output::format::{Format, encode_all};
use alluvium::query::{
    Aggregation, Detail, ExemplarKind, FrameConditions, FrameFilter, GoPgo, QueryError, QueryLimits, SeriesQuery,
    TimeRange,
};
use alluvium::store::tables::stats::Bounds;
use alluvium_profile::flamegraph::Tree;
use alluvium_profile::pprof;
use alluvium_profile::selector::parse;

use super::fixture::{CPU, HEAP, NOON, OwnedFrame, TestFrame, TestStore, profile};
use super::{Keep, engine, engine_with, fill_with, minute, stacks_of, two_services};
use crate::harness::{tenant, tenants};

/// Returns the value of each stack. The keys are the function names of the stacks, in the form `root;...;leaf`.
fn folded(tree: &Tree) -> BTreeMap<String, i64> {
    let mut stacks = BTreeMap::new();
    tree.for_each_stack(|frames, value| {
        let names: Vec<&str> = frames.iter().map(|frame| frame.function).collect();
        *stacks.entry(names.join(";")).or_insert(0) += value;
    });
    stacks
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flame_graph_sums_files_and_heads_of_one_tenant() {
    let engine = engine(two_services());
    let tree = engine
        .merge_stacktraces(&tenants("one"), stacks_of(CPU, "{}", minute()))
        .await
        .unwrap();
    assert_eq!(tree.total(), 4 * 140);
    assert_eq!(
        folded(&tree),
        BTreeMap::from([
            ("idle".to_owned(), 12),
            ("main.main;runtime.gcDrain".to_owned(), 120),
            ("main.main;work".to_owned(), 428),
        ])
    );
    let shop = stacks_of(CPU, r#"{service_name="shop"}"#, minute());
    assert_eq!(
        engine.merge_stacktraces(&tenants("one"), shop).await.unwrap().total(),
        520
    );
    let none = stacks_of(CPU, r#"{service_name="secret"}"#, minute());
    assert_eq!(
        engine.merge_stacktraces(&tenants("one"), none).await.unwrap().total(),
        0
    );
    assert_eq!(
        engine
            .merge_stacktraces(&tenants("nobody"), stacks_of(CPU, "{}", minute()))
            .await
            .unwrap()
            .total(),
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_alone_files_alone_and_both_give_one_answer() {
    let both = two_services();
    let head = TestStore::new();
    fill_with(&head, NOON, Keep::Head);
    let files = TestStore::new();
    fill_with(&files, NOON, Keep::Files);
    let mut answers = Vec::new();
    for store in [both, head, files] {
        let engine = engine(store);
        for selector in ["{}", r#"{region=~"e.*"}"#, r#"{service_name!="shop"}"#] {
            let tree = engine
                .merge_stacktraces(&tenants("one"), stacks_of(CPU, selector, minute()))
                .await
                .unwrap();
            answers.push((selector, folded(&tree)));
        }
    }
    assert_eq!(answers[..3], answers[3..6]);
    assert_eq!(answers[..3], answers[6..]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_range_has_its_start_and_not_its_end() {
    let engine = engine(two_services());
    let half = TimeRange::new(NOON + 15_000, NOON + 30_000);
    let tree = engine
        .merge_stacktraces(&tenants("one"), stacks_of(CPU, "{}", half))
        .await
        .unwrap();
    assert_eq!(tree.total(), 140);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_question_decodes_no_frames_again() {
    let engine = engine(two_services());
    engine
        .merge_stacktraces(&tenants("one"), stacks_of(CPU, "{}", minute()))
        .await
        .unwrap();
    let before = engine.stats().files_read;
    let tree = engine
        .merge_stacktraces(&tenants("one"), stacks_of(CPU, "{}", minute()))
        .await
        .unwrap();
    assert_eq!(tree.total(), 560);
    // The query reads only the table `samples`, which has a single file for the day of the tenant.
    assert_eq!(engine.stats().files_read - before, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_outside_of_the_question_are_not_opened() {
    let store = two_services();
    // None of these files exists, so a query that opens one of them fails.
    store
        .list_missing(|file| file.day += 1)
        .list_missing(|file| file.tenant = tenant("two"));
    let wide = engine(store);
    let tree = wide
        .merge_stacktraces(&tenants("one"), stacks_of(CPU, "{}", minute()))
        .await
        .unwrap();
    assert_eq!(tree.total(), 560);
    let store = two_services();
    store.list_missing(|file| {
        file.time = (file.time).map(|time| Bounds::new(time.max + 60_000_000, time.max + 120_000_000));
        file.day += i32::from(file.time.is_none());
    });
    let by_time = engine(store);
    let tree = by_time
        .merge_stacktraces(&tenants("one"), stacks_of(CPU, "{}", minute()))
        .await
        .unwrap();
    assert_eq!(tree.total(), 560);
    let store = two_services();
    store.list_missing(|file| {
        file.profile_type = file
            .profile_type
            .as_ref()
            .map(|_| Bounds::new("x:".into(), "y:".into()));
        file.day += i32::from(file.profile_type.is_none());
    });
    let by_type = engine(store);
    let tree = by_type
        .merge_stacktraces(&tenants("one"), stacks_of(CPU, "{}", minute()))
        .await
        .unwrap();
    assert_eq!(tree.total(), 560);
    assert!(by_type.stats().files_pruned > 0);
    // A file that the query needs is missing.
    let store = two_services();
    store.list_missing(|_| {});
    let broken = engine(store)
        .merge_stacktraces(&tenants("one"), stacks_of(CPU, "{}", minute()))
        .await;
    assert!(matches!(broken, Err(QueryError::Internal(_))), "{broken:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stacks_are_narrowed_by_call_site_profile_and_span() {
    let store = two_services();
    let mut with_span = profile(
        "one",
        &[("service_name", "shop")],
        CPU,
        NOON + 1000,
        &[(&[("spanned", "s.go", 1)], 11)],
    );
    with_span.samples[0].2 = Some("00f067aa0ba902b7".to_owned());
    with_span.id = "special".to_owned();
    store.add(with_span).to_head();
    let engine = engine(store);
    let mut query = stacks_of(CPU, "{}", minute());
    query.call_site = vec!["main.main".to_owned(), "work".to_owned()];
    assert_eq!(
        engine.merge_stacktraces(&tenants("one"), query).await.unwrap().total(),
        428
    );
    let mut query = stacks_of(CPU, "{}", minute());
    query.profile_ids = vec!["special".to_owned()];
    assert_eq!(
        engine.merge_stacktraces(&tenants("one"), query).await.unwrap().total(),
        11
    );
    let mut query = stacks_of(CPU, "{}", minute());
    query.span_ids = vec!["00F067AA0BA902B7".to_owned()];
    assert_eq!(
        engine.merge_stacktraces(&tenants("one"), query).await.unwrap().total(),
        11
    );
    let mut query = stacks_of(CPU, "{}", minute());
    query.span_ids = vec!["00f0".to_owned()];
    let error = engine.merge_stacktraces(&tenants("one"), query).await.unwrap_err();
    assert!(error.to_string().contains("invalid span id length"), "{error}");
}

fn frames(included: [&[&str]; 2], excluded: [&[&str]; 2]) -> FrameFilter {
    let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
    let conditions = |[names, patterns]: [&[&str]; 2]| FrameConditions {
        names: owned(names),
        patterns: owned(patterns),
    };
    FrameFilter::new(conditions(included), conditions(excluded)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn stacks_are_narrowed_by_the_names_of_all_their_functions() {
    let engine = engine(two_services());
    let cases = [
        (frames([&[], &[]], [&[], &[]]), 560),
        (frames([&["main.main"], &[]], [&[], &[]]), 548),
        (frames([&["main.main", "work"], &[]], [&[], &[]]), 428),
        (frames([&["main.main"], &["k$"]], [&[], &[]]), 428),
        (frames([&["work"], &["^work$"]], [&[], &[]]), 428),
        (frames([&["main"], &[]], [&[], &[]]), 0),
        (frames([&[], &["^run"]], [&[], &[]]), 120),
        (frames([&[], &[]], [&["main.main"], &[]]), 12),
        (frames([&[], &[]], [&[], &["Drain|^id"]]), 428),
        (frames([&["main.main"], &[]], [&["work"], &[]]), 120),
    ];
    for (filter, total) in cases {
        let mut query = stacks_of(CPU, "{}", minute());
        query.frames = filter.clone();
        let merged = engine.merge_stacktraces(&tenants("one"), query.clone()).await.unwrap();
        assert_eq!(merged.total(), total, "{filter:?}");
        query.call_site = vec!["main.main".to_owned(), "work".to_owned()];
        let below = engine.merge_stacktraces(&tenants("one"), query).await.unwrap();
        let keeps_work = [428, 548, 560].contains(&total);
        assert_eq!(below.total(), if keeps_work { 428 } else { 0 }, "{filter:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn time_lines_have_the_values_of_the_stacks_that_pass_a_frame_filter() {
    let engine = engine(two_services());
    let mut query = lines_of(15.0, &[]);
    query.frames = frames([&[], &[]], [&["work"], &[]]);
    let lines = engine.select_series(&tenants("one"), query.clone()).await.unwrap();
    let of = |value: f64| [15_000, 30_000, 45_000].map(|after| (NOON + after, value));
    assert_eq!(lines[0].points, of(33.0));
    query.call_site = vec!["main.main".to_owned()];
    let lines = engine.select_series(&tenants("one"), query).await.unwrap();
    assert_eq!(lines[0].points, of(30.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merged_profile_keeps_functions_lines_addresses_and_inlining() {
    let store = TestStore::new();
    let mut own = profile("one", &[("service_name", "shop")], CPU, NOON, &[(&[], 42)]);
    let frame = |function: &str, line, address, inlined| OwnedFrame {
        function: function.to_owned(),
        file: "f.rs".to_owned(),
        line,
        mapping: "/usr/bin/app".to_owned(),
        address,
        inlined,
        start_line: 0,
    };
    own.samples[0].0 = vec![
        frame("inner", 3, 0x1000, true),
        frame("outer", 9, 0x1000, false),
        frame("main", 20, 0x2000, false),
    ];
    let mut bare = frame("", 0, 0x3000, false);
    bare.file.clear();
    own.samples.push((vec![bare], 5, None));
    store.add(own).to_files();
    let engine = engine(store);
    let bytes = engine
        .merge_profile(&tenants("one"), stacks_of(CPU, "{}", minute()), pprof::encode)
        .await
        .unwrap();
    let profile = pprof::decode(&bytes).unwrap();
    assert_eq!(profile.sample_types[0].kind, "cpu");
    assert_eq!((profile.period, profile.period_type.unit), (10_000_000, "nanoseconds"));
    assert_eq!(profile.values.iter().sum::<i64>(), 47);
    assert_eq!(profile.mappings.len(), 1);
    assert_eq!(
        (profile.mappings[0].file, profile.mappings[0].build_id),
        ("/usr/bin/app", "b1d")
    );
    let mut locations: Vec<(u64, Vec<(&str, i64)>)> = profile
        .locations
        .iter()
        .map(|location| {
            let lines = profile.lines_of(location).iter();
            let lines = lines.map(|line| (profile.functions[line.function as usize].name, line.line));
            (location.address, lines.collect())
        })
        .collect();
    locations.sort();
    assert_eq!(
        locations,
        [
            (0x1000, vec![("inner", 3), ("outer", 9)]),
            (0x2000, vec![("main", 20)]),
            (0x3000, vec![]),
        ]
    );
    let tree = engine
        .merge_stacktraces(&tenants("one"), stacks_of(CPU, "{}", minute()))
        .await
        .unwrap();
    assert_eq!(folded(&tree)["app 0x3000"], 5);
    // For Go's compiler, the innermost frame loses its line, but the frame around it keeps the line of its call.
    let mut query = stacks_of(CPU, "{}", minute());
    query.go_pgo = Some(GoPgo {
        keep_locations: 1,
        aggregate_callees: true,
    });
    let bytes = engine
        .merge_profile(&tenants("one"), query, pprof::encode)
        .await
        .unwrap();
    let profile = pprof::decode(&bytes).unwrap();
    let lines = profile
        .locations
        .iter()
        .flat_map(|location| profile.lines_of(location).iter());
    let mut lines: Vec<(&str, i64)> = lines
        .map(|line| (profile.functions[line.function as usize].name, line.line))
        .collect();
    lines.sort_unstable();
    assert_eq!(lines, [("inner", 0), ("outer", 9)]);
}

fn lines_of(step: f64, group_by: &[&str]) -> SeriesQuery {
    SeriesQuery {
        profile_type: CPU.parse().unwrap(),
        matchers: Vec::new(),
        range: TimeRange::new(NOON + 15_000, NOON + 60_000),
        call_site: Vec::new(),
        frames: FrameFilter::default(),
        step,
        group_by: group_by.iter().map(ToString::to_string).collect(),
        aggregation: Aggregation::Sum,
        limit: 0,
        exemplars: ExemplarKind::None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn time_lines_have_points_at_the_right_edge_of_their_step() {
    let engine = engine(two_services());
    let lines = engine
        .select_series(&tenants("one"), lines_of(15.0, &[]))
        .await
        .unwrap();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].labels.is_empty());
    assert_eq!(
        lines[0].points,
        [(NOON + 15_000, 140.0), (NOON + 30_000, 140.0), (NOON + 45_000, 140.0)]
    );
    // Steps of 30 s from 12:00:15: the first one reaches back to 11:59:45 and so contains the profile of 12:00:00 too.
    let wide = engine
        .select_series(&tenants("one"), lines_of(30.0, &[]))
        .await
        .unwrap();
    assert_eq!(wide[0].points, [(NOON + 15_000, 280.0), (NOON + 45_000, 280.0)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn points_of_time_lines_are_charged_to_the_query() {
    let store = TestStore::new();
    let labels = [("service_name", "shop")];
    let frames: &[TestFrame] = &[("work", "work.go", 1)];
    for number in 0..70_000 {
        store.add(profile("one", &labels, CPU, NOON + number, &[(frames, 1)]));
    }
    store.to_files();
    let limits = QueryLimits {
        max_query_memory_bytes: 8 << 20,
        ..QueryLimits::default()
    };
    let engine = engine_with(store, limits);
    let question = |step: f64| SeriesQuery {
        range: TimeRange::new(NOON, NOON + 70_000),
        ..lines_of(step, &[])
    };
    let lines = engine.select_series(&tenants("one"), question(1.0)).await.unwrap();
    let total: f64 = lines[0].points.iter().map(|(_, value)| value).sum();
    assert_eq!((lines.len(), total as i64), (1, 70_000));
    let refused = engine.select_series(&tenants("one"), question(0.001)).await;
    let is_memory = matches!(&refused, Err(QueryError::Limit(reason)) if reason.contains("sql.max_query_memory"));
    assert!(is_memory, "{:?}", refused.map(|lines| lines.len()));
}

#[tokio::test(flavor = "multi_thread")]
async fn time_lines_are_grouped_averaged_and_limited() {
    let engine = engine(two_services());
    let lines = engine
        .select_series(&tenants("one"), lines_of(60.0, &["service_name"]))
        .await
        .unwrap();
    let names: Vec<String> = lines.iter().map(|line| line.labels.to_string()).collect();
    assert_eq!(
        names,
        [r#"{service_name="shop"}"#, r#"{service_name="cart"}"#],
        "the line with the largest sum comes first"
    );
    let mut equal = lines_of(60.0, &["pod"]);
    equal.frames = frames([&["no such function"], &[]], [&[], &[]]);
    let zeros = engine.select_series(&tenants("one"), equal).await.unwrap();
    let names: Vec<String> = zeros.iter().map(|line| line.labels.to_string()).collect();
    assert_eq!(
        names,
        [r#"{pod="cart-1"}"#, r#"{pod="shop-1"}"#],
        "lines of equal sums are in the order of their labels"
    );
    assert_eq!(lines.iter().map(|line| line.points.len()).sum::<usize>(), 4);
    let mut average = lines_of(60.0, &["service_name", "__profile_type__"]);
    average.aggregation = Aggregation::Average;
    average.limit = 1;
    average.matchers = parse(r#"{region=~"eu|us"}"#).unwrap();
    let lines = engine.select_series(&tenants("one"), average).await.unwrap();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].labels.get("service_name"), Some("shop"));
    assert_eq!(lines[0].labels.get("__profile_type__"), Some(CPU));
    assert!(lines[0].points.iter().all(|(_, value)| *value == 130.0));
    let error = engine
        .select_series(&tenants("one"), lines_of(0.0, &[]))
        .await
        .unwrap_err();
    assert!(matches!(error, QueryError::InvalidArgument(_)));
}

/// Returns rows of `shop`: the label sets of a profile with an id, of another profile at the same time, and of an older
/// profile whose rows have no id.
fn rows_of_label_sets() -> Arc<TestStore> {
    let store = TestStore::new();
    let frames: &[TestFrame] = &[("work", "work.go", 1)];
    let add = |after: i64, id: &str, pod: &str, route: &str, value: i64| {
        let labels = [("service_name", "shop"), ("pod", pod), ("route", route)];
        let mut made = profile("one", &labels, CPU, NOON + after, &[(frames, value)]);
        id.clone_into(&mut made.id);
        store.add(made);
    };
    add(30_000, "first", "a", "/", 500);
    add(30_000, "first", "a", "/cart", 300);
    add(30_000, "second", "b", "/", 440);
    store.to_files();
    add(30_000, "first", "a", "/pay", 260);
    add(30_000, "second", "b", "/pay", 500);
    add(45_000, "", "a", "/", 10);
    add(45_000, "", "a", "/pay", 30);
    store.to_head();
    store
}

#[tokio::test(flavor = "multi_thread")]
async fn an_average_counts_a_profile_once_however_many_label_sets_its_samples_have() {
    let engine = engine(rows_of_label_sets());
    let average = |group_by: &[&str], selector: &str| {
        let mut query = lines_of(15.0, group_by);
        query.aggregation = Aggregation::Average;
        query.matchers = parse(selector).unwrap();
        let engine = &engine;
        async move {
            let lines = engine.select_series(&tenants("one"), query).await.unwrap();
            let values = lines.into_iter().flat_map(|line| line.points);
            values.map(|(_, value)| value).collect::<Vec<f64>>()
        }
    };
    assert_eq!(average(&[], "{}").await, [1000.0, 20.0]);
    assert_eq!(average(&[], r#"{pod="a"}"#).await, [1060.0, 20.0]);
    assert_eq!(average(&[], r#"{pod="a", route=~"/|/pay"}"#).await, [760.0, 20.0]);
    assert_eq!(average(&["pod"], "{}").await, [1060.0, 20.0, 940.0]);
    // Each of these lines has one row of a profile.
    assert_eq!(average(&["pod", "route"], r#"{pod="b"}"#).await, [500.0, 440.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_series_and_types_are_those_of_the_tenant_and_range() {
    let engine = engine(two_services());
    let types = engine.profile_types(&tenants("one"), Some(minute())).await.unwrap();
    let types: Vec<String> = types.iter().map(ToString::to_string).collect();
    assert_eq!(types, [HEAP, CPU]);
    assert_eq!(engine.profile_types(&tenants("one"), None).await.unwrap().len(), 2);
    let names = engine.label_names(&tenants("one"), &[], minute()).await.unwrap();
    assert_eq!(
        names,
        [
            "__name__",
            "__period_type__",
            "__period_unit__",
            "__profile_type__",
            "__service_name__",
            "__type__",
            "__unit__",
            "pod",
            "region",
            "service_name"
        ]
    );
    let services = engine
        .label_values(&tenants("one"), "service_name", &[], minute())
        .await
        .unwrap();
    assert_eq!(services, ["cart", "shop"]);
    // No selector, an empty selector and a matcher that accepts everything take different paths through the code to the
    // same result.
    for everything in ["{}", r#"{__type__=~".*"}"#] {
        let everything = [parse(everything).unwrap()];
        assert_eq!(
            engine
                .label_names(&tenants("one"), &everything, minute())
                .await
                .unwrap(),
            names
        );
        for name in ["service_name", "pod", "region", "__type__", "nobody"] {
            let without = engine.label_values(&tenants("one"), name, &[], minute()).await.unwrap();
            let with = engine
                .label_values(&tenants("one"), name, &everything, minute())
                .await
                .unwrap();
            assert_eq!(without, with, "{name}");
        }
    }
    let of_type = [parse(&format!(r#"{{__profile_type__="{HEAP}"}}"#)).unwrap()];
    let services = engine
        .label_values(&tenants("one"), "service_name", &of_type, minute())
        .await
        .unwrap();
    assert_eq!(services, ["shop"]);
    let types = engine
        .label_values(&tenants("one"), "__profile_type__", &[], minute())
        .await
        .unwrap();
    assert_eq!(types, [HEAP, CPU]);
    let pairs = ["service_name".to_owned(), "__type__".to_owned()];
    let series = engine.series(&tenants("one"), &[], &pairs, minute()).await.unwrap();
    let series: Vec<String> = series.iter().map(ToString::to_string).collect();
    assert_eq!(
        series,
        [
            r#"{__type__="cpu", service_name="cart"}"#,
            r#"{__type__="cpu", service_name="shop"}"#,
            r#"{__type__="inuse_space", service_name="shop"}"#
        ]
    );
    let later = TimeRange::new(NOON + 3_600_000, NOON + 7_200_000);
    assert!(
        engine
            .label_names(&tenants("one"), &[], later)
            .await
            .unwrap()
            .is_empty()
    );
    let error = engine
        .label_names(&tenants("one"), &[], TimeRange::new(0, 0))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "missing time range in the query");
    let error = engine
        .label_values(&tenants("one"), "", &[], minute())
        .await
        .unwrap_err();
    assert!(matches!(error, QueryError::InvalidArgument(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn time_lines_below_a_call_site_have_the_values_of_its_stacks_alone() {
    let engine = engine(two_services());
    let mut query = lines_of(15.0, &[]);
    query.call_site = vec!["main.main".to_owned(), "work".to_owned()];
    let lines = engine.select_series(&tenants("one"), query.clone()).await.unwrap();
    let of = |value: f64| [15_000, 30_000, 45_000].map(|after| (NOON + after, value));
    assert_eq!(lines[0].points, of(107.0));
    query.aggregation = Aggregation::Average;
    let lines = engine.select_series(&tenants("one"), query.clone()).await.unwrap();
    assert_eq!(lines[0].points, of(53.5), "the average is over all profiles in a step");
    query.aggregation = Aggregation::Sum;
    query.matchers = parse(r#"{service_name="cart"}"#).unwrap();
    query.call_site = vec!["runtime.gcDrain".to_owned()];
    let lines = engine.select_series(&tenants("one"), query).await.unwrap();
    assert_eq!(lines[0].points, of(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn for_go_only_the_ends_of_stacks_are_kept_and_equal_ones_are_one() {
    let store = TestStore::new();
    let stacks: [(&[TestFrame], i64); 3] = [
        (&[("hot", "h.go", 3), ("caller", "c.go", 7), ("main", "m.go", 1)], 5),
        (&[("hot", "h.go", 4), ("caller", "c.go", 7), ("main", "m.go", 2)], 6),
        (&[("hot", "h.go", 4), ("caller", "c.go", 8)], 7),
    ];
    store
        .add(profile("one", &[("service_name", "shop")], CPU, NOON, &stacks))
        .to_files();
    let engine = engine(store);
    for (keep_locations, aggregate_callees, expected) in [
        (2, true, vec![("hot:0 caller:7", 11), ("hot:0 caller:8", 7)]),
        (
            2,
            false,
            vec![("hot:3 caller:7", 5), ("hot:4 caller:7", 6), ("hot:4 caller:8", 7)],
        ),
        (1, true, vec![("hot:0", 18)]),
        (
            0,
            true,
            vec![
                ("hot:0 caller:7 main:1", 5),
                ("hot:0 caller:7 main:2", 6),
                ("hot:0 caller:8", 7),
            ],
        ),
    ] {
        let mut query = stacks_of(CPU, "{}", minute());
        query.go_pgo = Some(GoPgo {
            keep_locations,
            aggregate_callees,
        });
        let bytes = engine
            .merge_profile(&tenants("one"), query.clone(), pprof::encode)
            .await
            .unwrap();
        let merged = pprof::decode(&bytes).unwrap();
        let mut found: Vec<(String, i64)> = (0..merged.sample_count())
            .map(|sample| {
                let frames = merged.stack(sample).iter().map(|location| {
                    let line = merged.lines_of(&merged.locations[*location as usize])[0];
                    format!("{}:{}", merged.functions[line.function as usize].name, line.line)
                });
                (frames.collect::<Vec<_>>().join(" "), merged.values_of(sample)[0])
            })
            .collect();
        found.sort();
        let found: Vec<(&str, i64)> = found.iter().map(|(stack, value)| (stack.as_str(), *value)).collect();
        assert_eq!(found, expected, "{keep_locations} {aggregate_callees}");
        let graph = engine
            .flamegraph(&tenants("one"), query.clone(), 0, Detail::Names)
            .await
            .unwrap();
        let depth = if keep_locations == 0 { 3 } else { keep_locations };
        assert_eq!((graph.total, graph.levels.len()), (18, depth + 1));
        let difference = engine.diff(&tenants("one"), query.clone(), query, 0).await.unwrap();
        assert_eq!((difference.left_ticks, difference.levels.len()), (18, depth + 1));
    }
}

/// Returns the functions of a merged profile with the lines at which they start.
fn starts(bytes: &[u8]) -> Vec<(String, i64)> {
    let profile = pprof::decode(bytes).unwrap();
    let functions = profile.functions.iter();
    let mut starts: Vec<(String, i64)> = functions
        .map(|function| (function.name.to_owned(), function.start_line))
        .collect();
    starts.sort();
    starts
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lines_at_which_functions_start_are_given_back_whichever_profile_has_them() {
    let store = TestStore::new();
    let of = |time_ms, value, start_lines: [i32; 2]| {
        let stack: (&[TestFrame], i64) = (&[("hot", "h.go", 3), ("main", "m.go", 7)], value);
        let mut own = profile("one", &[("service_name", "shop")], CPU, time_ms, &[stack]);
        for (frame, start_line) in own.samples[0].0.iter_mut().zip(start_lines) {
            frame.start_line = start_line;
        }
        own
    };
    store.add(of(NOON, 5, [0, 0])).to_files();
    let first = engine(store.clone());
    let mut query = stacks_of(CPU, "{}", minute());
    let merged = first.merge_profile(&tenants("one"), query.clone(), pprof::encode).await;
    assert_eq!(
        starts(&merged.unwrap()),
        [("hot".to_owned(), 0), ("main".to_owned(), 0)]
    );

    // Another profile has the same stack with start lines, and the merged profile then contains them.
    store.add(of(NOON + 1000, 6, [2, 5])).to_files();
    let known = [("hot".to_owned(), 2), ("main".to_owned(), 5)];
    query.go_pgo = Some(GoPgo::default());
    let merged = first.merge_profile(&tenants("one"), query.clone(), pprof::encode).await;
    assert_eq!(
        starts(&merged.unwrap()),
        known,
        "the engine still uses a cached stack without start lines"
    );
    query.go_pgo = None;
    for engine in [first, engine(store.clone())] {
        let merged = engine
            .merge_profile(&tenants("one"), query.clone(), pprof::encode)
            .await;
        let merged = merged.unwrap();
        assert_eq!(starts(&merged), known);
        assert_eq!(pprof::decode(&merged).unwrap().values, [11]);
    }
    // A third profile has other start lines. The merged profile contains those of the second or of the third profile.
    store.add(of(NOON + 2000, 7, [3, 6])).to_head();
    let engine = engine(store);
    let merged = engine
        .merge_profile(&tenants("one"), query, pprof::encode)
        .await
        .unwrap();
    let found = starts(&merged);
    assert!(
        found == known || found == [("hot".to_owned(), 3), ("main".to_owned(), 6)],
        "{found:?}"
    );

    let sql = "SELECT DISTINCT frames[1]['start_line'] > 1 AS hot, frames[2]['start_line'] > 4 AS main FROM flat";
    assert_eq!(
        super::rows(&engine, "one", sql).await,
        serde_json::json!([{"hot": true, "main": true}])
    );
    let aggregate = "SELECT pprof(profile_type, stack, frames, value) AS p FROM flat";
    let result = engine.sql(&tenants("one"), aggregate).await.unwrap();
    let bytes = encode_all(result, Format::Pprof).await;
    let found = starts(&bytes.unwrap());
    assert!(found.iter().all(|(_, line)| *line > 1), "{found:?}");
    // The frames of the table `stacks` have no field `start_line`, but the function `pprof` accepts them.
    let joined = "SELECT pprof(profile_type, samples.stack, frames, value) IS NOT NULL AS is_there FROM samples JOIN \
                  stacks ON samples.stack = stacks.stack";
    assert_eq!(
        super::rows(&engine, "one", joined).await,
        serde_json::json!([{"is_there": true}])
    );
    let columns = "SELECT count(*) AS n FROM stacks WHERE start_lines[1] > 1 OR start_lines IS NULL";
    assert_eq!(
        super::rows(&engine, "one", columns).await,
        serde_json::json!([{"n": 1}])
    );
}
