//! Tests of the preparation of profiles: refusals with their messages, and the results of normalisation.

use std::time::Duration;

use super::*;
use crate::store::ingest::go_names::without_go_shapes;
use crate::store::rules::relabel_rules::RelabelRules;
use alluvium_profile::pprof::{Function, Line, Location, SampleLabel, ValueType};
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};

const NOW_MS: i64 = 1_800_000_000_000;

/// Returns a profile with one function per name and one sample per value. The stack of each sample is one function. If
/// there are more samples than functions, the functions are used again from the first one on.
fn profile<'a>(names: &[&'a str], values: &[i64], labels: Vec<Vec<SampleLabel<'a>>>) -> Profile<'a> {
    let mut profile = Profile {
        sample_types: vec![ValueType {
            kind: "cpu",
            unit: "nanoseconds",
        }],
        period_type: ValueType {
            kind: "cpu",
            unit: "nanoseconds",
        },
        time_nanos: NOW_MS * 1_000_000 + 1_500,
        sample_starts: vec![0],
        label_starts: vec![0],
        values: values.to_vec(),
        ..Profile::default()
    };
    for (index, name) in names.iter().enumerate() {
        let index = index as u32;
        profile.functions.push(Function {
            name,
            file: "main.go",
            ..Function::default()
        });
        profile.lines.push(Line {
            function: index,
            line: 7,
        });
        profile.locations.push(Location {
            mapping: Location::NO_MAPPING,
            lines_start: index,
            lines_end: index + 1,
            ..Location::default()
        });
    }
    for index in 0..values.len() {
        profile.sample_locations.push(index as u32 % names.len() as u32);
        profile.sample_starts.push(index as u32 + 1);
        profile.labels.extend(labels.get(index).cloned().unwrap_or_default());
        profile.label_starts.push(profile.labels.len() as u32);
    }
    profile
}

fn raw(labels: &[(&str, &str)], profile: &Profile<'_>) -> RawProfile {
    RawProfile {
        labels: Labels::from_pairs(labels.iter().copied()),
        id: "id".into(),
        pprof: pprof::encode(profile).into(),
    }
}

fn names(prepared: &Prepared) -> Vec<&str> {
    prepared
        .symbols
        .functions
        .iter()
        .map(|function| prepared.symbols.text(function.name))
        .collect()
}

const LABELS: &[(&str, &str)] = &[("__name__", "process_cpu"), ("service_name", "shop")];

