//! Tests of the component from outside: it scrapes a target on this machine, and profiles arrive at a sink.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::{Html, IntoResponse, Redirect};
use axum::routing::get;
use http::HeaderMap;
use parking_lot::Mutex;

use crate::common::testing::{Body, Collector, Recorder, Running, Server, eventually, receivers, serve, targets};
use crate::pyroscope::scrape::DEFINITION;
use alluvium_lang::value::{Number, Value};
use alluvium_profile::pprof::{self, Function, Line, Location, Profile, ValueType};
use alluvium_profile::{RawProfile, pprof::gunzip};

#[derive(Default)]
struct Target {
    scrapes: AtomicUsize,
    allocated: AtomicI64,
    requests: Mutex<Vec<(String, String)>>,
}

impl Target {
    async fn start() -> (Arc<Self>, String, Server) {
        let target = Arc::new(Self::default());
        let router = Router::new()
            .route("/debug/pprof/allocs", get(allocs))
            .route("/debug/pprof/goroutine", get(goroutine))
            .route("/debug/pprof/profile", get(goroutine))
            .route("/two", get(two_samples))
            .route(
                "/text",
                get(|| async { "threadcreate profile: total 7\n7 @ 0x10\n#\t0x10\tmain+0x1\ta.go:1\n" }),
            )
            .route("/html", get(|| async { Html("<html>not here</html>") }))
            .route("/slow", get(|| tokio::time::sleep(Duration::from_mins(1))))
            .with_state(target.clone());
        let (url, server) = serve(router).await;
        (target, url.trim_start_matches("http://").to_owned(), server)
    }
}

/// Returns a memory profile with 7 objects in use. Its allocations grow by 10 at every scrape.
async fn allocs(State(target): State<Arc<Target>>) -> impl IntoResponse {
    target.scrapes.fetch_add(1, Ordering::Relaxed);
    let allocated = target.allocated.fetch_add(10, Ordering::Relaxed) + 100;
    let profile = Profile {
        sample_types: vec![
            ValueType {
                kind: "alloc_objects",
                unit: "count",
            },
            ValueType {
                kind: "inuse_objects",
                unit: "count",
            },
        ],
        functions: vec![Function {
            name: "main",
            ..Function::default()
        }],
        lines: vec![Line { function: 0, line: 1 }],
        locations: vec![Location {
            mapping: Location::NO_MAPPING,
            lines_end: 1,
            ..Location::default()
        }],
        sample_locations: vec![0],
        sample_starts: vec![0, 1],
        values: vec![allocated, 7],
        label_starts: vec![0, 0],
        ..Profile::default()
    };
    (
        [("content-type", "application/x-gzip")],
        pprof::gzip(&pprof::encode(&profile)),
    )
}

const GOROUTINE: &[u8] = &[0x0a, 4, 8, 1, 16, 2];

/// Returns a profile with two samples. Each sample is an empty message.
async fn two_samples() -> impl IntoResponse {
    [&[0x12, 0, 0x12, 0], GOROUTINE].concat()
}

async fn goroutine(
    State(target): State<Arc<Target>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> impl IntoResponse {
    let agent = headers["user-agent"].to_str().unwrap().to_owned();
    target.requests.lock().push((agent, query.unwrap_or_default()));
    ([("content-type", "application/octet-stream")], GOROUTINE)
}

/// Returns arguments that enable only one kind.
fn body(address: &str, sink: &Arc<Collector>, kind: &'static str, path: &str) -> Body {
    let mut config = Body::new();
    for other in ["block", "goroutine", "memory", "mutex", "process_cpu"] {
        let name: &'static str = match other {
            "block" => "profile.block",
            "goroutine" => "profile.goroutine",
            "memory" => "profile.memory",
            "mutex" => "profile.mutex",
            _ => "profile.process_cpu",
        };
        let mut block = Body::new().with("enabled", Value::Bool(other == kind));
        if other == kind && !path.is_empty() {
            block = block.text("path", path);
        } else {
            // The block does not set `path`, so the default path of the kind applies.
            block = block.with("delta", Value::Bool(other == "process_cpu"));
        }
        config = config.block(name, block);
    }
    Body::new()
        .with(
            "targets",
            targets(&[&[("__address__", address), ("service_name", "s")]]),
        )
        .with("forward_to", receivers([sink.clone() as _]))
        .text("scrape_interval", "50ms")
        .block("profiling_config", config)
}

fn recorder() -> Recorder {
    Recorder::new("pyroscope.scrape.test", Path::new("/nonexistent"))
}

fn values(profile: &RawProfile) -> Vec<i64> {
    let plain = gunzip(&profile.pprof, 1 << 20).unwrap();
    pprof::decode(&plain).unwrap().values
}

