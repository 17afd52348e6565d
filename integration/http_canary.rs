//! The pushes and queries of `profilecli canary-exporter --query-probe-set all`, in two rounds. A round consists of one
//! push by `push.v1` and two by OTLP, then fourteen queries, whose responses must be those that the program expects.
//!
//! The real program runs a round every 15 seconds. Except in time series, a response must not contain a profile
//! of an earlier round. The times of pushes are in nanoseconds, the times of queries in milliseconds.

use std::collections::BTreeMap;

use alluvium::server::ServerOptions;
use alluvium_profile::{Labels, RawProfile};
use alluvium_wire::connect::{self, Codec};
use alluvium_wire::otlp::messages::any_value::Value as Content;
use alluvium_wire::otlp::messages::{
    AnyValue, ExportProfilesServiceRequest, Function, KeyValue, Line, Location, Mapping, Profile, ProfilesDictionary,
    Resource, ResourceProfiles, Sample, ScopeProfiles, Stack, ValueType,
};
use alluvium_wire::proto::google;
use alluvium_wire::querier::Selection;
use prost::Message as _;
use serde_json::{Value, json};

use crate::http_store::{Site, now_ms};

const SERVICE: &str = "pyroscope-canary-exporter";
const PUSHED: &str = "deadmans_switch:made_up:profilos:made_up:profilos";
const EXPORTED: &str = "otlp_test:otlp_test:count:otlp_test:samples";
const SELECTOR: &str = r#"{service_name="pyroscope-canary-exporter", job="canary-exporter", instance="here"}"#;
const SPAN: &str = "00000bac2a5ab0c7";

/// Time between two rounds in milliseconds.
const ROUND_MS: i64 = 15_000;
/// Length of the time range of a query in milliseconds.
const RANGE_MS: i64 = 5_000;
/// Nanoseconds that are added to a time in whole milliseconds.
const NANOS: i64 = 123_456;

/// Returns the profile for `push.v1`: the value 10 in `func1` called by `func2`, and 20 in `func1` alone. The sample
/// with 20 belongs to a span.
fn pushed(time_nanos: i64, id: &str) -> RawProfile {
    let strings = ["", "made_up", "profilos", "func1", "func2", "profile_id", SPAN];
    let kind = google::ValueType { r#type: 1, unit: 2 };
    let function = |id: u64, name| google::Function {
        id,
        name,
        ..google::Function::default()
    };
    let location = |id: u64| google::Location {
        id,
        mapping_id: 1,
        line: vec![google::Line {
            function_id: id,
            line: 0,
        }],
        ..google::Location::default()
    };
    let sample = |stack: &[u64], value, label| google::Sample {
        location_id: stack.to_vec(),
        value: vec![value],
        label,
    };
    let of_span = google::Label {
        key: 5,
        str: 6,
        ..google::Label::default()
    };
    let profile = google::Profile {
        sample_type: vec![kind],
        period_type: Some(kind),
        sample: vec![sample(&[1, 2], 10, Vec::new()), sample(&[1], 20, vec![of_span])],
        mapping: vec![google::Mapping {
            id: 1,
            has_functions: true,
            ..google::Mapping::default()
        }],
        location: vec![location(1), location(2)],
        function: vec![function(1, 3), function(2, 4)],
        string_table: strings.map(str::to_owned).to_vec(),
        time_nanos,
        default_sample_type: 1,
        ..google::Profile::default()
    };
    RawProfile {
        labels: Labels::from_pairs([
            ("__name__", "deadmans_switch"),
            ("service_name", SERVICE),
            ("job", "canary-exporter"),
            ("instance", "here"),
        ]),
        id: id.into(),
        pprof: profile.encode_to_vec().into(),
    }
}

/// Returns the profile for OTLP: the value 10 in `func2` called by `func1`, and 20 in `func1`. The first entry of the
/// location table is not empty.
fn exported(time_nanos: i64, method: &str) -> ExportProfilesServiceRequest {
    let strings = ["", "otlp_test", "samples", "count", "func1", "func2"];
    let attribute = |key: &str, value: &str| KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(Content::StringValue(value.to_owned())),
        }),
        key_strindex: 0,
    };
    let value_type = |unit_strindex| {
        Some(ValueType {
            type_strindex: 1,
            unit_strindex,
        })
    };
    let function = |name_strindex| Function {
        name_strindex,
        ..Function::default()
    };
    let location = |function_index| Location {
        lines: vec![Line {
            function_index,
            ..Line::default()
        }],
        ..Location::default()
    };
    let stack = |locations: &[i32]| Stack {
        location_indices: locations.to_vec(),
    };
    let sample = |stack_index, value| Sample {
        stack_index,
        values: vec![value],
        ..Sample::default()
    };
    ExportProfilesServiceRequest {
        resource_profiles: vec![ResourceProfiles {
            resource: Some(Resource {
                attributes: vec![
                    attribute("service.name", SERVICE),
                    attribute("job", "canary-exporter"),
                    attribute("instance", "here"),
                    attribute("ingestion_method", method),
                ],
                ..Resource::default()
            }),
            scope_profiles: vec![ScopeProfiles {
                profiles: vec![Profile {
                    sample_type: value_type(3),
                    period_type: value_type(2),
                    period: 1,
                    time_unix_nano: time_nanos as u64,
                    samples: vec![sample(1, 10), sample(2, 20)],
                    ..Profile::default()
                }],
                ..ScopeProfiles::default()
            }],
            ..ResourceProfiles::default()
        }],
        dictionary: Some(ProfilesDictionary {
            string_table: strings.map(str::to_owned).to_vec(),
            mapping_table: vec![Mapping::default()],
            function_table: vec![Function::default(), function(4), function(5)],
            location_table: vec![location(1), location(2)],
            stack_table: vec![stack(&[]), stack(&[1, 0]), stack(&[0])],
            ..ProfilesDictionary::default()
        }),
    }
}

