//! Calls of `querier.v1` over HTTP about statistics, exemplars, heatmaps, spans and pprof. Profiles are pushed into a
//! real store, and queried before and after a flush.
//!
//! Expected values come from the pushed profiles.

use alluvium::server::{ServerLimits, ServerOptions};
use alluvium_profile::pprof::{self, Builder, Profile, SampleLabel, ValueType};
use alluvium_profile::{Labels, RawProfile};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::http_store::{CPU, Site, now_ms, push_some};

/// Returns the number in a field of a response, or 0 when the field is omitted.
fn number(answer: &Value, field: &str) -> i64 {
    match &answer[field] {
        Value::Null => 0,
        Value::String(text) => text.parse().unwrap(),
        other => other.as_i64().unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_learns_from_when_until_when_it_has_profiles() {
    let site = Site::new(ServerOptions::default()).await;
    assert_eq!(site.ask("GetProfileStats", json!({})).await, (200, json!({})));
    let pushed = push_some(&site).await;
    let (start, _) = pushed.range();
    for _ in 0..2 {
        let (status, answer) = site.ask("GetProfileStats", json!({})).await;
        assert_eq!((status, &answer["dataIngested"]), (200, &json!(true)));
        assert_eq!(number(&answer, "oldestProfileTime"), start + 540_000);
        assert_eq!(number(&answer, "newestProfileTime"), start + 585_000);
        site.flush().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_profiles_of_another_tenant_do_not_count() {
    let options = ServerOptions {
        multi_tenant: true,
        ..ServerOptions::default()
    };
    let site = Site::new(options).await;
    let server = &site.server;
    let push = server.post("/ingest?name=shop").header("x-scope-orgid", "one");
    assert_eq!(push.body("main;work 3\n").send().await.unwrap().status(), 200);
    for (tenant, ingested) in [("one", json!(true)), ("two", Value::Null)] {
        for _ in 0..2 {
            let call = server
                .post("/querier.v1.QuerierService/GetProfileStats")
                .header("content-type", "application/json")
                .header("x-scope-orgid", tenant);
            let answer = call.body("{}").send().await.unwrap().text().await.unwrap();
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!(answer["dataIngested"], ingested, "{tenant}: {answer}");
            site.flush().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_question_would_read_is_told_without_reading_it() {
    let site = Site::new(ServerOptions::default()).await;
    let pushed = push_some(&site).await;
    let (start, end) = pushed.range();
    let ask = |query: &str| json!({"start": start, "end": end, "query": query});
    let all = ask(&format!("{CPU}{{}}"));
    let (status, answer) = site.ask("AnalyzeQuery", all.clone()).await;
    assert_eq!(status, 200, "{answer}");
    let [head, tables] = [0, 1].map(|at| answer["queryScopes"][at].clone());
    assert_eq!(
        (&head["componentType"], number(&head, "blockCount")),
        (&json!("head"), 1)
    );
    assert_eq!((number(&head, "profileCount"), number(&head, "seriesCount")), (4, 3));
    let rows = number(&head, "sampleCount");
    assert!(rows > 0, "{head}");
    assert_eq!(
        (&tables["componentType"], number(&tables, "blockCount")),
        (&json!("tables"), 0)
    );
    assert_eq!(number(&answer["queryImpact"], "totalBytesInTimeRange"), 0);

    site.flush().await;
    let (_, answer) = site.ask("AnalyzeQuery", all).await;
    let [head, tables] = [0, 1].map(|at| answer["queryScopes"][at].clone());
    assert_eq!((number(&head, "blockCount"), number(&head, "profileCount")), (0, 0));
    // Each of the four tables has one file for each day, and the profiles are of one or two days. The files contain
    // both profile types, so their counts are twice the counts of the head.
    assert!([4, 8].contains(&number(&tables, "blockCount")), "{tables}");
    assert_eq!(
        (number(&tables, "profileCount"), number(&tables, "sampleCount")),
        (8, 2 * rows)
    );
    let bytes = ["indexBytes", "profileBytes", "symbolBytes"].map(|field| number(&tables, field));
    assert!(bytes.iter().all(|bytes| *bytes > 0), "{tables}");
    let impact = &answer["queryImpact"];
    assert_eq!(number(impact, "totalBytesInTimeRange"), bytes.iter().sum::<i64>());
    assert_eq!(number(impact, "totalQueriedSeries"), 3);

    for (query, series) in [("{service_name=\"cart\"}", 1), ("{service_name=\"none\"}", 0)] {
        let (_, answer) = site.ask("AnalyzeQuery", ask(&format!("{CPU}{query}"))).await;
        let impact = &answer["queryImpact"];
        assert_eq!(number(impact, "totalQueriedSeries"), series, "{query}");
        assert_eq!(number(impact, "totalBytesInTimeRange") > 0, series > 0, "{query}");
    }
    for (question, reason) in [
        (ask(""), "query: the profile type before the selector"),
        (ask("{}"), "query: the profile type before the selector"),
        (ask(&format!("{CPU}{{")), "label selector"),
        (json!({"query": format!("{CPU}{{}}")}), "missing time range"),
    ] {
        let (status, answer) = site.ask("AnalyzeQuery", question.clone()).await;
        assert_eq!(status, 400, "{question}");
        assert!(answer["message"].as_str().unwrap().contains(reason), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_point_of_a_time_line_names_a_profile_that_can_be_asked_for() {
    let site = Site::new(ServerOptions::default()).await;
    let pushed = push_some(&site).await;
    let (start, end) = pushed.range();
    for _ in 0..2 {
        let ask = json!({
            "profileTypeID": CPU, "labelSelector": "{}", "start": start, "end": end, "step": 15,
            "groupBy": ["service_name"], "exemplarType": "EXEMPLAR_TYPE_INDIVIDUAL",
        });
        let (status, answer) = site.ask("SelectSeries", ask.clone()).await;
        assert_eq!(status, 200, "{answer}");
        let mut total = 0;
        for line in answer["series"].as_array().unwrap() {
            for point in line["points"].as_array().unwrap() {
                let [exemplar] = point["exemplars"].as_array().unwrap().as_slice() else {
                    panic!("{point}")
                };
                assert_eq!(
                    number(exemplar, "value"),
                    point["value"].as_f64().unwrap() as i64,
                    "each step has one profile"
                );
                assert!(
                    exemplar["labels"]
                        .as_array()
                        .unwrap()
                        .contains(&json!({"name": "region", "value": "eu"}))
                );
                let one = json!({
                    "profileTypeID": CPU, "labelSelector": "{}", "start": start, "end": end,
                    "profileIdSelector": [exemplar["profileId"]],
                });
                let (_, graph) = site.ask("SelectMergeStacktraces", one).await;
                assert_eq!(
                    number(&graph["flamegraph"], "total"),
                    number(exemplar, "value"),
                    "{exemplar}"
                );
                total += number(exemplar, "value");
            }
        }
        assert_eq!(total, pushed.total());

        let mut plain = ask;
        plain["exemplarType"] = json!("EXEMPLAR_TYPE_NONE");
        let (_, answer) = site.ask("SelectSeries", plain).await;
        assert!(!answer.to_string().contains("exemplars"), "{answer}");
        site.flush().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heatmap_counts_every_profile_once() {
    let site = Site::new(ServerOptions::default()).await;
    let pushed = push_some(&site).await;
    let (start, end) = pushed.range();
    let ask = json!({
        "profileTypeID": CPU, "labelSelector": "{}", "start": start, "end": end, "step": 15,
        "queryType": "HEATMAP_QUERY_TYPE_INDIVIDUAL", "exemplarType": "EXEMPLAR_TYPE_INDIVIDUAL", "limit": 10,
    });
    for _ in 0..2 {
        let (status, answer) = site.ask("SelectHeatmap", ask.clone()).await;
        assert_eq!(status, 200, "{answer}");
        let slots = answer["series"][0]["slots"].as_array().unwrap();
        assert_eq!(slots.len(), 4, "{answer}");
        for slot in slots {
            let counts: Vec<i64> = slot["counts"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(Value::as_i64)
                .collect();
            let starts: Vec<f64> = slot["yMin"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(Value::as_f64)
                .collect();
            assert_eq!((counts.len(), starts.len()), (20, 20), "{slot}");
            assert_eq!(counts.iter().sum::<i64>(), 1, "{slot}");
            let value = number(&slot["exemplars"][0], "value") as f64;
            let range = counts.iter().position(|count| *count == 1).unwrap();
            assert!(starts[range] <= value, "{slot}");
            assert!(starts.get(range + 1).is_none_or(|next| value < *next), "{slot}");
        }
        site.flush().await;
    }
    for (query, exemplar) in [
        ("HEATMAP_QUERY_TYPE_SPAN", "EXEMPLAR_TYPE_INDIVIDUAL"),
        ("HEATMAP_QUERY_TYPE_INDIVIDUAL", "EXEMPLAR_TYPE_SPAN"),
    ] {
        let mut wrong = ask.clone();
        wrong["queryType"] = json!(query);
        wrong["exemplarType"] = json!(exemplar);
        let (status, answer) = site.ask("SelectHeatmap", wrong).await;
        assert_eq!(status, 400, "{answer}");
        assert!(
            answer["message"]
                .as_str()
                .unwrap()
                .contains("of the same kind as query_type"),
            "{answer}"
        );
    }
}

/// Pushes a profile of the service `counted` with one sample. `kinds` contains the sample types, all with the unit
/// `count`, and the values of the sample.
async fn push_counts(site: &Site, name: &str, kinds: &[(&str, i64)], period: &str) {
    let count = |kind| ValueType { kind, unit: "count" };
    let mut builder = Builder::new(Profile {
        sample_types: kinds.iter().map(|(kind, _)| count(kind)).collect(),
        period_type: match period {
            "" => ValueType::default(),
            period => count(period),
        },
        time_nanos: now_ms() * 1_000_000,
        ..Profile::default()
    });
    let main = builder.named("main");
    let values: Vec<i64> = kinds.iter().map(|(_, value)| *value).collect();
    builder.sample([main], [], &values);
    let profile = RawProfile {
        labels: Labels::from_pairs([("__name__", name), ("service_name", "counted")]),
        id: "".into(),
        pprof: pprof::gzip(&pprof::encode(&builder.finish())).into(),
    };
    site.server.pusher().push(&[profile]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_type_of_which_a_profile_counted_nothing_has_no_point_and_no_slot() {
    let site = Site::new(ServerOptions::default()).await;
    push_counts(&site, "mutex", &[("contentions", 0), ("waits", 5)], "contentions").await;
    for _ in 0..2 {
        for (kind, lines) in [("contentions", 0), ("waits", 1)] {
            let ask = json!({
                "profileTypeID": format!("mutex:{kind}:count:contentions:count"), "labelSelector": "{}", "step": 15,
                "start": now_ms() - 60_000, "end": now_ms() + 60_000, "queryType": "HEATMAP_QUERY_TYPE_INDIVIDUAL",
            });
            for call in ["SelectSeries", "SelectHeatmap"] {
                let (status, answer) = site.ask(call, ask.clone()).await;
                let found = answer["series"].as_array().map_or(0, Vec::len);
                assert_eq!((status, found), (200, lines), "{call} {kind}: {answer}");
            }
        }
        site.flush().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_labels_are_those_of_all_types_and_a_merged_profile_names_its_own() {
    let site = Site::new(ServerOptions::default()).await;
    push_counts(&site, "alarms", &[("rings", 3)], "").await;
    push_counts(&site, "mutex", &[("contentions", 4)], "contentions").await;
    let range = json!({"start": now_ms() - 60_000, "end": now_ms() + 60_000});
    let (status, answer) = site.ask("LabelNames", range.clone()).await;
    let names = answer["names"].as_array().unwrap();
    assert_eq!(status, 200);
    for name in ["__period_type__", "__period_unit__", "__type__", "service_name"] {
        assert!(names.contains(&json!(name)), "{name}: {answer}");
    }
    let mut ask = range;
    ask["profileTypeID"] = json!("mutex:contentions:count:contentions:count");
    ask["labelSelector"] = json!("{}");
    let (status, profile) = site.ask("SelectMergeProfile", ask).await;
    let named = number(&profile, "defaultSampleType") as usize;
    assert_eq!(
        (status, &profile["stringTable"][named]),
        (200, &json!("contentions")),
        "{profile}"
    );
}

/// Pushes a profile in which `main` calls `work` (value 7, in a span) and `idle` (value 30, outside of spans).
async fn push_span(site: &Site, time_ms: i64) {
    let mut builder = Builder::new(Profile {
        sample_types: vec![ValueType {
            kind: "cpu",
            unit: "nanoseconds",
        }],
        period_type: ValueType {
            kind: "cpu",
            unit: "nanoseconds",
        },
        time_nanos: time_ms * 1_000_000,
        ..Profile::default()
    });
    let [main, work, idle] = ["main", "work", "idle"].map(|name| builder.named(name));
    let ids = [
        SampleLabel::Text("span_id", "00000000000000ab"),
        SampleLabel::Text("trace_id", "0000000000000000000000000000cdef"),
    ];
    builder.sample([work, main], ids, &[7]);
    builder.sample([idle, main], [], &[30]);
    let profile = RawProfile {
        labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", "shop")]),
        id: "".into(),
        pprof: pprof::gzip(&pprof::encode(&builder.finish())).into(),
    };
    site.server.pusher().push(&[profile]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_span_is_found_in_every_form() {
    let site = Site::new(ServerOptions::default()).await;
    let now = now_ms();
    push_span(&site, now - 10_000).await;
    let ask = json!({
        "profileTypeID": CPU, "labelSelector": "{}", "start": now - 60_000, "end": now, "step": 60,
        "spanSelector": ["00000000000000ab"], "exemplarType": "EXEMPLAR_TYPE_SPAN",
        "queryType": "HEATMAP_QUERY_TYPE_SPAN",
    });
    let with = |name: &str, value: &str| {
        let mut changed = ask.clone();
        changed[name] = json!(value);
        changed
    };
    for _ in 0..2 {
        for call in ["SelectMergeStacktraces", "SelectMergeSpanProfile"] {
            let (_, answer) = site.ask(call, ask.clone()).await;
            assert_eq!(
                answer["flamegraph"]["names"],
                json!(["total", "main", "work"]),
                "{call}"
            );
            assert_eq!(number(&answer["flamegraph"], "total"), 7, "{call}");
        }
        let (_, answer) = site
            .ask("SelectMergeSpanProfile", with("format", "PROFILE_FORMAT_TREE"))
            .await;
        let tree = STANDARD.decode(answer["tree"].as_str().unwrap()).unwrap();
        assert!(String::from_utf8_lossy(&tree).contains("work"), "{tree:?}");
        assert_eq!(answer.get("flamegraph"), None);
        for format in ["PROFILE_FORMAT_DOT", "PROFILE_FORMAT_PPROF"] {
            let (status, answer) = site.ask("SelectMergeSpanProfile", with("format", format)).await;
            assert_eq!((status, &answer["code"]), (501, &json!("unimplemented")), "{format}");
        }
        let (_, answer) = site.ask("SelectSeries", ask.clone()).await;
        let (_, heatmap) = site.ask("SelectHeatmap", ask.clone()).await;
        let slot = &heatmap["series"][0]["slots"][0];
        let starts: Vec<f64> = (7..27).map(f64::from).collect();
        assert_eq!(slot["yMin"], json!(starts), "{heatmap}");
        assert_eq!(slot["counts"][0], json!(1), "{heatmap}");
        assert_eq!(slot["counts"].as_array().unwrap().len(), 20, "{heatmap}");
        for exemplar in [&answer["series"][0]["points"][0]["exemplars"][0], &slot["exemplars"][0]] {
            assert_eq!(exemplar["spanId"], json!("00000000000000ab"), "{exemplar}");
            assert_eq!(
                exemplar["traceId"],
                json!("0000000000000000000000000000cdef"),
                "{exemplar}"
            );
            assert_eq!(number(exemplar, "value"), 7, "{exemplar}");
        }
        site.flush().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stack_trace_selectors_narrow_time_lines_and_cut_merged_profiles() {
    let site = Site::new(ServerOptions::default()).await;
    let now = now_ms();
    push_span(&site, now - 10_000).await;
    let ask = |selector: Value| {
        json!({
            "profileTypeID": CPU, "labelSelector": "{}", "start": now - 60_000, "end": now, "step": 60,
            "stackTraceSelector": selector, "format": "PROFILE_FORMAT_PPROF",
        })
    };
    let below = ask(json!({"callSite": [{"name": "main"}, {"name": "idle"}]}));
    let (_, answer) = site.ask("SelectSeries", below.clone()).await;
    assert_eq!(answer["series"][0]["points"][0]["value"], json!(30.0), "{answer}");
    let (_, answer) = site.ask("SelectMergeProfile", below).await;
    assert_eq!(answer["sample"][0]["value"], json!(["30"]), "{answer}");

    let filtered = ask(json!({"frameFilter": {
        "includeFunctionNames": ["main"], "exclude_function_names": ["work"],
        "includeFunctionNameRegexes": ["^id"], "excludeFunctionNameRegexes": ["^no such function$"],
    }}));
    let (_, answer) = site.ask("SelectSeries", filtered.clone()).await;
    assert_eq!(answer["series"][0]["points"][0]["value"], json!(30.0), "{answer}");
    let (_, by_call) = site.ask("SelectMergeProfile", filtered.clone()).await;
    assert_eq!(by_call["sample"][0]["value"], json!(["30"]), "{by_call}");
    let (_, by_format) = site.ask("SelectMergeStacktraces", filtered).await;
    assert_eq!(by_format["pprof"]["profile"], by_call);
    for call in ["SelectSeries", "SelectMergeProfile", "SelectMergeStacktraces"] {
        let refused = ask(json!({"frameFilter": {"excludeFunctionNameRegexes": ["("]}}));
        let (status, answer) = site.ask(call, refused).await;
        let message = answer["message"].as_str().unwrap_or_default();
        assert_eq!(status, 400, "{call}: {answer}");
        assert!(
            message.contains("invalid exclude function name regex `(`"),
            "{call}: {message}"
        );
    }

    let ends = ask(json!({"goPgo": {"keepLocations": 1, "aggregateCallees": true}}));
    let (_, by_format) = site.ask("SelectMergeStacktraces", ends.clone()).await;
    let (_, by_call) = site.ask("SelectMergeProfile", ends).await;
    assert_eq!(by_format["pprof"]["profile"], by_call);
    let samples = by_call["sample"].as_array().unwrap();
    assert_eq!(samples.len(), 2, "{by_call}");
    assert!(
        samples
            .iter()
            .all(|sample| sample["locationId"].as_array().unwrap().len() == 1),
        "{by_call}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pprof_answer_has_as_many_nodes_as_asked_for_and_the_same_total() {
    let site = Site::new(ServerOptions::default()).await;
    let (start, end) = push_some(&site).await.range();
    let question = json!({"profileTypeID": CPU, "labelSelector": "{}", "start": start, "end": end});
    let numbers = |profile: &Value| {
        let samples = profile["sample"].as_array().unwrap().clone();
        let total: i64 = samples
            .iter()
            .map(|sample| sample["value"][0].as_str().unwrap().parse::<i64>().unwrap())
            .sum();
        (
            samples.len(),
            total,
            profile["stringTable"].to_string().contains("\"other\""),
        )
    };
    for (call, format) in [
        ("SelectMergeProfile", None),
        ("SelectMergeStacktraces", Some("PROFILE_FORMAT_PPROF")),
    ] {
        let ask = async |nodes: i64| {
            let mut question = question.clone();
            question["maxNodes"] = json!(nodes);
            if let Some(format) = format {
                question["format"] = json!(format);
            }
            let (status, answer) = site.ask(call, question).await;
            assert_eq!(status, 200, "{call}: {answer}");
            let profile = if format.is_some() {
                &answer["pprof"]["profile"]
            } else {
                &answer
            };
            numbers(profile)
        };
        let (all, few) = (ask(0).await, ask(1).await);
        assert_eq!((all.1, all.2), (few.1, false), "{call}");
        assert!(few.0 < all.0 && few.2, "{call}: {all:?} {few:?}");
        assert_eq!(ask(500_000).await, all, "{call}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_wait_to_be_written_are_bounded() {
    let options = ServerOptions {
        limits: ServerLimits {
            answers_bytes: 512 << 10,
            ..ServerLimits::default()
        },
        ..ServerOptions::default()
    };
    let site = Site::new(options).await;
    // The message of the response is long, but the compressed response is short.
    let stacks: String = (0..4000)
        .map(|number| format!("main;function_{number:0>80} 1\n"))
        .collect();
    let push = site.server.post("/ingest?name=wide").body(stacks);
    assert_eq!(push.send().await.unwrap().status(), 200);
    let question = json!({
        "profileTypeID": CPU, "labelSelector": "{}", "start": now_ms() - 600_000, "end": now_ms() + 600_000
    });
    let ask = async || {
        let call = site.server.post("/querier.v1.QuerierService/SelectMergeStacktraces");
        let call = call
            .header("content-type", "application/json")
            .header("accept-encoding", "gzip");
        let answer = call.body(question.to_string()).send().await.unwrap();
        let status = answer.status().as_u16();
        (status, pprof::gzip(&answer.bytes().await.unwrap()).len())
    };
    let (status, length) = ask().await;
    assert!(
        status == 200 && (1000..60_000).contains(&length),
        "{status}: {length} bytes"
    );
    let all = futures::future::join_all((0..200).map(|_| ask())).await;
    let of = |wanted: u16| all.iter().filter(|(status, _)| *status == wanted).count();
    assert!(of(200) > 0 && of(503) > 0 && of(200) + of(503) == 200, "{all:?}");
    for _ in 0..3 {
        assert_eq!(ask().await.0, 200);
    }
}
