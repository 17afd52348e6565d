//! The plain routes that old pages, scripts and `curl` use: `/pyroscope/render`, `render-diff` and `label-values`.
//!
//! Expected values are those of the pushed profiles, and of the equivalent calls of `querier.v1`.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use alluvium::query::{QueryEngine, QueryError, QueryLimits};
use alluvium::server::ServerOptions;
use alluvium_admin::listen::ListenOptions;
use alluvium_profile::pprof;
use alluvium_wire::querier::Selection;
use serde_json::{Value, json};

use crate::harness::{Nothing, Nowhere, TestServer};
use crate::http_store::{CPU, Pushed, SAMPLES, Site, push_some};
use crate::program::other;

const CART: &str = "{service_name=\"cart\"}";

/// Returns a path with parameters.
fn path(route: &str, parameters: &[(&str, &str)]) -> String {
    let query = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(parameters)
        .finish();
    format!("{route}?{query}")
}

/// Returns status and body as JSON; errors are JSON as well.
async fn get(site: &Site, route: &str, parameters: &[(&str, &str)]) -> (u16, Value) {
    let (status, text) = site.server.get(&path(route, parameters)).await;
    let body = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{route} {parameters:?}: {error}: {text}"));
    (status, body)
}

/// The parameters, as texts, of a query over the time of all pushed profiles.
struct Texts {
    query: String,
    from: String,
    until: String,
}

impl Texts {
    fn of(pushed: &Pushed, selector: &str) -> Self {
        let (from, until) = pushed.range();
        Self {
            query: format!("{CPU}{selector}"),
            from: from.to_string(),
            until: until.to_string(),
        }
    }

    fn parameters<'a>(&'a self, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let mut all = vec![
            ("query", self.query.as_str()),
            ("from", &self.from),
            ("until", &self.until),
        ];
        all.extend(more);
        all
    }
}

fn sum(samples: &Value) -> i64 {
    let samples = samples.as_array().unwrap().iter();
    samples.map(|value| value.as_i64().unwrap()).sum()
}

/// Converts levels from protobuf's JSON, where numbers are texts, to levels of a flamebearer.
fn levels(of_call: &Value) -> Value {
    let number = |value: &Value| value.as_str().unwrap().parse::<i64>().unwrap();
    let level = |level: &Value| {
        level["values"]
            .as_array()
            .unwrap()
            .iter()
            .map(number)
            .collect::<Vec<_>>()
    };
    json!(of_call.as_array().unwrap().iter().map(level).collect::<Vec<_>>())
}

fn with(mut question: Value, name: &str, value: i64) -> Value {
    question[name] = json!(value);
    question
}

