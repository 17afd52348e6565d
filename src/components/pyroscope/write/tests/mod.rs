//! Tests of the component from outside: profiles go into the receiver, and requests reach an endpoint on this machine.

mod refused;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use prost::Message as _;

use crate::common::testing::{Body, Recorder, Running, Server, eventually, serve};
use crate::pyroscope::write::DEFINITION;
use alluvium_lang::value::{Number, Value};
use alluvium_pipeline::component::HealthState;
use alluvium_profile::upload::Upload;
use alluvium_profile::{Labels, RawProfile, SinkError, SinkErrorKind};
use alluvium_wire::connect::{Code, ConnectError};
use alluvium_wire::proto::push::PushRequest;
use alluvium_wire::queue_report::{QUEUE_HEADER, QueueReport};
use alluvium_wire::refusals::{self, Position};

/// Decides whether the fake endpoint accepts a request, or which error it returns.
type Verdict = Box<dyn Fn(&PushRequest) -> Result<(), ConnectError> + Send + Sync>;

struct Endpoint {
    verdict: Mutex<Verdict>,
    requests: AtomicUsize,
    is_down: AtomicBool,
    /// Number of requests with the upload `away`.
    away: AtomicUsize,
    /// Labels and id of each accepted profile.
    accepted: Mutex<Vec<(String, String)>>,
    headers: Mutex<HeaderMap>,
    /// The reports about the component's queue in the headers of the requests.
    reports: Mutex<Vec<QueueReport>>,
}

impl Endpoint {
    async fn start() -> (Arc<Self>, String, Server) {
        let endpoint = Arc::new(Self {
            verdict: Mutex::new(Box::new(|_| Ok(()))),
            requests: AtomicUsize::new(0),
            is_down: AtomicBool::new(false),
            away: AtomicUsize::new(0),
            accepted: Mutex::default(),
            headers: Mutex::default(),
            reports: Mutex::default(),
        });
        let router = Router::new()
            .route("/profile/push.v1.PusherService/Push", post(push))
            .route("/profile/ingest", post(ingest))
            .with_state(endpoint.clone());
        let (url, server) = serve(router).await;
        (endpoint, format!("{url}/profile"), server)
    }

    fn set_verdict(&self, verdict: impl Fn(&PushRequest) -> Result<(), ConnectError> + Send + Sync + 'static) {
        *self.verdict.lock() = Box::new(verdict);
    }

    fn services(&self) -> Vec<String> {
        let mut services: Vec<String> = self
            .accepted
            .lock()
            .iter()
            .map(|(service, _)| service.clone())
            .collect();
        services.sort();
        services
    }
}

async fn push(State(endpoint): State<Arc<Endpoint>>, headers: HeaderMap, body: Bytes) -> Response {
    endpoint.requests.fetch_add(1, Ordering::Relaxed);
    if endpoint.is_down.load(Ordering::Relaxed) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let report = headers[QUEUE_HEADER].to_str().ok().and_then(QueueReport::of_header);
    endpoint.reports.lock().extend(report);
    *endpoint.headers.lock() = headers;
    let request = PushRequest::decode(body).unwrap();
    match (endpoint.verdict.lock())(&request) {
        Ok(()) => {
            let mut accepted = endpoint.accepted.lock();
            for series in &request.series {
                for sample in &series.samples {
                    accepted.push((service(&series.labels), sample.id.clone()));
                }
            }
            ([("content-type", "application/proto")], "").into_response()
        }
        Err(error) => (
            StatusCode::from_u16(error.status).unwrap(),
            [("content-type", "application/json")],
            error.to_json(),
        )
            .into_response(),
    }
}

/// Accepts all uploads except those with the name `bad`, and the first two requests with the upload `away`. The errors
/// are those of Pyroscope.
async fn ingest(
    State(endpoint): State<Arc<Endpoint>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let query = query.unwrap_or_default();
    let refusal = if query.starts_with("name=bad") {
        Some("invalid_argument: too old")
    } else if query.starts_with("name=away") && endpoint.away.fetch_add(1, Ordering::Relaxed) < 2 {
        Some("unavailable: the service stops")
    } else {
        None
    };
    if let Some(refusal) = refusal {
        let message = format!("cannot push: push series with index 0 and id  failed: {refusal}");
        let error = ConnectError::new(Code::Unknown, message).to_json();
        return (StatusCode::UNPROCESSABLE_ENTITY, error).into_response();
    }
    assert_eq!(body, "a;b");
    let id = headers["x-alluvium-upload-id"].to_str().unwrap().to_owned();
    endpoint.accepted.lock().push((query, id));
    StatusCode::OK.into_response()
}

