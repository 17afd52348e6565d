//! An endpoint that accepts exported profiles, and the test that every exporter must pass with it.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::HeaderMap;
use parking_lot::Mutex;
use prost::Message as _;

use crate::common::testing::{Body, Recorder, Running, eventually};
use alluvium_lang::body::FromBody;
use alluvium_lang::value::Value;
use alluvium_pipeline::component::Definition;
use alluvium_profile::pprof::{self, Builder, Profile, ValueType};
use alluvium_profile::sink::Receiver;
use alluvium_profile::upload::Upload;
use alluvium_profile::{Labels, RawProfile};
use alluvium_wire::otlp::ExportBatch;
use alluvium_wire::otlp::messages::ExportProfilesServiceRequest;

/// An endpoint that records requests. The test supplies the transport.
#[derive(Default)]
pub(crate) struct Endpoint {
    is_down: AtomicBool,
    /// Error of the next request. The endpoint has stored a part of that request.
    refusal: Mutex<Option<String>>,
    requests: Mutex<Vec<(HeaderMap, ExportProfilesServiceRequest)>>,
}

impl Endpoint {
    /// Returns true while requests must be refused.
    pub(crate) fn is_down(&self) -> bool {
        self.is_down.load(Ordering::Relaxed)
    }

    /// Records a request whose message is gzip-compressed.
    pub(crate) fn take(&self, headers: HeaderMap, message: &Bytes) {
        let message = pprof::gunzip(message, 1 << 20).unwrap();
        let request = ExportProfilesServiceRequest::decode(message).unwrap();
        self.requests.lock().push((headers, request));
    }

    /// Returns the error that the current request must get, if any.
    pub(crate) fn next_refusal(&self) -> Option<String> {
        self.refusal.lock().take()
    }

    /// Returns the service of each profile of each request.
    fn services(&self) -> Vec<Vec<String>> {
        let requests = self.requests.lock();
        let services = requests.iter().map(|(_, request)| {
            let batch = ExportBatch::read(request, 0).unwrap();
            let profiles = batch.profiles.iter();
            let service = |labels: &Labels| labels.get("service_name").unwrap_or_default().to_owned();
            profiles.map(|profile| service(&profile.labels)).collect()
        });
        services.collect()
    }

    /// Returns name, service and values of the received profiles.
    fn profiles(&self) -> Vec<(String, String, Vec<i64>)> {
        let requests = self.requests.lock();
        let batches = requests
            .iter()
            .map(|(_, request)| ExportBatch::read(request, 0).unwrap());
        let profiles = batches.flat_map(|batch| batch.profiles);
        let shown = profiles.map(|profile| {
            let label = |name| profile.labels.get(name).unwrap_or_default().to_owned();
            let values = profile.columns.get().values.clone();
            (label("__name__"), label("service_name"), values)
        });
        shown.collect()
    }
}

/// Runs an exporter with an endpoint that is unavailable at first. Checks that all valid profiles arrive, with their
/// names, once the endpoint is available. Returns the headers of the first request.
pub(crate) async fn profiles_arrive_after_a_failure<A: FromBody + Send + Sync>(
    definition: &Definition<A>,
    url: &str,
    endpoint: &Endpoint,
) -> HeaderMap {
    endpoint.is_down.store(true, Ordering::Relaxed);
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new(&format!("{}.test", definition.name), folder.path());
    let running = Running::start(definition, &recorder, &body(url));
    let input: Receiver = match recorder.export("input") {
        Value::Capsule(capsule) => capsule.downcast::<Receiver>().unwrap(),
        other => panic!("{other:?}"),
    };
    let upload = |service: &str, body: &[u8]| {
        let mut upload = Upload::head("format=groups&from=1700000000&until=1700000010", "", "");
        upload.extend_from_slice(body);
        RawProfile {
            labels: Labels::from_pairs([("__name__", "shop.cpu"), ("service_name", service)]),
            id: "".into(),
            pprof: upload.into(),
        }
    };
    let text = b"main;work 3\n";
    // A body may be gzip although no header says so.
    let uploads = [upload("shop.cpu", text), upload("shop.gzip", &pprof::gzip(text))];
    let broken = RawProfile {
        pprof: Bytes::from_static(b"broken"),
        ..profile("broken", 1)
    };
    let refused = input
        .append([vec![profile("one", 1), broken, profile("two", 2)], uploads.to_vec()].concat())
        .await;
    assert!(refused.is_empty(), "{refused:?}");
    eventually("a failure", || recorder.health().1.contains("failed")).await;
    endpoint.is_down.store(false, Ordering::Relaxed);
    eventually("all profiles", || endpoint.profiles().len() >= 6).await;
    let mut profiles = endpoint.profiles();
    profiles.sort();
    let cpu = |service: &str, values| ("process_cpu".to_owned(), service.to_owned(), values);
    assert_eq!(
        profiles,
        [
            cpu("one", vec![1]),
            cpu("one", vec![10]),
            cpu("shop.cpu", vec![30_000_000]),
            cpu("shop.gzip", vec![30_000_000]),
            cpu("two", vec![2]),
            cpu("two", vec![20]),
        ]
    );
    let headers = endpoint.requests.lock()[0].0.clone();
    running.stop().await;
    headers
}

/// Runs an exporter with an endpoint that stores a part of a request, as Pyroscope does. Checks that the exporter sends
/// only the remaining profile again.
pub(crate) async fn stored_profiles_are_not_sent_again<A: FromBody + Send + Sync>(
    definition: &Definition<A>,
    url: &str,
    endpoint: &Endpoint,
) {
    endpoint.is_down.store(true, Ordering::Relaxed);
    // The request has two series of each profile, one of each sample type.
    let refusal = format!(
        "failed to make a call: push series with index 3 and id 7b1d failed: {}",
        "the rate limit is exceeded".repeat(2000)
    );
    *endpoint.refusal.lock() = Some(refusal);
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new(&format!("{}.test", definition.name), folder.path());
    let running = Running::start(definition, &recorder, &body(url));
    let input: Receiver = match recorder.export("input") {
        Value::Capsule(capsule) => capsule.downcast::<Receiver>().unwrap(),
        other => panic!("{other:?}"),
    };
    let refused = input
        .append(vec![profile("one", 1), profile("two", 2), profile("three", 3)])
        .await;
    assert!(refused.is_empty(), "{refused:?}");
    eventually("a failure", || recorder.health().1.contains("failed")).await;
    endpoint.is_down.store(false, Ordering::Relaxed);
    eventually("a second request", || endpoint.services().len() >= 2).await;
    assert_eq!(
        endpoint.services(),
        [&["one", "one", "two", "two", "three", "three"][..], &["two", "two"]]
    );
    running.stop().await;
}

/// Returns the arguments of an exporter to `url` that retries almost immediately.
pub(crate) fn body(url: &str) -> Body {
    let client = Body::new()
        .text("endpoint", url)
        .with("headers", Value::object([("X-Scope-OrgID", Value::string("team"))]));
    let retry = Body::new().text("initial_interval", "5ms").text("max_interval", "20ms");
    Body::new()
        .block("client", client)
        .block("retry_on_failure", retry)
        .block("queue", Body::new().text("batch_wait", "10ms"))
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