/// Converts a number from protobuf's JSON, where it is a text.
fn number(of_call: &Value) -> Value {
    json!(of_call.as_str().unwrap().parse::<i64>().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn render_has_the_flame_graph_of_the_call_and_a_time_line_of_the_same_sum() {
    let site = Site::new(ServerOptions::default()).await;
    let pushed = push_some(&site).await;
    let (start, end) = pushed.range();
    for (selector, limit) in [("{}", "100"), (CART, "16"), ("", "8192")] {
        let texts = Texts::of(&pushed, selector);
        let asked = texts.parameters(&[("maxNodes", limit), ("format", "json")]);
        let (status, answer) = get(&site, "/pyroscope/render", &asked).await;
        assert_eq!(status, 200, "{answer}");
        let selector = if selector.is_empty() { "{}" } else { selector };
        let question = json!({
            "profileTypeID": CPU, "labelSelector": selector, "start": start, "end": end, "maxNodes": limit,
        });
        let (_, called) = site.ask("SelectMergeStacktraces", question).await;
        let (graph, called) = (&answer["flamebearer"], &called["flamegraph"]);
        assert_eq!(graph["names"], called["names"]);
        assert_eq!(graph["levels"], levels(&called["levels"]));
        assert_eq!(graph["numTicks"], number(&called["total"]));
        assert_eq!(graph["maxSelf"], number(&called["maxSelf"]));
        let expected = if selector == CART {
            pushed.totals["cart"]
        } else {
            pushed.total()
        };
        assert_eq!(graph["numTicks"], json!(expected));
        assert_eq!(sum(&answer["timeline"]["samples"]), expected);
        assert_eq!(answer["timeline"]["durationDelta"], json!(15));
        assert_eq!(answer["timeline"]["startTime"], json!(start / 15_000 * 15));
        assert_eq!((&answer["version"], &answer["groups"]), (&json!(1), &json!(null)));
        assert_eq!(
            answer["metadata"],
            json!({
                "format": "single", "spyName": "", "sampleRate": 1_000_000_000, "units": "samples", "name": "cpu",
            })
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_have_a_time_line_for_each_value_of_the_first_label() {
    let site = Site::new(ServerOptions::default()).await;
    let pushed = push_some(&site).await;
    let texts = Texts::of(&pushed, "{region=\"eu\"}");
    let asked = texts.parameters(&[("groupBy", "service_name"), ("groupBy", "region")]);
    let (_, answer) = get(&site, "/pyroscope/render", &asked).await;
    let groups = answer["groups"].as_object().unwrap();
    let sums: BTreeMap<&str, i64> = groups
        .iter()
        .map(|(name, line)| (name.as_str(), sum(&line["samples"])))
        .collect();
    assert_eq!(sums, pushed.totals);
    assert_eq!(sum(&answer["timeline"]["samples"]), pushed.total());

    // No series has the label `no_such_label`, so all profiles are in the group `*`. The server replaces an unknown
    // aggregation by a sum.
    let at_once = texts.parameters(&[("groupBy", "no_such_label"), ("aggregation", "median")]);
    let (_, answer) = get(&site, "/pyroscope/render", &at_once).await;
    assert_eq!(sum(&answer["groups"]["*"]["samples"]), pushed.total());
    // In a long range, one step contains all profiles, so the mean is not the sum.
    let (_, until) = pushed.range();
    let month = [
        ("query", texts.query.as_str()),
        ("from", "now-60d"),
        ("until", &(until + 7_200_000).to_string()),
        ("aggregation", "avg"),
    ]
    .map(|(name, value)| (name, value.to_owned()));
    let month: Vec<(&str, &str)> = month.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let (_, answer) = get(&site, "/pyroscope/render", &month).await;
    assert_eq!(answer["timeline"]["durationDelta"], json!(3600));
    let mean = sum(&answer["timeline"]["samples"]);
    assert!(mean > 0 && mean < pushed.total(), "{mean} of {}", pushed.total());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_merged_profile_is_there_as_pprof_for_whoever_can_only_get() {
    let site = Site::new(ServerOptions::default()).await;
    let pushed = push_some(&site).await;
    let texts = Texts::of(&pushed, CART);
    let url = path("/pyroscope/render", &texts.parameters(&[("format", "pprof")]));
    let request = site.server.client.get(format!("{}{url}", site.server.url));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/x-pprof");
    let plain = pprof::gunzip(&response.bytes().await.unwrap(), 1 << 24).unwrap();
    let profile = pprof::decode(&plain).unwrap();
    let sum: i64 = (0..profile.sample_count())
        .map(|sample| profile.values_of(sample)[0])
        .sum();
    assert_eq!(sum, pushed.totals["cart"]);
}

/// Returns the total nanoseconds that `go tool pprof` reports for a URL.
fn go_total(url: &str) -> i64 {
    let folder = tempfile::tempdir().unwrap();
    let mut tool = Command::new("go");
    tool.args([
        "tool",
        "pprof",
        "-top",
        "-unit=ns",
        "-nodecount=1",
        "-symbolize=none",
        url,
    ]);
    let output = tool.env("PPROF_TMPDIR", folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let (_, rest) = text
        .split_once("% of ")
        .unwrap_or_else(|| panic!("{url}: {text}{errors}"));
    let (nanos, _) = rest.split_once("ns total").unwrap();
    nanos.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn go_tool_pprof_takes_a_merge_and_a_single_profile_by_the_addresses_that_the_page_copies() {
    if other("go", &["version"], "golang-go").is_none() {
        return;
    }
    let site = Site::new(ServerOptions::default()).await;
    let pushed = push_some(&site).await;
    let (start, end) = pushed.range();
    let total = async |from: i64, until: i64| {
        let (query, from, until) = (format!("{CPU}{CART}"), from.to_string(), until.to_string());
        let asked = [
            ("query", query.as_str()),
            ("from", from.as_str()),
            ("until", until.as_str()),
            ("format", "pprof"),
        ];
        let url = format!("{}{}", site.server.url, path("/pyroscope/render", &asked));
        tokio::task::spawn_blocking(move || go_total(&url)).await.unwrap()
    };
    assert_eq!(total(start, end).await, pushed.totals["cart"]);
    // The page requests a single profile by its labels and its millisecond.
    let first = end - 120_000;
    let singles = [
        total(first, first + 1).await,
        total(first + 30_000, first + 30_001).await,
    ];
    assert!(singles.iter().all(|nanos| *nanos > 0), "{singles:?}");
    assert_eq!(singles.iter().sum::<i64>(), pushed.totals["cart"]);
}

/// Returns an attribute of a line of a Graphviz graph.
fn attribute(line: &str, name: &str) -> Option<i64> {
    let (_, rest) = line.rsplit_once(&format!(" {name}="))?;
    rest.split([' ', ']']).next()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn dot_has_the_functions_of_the_flame_graph_with_their_own_values() {
    let site = Site::new(ServerOptions::default()).await;
    let pushed = push_some(&site).await;
    let texts = Texts::of(&pushed, CART);
    let draw = async |more: &[(&str, &str)]| {
        let (status, text) = site
            .server
            .get(&path("/pyroscope/render", &texts.parameters(more)))
            .await;
        assert_eq!(status, 200, "{text}");
        text
    };
    let all = draw(&[("format", "dot"), ("max-nodes", "10000")]).await;
    assert!(all.starts_with("digraph ") && all.ends_with("}\n"), "{all}");
    let mut own: BTreeMap<String, i64> = BTreeMap::new();
    let (start_ms, end_ms) = pushed.range();
    let selection = Selection {
        profile_type: CPU.to_owned(),
        selector: CART.to_owned(),
        start_ms,
        end_ms,
    };
    let graph = site
        .server
        .querier()
        .merge_stacktraces(selection, 100_000)
        .await
        .unwrap();
    for depth in 1..graph.levels.len() {
        for block in graph.blocks(depth) {
            *own.entry(block.name.to_owned()).or_default() += block.own;
        }
    }
    let drawn = all
        .lines()
        .filter(|line| line.starts_with('n') && line.contains(" [label=\""));
    let drawn: BTreeMap<String, i64> = drawn
        .filter(|line| !line.contains(" -> "))
        .map(|line| {
            let (_, label) = line.split_once("[label=\"").unwrap();
            let (name, _) = label.split_once("\\n").unwrap();
            (name.to_owned(), attribute(line, "own").unwrap())
        })
        .collect();
    assert_eq!(drawn, own);
    assert_eq!(drawn.values().sum::<i64>(), pushed.totals["cart"]);

    let boxes = |text: &str| text.lines().filter(|line| attribute(line, "own").is_some()).count();
    let few = draw(&[("format", "dot"), ("maxNodes", "5")]).await;
    assert_eq!(boxes(&few), 5);
    assert_eq!(boxes(&draw(&[("format", "dot")]).await), 100.min(own.len()));
    assert_eq!(few, draw(&[("format", "dot"), ("maxNodes", "5")]).await);

    let none = Texts::of(&pushed, "{service_name=\"none\"}");
    let asked = path("/pyroscope/render", &none.parameters(&[("format", "dot")]));
    let request = site.server.client.get(format!("{}{asked}", site.server.url));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
    assert_eq!(response.text().await.unwrap(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_difference_is_that_of_the_call() {
    let site = Site::new(ServerOptions::default()).await;
    let pushed = push_some(&site).await;
    let (start, end) = pushed.range();
    let (left, right) = (
        Texts::of(&pushed, CART),
        Texts::of(&pushed, "{service_name=\"search\"}"),
    );
    let asked = [
        ("leftQuery", left.query.as_str()),
        ("leftFrom", &left.from),
        ("leftUntil", &left.until),
        ("rightQuery", &right.query),
        ("rightFrom", &right.from),
        ("rightUntil", &right.until),
        ("maxNodes", "64"),
    ];
    let (status, answer) = get(&site, "/pyroscope/render-diff", &asked).await;
    assert_eq!(status, 200, "{answer}");
    let side = |selector: &str| {
        let question = json!({"profileTypeID": CPU, "labelSelector": selector, "start": start, "end": end});
        with(question, "maxNodes", 64)
    };
    let question = json!({"left": side(CART), "right": side("{service_name=\"search\"}")});
    let (_, called) = site.ask("Diff", question).await;
    let (graph, called) = (&answer["flamebearer"], &called["flamegraph"]);
    assert_eq!(graph["names"], called["names"]);
    assert_eq!(graph["levels"], levels(&called["levels"]));
    assert_eq!(graph["numTicks"], number(&called["total"]));
    assert_eq!(answer["leftTicks"], json!(pushed.totals["cart"]));
    assert_eq!(answer["rightTicks"], json!(pushed.totals["search"]));
    assert_eq!(answer["metadata"]["format"], json!("double"));
    assert_eq!(answer["timeline"], json!(null));
}

#[tokio::test(flavor = "multi_thread")]
async fn label_values_are_an_array_with_and_without_a_range() {
    let site = Site::new(ServerOptions::default()).await;
    let pushed = push_some(&site).await;
    let (from, until) = pushed.range();
    let (from, until) = (from.to_string(), until.to_string());
    let route = "/pyroscope/label-values";
    for times in [
        &[("from", from.as_str()), ("until", &until)][..],
        &[("from", "now-1h")],
        &[],
    ] {
        let ask = async |label: &str| get(&site, route, &[&[("label", label)], times].concat()).await;
        assert_eq!(ask("service_name").await, (200, json!(["cart", "checkout", "search"])));
        assert_eq!(ask("__name__").await, (200, json!([CPU, SAMPLES])));
        assert_eq!(ask("nothing").await, (200, json!([])));
    }
    for label in ["service_name", "__name__"] {
        let before = [("label", label), ("from", "now-2h"), ("until", "now-1h")];
        assert_eq!(get(&site, route, &before).await, (200, json!([])));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_answers_under_the_prefix_too_and_is_counted_by_its_name() {
    for prefix in ["/profile", "/deep/er"] {
        let options = ServerOptions {
            prefix: prefix.to_owned(),
            ..ServerOptions::default()
        };
        let site = Site::new(options).await;
        let pushed = push_some(&site).await;
        let texts = Texts::of(&pushed, "{}");
        let sides = ["left", "right"].map(|side| {
            let [query, from, until] = ["Query", "From", "Until"].map(|name| format!("{side}{name}"));
            [(query, &texts.query), (from, &texts.from), (until, &texts.until)]
        });
        let sides = sides.as_flattened();
        let sides: Vec<(&str, &str)> = sides
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        for (route, parameters) in [
            ("/pyroscope/render", texts.parameters(&[])),
            ("/pyroscope/render-diff", sides),
            ("/pyroscope/label-values", vec![("label", "region")]),
        ] {
            let plain = get(&site, route, &parameters).await;
            assert_eq!(plain.0, 200, "{route}: {}", plain.1);
            assert_eq!(get(&site, &format!("{prefix}{route}"), &parameters).await, plain);
            let line = format!("alluvium_http_requests_total{{route=\"{route}\",status=\"200\"}} 2");
            let text = site.server.metrics.encode();
            assert!(text.contains(&line), "{line} is not in:\n{text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_questions_have_the_status_of_pyroscope_and_the_reason() {
    let site = Site::new(ServerOptions::default()).await;
    let (render, diff) = ("/pyroscope/render", "/pyroscope/render-diff");
    let query = format!("{CPU}{{service_name=\"pyroscope\"}}");
    let good = [("query", query.as_str()), ("from", "now-15m"), ("until", "now")];
    let sides = [
        ("leftQuery", query.as_str()),
        ("leftFrom", "now-30m"),
        ("leftUntil", "now-15m"),
        ("rightQuery", &query),
        ("rightFrom", "now-15m"),
        ("rightUntil", "now"),
    ];
    let other = "memory:alloc_objects:count:space:bytes{}";
    let by_label = format!("{{__name__=\"{CPU}\", service_name=~\"py.*\"}}");
    let escaped = "{service_name=\\\"test\\\"}";
    let half = "invalid_format{service_name=\"test\"}";
    for (route, name, value, status, reason) in [
        (render, "maxNodes", "1024", 200, ""),
        (render, "max-nodes", "1024", 200, ""),
        (render, "maxNodes", "0", 200, ""),
        (render, "maxNodes", "invalid", 200, ""),
        (render, "aggregation", "invalid", 200, ""),
        (render, "groupBy", "service_name", 200, ""),
        (render, "query", &by_label, 200, ""),
        (render, "query", CPU, 200, ""),
        (render, "from", "", 200, ""),
        (render, "maxNodes", "-1", 400, "must be set"),
        (render, "maxNodes", "2000000", 400, "greater than allowed"),
        (render, "from", "0", 400, "missing time range"),
        (render, "until", "0", 400, "missing time range"),
        (render, "from", "now+1h", 400, "start time is after end"),
        (render, "from", "yesterday", 400, "from: `yesterday` is not a time"),
        (render, "query", "", 400, "query: a profile type"),
        (render, "query", "bad_query", 400, "query: profile type `bad_query`"),
        (
            render,
            "query",
            "{service_name=\"test\"}",
            400,
            "the profile type before the selector",
        ),
        (render, "query", escaped, 400, "query: label selector"),
        (render, "query", half, 400, "`invalid_format`"),
        (render, "query", "cpu{a=~\"(\"}", 400, "invalid regular expression"),
        (diff, "maxNodes", "10", 200, ""),
        (diff, "maxNodes", "2000000", 400, "greater than allowed"),
        (diff, "leftQuery", "", 400, "leftQuery: a profile type"),
        (diff, "rightQuery", "", 400, "rightQuery: a profile type"),
        (diff, "leftQuery", "bad_query", 400, "leftQuery: profile type"),
        (diff, "rightQuery", half, 400, "rightQuery: profile type"),
        (
            diff,
            "leftQuery",
            "{}",
            400,
            "leftQuery: the profile type before the selector",
        ),
        (
            diff,
            "rightQuery",
            other,
            400,
            "both sides must have the same profile type",
        ),
        (diff, "leftFrom", "0", 400, "leftFrom and leftUntil"),
        (diff, "leftUntil", "0", 400, "missing time range"),
        (diff, "rightFrom", "0", 400, "missing time range"),
        (diff, "rightUntil", "0", 400, "missing time range"),
        (diff, "rightFrom", "now+1d", 400, "start time is after end"),
    ] {
        let mut asked = if route == render { good.to_vec() } else { sides.to_vec() };
        asked.retain(|(given, _)| *given != name);
        asked.push((name, value));
        let (got, answer) = get(&site, route, &asked).await;
        assert_eq!(got, status, "{route} {name}={value}: {answer}");
        if status == 400 {
            assert_eq!(answer["code"], json!("invalid_argument"), "{answer}");
            let message = answer["message"].as_str().unwrap();
            assert!(message.contains(reason), "{route} {name}={value}: {message}");
        }
        // A request for a Graphviz graph has the same status.
        if route == render {
            asked.push(("format", "dot"));
            assert_eq!(
                site.server.get(&path(route, &asked)).await.0,
                status,
                "{name}={value} as dot"
            );
        }
    }
    let (status, answer) = get(&site, "/pyroscope/label-values", &[("from", "now-1h")]).await;
    assert_eq!((status, &answer["code"]), (400, &json!("invalid_argument")));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_methods_are_refused_and_told_what_to_use() {
    let site = Site::new(ServerOptions::default()).await;
    for route in [
        "/pyroscope/render",
        "/profile/pyroscope/render-diff",
        "/pyroscope/label-values",
    ] {
        let url = format!("{}{route}", site.server.url);
        for method in ["POST", "PUT", "DELETE", "PATCH", "HEAD"] {
            let request = site.server.client.request(method.parse().unwrap(), &url);
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), 405, "{method} {route}");
            assert_eq!(response.headers()["allow"], "GET", "{method} {route}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_see_their_own_and_must_say_who_they_are() {
    let options = ServerOptions {
        multi_tenant: true,
        ..ServerOptions::default()
    };
    let site = Site::new(options).await;
    let server = &site.server;
    let pushed = server
        .post("/ingest?name=shop")
        .header("x-scope-orgid", "one")
        .body("main;work 3\n");
    assert_eq!(pushed.send().await.unwrap().status(), 200);
    let url = format!("{}/pyroscope/label-values?label=service_name", server.url);
    assert_eq!(server.client.get(&url).send().await.unwrap().status(), 401);
    for (tenant, status, answer) in [
        ("one", 200, "[\"shop\"]"),
        ("two", 200, "[]"),
        ("one|two", 200, "[\"shop\"]"),
        ("a/b", 400, ""),
    ] {
        let request = server.client.get(&url).header("x-scope-orgid", tenant);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status, "{tenant}");
        let text = response.text().await.unwrap();
        assert!(status != 200 || text == answer, "{tenant}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_waits_for_a_place_among_the_others() {
    let limits = QueryLimits {
        max_concurrent_queries: 1,
        ..QueryLimits::default()
    };
    let engine = QueryEngine::new(Arc::new(Nothing), limits).unwrap();
    let server = TestServer::start_over(
        Arc::new(Nowhere),
        engine.clone(),
        ServerOptions::default(),
        ListenOptions::default(),
    )
    .await;
    let side = |name: &str| format!("{name}={CPU}%7B%7D");
    for route in [
        format!("render?{}", side("query")),
        format!("render?{}&format=dot", side("query")),
        format!("render-diff?{}&{}", side("leftQuery"), side("rightQuery")),
        "label-values?label=region".to_owned(),
    ] {
        let path = format!("/pyroscope/{route}");
        let (began, begins) = tokio::sync::oneshot::channel();
        let other = engine.clone();
        let other = tokio::spawn(async move {
            let hold = async {
                began.send(()).unwrap();
                std::future::pending::<Result<(), QueryError>>().await
            };
            other.admitted(hold).await
        });
        begins.await.unwrap();
        let mut answer = Box::pin(server.get(&path));
        let early = tokio::time::timeout(Duration::from_millis(300), &mut answer).await;
        assert!(early.is_err(), "{path} did not wait: {early:?}");
        other.abort();
        assert_eq!(answer.await.0, 200, "{path}");
    }
}