fn service(labels: &[alluvium_wire::proto::types::LabelPair]) -> String {
    let pairs: Vec<String> = labels
        .iter()
        .map(|pair| match pair.name.as_str() {
            "service_name" => pair.value.clone(),
            name => format!("{name}={}", pair.value),
        })
        .collect();
    pairs.join(",")
}

fn body(url: &str) -> Body {
    Body::new().block("endpoint", fast(url))
}

/// Arguments of an endpoint with short waits.
fn fast(url: &str) -> Body {
    Body::new()
        .text("url", url)
        .text("min_backoff_period", "5ms")
        .text("max_backoff_period", "20ms")
        .block("queue", Body::new().text("batch_wait", "10ms"))
}

fn profile(service: &str) -> RawProfile {
    RawProfile {
        labels: Labels::from_pairs([("service_name", service)]),
        id: "".into(),
        pprof: Bytes::from_static(b"pprof"),
    }
}

async fn append(recorder: &Recorder, services: impl IntoIterator<Item = usize>) {
    for service in services {
        let errors = recorder
            .receiver()
            .append(vec![profile(&format!("s{service:04}"))])
            .await;
        assert!(errors.is_empty(), "{errors:?}");
    }
}

fn names(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|service| format!("s{service:04}")).collect()
}

fn metric(recorder: &Recorder, start: &str) -> f64 {
    let text = recorder.context.metrics.encode();
    text.lines()
        .filter(|line| line.starts_with(start))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_is_sent_as_connect_wants_it() {
    let (endpoint, url, _server) = Endpoint::start().await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let endpoint_body = fast(&url)
        .with("headers", Value::object([("X-Scope-OrgID", Value::string("tenant"))]))
        .block("basic_auth", Body::new().text("username", "u").text("password", "p"));
    let body = Body::new()
        .with("external_labels", Value::object([("env", Value::string("dev"))]))
        .block("endpoint", endpoint_body);
    let running = Running::start(&DEFINITION, &recorder, &body);
    let labels = [
        ("__name__", "cpu"),
        ("__delta__", "false"),
        ("__address__", "x"),
        ("env", "old"),
        ("service_name", "s"),
    ];
    let profile = RawProfile {
        labels: Labels::from_pairs(labels),
        ..profile("")
    };
    assert!(recorder.receiver().append(vec![profile]).await.is_empty());
    eventually("the profile", || endpoint.accepted.lock().len() == 1).await;
    assert_eq!(endpoint.services(), ["__delta__=false,__name__=cpu,env=dev,s"]);
    assert_eq!(endpoint.accepted.lock()[0].1.len(), 36, "the id must be a UUID");
    let headers = endpoint.headers.lock().clone();
    let report = QueueReport::of_header(headers[QUEUE_HEADER].to_str().unwrap()).unwrap();
    assert_eq!(
        (
            report.component.as_str(),
            report.profiles,
            report.failures,
            report.dropped
        ),
        ("pyroscope.write.test", 0, 0, 0)
    );
    assert!(!report.host.is_empty());
    for (name, value) in [
        ("content-type", "application/proto"),
        ("connect-protocol-version", "1"),
        ("user-agent", "alluvium-test"),
        ("x-scope-orgid", "tenant"),
        ("authorization", "Basic dTpw"),
    ] {
        assert_eq!(headers[name], value);
    }
    eventually("the count", || {
        metric(&recorder, "pyroscope_write_sent_profiles_total") == 1.0
    })
    .await;
    assert_eq!(metric(&recorder, "pyroscope_write_sent_bytes_total"), 5.0);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_labels_are_refused_at_once_and_counted() {
    let (_endpoint, url, _server) = Endpoint::start().await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &body(&url));
    let with = |pairs: &[(&'static str, &'static str)]| RawProfile {
        labels: Labels::from_pairs(pairs.iter().copied()),
        ..profile("")
    };
    let errors = recorder
        .receiver()
        .append(vec![with(&[("a-b", "1")]), profile("good"), with(&[("__meta_x", "1")])])
        .await;
    assert_eq!(errors.iter().map(|refused| refused.index).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(metric(&recorder, "pyroscope_write_dropped_profiles_total"), 2.0);
    running.stop().await;
}

/// A long outage, scaled down: it lasts many times as long as the waits between attempts.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_loses_nothing_and_shows_in_metrics_and_health() {
    let (endpoint, url, _server) = Endpoint::start().await;
    endpoint.is_down.store(true, Ordering::Relaxed);
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &body(&url));
    let started = Instant::now();
    append(&recorder, 0..200).await;
    assert!(
        started.elapsed() < Duration::from_mins(1),
        "a dead endpoint must not block a producer"
    );
    // Far more attempts fail than the default of `max_backoff_retries`, which is 10.
    eventually("many attempts", || endpoint.requests.load(Ordering::Relaxed) > 30).await;
    eventually("the health", || recorder.health().0 == HealthState::Unhealthy).await;
    assert!(
        recorder.health().1.contains("200 profiles wait"),
        "{}",
        recorder.health().1
    );
    assert_eq!(metric(&recorder, "pyroscope_write_queue_profiles{"), 200.0);
    assert!(metric(&recorder, "pyroscope_write_queue_oldest_age_seconds{") > 0.0);
    assert!(metric(&recorder, "pyroscope_write_retries_total{") > 20.0);

    endpoint.is_down.store(false, Ordering::Relaxed);
    eventually("all profiles", || endpoint.accepted.lock().len() == 200).await;
    assert_eq!(endpoint.services(), names(0..200));
    let reports = endpoint.reports.lock().clone();
    assert!(
        reports.iter().any(|report| report.failures > 3),
        "the reports to the endpoint contain the failures: {reports:?}"
    );
    eventually("the health", || recorder.health().0 == HealthState::Healthy).await;
    eventually("the queue", || {
        metric(&recorder, "pyroscope_write_queue_profiles{") == 0.0
    })
    .await;
    assert_eq!(metric(&recorder, "pyroscope_write_dropped_profiles_total{"), 0.0);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_in_the_outage_loses_nothing_and_repeats_nothing_that_was_taken() {
    let (endpoint, url, _server) = Endpoint::start().await;
    let folder = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let recorder = Recorder::new("pyroscope.write.test", folder.path());
        let running = Running::start(&DEFINITION, &recorder, &body(&url));
        endpoint.is_down.store(false, Ordering::Relaxed);
        append(&recorder, round * 100..round * 100 + 50).await;
        eventually("the queue to drain", || {
            metric(&recorder, "pyroscope_write_queue_profiles{") == 0.0
        })
        .await;
        endpoint.is_down.store(true, Ordering::Relaxed);
        append(&recorder, round * 100 + 50..round * 100 + 100).await;
        running.kill().await;
    }
    endpoint.is_down.store(false, Ordering::Relaxed);
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &body(&url));
    eventually("all profiles", || endpoint.accepted.lock().len() >= 300).await;
    running.stop().await;
    assert_eq!(endpoint.services(), names(0..300));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_while_sending_repeats_at_most_the_batch_under_way() {
    let (endpoint, url, _server) = Endpoint::start().await;
    let folder = tempfile::tempdir().unwrap();
    let queue = Body::new()
        .text("batch_wait", "0s")
        .with("batch_max_profiles", Value::Number(Number::Int(5)));
    let body = Body::new().block("endpoint", Body::new().text("url", &url).block("queue", queue));
    for round in 0..4 {
        let recorder = Recorder::new("pyroscope.write.test", folder.path());
        let running = Running::start(&DEFINITION, &recorder, &body);
        append(&recorder, round * 50..round * 50 + 50).await;
        let before = endpoint.accepted.lock().len();
        eventually("some", || {
            endpoint.accepted.lock().len() > before || before >= 50 * (round + 1)
        })
        .await;
        running.kill().await;
    }
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &body);
    let distinct = || endpoint.services().into_iter().collect::<BTreeSet<_>>().len();
    eventually("all profiles", || distinct() == 200).await;
    eventually("an empty queue", || {
        metric(&recorder, "pyroscope_write_queue_profiles{") == 0.0
    })
    .await;
    running.stop().await;
    let repeated = endpoint.accepted.lock().len() - 200;
    assert!(
        repeated <= 4 * 5,
        "{repeated} profiles were sent twice after 4 kills with batches of 5"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_profile_does_not_take_its_batch_with_it() {
    let (endpoint, url, _server) = Endpoint::start().await;
    let folder = tempfile::tempdir().unwrap();
    // The server rejects the whole request and does not name the profile that caused it.
    endpoint.set_verdict(|request| {
        let is_rejected = request.series.iter().any(|series| service(&series.labels) == "s0003");
        if is_rejected {
            Err(ConnectError::invalid("wrong"))
        } else {
            Ok(())
        }
    });
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &body(&url));
    let profiles: Vec<RawProfile> = names(0..8).iter().map(|name| profile(name)).collect();
    assert!(recorder.receiver().append(profiles).await.is_empty());
    eventually("the others", || endpoint.accepted.lock().len() == 7).await;
    eventually("the count", || {
        metric(&recorder, "pyroscope_write_dropped_profiles_total{") == 1.0
    })
    .await;
    assert!(!endpoint.services().contains(&"s0003".to_owned()));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_endpoint_does_not_hold_up_another_and_an_update_keeps_what_waits() {
    let (healthy, healthy_url, _healthy_server) = Endpoint::start().await;
    let (failing, failing_url, _failing_server) = Endpoint::start().await;
    failing.is_down.store(true, Ordering::Relaxed);
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let two_endpoints = Body::new()
        .block("endpoint", fast(&healthy_url))
        .block("endpoint", fast(&failing_url));
    let running = Running::start(&DEFINITION, &recorder, &two_endpoints);
    append(&recorder, 0..10).await;
    eventually("the living endpoint", || healthy.accepted.lock().len() == 10).await;

    let one_endpoint = fast(&failing_url).with("headers", Value::object([("a", Value::string("b"))]));
    let receiver = recorder.receiver();
    running
        .component
        .update(Body::new().block("endpoint", one_endpoint).arguments(&DEFINITION))
        .unwrap();
    assert!(receiver.append(vec![profile("s0010")]).await.is_empty());
    failing.is_down.store(false, Ordering::Relaxed);
    eventually("the other endpoint", || failing.accepted.lock().len() == 11).await;
    // A request in progress at the update may still have the old headers. The next request has the new headers.
    assert!(receiver.append(vec![profile("s0011")]).await.is_empty());
    eventually("the next profile", || failing.accepted.lock().len() == 12).await;
    assert_eq!(failing.headers.lock()["a"], "b");
    assert_eq!(healthy.accepted.lock().len(), 10);
    let info = || format!("{:?}", running.component.debug_info());
    eventually("the count", || info().contains("\"sent_profiles\": Uint(12)")).await;
    eventually("the queue", || info().contains("\"queued_profiles\": Uint(0)")).await;
    running.stop().await;
}

/// A source retries refused profiles. An endpoint that had queued them already would receive them twice.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_queued_for_one_endpoint_is_queued_for_none() {
    let (one, one_url, _one) = Endpoint::start().await;
    let (other, other_url, _other) = Endpoint::start().await;
    for broken in 0..2 {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::new("pyroscope.write.test", folder.path());
        let urls = [&one_url, &other_url];
        let two_endpoints = urls.iter().fold(Body::new(), |body, url| {
            body.block(
                "endpoint",
                fast(url).text("name", if *url == urls[broken] { "broken" } else { "whole" }),
            )
        });
        let running = Running::start(&DEFINITION, &recorder, &two_endpoints);
        let queues = std::fs::read_dir(recorder.context.data_path.join("queue")).unwrap();
        let mut queues = queues.map(|folder| folder.unwrap().path());
        let queue = queues.find(|path| path.to_string_lossy().contains("broken")).unwrap();
        // The queue cannot create a segment, because its folder is missing.
        let moved = folder.path().join("away");
        std::fs::rename(&queue, &moved).unwrap();
        for _ in 0..3 {
            let refused = recorder.receiver().append(vec![profile("shop")]).await;
            assert_eq!(refused.len(), 1);
            assert_eq!(refused[0].error.kind, SinkErrorKind::Unavailable);
            assert!(
                refused[0].error.to_string().contains("queue profiles for endpoint"),
                "{refused:?}"
            );
        }
        std::fs::rename(&moved, &queue).unwrap();
        append(&recorder, [broken]).await;
        for endpoint in [&one, &other] {
            eventually("the profile", || endpoint.accepted.lock().len() == broken + 1).await;
        }
        running.stop().await;
        assert_eq!(
            (one.services(), other.services()),
            (names(0..broken + 1), names(0..broken + 1))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_hangs_delays_neither_the_other_nor_the_source() {
    let (healthy, healthy_url, _healthy_server) = Endpoint::start().await;
    let hanging_router = Router::new().fallback(|| async { std::future::pending::<()>().await });
    let (hanging_url, _hanging) = serve(hanging_router).await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let two_endpoints = Body::new()
        .block("endpoint", fast(&hanging_url).text("remote_timeout", "1h"))
        .block("endpoint", fast(&healthy_url));
    let running = Running::start(&DEFINITION, &recorder, &two_endpoints);
    for round in 0..5 {
        append(&recorder, round * 10..(round + 1) * 10).await;
        eventually("the other endpoint", || {
            healthy.accepted.lock().len() == (round + 1) * 10
        })
        .await;
    }
    assert_eq!(metric(&recorder, "pyroscope_write_dropped_profiles_total{"), 0.0);
    running.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_of_the_profile_names_the_tenant_of_its_push() {
    let (endpoint, url, _server) = Endpoint::start().await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let endpoint_body = fast(&url)
        .with("headers", Value::object([("X-Scope-OrgID", Value::string("rest"))]))
        .text("tenant_label", "__tenant__");
    let running = Running::start(&DEFINITION, &recorder, &Body::new().block("endpoint", endpoint_body));
    for (count, (tenant, expected)) in [("blue", "blue"), ("", "rest"), ("red", "red")].into_iter().enumerate() {
        let profile = RawProfile {
            labels: Labels::from_pairs([("service_name", "shop"), ("__tenant__", tenant)]),
            ..profile("")
        };
        assert!(recorder.receiver().append(vec![profile]).await.is_empty());
        eventually("the push", || endpoint.accepted.lock().len() == count + 1).await;
        assert_eq!(endpoint.headers.lock()["x-scope-orgid"], expected);
        // The reserved label itself is not sent.
        assert_eq!(endpoint.accepted.lock().last().unwrap().0, "shop");
    }
    let profiles = ["blue", "red", "blue"].map(|tenant| RawProfile {
        labels: Labels::from_pairs([("service_name", "shop"), ("__tenant__", tenant)]),
        ..profile("")
    });
    let before = endpoint.requests.load(Ordering::Relaxed);
    assert!(recorder.receiver().append(profiles.to_vec()).await.is_empty());
    eventually("all three", || endpoint.accepted.lock().len() == 6).await;
    assert_eq!(endpoint.requests.load(Ordering::Relaxed), before + 2);
    let invalid = RawProfile {
        labels: Labels::from_pairs([("service_name", "shop"), ("__tenant__", "a|b")]),
        ..profile("")
    };
    let errors = recorder.receiver().append(vec![invalid]).await;
    assert_eq!(errors[0].error.kind, SinkErrorKind::Invalid);
    assert!(
        errors[0].error.message.contains("label `__tenant__`"),
        "{}",
        errors[0].error
    );
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_refused_is_dropped_and_takes_nothing_with_it() {
    let (endpoint, url, _server) = Endpoint::start().await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &body(&url));
    let upload = |name: &str| RawProfile {
        labels: Labels::from_pairs([("__name__", name)]),
        id: "".into(),
        pprof: [Upload::head("format=lines", "", ""), b"a;b".to_vec()].concat().into(),
    };
    // One of three uploads gets 422. A push is in the same batch. One upload has the id of another collector.
    let forwarded = RawProfile {
        id: "7b1d".into(),
        ..upload("better")
    };
    let batch = vec![upload("good"), upload("bad"), profile("s0000"), forwarded];
    assert!(recorder.receiver().append(batch).await.is_empty());
    eventually("all", || {
        metric(&recorder, "pyroscope_write_sent_profiles_total{") == 3.0
    })
    .await;
    eventually("the drop", || {
        metric(&recorder, "pyroscope_write_dropped_profiles_by_reason_total{") == 1.0
    })
    .await;
    let mut names = endpoint.services();
    names.sort();
    assert_eq!(names, ["name=better&format=lines", "name=good&format=lines", "s0000"]);
    for (name, id) in endpoint.accepted.lock().iter() {
        let is_forwarded = name.starts_with("name=better");
        assert!(if is_forwarded { id == "7b1d" } else { id.len() == 36 }, "{name}: {id}");
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_that_pyroscope_refuses_for_good_are_dropped_and_others_are_sent_again() {
    let (endpoint, url, _server) = Endpoint::start().await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &body(&url));
    let upload = |name: &str| RawProfile {
        labels: Labels::from_pairs([("__name__", name)]),
        id: "".into(),
        pprof: [Upload::head("format=lines", "", ""), b"a;b".to_vec()].concat().into(),
    };
    assert!(recorder.receiver().append(vec![upload("bad"); 40]).await.is_empty());
    eventually("the drops", || {
        metric(&recorder, "pyroscope_write_dropped_profiles_by_reason_total{") == 40.0
    })
    .await;
    assert!(recorder.receiver().append(vec![upload("away")]).await.is_empty());
    eventually("the upload", || endpoint.services() == ["name=away&format=lines"]).await;
    assert_eq!(metric(&recorder, "pyroscope_write_dropped_profiles_total{"), 40.0);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_sends_what_is_left_and_is_not_held_up_by_a_dead_endpoint() {
    let (endpoint, url, _server) = Endpoint::start().await;
    let folder = tempfile::tempdir().unwrap();
    let body = Body::new().block(
        "endpoint",
        Body::new()
            .text("url", &url)
            .block("queue", Body::new().text("batch_wait", "1h")),
    );
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &body);
    append(&recorder, 0..5).await;
    running.stop().await;
    assert_eq!(endpoint.services(), names(0..5));

    endpoint.is_down.store(true, Ordering::Relaxed);
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &body);
    append(&recorder, 5..10).await;
    let started = Instant::now();
    running.stop().await;
    assert!(started.elapsed() < Duration::from_mins(1));

    endpoint.is_down.store(false, Ordering::Relaxed);
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &body);
    running.stop().await;
    assert_eq!(endpoint.services(), names(0..10));
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_shrink_to_what_a_proxy_takes() {
    let (endpoint, url, _server) = Endpoint::start().await;
    endpoint.set_verdict(|request| match request.series.len() {
        0..=5 => Ok(()),
        _ => Err(ConnectError::too_large("too large")),
    });
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &body(&url));
    let profiles = names(0..40).iter().map(|name| profile(name)).collect();
    assert!(recorder.receiver().append(profiles).await.is_empty());
    eventually("all profiles", || endpoint.accepted.lock().len() == 40).await;
    assert_eq!(metric(&recorder, "pyroscope_write_dropped_profiles_total{"), 0.0);
    assert!(endpoint.requests.load(Ordering::Relaxed) < 40);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_exceeds_a_rate_limit_is_sent_one_by_one() {
    let (endpoint, url, _server) = Endpoint::start().await;
    // The limit lets five profiles pass, and then refuses one.
    let count = AtomicUsize::new(0);
    endpoint.set_verdict(move |request| match request.series.len() {
        1 if count.fetch_add(1, Ordering::Relaxed) % 6 < 5 => Ok(()),
        _ => Err(ConnectError::new(Code::ResourceExhausted, "push rate limit exceeded")),
    });
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &body(&url));
    let profiles = names(0..40).iter().map(|name| profile(name)).collect();
    assert!(recorder.receiver().append(profiles).await.is_empty());
    eventually("all profiles", || endpoint.accepted.lock().len() >= 40).await;
    assert_eq!(endpoint.services(), names(0..40));
    assert_eq!(metric(&recorder, "pyroscope_write_dropped_profiles_total{"), 0.0);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "prints a measurement"]
async fn throughput() {
    let (endpoint, url, _server) = Endpoint::start().await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let body = Body::new().block("endpoint", Body::new().text("url", &url));
    let running = Running::start(&DEFINITION, &recorder, &body);
    let data = Bytes::from(vec![7; 10_000]);
    let receiver = recorder.receiver();
    let started = Instant::now();
    for number in 0..10_000 {
        let profile = RawProfile {
            pprof: data.clone(),
            ..profile(&format!("s{number}"))
        };
        assert!(receiver.append(vec![profile]).await.is_empty());
    }
    println!("10000 profiles of 10 kB queued in {:?}", started.elapsed());
    eventually("all", || endpoint.accepted.lock().len() == 10_000).await;
    println!(
        "and sent after {:?} in {} requests",
        started.elapsed(),
        endpoint.requests.load(Ordering::Relaxed)
    );
    running.stop().await;
}
