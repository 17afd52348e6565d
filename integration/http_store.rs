//! Profiles from the push to the query, over HTTP: the tests push profiles to a server with a real store in a temporary
//! folder, and query them. One test queries before and after a flush.
//!
//! Expected values come from the pushed profiles.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use alluvium::server::ServerOptions;
use alluvium::store::{Limits, Store, StoreConfig};
use alluvium_admin::listen::ListenOptions;
use alluvium_profile::pprof::{self, Profile};
use alluvium_profile::{Labels, RawProfile};
use alluvium_telemetry::metrics::Scope;
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};
use alluvium_wire::call::CallError;
use alluvium_wire::proto::querier as proto;
use alluvium_wire::querier::Selection;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::harness::TestServer;

pub(crate) const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
pub(crate) const SAMPLES: &str = "process_cpu:samples:count:cpu:nanoseconds";

/// A server with a store of its own.
pub(crate) struct Site {
    /// The server that uses the store.
    pub server: TestServer,
    _folder: tempfile::TempDir,
}

impl Site {
    /// Starts a server with an empty store.
    pub(crate) async fn new(options: ServerOptions) -> Self {
        Self::with_limits(options, Limits::default()).await
    }

    /// Starts a server with an empty store, which has these limits for all tenants.
    pub(crate) async fn with_limits(options: ServerOptions, limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = StoreConfig {
            limits: limits.into(),
            ..StoreConfig::new(folder.path())
        };
        let store = tokio::task::spawn_blocking(move || Store::open(config, &Scope::new()).unwrap())
            .await
            .unwrap();
        let server = TestServer::start_with(store.clone(), store, options, ListenOptions::default()).await;
        Self {
            server,
            _folder: folder,
        }
    }

    /// Flushes everything to files.
    pub(crate) async fn flush(&self) {
        assert_eq!(self.server.post("/flush").send().await.unwrap().status(), 204);
    }

    /// Returns status and JSON of a call of querier.v1.
    pub(crate) async fn ask(&self, call: &str, question: Value) -> (u16, Value) {
        let path = format!("/querier.v1.QuerierService/{call}");
        let request = self.server.post(&path).header("content-type", "application/json");
        let response = request.body(question.to_string()).send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
    }
}

/// Totals of the pushed profiles: two profiles of `cart`, and one each of `checkout` and `search`.
pub(crate) struct Pushed {
    now_ms: i64,
    /// CPU time of each service in nanoseconds.
    pub totals: BTreeMap<&'static str, i64>,
    samples: i64,
}

impl Pushed {
    /// Returns start and end of a range that contains all profiles, in Unix milliseconds.
    pub(crate) fn range(&self) -> (i64, i64) {
        (self.now_ms - 600_000, self.now_ms + 60_000)
    }

    /// Returns a query about the CPU time of the profiles that match a selector.
    pub(crate) fn selection(&self, selector: &str) -> Selection {
        let (start_ms, end_ms) = self.range();
        Selection {
            profile_type: CPU.to_owned(),
            selector: selector.to_owned(),
            start_ms,
            end_ms,
        }
    }

    /// Returns the CPU time of all services in nanoseconds.
    pub(crate) fn total(&self) -> i64 {
        self.totals.values().sum()
    }
}

/// Returns the current time in Unix milliseconds.
pub(crate) fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

fn sum(profile: &Profile<'_>, value: usize) -> i64 {
    (0..profile.sample_count())
        .map(|sample| profile.values_of(sample)[value])
        .sum()
}

fn raw(service: &str, profile: &Profile<'_>) -> RawProfile {
    RawProfile {
        labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", service), ("region", "eu")]),
        id: "".into(),
        pprof: pprof::gzip(&pprof::encode(profile)).into(),
    }
}