#[test]
fn a_profile_becomes_rows_of_one_series() {
    let raw = raw(LABELS, &profile(&["a", "b"], &[3, 0, -4], vec![]));
    let prepared = prepare(&raw, NOW_MS, &Limits::default()).unwrap();
    assert_eq!(
        prepared.types[0].as_str(),
        "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
    );
    assert_eq!(prepared.time_us, NOW_MS * 1000 + 1);
    assert_eq!((prepared.zero_values, prepared.negative_values), (1, 1));
    assert_eq!(prepared.series.len(), 1);
    assert_eq!(prepared.series[0].labels.to_string(), r#"{service_name="shop"}"#);
    assert_eq!(names(&prepared), ["a", "b"]);
    assert_eq!(prepared.stack_ids[0], prepared.stack_ids[2]);
}

#[test]
fn missing_names_services_and_times_have_their_defaults() {
    let mut profile = profile(&["a"], &[1], vec![]);
    profile.time_nanos = 0;
    let no_name = raw(&[("service_name", "x")], &profile);
    assert_eq!(
        prepare(&no_name, NOW_MS, &Limits::default()).unwrap_err().reason,
        "missing_labels"
    );
    let bare = raw(&[("__name__", "godeltaprof_memory")], &profile);
    let prepared = prepare(&bare, NOW_MS, &Limits::default()).unwrap();
    assert!(prepared.types[0].as_str().starts_with("memory:"));
    assert_eq!(prepared.series[0].labels.get("service_name"), Some("unknown_service"));
    assert_eq!(prepared.time_us, NOW_MS * 1000);
}

#[test]
fn text_labels_of_samples_make_series_and_ids_stay_on_samples() {
    let labels = vec![
        vec![
            SampleLabel::Text("route", "/a"),
            SampleLabel::Text("profile_id", "00ff"),
            SampleLabel::Number("bytes", 8, ""),
        ],
        vec![],
        vec![
            SampleLabel::Text("service_name", "other"),
            SampleLabel::Text("trace_id", "abcd"),
        ],
        vec![SampleLabel::Text("route", "/a")],
    ];
    let raw = raw(LABELS, &profile(&["f"], &[1, 2, 3, 4], labels));
    let prepared = prepare(&raw, NOW_MS, &Limits::default()).unwrap();
    let series: Vec<_> = prepared
        .series
        .iter()
        .map(|series| match &series.samples {
            Samples::Some(samples) => (series.labels.to_string(), samples.clone()),
            Samples::All(_) => panic!("the samples were not split by series"),
        })
        .collect();
    assert_eq!(
        series,
        [
            (r#"{route="/a", service_name="shop"}"#.to_owned(), vec![0, 3]),
            (r#"{service_name="shop"}"#.to_owned(), vec![1, 2]),
        ]
    );
    let links: Vec<(u32, &str, &str)> = prepared
        .links
        .iter()
        .map(|link| {
            let text = |span| prepared.symbols.text(span);
            (link.sample, text(link.span_id), text(link.trace_id))
        })
        .collect();
    assert_eq!(links, [(0, "00ff", ""), (2, "", "abcd")]);
}

#[test]
fn numbers_of_samples_become_labels_if_the_rules_name_them() {
    let number = |name, number| SampleLabel::Number(name, number, "");
    let labels = vec![
        vec![number("thread_id", 7), number("bytes", 512)],
        vec![number("thread_id", -1), SampleLabel::Text("route", "/")],
        vec![number("thread_id", 0)],
        vec![number("thread_id", 7), number("service_name", 7)],
    ];
    let raw = raw(LABELS, &profile(&["f"], &[1, 2, 4, 8], labels));
    let limits = ruled(serde_json::json!({"numeric_labels": ["thread_id", "service_name"]}));
    let cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
    let expected = [
        (r#"{route="/", service_name="shop", thread_id="-1"}"#, 2),
        (r#"{service_name="shop", thread_id="7"}"#, 9),
        (r#"{service_name="shop"}"#, 4),
    ];
    assert_eq!(
        rows(&prepare(&raw, NOW_MS, &limits).unwrap()),
        expected.map(|(labels, sum)| format!("{labels} {cpu}: {sum}"))
    );
    assert_eq!(prepare(&raw, NOW_MS, &Limits::default()).unwrap().series.len(), 2);
}

#[test]
fn a_profile_of_several_series_has_an_id_even_if_its_sender_set_none() {
    let routes = |second| {
        vec![
            vec![SampleLabel::Text("route", "/a")],
            vec![SampleLabel::Text("route", second)],
        ]
    };
    let prepared_id = |id: &str, values: &[i64], second| {
        let mut raw = raw(LABELS, &profile(&["f"], values, routes(second)));
        raw.id = id.into();
        let prepared = prepare(&raw, NOW_MS, &Limits::default()).unwrap();
        let again = prepare(&raw, NOW_MS, &Limits::default()).unwrap();
        assert_eq!(prepared.profile_id, again.profile_id);
        prepared.profile_id.to_string()
    };
    assert_eq!(prepared_id("own", &[1, 2], "/b"), "own");
    assert_eq!(prepared_id("", &[1, 2], "/a"), "");
    let made = prepared_id("", &[1, 2], "/b");
    assert!(Uuid::parse_str(&made).is_ok(), "{made}");
    assert_ne!(made, prepared_id("", &[1, 3], "/b"));
}

#[test]
fn go_shapes_leave_the_names_and_long_names_keep_their_end() {
    for (name, expected) in [
        ("pkg.Map[go.shape.int_0,go.shape.string_1]", "pkg.Map"),
        ("pkg.(*T[go.shape.struct { a []int }]).Get", "pkg.(*T).Get"),
        ("a[go.shape.int].b[go.shape.int]", "a.b"),
        ("cut[go.shape.str", "cut"),
    ] {
        assert_eq!(without_go_shapes(name).as_deref(), Some(expected));
    }
    assert_eq!(without_go_shapes("pkg.Map[...]"), None);
    let limits = Limits {
        max_profile_symbol_value_length: 4,
        ..Limits::default()
    };
    let raw = raw(
        LABELS,
        &profile(&["abc\u{e4}def", "x[go.shape.int]yz"], &[1, 1], vec![]),
    );
    assert_eq!(names(&prepare(&raw, NOW_MS, &limits).unwrap()), ["def", "xyz"]);
}

#[test]
fn deep_stacks_keep_their_root() {
    let mut deep = profile(&["leaf", "mid", "root"], &[1], vec![]);
    deep.sample_locations = vec![0, 1, 2];
    deep.sample_starts = vec![0, 3];
    let limits = Limits {
        max_profile_stacktrace_depth: 2,
        ..Limits::default()
    };
    let prepared = prepare(&raw(LABELS, &deep), NOW_MS, &limits).unwrap();
    assert_eq!(prepared.symbols.stack(0), [1, 2]);
}

#[test]
fn what_is_too_large_or_malformed_is_told_apart() {
    let valid = raw(LABELS, &profile(&["a"], &[1, 2, 3], vec![]));
    let small = Limits {
        max_profile_size_bytes: 10,
        ..Limits::default()
    };
    let rejection = prepare(&valid, NOW_MS, &small).unwrap_err();
    assert_eq!(
        (rejection.reason, rejection.error.kind),
        ("profile_size_limit", SinkErrorKind::TooLarge)
    );
    let few_samples = Limits {
        max_profile_stacktrace_samples: 2,
        ..Limits::default()
    };
    assert_eq!(
        prepare(&valid, NOW_MS, &few_samples).unwrap_err().reason,
        "samples_limit"
    );
    let garbage = RawProfile {
        pprof: Bytes::from_static(b"\xff\xff\xff"),
        ..valid.clone()
    };
    let rejection = prepare(&garbage, NOW_MS, &Limits::default()).unwrap_err();
    assert_eq!(
        (rejection.reason, rejection.error.kind),
        ("malformed_profile", SinkErrorKind::Invalid)
    );
    let late = prepare(&valid, NOW_MS + 3_700_000, &Limits::default()).unwrap_err();
    assert_eq!(late.reason, "not_in_ingestion_window");
    assert!(prepare(&valid, NOW_MS + 3_700_000, &Limits::unlimited()).is_ok());
}

#[test]
fn the_largest_profiles_of_honest_senders_are_within_the_bounds() {
    // The profile has as many samples as allowed, each with its own stack, as deep as the stacks of frameworks.
    let shape = Shape {
        functions: 20_000,
        samples: 16_000,
        depth: 250,
        labelled_every: 3,
    };
    let names = Names::new(shape.functions);
    let large = cpu_profile(&names, shape, 1);
    let sender = RawProfile {
        pprof: pprof::encode(&large).into(),
        ..raw(LABELS, &large)
    };
    let limits = Limits {
        max_profile_size_bytes: 0,
        reject_older_than: Duration::ZERO,
        ..Limits::default()
    };
    let prepared = prepare(&sender, NOW_MS, &limits).unwrap();
    assert_eq!(prepared.stack_ids.len(), 16_000);
    assert!(prepared.frames > 1_000_000, "{}", prepared.frames);
}

#[test]
fn what_announces_fewer_bytes_than_it_has_is_opened_only_with_room_for_all() {
    let plain = pprof::encode(&profile(&["a"], &[1, 2, 3], vec![]));
    let raw = RawProfile {
        // The last gzip member announces that there are no bytes.
        pprof: [pprof::gzip(&plain), pprof::gzip(b"")].concat().into(),
        ..raw(LABELS, &profile(&["a"], &[1], vec![]))
    };
    let limits = Limits::default();
    let announced = announced_size(&raw, &limits);
    assert_eq!(announced, 0);
    let refusal = prepare_within(&raw, NOW_MS, &limits, announced).unwrap_err();
    assert!(matches!(refusal, Refusal::LargerThanAnnounced));
    assert_eq!(prepare(&raw, NOW_MS, &limits).unwrap().stack_ids.len(), 3);
}

#[test]
fn a_profile_that_comes_decoded_becomes_the_rows_of_its_bytes() {
    let text = Bytes::from_static(b"main;pkg.Map[go.shape.int];parse");
    let columns = || {
        Columns::read(text.clone(), |text| {
            let names: Vec<&str> = std::str::from_utf8(text)?.split(';').collect();
            Ok::<_, std::str::Utf8Error>(profile(&names, &[3, 0, -4], vec![]))
        })
        .unwrap()
    };
    let raw = raw(LABELS, columns().get());
    let limits = Limits::default();
    let packed = prepare(&raw, NOW_MS, &limits).unwrap();
    let decoded = prepare_decoded(&raw, columns(), NOW_MS, &limits).unwrap();
    assert_eq!(names(&decoded), ["main", "pkg.Map", "parse"]);
    assert_eq!(names(&decoded), names(&packed));
    let rows = |prepared: &Prepared| {
        (
            prepared.types.clone(),
            prepared.values.clone(),
            prepared.stack_ids.clone(),
            prepared.series[0].labels.clone(),
            (prepared.time_us, prepared.size, prepared.frames, prepared.zero_values),
        )
    };
    assert_eq!(rows(&decoded), rows(&packed));
    let small = Limits {
        max_profile_size_bytes: raw.pprof.len() - 1,
        ..limits
    };
    let Refusal::Rejected(rejection) = prepare_decoded(&raw, columns(), NOW_MS, &small).unwrap_err() else {
        panic!("a profile above the size limit was not rejected")
    };
    assert_eq!(rejection.reason, "profile_size_limit");
}

/// Returns limits with these relabel rules, which have the same JSON form as in a record of the log.
fn ruled(rules: serde_json::Value) -> Limits {
    Limits {
        rules: RelabelRules::new(serde_json::from_value(rules).unwrap()).unwrap(),
        ..Limits::default()
    }
}

/// Returns the rows of a profile as texts `series type: sum of the values`.
fn rows(prepared: &Prepared) -> Vec<String> {
    let width = prepared.types.len();
    let mut rows = Vec::new();
    for series in &prepared.series {
        for (column, profile_type) in series.columns(&prepared.types) {
            let mut sum = 0;
            series
                .samples
                .for_each(|sample| sum += prepared.values[sample as usize * width + column]);
            rows.push(format!("{} {}: {sum}", series.labels, profile_type.as_str()));
        }
    }
    rows.sort();
    rows
}

const SHOP: &str = r#"{service_name="shop"}"#;
const SHOP_CPU: &str = r#"{service_name="shop"} process_cpu:cpu:nanoseconds:cpu:nanoseconds"#;

#[test]
fn rules_see_the_labels_of_samples_and_what_becomes_one_series_is_one() {
    let route = |value| vec![SampleLabel::Text("route", value)];
    let labels = vec![route("/a"), route("/b"), vec![], route("/secret"), route("/b")];
    let raw = raw(LABELS, &profile(&["f", "g", "h", "i"], &[1, 2, 4, 8, 16], labels));
    let limits = ruled(serde_json::json!({"series": [
        {"action": "drop", "source_labels": ["route"], "regex": "/secret"},
        {"source_labels": ["service_name", "route"], "regex": "shop;/b", "target_label": "busy", "replacement": "yes"},
        {"action": "labeldrop", "regex": "route"},
    ]}));
    let prepared = prepare(&raw, NOW_MS, &limits).unwrap();
    let busy = r#"{busy="yes", service_name="shop"} process_cpu:cpu:nanoseconds:cpu:nanoseconds: 18"#;
    assert_eq!(rows(&prepared), [busy, &format!("{SHOP_CPU}: 5")]);
    assert_eq!(prepared.relabelled_values, 1);
    // A stack that no series contains has the value 0 and is not stored.
    assert_eq!(prepared.values, [1, 2, 4, 0, 16]);
    assert_eq!(rows(&prepare(&raw, NOW_MS, &Limits::default()).unwrap()).len(), 4);
}

#[test]
fn rules_drop_whole_profiles_and_types() {
    let mut two = profile(&["f"], &[3], vec![]);
    two.sample_types.push(ValueType {
        kind: "samples",
        unit: "count",
    });
    two.values = vec![30, 3];
    let raw = raw(LABELS, &two);
    let apply = |rule: serde_json::Value| prepare_within(&raw, NOW_MS, &ruled(rule), usize::MAX);
    let sample_types = |rule| apply(serde_json::json!({ "sample_types": [rule] }));
    let drop =
        serde_json::json!({"action": "drop", "source_labels": ["__type__", "service_name"], "regex": "samples;shop"});
    let prepared = sample_types(drop).unwrap();
    assert_eq!(rows(&prepared), [format!("{SHOP_CPU}: 30")]);
    assert_eq!(
        (prepared.values.as_slice(), prepared.relabelled_values),
        ([30, 0].as_slice(), 1)
    );
    let keep = serde_json::json!({"action": "keep", "source_labels": ["__unit__"], "regex": "count"});
    assert_eq!(
        rows(&sample_types(keep).unwrap()),
        [format!("{SHOP} process_cpu:samples:count:cpu:nanoseconds: 3")]
    );
    for all in [
        serde_json::json!({"sample_types": [{"action": "drop", "source_labels": ["__type__"]}]}),
        serde_json::json!({"series": [{"action": "keep", "source_labels": ["service_name"], "regex": "other"}]}),
    ] {
        assert!(matches!(apply(all), Err(Refusal::Dropped)));
    }
    // A rule for series may read the type, too.
    let by_type = apply(serde_json::json!({"series": [
        {"source_labels": ["__type__"], "regex": "samples", "target_label": "counted", "replacement": "1"},
        {"action": "drop", "source_labels": ["__type__", "__unit__"], "separator": "/", "regex": "cpu/.*"},
    ]}));
    assert_eq!(
        rows(&by_type.unwrap()),
        [r#"{counted="1", service_name="shop"} process_cpu:samples:count:cpu:nanoseconds: 3"#]
    );
}

#[test]
fn the_default_rules_come_first_or_last_or_not_at_all() {
    let wall = |name: &str| {
        let labels = [("__name__", name), ("service_name", "shop")];
        raw(&labels, &profile(&["f"], &[1], vec![]))
    };
    let default_names = |name: &str, defaults: &str| {
        let limits = ruled(serde_json::json!({
            "defaults": defaults,
            "series": [
                {"source_labels": ["__name__"], "target_label": "seen"},
                {"source_labels": ["__name_replaced__"], "target_label": "replaced"},
                {"source_labels": ["__name__"], "regex": "old", "target_label": "__name__", "replacement": "wall"},
            ],
        }));
        let prepared = prepare(&wall(name), NOW_MS, &limits).unwrap();
        let labels = &prepared.series[0].labels;
        let (_, profile_type) = prepared.series[0].columns(&prepared.types).next().unwrap();
        let name = profile_type.as_str().split(':').next().unwrap().to_owned();
        let seen_name = labels.get("seen").unwrap().to_owned();
        (name, seen_name, labels.get("replaced").unwrap_or_default().to_owned())
    };
    let texts =
        |(name, seen_name, replaced): (&str, &str, &str)| (name.to_owned(), seen_name.to_owned(), replaced.to_owned());
    for (name, defaults, expected) in [
        ("wall", "first", ("process_cpu", "process_cpu", "wall")),
        ("wall", "last", ("process_cpu", "wall", "")),
        ("wall", "disabled", ("wall", "wall", "")),
        ("godeltaprof_block", "first", ("block", "block", "godeltaprof_block")),
        ("godeltaprof_block", "last", ("block", "godeltaprof_block", "")),
        (
            "godeltaprof_block",
            "disabled",
            ("godeltaprof_block", "godeltaprof_block", ""),
        ),
        ("old", "first", ("wall", "old", "")),
        ("old", "last", ("process_cpu", "old", "")),
    ] {
        assert_eq!(default_names(name, defaults), texts(expected), "{name} {defaults}");
    }
}

#[test]
fn labels_are_checked_as_the_rules_leave_them() {
    let extra_labels = (0..31).map(|number| (format!("extra_{number}"), "x".to_owned()));
    let named =
        [("__name__", "cpu"), ("service_name", "shop")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let raw = RawProfile {
        labels: Labels::from_pairs(named.into_iter().chain(extra_labels)),
        ..raw(LABELS, &profile(&["f"], &[1], vec![]))
    };
    let reason = |limits: &Limits| prepare(&raw, NOW_MS, limits).unwrap_err().reason;
    assert_eq!(reason(&Limits::default()), "max_label_names_per_series");
    let drop = |regex: &str| ruled(serde_json::json!({"series": [{"action": "labeldrop", "regex": regex}]}));
    let prepared = prepare(&raw, NOW_MS, &drop("extra_.*")).unwrap();
    assert_eq!(prepared.series[0].labels.to_string(), SHOP);
    assert_eq!(reason(&drop("extra_1")), "max_label_names_per_series");
    assert_eq!(reason(&drop("extra_.*|__name__")), "missing_labels");
    let colon = serde_json::json!({"series": [
        {"action": "labeldrop", "regex": "extra_.*"},
        {"target_label": "__name__", "replacement": "a:b"},
    ]});
    assert_eq!(reason(&ruled(colon)), "malformed_profile");
    // The rules see the stored service name. If they remove it, the default applies.
    let prepared = prepare(&raw, NOW_MS, &drop("extra_.*|service_name")).unwrap();
    assert_eq!(prepared.series[0].labels.get("service_name"), Some("unknown_service"));
}

#[test]
fn a_session_is_limited_before_the_rules_for_series_and_after_those_for_sample_types() {
    let sent = "0400000000000000";
    let raw = |own: &[(&str, &str)]| {
        let labels: Vec<_> = LABELS.iter().chain(own).copied().collect();
        raw(&labels, &profile(&["f"], &[1], vec![]))
    };
    let with_session = raw(&[("__session_id__", sent)]);
    let stored = |limits: &Limits| {
        let prepared = prepare(&with_session, NOW_MS, limits).unwrap();
        prepared.series[0].labels.to_string()
    };
    let copy = serde_json::json!([{"source_labels": ["__session_id__"], "target_label": "session"}]);
    assert_eq!(stored(&Limits::default()), SHOP);
    assert_eq!(stored(&ruled(serde_json::json!({ "series": copy }))), SHOP);
    let limited = r#"__session_id__="0100000000000000", service_name="shop""#;
    assert_eq!(
        stored(&ruled(serde_json::json!({"max_sessions": 3}))),
        format!("{{{limited}}}")
    );
    assert_eq!(
        stored(&ruled(serde_json::json!({"max_sessions": 3, "series": copy}))),
        format!(r#"{{{limited}, session="0100000000000000"}}"#)
    );
    let dropped = serde_json::json!([{"action": "labeldrop", "regex": "__session_id__"}]);
    assert_eq!(
        stored(&ruled(serde_json::json!({"max_sessions": 3, "series": dropped}))),
        SHOP
    );
    let by_type = |regex: String| {
        let rule = serde_json::json!({"action": "drop", "source_labels": ["__session_id__"], "regex": regex});
        let limits = ruled(serde_json::json!({"max_sessions": 3, "sample_types": [rule]}));
        prepare_within(&with_session, NOW_MS, &limits, usize::MAX)
    };
    assert!(matches!(by_type(sent.to_owned()), Err(Refusal::Dropped)));
    assert!(by_type("0100000000000000".to_owned()).is_ok());

    // A session id that is removed does not count as a label.
    let few = |rules: serde_json::Value| Limits {
        max_label_names_per_series: 2,
        ..ruled(rules)
    };
    for (rules, is_accepted) in [
        (serde_json::json!({}), true),
        (serde_json::json!({"sanitize": true}), true),
        (serde_json::json!({"max_sessions": 3}), false),
    ] {
        let outcome = prepare(&with_session, NOW_MS, &few(rules.clone()));
        assert_eq!(outcome.is_ok(), is_accepted, "{rules}");
    }
    let invalid = prepare(
        &raw(&[("__session_id__", "7")]),
        NOW_MS,
        &few(serde_json::json!({"max_sessions": 3})),
    );
    assert_eq!(invalid.unwrap().series[0].labels.to_string(), SHOP);
}

#[test]
fn names_are_sanitised_after_the_rules_and_the_limits() {
    let labelled = |own: &[(&str, &str)]| {
        let labels = vec![vec![SampleLabel::Text("http.route", "/a")]];
        let own: Vec<_> = LABELS.iter().chain(own).copied().collect();
        raw(&own, &profile(&["f"], &[1], labels))
    };
    let pod = labelled(&[("k8s.pod", "one")]);
    // The rules see the names as they were sent, of the profile's labels and of the labels of samples.
    let limits = ruled(serde_json::json!({"sanitize": true, "series": [
        {"source_labels": ["k8s.pod"], "target_label": "pod"},
        {"source_labels": ["http.route"], "target_label": "route"},
        {"action": "drop", "source_labels": ["k8s_pod"], "regex": "one"},
        {"action": "drop", "source_labels": ["http_route"], "regex": "/a"},
    ]}));
    assert_eq!(
        prepare(&pod, NOW_MS, &limits).unwrap().series[0].labels.to_string(),
        r#"{http_route="/a", k8s_pod="one", pod="one", route="/a", service_name="shop"}"#
    );
    // A rule may remove a name that cannot be sanitised.
    let invalid = labelled(&[("k8s-pod", "one")]);
    let reason = |raw: &RawProfile, limits: &Limits| prepare(raw, NOW_MS, limits).unwrap_err().reason;
    let without = |regex: &str| {
        ruled(serde_json::json!({
            "sanitize": true, "series": [{"action": "labeldrop", "regex": regex}],
        }))
    };
    assert_eq!(reason(&invalid, &without("none")), "invalid_labels");
    assert!(prepare(&invalid, NOW_MS, &without("k8s-.*")).is_ok());
    // Labels that become one label count separately, and may become one only if their values are equal.
    let equal = labelled(&[("a.b", "x"), ("a_b", "x")]);
    let of_names = |count: usize| Limits {
        max_label_names_per_series: count,
        ..ruled(serde_json::json!({"sanitize": true}))
    };
    assert_eq!(
        prepare(&equal, NOW_MS, &of_names(5)).unwrap().series[0]
            .labels
            .to_string(),
        r#"{a_b="x", http_route="/a", service_name="shop"}"#
    );
    assert_eq!(reason(&equal, &of_names(4)), "max_label_names_per_series");
    let different = labelled(&[("a.b", "x"), ("a_b", "y")]);
    assert_eq!(reason(&different, &of_names(5)), "duplicate_label_names");
    assert!(prepare(&different, NOW_MS, &without("a_b")).is_ok());
}

#[test]
fn rules_for_sample_types_see_only_what_was_sent() {
    let labels = vec![vec![SampleLabel::Text("route", "/a")]];
    let own: Vec<_> = LABELS.iter().chain(&[("k8s.pod", "one")]).copied().collect();
    let raw = raw(&own, &profile(&["f"], &[1], labels));
    let series = serde_json::json!([{"target_label": "team", "replacement": "checkout"}]);
    let is_dropped = |label: &str, regex: &str| {
        let rule = serde_json::json!({"action": "drop", "source_labels": [label], "regex": regex});
        let rules = serde_json::json!({"sanitize": true, "series": series, "sample_types": [rule]});
        matches!(
            prepare_within(&raw, NOW_MS, &ruled(rules), usize::MAX),
            Err(Refusal::Dropped)
        )
    };
    for (label, regex, expected) in [
        ("service_name", "shop", true),
        ("k8s.pod", "one", true),
        ("__name__", "process_cpu", true),
        ("k8s_pod", "one", false),
        ("team", "checkout", false),
        ("route", "/a", false),
        ("__name_replaced__", ".+", false),
    ] {
        assert_eq!(is_dropped(label, regex), expected, "{label}");
    }
    // Changes of labels by these rules are ignored.
    let changes = serde_json::json!({"sample_types": [
        {"target_label": "service_name", "replacement": "cart"},
        {"action": "labeldrop", "regex": "k8s.pod"},
    ]});
    assert_eq!(
        prepare(&raw, NOW_MS, &ruled(changes)).unwrap().series[0]
            .labels
            .to_string(),
        r#"{k8s.pod="one", route="/a", service_name="shop"}"#
    );
}

#[test]
fn limits_of_the_profile_come_before_all_rules_and_limits_of_labels_after_them() {
    let long = "x".repeat(3000);
    let labels = vec![vec![SampleLabel::Text("note", &long)], vec![]];
    let raw = raw(LABELS, &profile(&["f", "g"], &[1, 2], labels));
    let drop_all = serde_json::json!({"action": "drop", "source_labels": ["service_name"], "regex": "shop"});
    for rules in [
        serde_json::json!({"series": [drop_all]}),
        serde_json::json!({"sample_types": [drop_all]}),
    ] {
        let limits = ruled(rules);
        let outcome = |limits: &Limits, received_ms: i64| match prepare_within(&raw, received_ms, limits, usize::MAX) {
            Ok(_) => "accepted",
            Err(Refusal::Rejected(rejection)) => rejection.reason,
            Err(Refusal::LargerThanAnnounced) => "larger",
            Err(Refusal::Dropped) => "dropped",
        };
        // The label that is too long is dropped together with its series.
        assert_eq!(outcome(&limits, NOW_MS), "dropped");
        let samples = Limits {
            max_profile_stacktrace_samples: 1,
            ..limits.clone()
        };
        assert_eq!(outcome(&samples, NOW_MS), "samples_limit");
        let size = Limits {
            max_profile_size_bytes: 100,
            ..limits.clone()
        };
        assert_eq!(outcome(&size, NOW_MS), "profile_size_limit");
        assert_eq!(outcome(&limits, NOW_MS + 3_700_000), "not_in_ingestion_window");
    }
    let rules = |series: serde_json::Value| ruled(serde_json::json!({ "series": series }));
    let reason = |limits: &Limits| prepare(&raw, NOW_MS, limits).unwrap_err().reason;
    assert_eq!(reason(&Limits::default()), "label_value_too_long");
    assert_eq!(reason(&rules(serde_json::json!([]))), "label_value_too_long");
    let shortens = serde_json::json!([
        {"source_labels": ["note"], "regex": "(x{5}).*", "target_label": "note", "replacement": "$1"},
    ]);
    let prepared = prepare(&raw, NOW_MS, &rules(shortens)).unwrap();
    let series: Vec<String> = prepared.series.iter().map(|series| series.labels.to_string()).collect();
    assert_eq!(series, [r#"{note="xxxxx", service_name="shop"}"#, SHOP]);
    let lengthens = serde_json::json!([
        {"action": "labeldrop", "regex": "note"},
        {"target_label": "made", "replacement": long},
    ]);
    assert_eq!(reason(&rules(lengthens)), "label_value_too_long");
}

#[test]
fn names_of_labels_are_sanitised_for_whom_wants_it() {
    let sanitizes = ruled(serde_json::json!({"sanitize": true}));
    let labelled = |own: &[(&str, &str)], sample_label: &'static str| {
        let labels = vec![vec![SampleLabel::Text(sample_label, "x")]];
        let own: Vec<_> = LABELS.iter().chain(own).copied().collect();
        raw(&own, &profile(&["f"], &[1], labels))
    };
    let dotted = labelled(&[("k8s.pod", "a")], "http.route");
    let prepared = prepare(&dotted, NOW_MS, &sanitizes).unwrap();
    assert_eq!(
        prepared.series[0].labels.to_string(),
        r#"{http_route="x", k8s_pod="a", service_name="shop"}"#
    );
    // The label `service.name` becomes the label `service_name`.
    let labels = [("__name__", "process_cpu"), ("service.name", "cart")];
    let dotted_service = raw(&labels, &profile(&["f"], &[1], vec![]));
    let prepared = prepare(&dotted_service, NOW_MS, &sanitizes).unwrap();
    assert_eq!(prepared.series[0].labels.to_string(), r#"{service_name="cart"}"#);
    let unsanitised = prepare(&dotted, NOW_MS, &Limits::default()).unwrap();
    assert_eq!(unsanitised.series[0].labels.get("k8s.pod"), Some("a"));
    for (own, sample_label) in [("a.b", "a_b"), ("a_b", "a.b")] {
        let prepared = prepare(&labelled(&[(own, "own")], sample_label), NOW_MS, &sanitizes).unwrap();
        let labels = r#"{a_b="own", service_name="shop"}"#;
        assert_eq!(prepared.series[0].labels.to_string(), labels, "{own} {sample_label}");
    }
    for (own, sample_label, reason) in [
        (&[("a-b", "x")][..], "c", "invalid_labels"),
        (&[("1a", "x")], "c", "invalid_labels"),
        (&[("a", "x")], "\u{e9}", "invalid_labels"),
        (&[("a.b", "x"), ("a_b", "y")], "c", "duplicate_label_names"),
    ] {
        let rejection = prepare(&labelled(own, sample_label), NOW_MS, &sanitizes).unwrap_err();
        assert_eq!(rejection.reason, reason, "{own:?} {sample_label}");
    }
}