#[tokio::test]
async fn a_snapshot_goes_on_as_it_came() {
    let (target, address, _server) = Target::start().await;
    let sink = Arc::new(Collector::default());
    let recorder = recorder();
    let running = Running::start(&DEFINITION, &recorder, &body(&address, &sink, "goroutine", ""));
    eventually("two profiles", || sink.profiles().len() >= 2).await;
    let profile = &sink.profiles()[0];
    assert_eq!(profile.pprof.as_ref(), GOROUTINE);
    for (name, value) in [("__name__", "goroutine"), ("instance", &address), ("service_name", "s")] {
        assert_eq!(profile.labels.get(name), Some(value));
    }
    assert_eq!(profile.labels.get("__delta__"), None);
    assert_eq!(target.requests.lock()[0], ("alluvium-test".to_owned(), String::new()));
    let info = format!("{:?}", running.component.debug_info());
    for part in [
        r#""health": "up""#,
        &format!(r#""url": "http://{address}/debug/pprof/goroutine""#),
        r#""last_error": """#,
    ] {
        assert!(info.contains(part), "{info}");
    }
    let metrics = recorder.context.metrics.encode();
    assert!(
        metrics.contains("pyroscope_scrape_scrapes_total{outcome=\"forwarded\"}"),
        "{metrics}"
    );
    running.stop().await;
}

#[tokio::test]
async fn cumulative_profiles_become_increases_and_the_first_is_not_sent() {
    let (target, address, _server) = Target::start().await;
    let sink = Arc::new(Collector::default());
    let recorder = recorder();
    let running = Running::start(&DEFINITION, &recorder, &body(&address, &sink, "memory", ""));
    eventually("two profiles", || sink.profiles().len() >= 2).await;
    assert!(target.scrapes.load(Ordering::Relaxed) >= 3);
    for profile in sink.profiles() {
        assert_eq!(values(&profile), [10, 7]);
        assert_eq!(profile.labels.get("__delta__"), Some("false"));
        assert_eq!(profile.labels.get("__name__"), Some("memory"));
    }
    let metrics = recorder.context.metrics.encode();
    assert!(
        metrics.contains("pyroscope_scrape_scrapes_total{outcome=\"baseline\"} 1"),
        "{metrics}"
    );
    running.stop().await;
}

#[tokio::test]
async fn a_profile_over_time_is_asked_for_with_its_seconds() {
    let (target, address, _server) = Target::start().await;
    let sink = Arc::new(Collector::default());
    let body = body(&address, &sink, "process_cpu", "").text("scrape_interval", "2s");
    let running = Running::start(&DEFINITION, &recorder(), &body);
    eventually("a profile", || !sink.profiles().is_empty()).await;
    assert_eq!(target.requests.lock()[0].1, "seconds=1");
    running.stop().await;
}

#[tokio::test]
async fn a_profile_as_text_goes_on_as_pprof() {
    let (_target, address, _server) = Target::start().await;
    let sink = Arc::new(Collector::default());
    let running = Running::start(&DEFINITION, &recorder(), &body(&address, &sink, "goroutine", "/text"));
    eventually("a profile", || !sink.profiles().is_empty()).await;
    assert_eq!(values(&sink.profiles()[0]), [7]);
    running.stop().await;
}

#[tokio::test]
async fn wrong_answers_are_shown_at_their_target() {
    let (_target, address, _server) = Target::start().await;
    for (path, reason) in [
        ("/html", "not a pprof profile but HTML"),
        ("/nowhere", "HTTP status 404 Not Found"),
        ("/slow", "did not respond within 100ms"),
    ] {
        let sink = Arc::new(Collector::default());
        let recorder = recorder();
        let body = body(&address, &sink, "goroutine", path).text("scrape_timeout", "100ms");
        let running = Running::start(&DEFINITION, &recorder, &body);
        let info = || format!("{:?}", running.component.debug_info());
        eventually(reason, || info().contains(reason)).await;
        assert!(info().contains(r#""health": "down""#) && sink.profiles().is_empty());
        running.stop().await;
    }
}

#[tokio::test]
async fn a_redirected_scrape_sends_secrets_to_the_same_host_only() {
    let received: Arc<Mutex<Vec<String>>> = Arc::default();
    let recorded = received.clone();
    let profile = move |headers: HeaderMap| {
        let value = |name: &str| {
            headers
                .get(name)
                .map_or("-", |value| value.to_str().unwrap())
                .to_owned()
        };
        let line = format!("{} {}", value("authorization"), value("x-key"));
        recorded.lock().push(line);
        std::future::ready(([("content-type", "application/octet-stream")], GOROUTINE))
    };
    let other = |headers: HeaderMap| {
        let host = headers["host"].to_str().unwrap().replace("127.0.0.1", "localhost");
        std::future::ready(Redirect::temporary(&format!("http://{host}/profile")))
    };
    let router = Router::new()
        .route("/profile", get(profile))
        .route("/same", get(|| async { Redirect::to("/profile") }))
        .route("/other", get(other))
        .route("/loop", get(|| async { Redirect::to("/loop") }));
    let (url, _server) = serve(router).await;
    let secret = |text: &str| Value::Secret(text.into());
    let body = |path: &str, sink: &Arc<Collector>| {
        let headers = Value::object([("X-Key", Value::array([secret("key")]))]);
        body(url.trim_start_matches("http://"), sink, "goroutine", path)
            .with("bearer_token", secret("hush\n"))
            .with("http_headers", headers)
    };
    for (path, expected) in [("/same", "Bearer hush key"), ("/other", "- -")] {
        let sink = Arc::new(Collector::default());
        let running = Running::start(&DEFINITION, &recorder(), &body(path, &sink));
        eventually("a profile", || !sink.profiles().is_empty()).await;
        assert_eq!(received.lock().last().unwrap(), expected, "{path}");
        running.stop().await;
    }
    received.lock().clear();
    for (path, follow_redirects, reason) in [
        ("/same", false, "HTTP status 303 See Other"),
        ("/other", false, "HTTP status 307 Temporary Redirect"),
        ("/loop", true, "the server redirected the request more than 9 times"),
    ] {
        let body = body(path, &Arc::default()).with("follow_redirects", Value::Bool(follow_redirects));
        let running = Running::start(&DEFINITION, &recorder(), &body);
        let info = || format!("{:?}", running.component.debug_info());
        eventually(reason, || info().contains(reason)).await;
        running.stop().await;
    }
    assert!(received.lock().is_empty());
}

#[tokio::test]
async fn what_is_beyond_a_limit_is_not_forwarded_and_said() {
    let (_target, address, _server) = Target::start().await;
    let number = |number: i64| Value::Number(Number::Int(number));
    for (limits, reason) in [
        (
            Body::new().with("max_profile_bytes", number(5)),
            "the profile is larger than the 5 bytes of max_profile_bytes",
        ),
        (
            Body::new().with("max_profile_samples", number(1)),
            "the profile has 2 samples, but the limit of max_profile_samples is 1",
        ),
    ] {
        let sink = Arc::new(Collector::default());
        let body = body(&address, &sink, "goroutine", "/two").block("limits", limits);
        let running = Running::start(&DEFINITION, &recorder(), &body);
        let info = || format!("{:?}", running.component.debug_info());
        eventually(reason, || info().contains(reason)).await;
        assert!(sink.profiles().is_empty());
        let wide = Body::new().with("max_profile_samples", number(2));
        let body = self::body(&address, &sink, "goroutine", "/two").block("limits", wide);
        running.component.update(body.arguments(&DEFINITION)).unwrap();
        eventually("a profile within the limits", || !sink.profiles().is_empty()).await;
        running.stop().await;
    }

    let sink = Arc::new(Collector::default());
    let recorder = recorder();
    let three: Vec<Vec<(&str, &str)>> = ["a", "b", "c"]
        .map(|service| vec![("__address__", address.as_str()), ("service_name", service)])
        .to_vec();
    let three: Vec<&[(&str, &str)]> = three.iter().map(Vec::as_slice).collect();
    let body = body(&address, &sink, "goroutine", "")
        .with("targets", targets(&three))
        .block("limits", Body::new().with("max_targets", number(2)));
    let running = Running::start(&DEFINITION, &recorder, &body);
    let message = "2 profiles are scraped, 1 targets are ignored: max_targets is 2";
    eventually("the health message", || recorder.health().1 == message).await;
    running.stop().await;
}

#[tokio::test]
async fn targets_come_and_go_and_receivers_change_at_once() {
    let (target, address, _server) = Target::start().await;
    let (first, second) = (Arc::new(Collector::default()), Arc::new(Collector::default()));
    let running = Running::start(&DEFINITION, &recorder(), &body(&address, &first, "goroutine", ""));
    eventually("a profile", || !first.profiles().is_empty()).await;
    let swapped = body(&address, &second, "goroutine", "");
    running.component.update(swapped.arguments(&DEFINITION)).unwrap();
    eventually("a profile at the new receiver", || !second.profiles().is_empty()).await;

    let body_without_targets = swapped.with("targets", targets(&[]));
    running
        .component
        .update(body_without_targets.arguments(&DEFINITION))
        .unwrap();
    eventually("the target to go", || {
        format!("{:?}", running.component.debug_info()) == r#"{"targets": []}"#
    })
    .await;
    let scrapes = target.requests.lock().len();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(target.requests.lock().len() <= scrapes + 1);
    running.stop().await;
}

#[tokio::test]
async fn a_target_without_an_address_makes_the_component_unhealthy() {
    let sink = Arc::new(Collector::default());
    let recorder = recorder();
    let body = body("", &sink, "goroutine", "");
    let running = Running::start(&DEFINITION, &recorder, &body);
    eventually("the health message", || {
        recorder.health().1.contains("1 cannot be scraped")
    })
    .await;
    running.stop().await;
}
