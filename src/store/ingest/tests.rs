//! Tests of the way from bytes to rows: what is refused and with which words, and what normalisation changes.

use std::time::Duration;

use super::*;
use crate::profile::pprof::{Function, Line, Location, SampleLabel, ValueType};
use crate::profile::synthetic::{Names, Shape, cpu_profile};
use crate::store::ingest::go_names::without_go_shapes;

const NOW_MS: i64 = 1_800_000_000_000;

/// One function per name, one sample per value; every sample's stack is the single function of the same index.
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
        .map(|(name, _)| prepared.symbols.text(*name))
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
            Samples::All(_) => panic!("must be split"),
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
fn go_shapes_leave_the_names_and_long_names_keep_their_end() {
    for (name, short) in [
        ("pkg.Map[go.shape.int_0,go.shape.string_1]", "pkg.Map"),
        ("pkg.(*T[go.shape.struct { a []int }]).Get", "pkg.(*T).Get"),
        ("a[go.shape.int].b[go.shape.int]", "a.b"),
        ("cut[go.shape.str", "cut"),
    ] {
        assert_eq!(without_go_shapes(name).as_deref(), Some(short));
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
    let good = raw(LABELS, &profile(&["a"], &[1, 2, 3], vec![]));
    let small = Limits {
        max_profile_size_bytes: 10,
        ..Limits::default()
    };
    let rejection = prepare(&good, NOW_MS, &small).unwrap_err();
    assert_eq!(
        (rejection.reason, rejection.error.kind),
        ("profile_size_limit", SinkErrorKind::TooLarge)
    );
    let few = Limits {
        max_profile_stacktrace_samples: 2,
        ..Limits::default()
    };
    assert_eq!(prepare(&good, NOW_MS, &few).unwrap_err().reason, "samples_limit");
    let garbage = RawProfile {
        pprof: Bytes::from_static(b"\xff\xff\xff"),
        ..good.clone()
    };
    let rejection = prepare(&garbage, NOW_MS, &Limits::default()).unwrap_err();
    assert_eq!(
        (rejection.reason, rejection.error.kind),
        ("malformed_profile", SinkErrorKind::Invalid)
    );
    let late = prepare(&good, NOW_MS + 3_700_000, &Limits::default()).unwrap_err();
    assert_eq!(late.reason, "not_in_ingestion_window");
    assert!(prepare(&good, NOW_MS + 3_700_000, &Limits::unlimited()).is_ok());
}

#[test]
fn the_largest_profiles_of_honest_senders_are_within_the_bounds() {
    // As many samples as may be sent, each a stack of its own, as deep as frameworks get.
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
        // The last member says that there are no bytes.
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
    let of_bytes = prepare(&raw, NOW_MS, &limits).unwrap();
    let of_columns = prepare_decoded(&raw, columns(), NOW_MS, &limits).unwrap();
    assert_eq!(names(&of_columns), ["main", "pkg.Map", "parse"]);
    assert_eq!(names(&of_columns), names(&of_bytes));
    let rows = |prepared: &Prepared| {
        (
            prepared.types.clone(),
            prepared.values.clone(),
            prepared.stack_ids.clone(),
            prepared.series[0].labels.clone(),
            (prepared.time_us, prepared.size, prepared.frames, prepared.zero_values),
        )
    };
    assert_eq!(rows(&of_columns), rows(&of_bytes));
    let small = Limits {
        max_profile_size_bytes: raw.pprof.len() - 1,
        ..limits
    };
    let rejection = prepare_decoded(&raw, columns(), NOW_MS, &small).unwrap_err();
    assert_eq!(rejection.reason, "profile_size_limit");
}
