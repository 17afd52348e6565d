//! The component from outside: profiles into its receiver, requests at an endpoint on this machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use prost::Message as _;

use crate::components::common::testing::{Body, Recorder, Running, eventually, serve};
use crate::components::otelcol::exporter::otlphttp::DEFINITION;
use crate::lang::value::Value;
use crate::profile::pprof::{self, Builder, Profile, ValueType};
use crate::profile::sink::Receiver;
use crate::profile::upload::Upload;
use crate::profile::{Labels, RawProfile};
use crate::wire::otlp::ExportBatch;
use crate::wire::proto::otlp::ExportProfilesServiceRequest;

/// An endpoint, and what came to it.
#[derive(Default)]
struct Endpoint {
    is_down: AtomicBool,
    came: Mutex<Vec<(HeaderMap, ExportProfilesServiceRequest)>>,
}

impl Endpoint {
    /// Name, service and values of the profiles that came.
    fn profiles(&self) -> Vec<(String, String, Vec<i64>)> {
        let came = self.came.lock();
        let batches = came.iter().map(|(_, request)| ExportBatch::read(request, 0).unwrap());
        let profiles = batches.flat_map(|batch| batch.profiles);
        let shown = profiles.map(|profile| {
            let label = |name| profile.labels.get(name).unwrap_or_default().to_owned();
            let values = profile.columns.get().values.clone();
            (label("__name__"), label("service_name"), values)
        });
        shown.collect()
    }
}

fn router(endpoint: Arc<Endpoint>) -> Router {
    Router::new()
        .route("/base/v1development/profiles", post(export))
        .with_state(endpoint)
}

async fn export(State(endpoint): State<Arc<Endpoint>>, headers: HeaderMap, body: Bytes) -> Response {
    if endpoint.is_down.load(Ordering::Relaxed) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let message = pprof::gunzip(&body, 1 << 20).unwrap();
    let request = ExportProfilesServiceRequest::decode(message).unwrap();
    endpoint.came.lock().push((headers, request));
    ([("content-type", "application/x-protobuf")], "").into_response()
}

fn profile(service: &str, value: i64) -> RawProfile {
    let kind = |kind, unit| ValueType { kind, unit };
    let mut builder = Builder::new(Profile {
        sample_types: vec![kind("samples", "count"), kind("cpu", "nanoseconds")],
        period_type: kind("cpu", "nanoseconds"),
        period: 10,
        time_nanos: 1,
        ..Profile::default()
    });
    let frame = builder.named("main");
    builder.sample([frame], [], &[value, 10 * value]);
    RawProfile {
        labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", service)]),
        id: "".into(),
        pprof: pprof::gzip(&pprof::encode(&builder.finish())).into(),
    }
}

fn body(url: &str) -> Body {
    let client = Body::new()
        .text("endpoint", url)
        .with("headers", Value::object([("X-Scope-OrgID", Value::string("team"))]));
    let retry = Body::new().text("initial_interval", "5ms").text("max_interval", "20ms");
    Body::new()
        .block("client", client)
        .block("retry_on_failure", retry)
        .block("queue", Body::new().text("batch_wait", "10ms"))
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_arrive_with_their_names_after_the_endpoint_was_away() {
    let endpoint = Arc::new(Endpoint::default());
    endpoint.is_down.store(true, Ordering::Relaxed);
    let (url, _server) = serve(router(endpoint.clone())).await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("otelcol.exporter.otlphttp.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &body(&format!("{url}/base")));
    let input: Receiver = match recorder.export("input") {
        Value::Capsule(capsule) => capsule.downcast::<Receiver>().unwrap(),
        other => panic!("{other:?}"),
    };
    let mut text = Upload::head("format=groups&from=1700000000&until=1700000010", "", "");
    text.extend_from_slice(b"main;work 3\n");
    let upload = RawProfile {
        labels: Labels::from_pairs([("__name__", "shop.cpu"), ("service_name", "shop.cpu")]),
        id: "".into(),
        pprof: text.into(),
    };
    let broken = RawProfile {
        pprof: Bytes::from_static(b"broken"),
        ..profile("broken", 1)
    };
    let refused = input
        .append(vec![profile("one", 1), broken, profile("two", 2), upload])
        .await;
    assert!(refused.is_empty(), "{refused:?}");
    eventually("a failure", || recorder.health().1.contains("failed")).await;
    endpoint.is_down.store(false, Ordering::Relaxed);
    eventually("all profiles", || endpoint.profiles().len() >= 5).await;
    let mut profiles = endpoint.profiles();
    profiles.sort();
    let cpu = |service: &str, values| ("process_cpu".to_owned(), service.to_owned(), values);
    assert_eq!(
        profiles,
        [
            cpu("one", vec![1]),
            cpu("one", vec![10]),
            cpu("shop.cpu", vec![30_000_000]),
            cpu("two", vec![2]),
            cpu("two", vec![20]),
        ]
    );
    let headers = endpoint.came.lock()[0].0.clone();
    assert_eq!(
        (&headers["x-scope-orgid"], &headers["content-encoding"]),
        (&"team".parse().unwrap(), &"gzip".parse().unwrap())
    );
    running.stop().await;
}

#[test]
fn endpoints_that_are_none_are_refused() {
    let read = |url: &str| body(url).read(&DEFINITION).map(drop).unwrap_err();
    for url in ["", "collector:4318", "ftp://collector:1"] {
        let error = read(url);
        assert!(error.starts_with("client"), "{error}");
    }
}