/// Sends the pushes of a round.
async fn send(site: &Site, start_ms: i64) {
    let time_nanos = start_ms * 1_000_000 + NANOS;
    let id = format!("0199d9f5-2c1b-7a0e-9d54-{start_ms:012x}");
    site.server.pusher().push(&[pushed(time_nanos, &id)]).await.unwrap();
    let as_json = exported(time_nanos, "otlp_http_json");
    let as_bytes = exported(time_nanos, "otlp_http_protobuf");
    for (kind, body) in [
        ("application/json", connect::encode(Codec::Json, &as_json).to_vec()),
        ("application/x-protobuf", as_bytes.encode_to_vec()),
    ] {
        let request = site
            .server
            .post("/v1development/profiles")
            .header("content-type", kind)
            .body(body);
        assert_eq!(request.send().await.unwrap().status(), 200, "{kind}");
    }
}

/// Returns the values of a merged profile by stack, the leaf first.
async fn merged(site: &Site, profile_type: &str, start_ms: i64) -> BTreeMap<String, i64> {
    let selection = Selection {
        profile_type: profile_type.to_owned(),
        selector: SELECTOR.to_owned(),
        start_ms,
        end_ms: start_ms + RANGE_MS,
    };
    let bytes = site.server.querier().merge_profile(selection).await.unwrap();
    let profile = google::Profile::decode(bytes).unwrap();
    let name_of = |id: u64| {
        let function = profile.function.iter().find(|function| function.id == id).unwrap();
        profile.string_table[function.name as usize].as_str()
    };
    let mut values = BTreeMap::new();
    for sample in &profile.sample {
        let frames = sample.location_id.iter().map(|id| {
            let location = profile.location.iter().find(|location| location.id == *id).unwrap();
            name_of(location.line[0].function_id)
        });
        *values.entry(frames.collect::<Vec<_>>().join(">")).or_default() += sample.value[0];
    }
    values
}

/// Returns the number of names and levels of a flame graph.
fn sizes(graph: &Value) -> (usize, usize) {
    let length = |part: &str| graph[part].as_array().unwrap_or_else(|| panic!("{graph}")).len();
    (length("names"), length("levels"))
}