/// Pushes profiles of three services.
pub(crate) async fn push_some(site: &Site) -> Pushed {
    let names = Names::new(300);
    let shape = Shape {
        functions: 300,
        samples: 400,
        depth: 20,
        labelled_every: 0,
    };
    let now_ms = now_ms();
    let mut pushed = Pushed {
        now_ms,
        totals: BTreeMap::new(),
        samples: 0,
    };
    let mut batch = Vec::new();
    for (seed, service) in ["cart", "checkout", "cart", "search"].into_iter().enumerate() {
        let mut profile = cpu_profile(&names, shape, seed as u64);
        profile.time_nanos = (now_ms - 60_000 + seed as i64 * 15_000) * 1_000_000;
        *pushed.totals.entry(service).or_default() += sum(&profile, 1);
        pushed.samples += sum(&profile, 0);
        batch.push(raw(service, &profile));
    }
    site.server.pusher().push(&batch).await.unwrap();
    pushed
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pushed_is_found_again_with_equal_totals_before_and_after_a_flush() {
    let site = Site::new(ServerOptions::default()).await;
    let pushed = push_some(&site).await;
    for _ in 0..2 {
        check_questions(&site, &pushed).await;
        site.flush().await;
    }
}

async fn check_questions(site: &Site, pushed: &Pushed) {
    let client = site.server.querier();
    let (start, end) = pushed.range();
    let types: Vec<String> = client
        .profile_types(start, end)
        .await
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(types, [CPU, SAMPLES]);
    assert_eq!(client.profile_types(0, 0).await.unwrap().len(), 2);
    let services = client
        .label_values("service_name", Vec::new(), start, end)
        .await
        .unwrap();
    assert_eq!(services, ["cart", "checkout", "search"]);
    let names = client
        .label_names(vec!["{service_name=\"cart\"}".to_owned()], start, end)
        .await
        .unwrap();
    assert!(names.contains(&"region".to_owned()), "{names:?}");
    let series = client
        .series(
            vec!["{service_name=~\"c.*\"}".to_owned()],
            vec!["service_name".to_owned()],
            start,
            end,
        )
        .await
        .unwrap();
    assert_eq!(series.len(), 2);

    let lines = client
        .select_series(pushed.selection("{}"), vec!["service_name".to_owned()], 15.0)
        .await
        .unwrap();
    let totals: BTreeMap<&str, i64> = lines
        .iter()
        .map(|line| {
            let total: f64 = line.points.iter().map(|(_, value)| value).sum();
            (line.labels.get("service_name").unwrap(), total as i64)
        })
        .collect();
    assert_eq!(totals, pushed.totals);

    let graph = client.merge_stacktraces(pushed.selection("{}"), 0).await.unwrap();
    assert_eq!(graph.total, pushed.total());
    assert!(graph.files.iter().any(|file| file.ends_with(".go")));
    let cart = client
        .merge_stacktraces(pushed.selection("{service_name=\"cart\"}"), 0)
        .await
        .unwrap();
    assert_eq!(cart.total, pushed.totals["cart"]);
    let merged = client.merge_profile(pushed.selection("{}")).await.unwrap();
    assert_eq!(sum(&pprof::decode(&merged).unwrap(), 0), pushed.total());
}

#[tokio::test(flavor = "multi_thread")]
async fn json_answers_have_the_shape_that_grafana_reads() {
    let site = Site::new(ServerOptions::default()).await;
    let pushed = push_some(&site).await;
    let (start, end) = pushed.range();
    let ask = json!({
        "profileTypeID": CPU, "labelSelector": "{service_name=\"cart\"}", "start": start, "end": end, "maxNodes": 64,
        "format": "PROFILE_FORMAT_SOMETHING_NEW", "unknown": {"field": 1},
    });
    let (status, answer) = site.ask("SelectMergeStacktraces", ask.clone()).await;
    assert_eq!(status, 200, "{answer}");
    let graph = &answer["flamegraph"];
    let total = pushed.totals["cart"].to_string();
    assert_eq!(graph["total"], json!(total));
    assert_eq!(graph["levels"][0]["values"][1], json!(total));
    assert_eq!(graph["names"][0], json!("total"));
    assert!(graph.get("files").is_none() && graph.get("lines").is_none());
    let names = graph["names"].as_array().unwrap();
    assert!(names.len() < 100, "{}", names.len());

    let mut detailed = ask.clone();
    detailed["frameDetails"] = json!(true);
    let (_, answer) = site.ask("SelectMergeStacktraces", detailed).await;
    let graph = &answer["flamegraph"];
    assert_eq!(
        graph["files"].as_array().unwrap().len(),
        graph["names"].as_array().unwrap().len()
    );
    assert_eq!(
        graph["lines"].as_array().unwrap().len(),
        graph["levels"].as_array().unwrap().len()
    );

    let mut pprof = ask.clone();
    pprof["format"] = json!("PROFILE_FORMAT_PPROF");
    let (_, answer) = site.ask("SelectMergeStacktraces", pprof).await;
    assert!(
        answer["pprof"]["profile"]["sample"]
            .as_array()
            .is_some_and(|samples| !samples.is_empty())
    );
    let mut dot = ask.clone();
    dot["format"] = json!("PROFILE_FORMAT_DOT");
    let (_, answer) = site.ask("SelectMergeStacktraces", dot).await;
    let text = answer["dot"].as_str().unwrap();
    assert!(text.starts_with("digraph calls {") && text.contains(CPU), "{text}");
    assert!(answer.get("flamegraph").is_none(), "{answer}");
    // If `maxNodes` is missing or 0, a call graph has at most a hundred functions.
    let functions = |answer: &Value| answer["dot"].as_str().unwrap().matches(" own=").count();
    for (nodes, expected) in [(Value::Null, 1..=100), (json!(0), 1..=100), (json!(8000), 101..=8000)] {
        let mut dot = ask.clone();
        dot["format"] = json!("PROFILE_FORMAT_DOT");
        dot["maxNodes"] = nodes;
        let (_, answer) = site.ask("SelectMergeStacktraces", dot).await;
        assert!(expected.contains(&functions(&answer)), "{answer}");
    }

    // The sum of all nodes' values in the tree is the total.
    let mut tree = ask.clone();
    tree["format"] = json!("PROFILE_FORMAT_TREE");
    let (_, answer) = site.ask("SelectMergeStacktraces", tree).await;
    let bytes = STANDARD.decode(answer["tree"].as_str().unwrap()).unwrap();
    let mut rest = &bytes[..];
    let (mut sum, mut nodes, mut children) = (0, 0, 0);
    while !rest.is_empty() {
        let name = prost::encoding::decode_varint(&mut rest).unwrap() as usize;
        rest = &rest[name..];
        sum += prost::encoding::decode_varint(&mut rest).unwrap();
        children += prost::encoding::decode_varint(&mut rest).unwrap();
        nodes += 1;
    }
    assert_eq!((sum, children + 1), (pushed.totals["cart"] as u64, nodes));

    let (_, answer) = site.ask("SelectMergeProfile", ask.clone()).await;
    assert!(
        answer["stringTable"]
            .as_array()
            .is_some_and(|strings| strings[0] == json!(""))
    );

    let mut right = ask.clone();
    right["labelSelector"] = json!("{service_name=\"search\"}");
    let (status, answer) = site.ask("Diff", json!({"left": ask, "right": right})).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["flamegraph"]["leftTicks"], json!(total));
    assert_eq!(
        answer["flamegraph"]["rightTicks"],
        json!(pushed.totals["search"].to_string())
    );
    assert_eq!(answer["flamegraph"]["levels"][0]["values"].as_array().unwrap().len(), 7);

    let (_, answer) = site
        .ask("ProfileTypes", json!({"start": start.to_string(), "end": end}))
        .await;
    assert_eq!(answer["profileTypes"][0]["ID"], json!(CPU));
    let empty = json!({"profileTypeID": CPU, "labelSelector": "{service_name=\"none\"}", "start": start, "end": end});
    let (status, answer) = site.ask("SelectMergeStacktraces", empty).await;
    assert_eq!((status, answer["flamegraph"].get("total")), (200, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_questions_are_refused_with_400_and_the_reason() {
    let site = Site::new(ServerOptions::default()).await;
    let (start, end) = (now_ms() - 1000, now_ms());
    let good = json!({"profileTypeID": CPU, "labelSelector": "{}", "start": start, "end": end, "step": 15});
    let with = |key: &str, value: Value| {
        let mut question = good.clone();
        question[key] = value;
        question
    };
    let stacks = "SelectMergeStacktraces";
    for (call, question, status, reason) in [
        (
            "ProfileTypes",
            json!({"start": end, "end": start}),
            400,
            "start time is after end",
        ),
        ("ProfileTypes", json!({"start": "yesterday"}), 400, "JSON"),
        ("LabelNames", json!({}), 400, "missing time range"),
        (
            "LabelNames",
            json!({"matchers": ["{"], "start": start, "end": end}),
            400,
            "selector",
        ),
        ("LabelValues", json!({"name": "a"}), 400, "missing time range"),
        (
            "LabelValues",
            json!({"start": start, "end": end}),
            400,
            "name is required",
        ),
        ("Series", json!({}), 400, "missing time range"),
        ("SelectSeries", with("step", json!(0)), 400, "step"),
        ("SelectSeries", with("step", json!(-1)), 400, "step"),
        ("SelectSeries", with("limit", json!("-1")), 400, "limit"),
        ("SelectSeries", with("labelSelector", json!("")), 400, "selector"),
        ("SelectSeries", with("profileTypeID", json!("cpu")), 400, "profile type"),
        (stacks, with("profileTypeID", json!("")), 400, "profile type"),
        (stacks, with("labelSelector", json!("{a=~\"(\"}")), 400, "selector"),
        (stacks, with("start", json!(end + 1)), 400, "start time is after end"),
        (stacks, with("maxNodes", json!(-1)), 400, "must be set"),
        (stacks, with("maxNodes", json!(2_000_000)), 400, "greater than allowed"),
        (stacks, with("spanSelector", json!(["xyz"])), 400, "span id"),
        (
            stacks,
            with("async", json!({"type": "ASYNC_QUERY_TYPE_FORCE"})),
            501,
            "asynchronous",
        ),
        (
            "SelectMergeProfile",
            with("end", json!(0)),
            400,
            "start time is after end",
        ),
        ("SelectMergeSpanProfile", good.clone(), 400, "span_selector"),
        ("Diff", json!({"left": good}), 400, "right"),
        ("SelectHeatmap", good.clone(), 400, "query_type"),
        ("SelectHeatmap", with("step", json!(0)), 400, "step"),
        ("SelectNothing", good.clone(), 501, "SelectNothing"),
    ] {
        let (got, answer) = site.ask(call, question.clone()).await;
        assert_eq!(got, status, "{call} {question}: {answer}");
        assert!(
            answer["message"].as_str().unwrap().contains(reason),
            "{call} {question}: {answer}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_profiles_are_refused_and_nothing_of_them_is_stored() {
    let site = Site::new(ServerOptions::default()).await;
    let now = now_ms();
    let names = Names::new(10);
    let shape = Shape {
        functions: 10,
        samples: 10,
        depth: 5,
        labelled_every: 0,
    };
    let mut good = cpu_profile(&names, shape, 1);
    good.time_nanos = now * 1_000_000;
    let with = |bytes: Vec<u8>| RawProfile {
        pprof: bytes.into(),
        ..raw("bad", &good)
    };
    let labelled = |name: &str, value: &str| RawProfile {
        labels: raw("bad", &good).labels.with(name, value),
        ..raw("bad", &good)
    };
    let packed = raw("bad", &good).pprof;
    let mut old = good.clone();
    old.time_nanos -= 2 * 3_600_000_000_000;
    let long = "x".repeat(3000);
    for (what, profile, status) in [
        ("garbage", with(b"garbage".to_vec()), 400),
        ("truncated gzip", with(packed[..packed.len() / 2].to_vec()), 400),
        ("truncated pprof", with(pprof::encode(&good)[..100].to_vec()), 400),
        ("empty gzip", with(pprof::gzip(b"")), 400),
        ("200 MB of zeros", with(pprof::gzip(&vec![0; 200 << 20])), 413),
        ("text", with(b"main;work 12\n".to_vec()), 400),
        ("long label value", labelled("a", &long), 400),
        ("long label name", labelled(&long, "a"), 400),
        ("too old", raw("bad", &old), 400),
    ] {
        let error = site.server.pusher().push(&[profile]).await.unwrap_err();
        let CallError::Refused {
            status: got, message, ..
        } = error
        else {
            panic!("{what}: {error}")
        };
        assert_eq!(got, status, "{what}: {message}");
        assert!(message.len() > "series 0: ".len() + 10, "{what}: {message}");
    }
    for (body, status) in [(b"garbage".to_vec(), 400), (pprof::gzip(&vec![0; 200 << 20]), 413)] {
        let request = site.server.post("/ingest?name=bad&format=pprof").body(body);
        assert_eq!(request.send().await.unwrap().status().as_u16(), status);
    }
    let client = site.server.querier();
    assert!(client.profile_types(0, 0).await.unwrap().is_empty());
    site.server
        .pusher()
        .push(&[raw("good", &good), with(b"garbage".to_vec())])
        .await
        .unwrap_err();
    let services = client
        .label_values("service_name", Vec::new(), now - 1000, now + 60_000)
        .await
        .unwrap();
    assert_eq!(services, ["good"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ingest_is_found_by_the_queries_of_push() {
    let site = Site::new(ServerOptions::default()).await;
    let now = now_ms();
    let request = site
        .server
        .post(&format!(
            "/ingest?name=curl.alloc_space%7Bpod%3Da%7D&from={}&until={}",
            now / 1000 - 10,
            now / 1000
        ))
        .body("main;work 30\nmain;idle 70\nmain;work 1\n");
    assert_eq!(request.send().await.unwrap().status(), 200);
    let selection = Selection {
        profile_type: "memory:alloc_space:bytes::".to_owned(),
        selector: "{service_name=\"curl\", pod=\"a\"}".to_owned(),
        start_ms: now - 60_000,
        end_ms: now,
    };
    let graph = site.server.querier().merge_stacktraces(selection, 0).await.unwrap();
    assert_eq!((graph.total, graph.max_self), (101, 70));
    assert_eq!(graph.names, ["total", "main", "idle", "work"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_is_found_as_a_profile_for_each_kind_of_event() {
    let site = Site::new(ServerOptions::default()).await;
    let now = now_ms();
    let (from, until) = (now / 1000 - 10, now / 1000);
    let path = format!("/ingest?name=shop&format=jfr&sampleRate=100&from={from}&until={until}");
    let recording = include_bytes!("fixtures/jfr/small.jfr");
    let request = site.server.post(&path).body(recording.to_vec());
    assert_eq!(request.send().await.unwrap().status(), 200);
    for (profile_type, total, names) in [
        (
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            30_000_000,
            &["total", "shop/Main.main", "shop/Cart.add"][..],
        ),
        (
            "memory:alloc_in_new_tlab_bytes:bytes:space:bytes",
            4096,
            &["total", "shop/Main.main", "shop/Cart.add"],
        ),
        (
            "mutex:delay:nanoseconds:mutex:count",
            30_000,
            &["total", "shop/Main.main"],
        ),
    ] {
        let selection = Selection {
            profile_type: profile_type.to_owned(),
            selector: "{service_name=\"shop\"}".to_owned(),
            start_ms: now - 60_000,
            end_ms: now,
        };
        let graph = site.server.querier().merge_stacktraces(selection, 0).await.unwrap();
        assert_eq!(
            (graph.total, graph.names),
            (total, names.iter().map(|name| (*name).to_owned()).collect())
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_do_not_see_each_other() {
    let options = ServerOptions {
        multi_tenant: true,
        ..ServerOptions::default()
    };
    let site = Site::new(options).await;
    let names = Names::new(10);
    let mut profile = cpu_profile(
        &names,
        Shape {
            samples: 10,
            ..Shape::default()
        },
        1,
    );
    profile.time_nanos = now_ms() * 1_000_000;
    let of = |tenant: &str| site.server.caller("").with_tenant(tenant);
    alluvium_wire::push::PushClient::new(of("one"))
        .push(&[raw("a", &profile)])
        .await
        .unwrap();
    for (tenant, count) in [("one", 2), ("two", 0)] {
        let answer: proto::ProfileTypesResponse = of(tenant)
            .call(
                "querier.v1.QuerierService/ProfileTypes",
                &proto::ProfileTypesRequest::default(),
            )
            .await
            .unwrap();
        assert_eq!(answer.profile_types.len(), count, "{tenant}");
    }
    let error = site.server.querier().profile_types(0, 0).await.unwrap_err();
    assert!(matches!(error, CallError::Refused { status: 401, .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_store_is_shared_by_many_pushes_at_once() {
    let site = Arc::new(Site::new(ServerOptions::default()).await);
    let names = Arc::new(Names::new(50));
    let now = now_ms();
    let mut tasks = Vec::new();
    for client in 0..16i64 {
        let (site, names) = (site.clone(), names.clone());
        tasks.push(tokio::spawn(async move {
            let mut total = 0;
            for round in 0..4 {
                let shape = Shape {
                    functions: 50,
                    samples: 50,
                    depth: 10,
                    labelled_every: 0,
                };
                let mut profile = cpu_profile(&names, shape, (client * 4 + round) as u64);
                profile.time_nanos = (now - 1000 - client) * 1_000_000;
                total += sum(&profile, 1);
                site.server
                    .pusher()
                    .push(&[raw(&format!("s{client}"), &profile)])
                    .await
                    .unwrap();
            }
            total
        }));
    }
    let mut total = 0;
    for task in tasks {
        total += task.await.unwrap();
    }
    let selection = Selection {
        profile_type: CPU.to_owned(),
        selector: "{}".to_owned(),
        start_ms: now - 60_000,
        end_ms: now,
    };
    assert_eq!(
        site.server
            .querier()
            .merge_stacktraces(selection, 0)
            .await
            .unwrap()
            .total,
        total
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_is_answered_in_three_formats_and_refused_with_the_reason() {
    let site = Site::new(ServerOptions::default()).await;
    let pushed = push_some(&site).await;
    let query = format!("SELECT sum(total) AS total, count(*) AS n FROM profiles WHERE profile_type = '{CPU}'");
    let post = async |path: &str, kind: &str, accept: &str, body: String| {
        let request = site
            .server
            .post(path)
            .header("content-type", kind)
            .header("accept", accept);
        let response = request.body(body).send().await.unwrap();
        let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
        (response.status().as_u16(), kind, response.bytes().await.unwrap())
    };
    let json_body = json!({ "query": query }).to_string();
    for (path, kind, body) in [
        ("/api/v1/sql", "application/json", json_body),
        ("/profile/api/v1/sql?format=json", "text/plain", query.clone()),
    ] {
        let (status, kind, body) = post(path, kind, "*/*", body).await;
        assert_eq!((status, kind.as_str()), (200, "application/json"));
        let rows: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(rows, json!([{"total": pushed.total(), "n": 4}]));
    }
    let (_, kind, body) = post("/api/v1/sql", "text/plain", "text/csv", query.clone()).await;
    assert_eq!(kind, "text/csv; charset=utf-8");
    assert_eq!(body, format!("total,n\r\n{},4\r\n", pushed.total()));
    let (_, kind, body) = post("/api/v1/sql?format=arrow", "text/plain", "*/*", query.clone()).await;
    assert_eq!(kind, "application/vnd.apache.arrow.stream");
    // An Arrow IPC stream begins with a continuation mark and the schema, and ends with such a mark and the length 0.
    assert!(body.starts_with(&[0xff; 4]) && body.ends_with(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]));
    assert!(body.windows(5).any(|window| window == b"total"));

    for (path, kind, body, reason) in [
        ("/api/v1/sql", "text/plain", "", "empty"),
        ("/api/v1/sql", "text/plain", "SELEKT 1", "SELEKT"),
        ("/api/v1/sql", "text/plain", "SELECT * FROM nothing", "nothing"),
        ("/api/v1/sql", "text/plain", "DROP TABLE profiles", "only"),
        ("/api/v1/sql", "application/json", "{}", "query"),
        ("/api/v1/sql?format=xml", "text/plain", "SELECT 1", "xml"),
    ] {
        let (status, _, body) = post(path, kind, "*/*", body.to_owned()).await;
        let error: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((status, &error["code"]), (400, &json!("invalid_argument")), "{error}");
        assert!(error["message"].as_str().unwrap().contains(reason), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_counted_by_route_and_status() {
    let site = Site::new(ServerOptions::default()).await;
    push_some(&site).await;
    site.server.get("/profile/ready").await;
    site.server.get("/wp-admin.php").await;
    let text = site.server.metrics.encode();
    for line in [
        "alluvium_http_requests_total{route=\"/push.v1.PusherService/Push\",status=\"200\"} 1",
        "alluvium_http_requests_total{route=\"/ready\",status=\"200\"} 1",
        "alluvium_http_requests_total{route=\"page\",status=\"404\"} 1",
        "alluvium_http_requests_in_flight 0",
    ] {
        assert!(text.contains(line), "{line} is not in:\n{text}");
    }
}