/// Sends the queries of a round that began at this time, and checks the responses.
async fn probe(site: &Site, start_ms: i64) {
    let sum = |pairs: &[(&str, i64)]| -> BTreeMap<String, i64> {
        pairs
            .iter()
            .map(|(stack, value)| ((*stack).to_owned(), *value))
            .collect()
    };
    assert_eq!(
        merged(site, PUSHED, start_ms).await,
        sum(&[("func1>func2", 10), ("func1", 20)])
    );
    assert_eq!(
        merged(site, EXPORTED, start_ms).await,
        sum(&[("func2>func1", 20), ("func1", 40)])
    );

    let ask = async |call: &str, more: Value| {
        let mut question = json!({"start": start_ms, "end": start_ms + RANGE_MS});
        let fields = question.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        let (status, answer) = site.ask(call, question).await;
        assert_eq!(status, 200, "{call}: {answer}");
        answer
    };
    let types = ask("ProfileTypes", json!({})).await;
    let types = types["profileTypes"].as_array().unwrap();
    assert!(types.iter().any(|found| found["ID"] == PUSHED), "{types:?}");

    let series = ask("Series", json!({"labelNames": ["service_name", "__profile_type__"]})).await;
    let wanted = json!([
        {"name": "__profile_type__", "value": PUSHED},
        {"name": "service_name", "value": SERVICE},
    ]);
    let sets = series["labelsSet"].as_array().unwrap();
    assert!(sets.iter().any(|set| set["labels"] == wanted), "{series}");

    let of_service = json!([format!("{{service_name=\"{SERVICE}\"}}")]);
    let names = ask("LabelNames", json!({"matchers": of_service})).await;
    for name in [
        "__name__",
        "__period_type__",
        "__period_unit__",
        "__profile_type__",
        "__service_name__",
        "__type__",
        "__unit__",
        "service_name",
    ] {
        assert!(
            names["names"].as_array().unwrap().contains(&json!(name)),
            "{name}: {names}"
        );
    }
    let values = ask("LabelValues", json!({"name": "service_name", "matchers": of_service})).await;
    assert_eq!(values["names"], json!([SERVICE]));

    let of_type = json!({"profileTypeID": PUSHED, "labelSelector": SELECTOR});
    let with = |more: Value| {
        let mut question = of_type.clone();
        question
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        question
    };
    let lines = ask("SelectSeries", with(json!({"step": 1000, "groupBy": ["service_name"]}))).await;
    let label = json!([{"name": "service_name", "value": SERVICE}]);
    assert_eq!(lines["series"].as_array().unwrap().len(), 1, "{lines}");
    assert_eq!(lines["series"][0]["labels"], label);
    // The time series has one step. This step ends at the start of the range and contains profiles of earlier rounds
    // too.
    assert_eq!(lines["series"][0]["points"].as_array().unwrap().len(), 1, "{lines}");

    let graph = ask("SelectMergeStacktraces", of_type.clone()).await;
    assert_eq!(sizes(&graph["flamegraph"]), (3, 3));
    let graph = ask("SelectMergeSpanProfile", with(json!({"spanSelector": [SPAN]}))).await;
    assert_eq!(sizes(&graph["flamegraph"]), (2, 2));
    let (_, stats) = site.ask("GetProfileStats", json!({})).await;
    assert_eq!(stats["dataIngested"], true, "{stats}");

    let question = with(json!({"step": 5, "exemplarType": "EXEMPLAR_TYPE_INDIVIDUAL"}));
    let lines = ask("SelectSeries", question).await;
    let points = lines["series"][0]["points"].as_array().unwrap();
    let exemplars = points[0]["exemplars"].as_array().unwrap();
    assert_eq!((points.len(), exemplars.len()), (1, 1), "{lines}");
    assert_eq!(exemplars[0]["value"], "30");
    let one = with(json!({"profileIdSelector": [exemplars[0]["profileId"]]}));
    let graph = ask("SelectMergeStacktraces", one).await;
    assert_eq!(sizes(&graph["flamegraph"]), (3, 3));

    let (from, until) = (start_ms.to_string(), (start_ms + RANGE_MS).to_string());
    let query = format!("{PUSHED}{SELECTOR}");
    for (route, sides) in [
        ("render", &["query"][..]),
        ("render-diff", &["leftQuery", "rightQuery"][..]),
    ] {
        let mut asked = url::form_urlencoded::Serializer::new(String::new());
        for side in sides {
            asked.append_pair(side, &query);
            // `query` uses `from`, `leftQuery` uses `leftFrom`.
            let side = side.trim_end_matches("Query");
            let name = |end: &str| match side {
                "query" => end.to_lowercase(),
                side => format!("{side}{end}"),
            };
            asked
                .append_pair(&name("From"), &from)
                .append_pair(&name("Until"), &until);
        }
        let (status, answer) = site.server.get(&format!("/pyroscope/{route}?{}", asked.finish())).await;
        assert_eq!(status, 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(sizes(&answer["flamebearer"]), (3, 3), "{route}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_probe_of_the_canary_succeeds_in_two_rounds() {
    let site = Site::new(ServerOptions::default()).await;
    let last = now_ms();
    for start_ms in [last - ROUND_MS, last] {
        send(&site, start_ms).await;
        probe(&site, start_ms).await;
    }
    site.flush().await;
    probe(&site, last).await;
}
