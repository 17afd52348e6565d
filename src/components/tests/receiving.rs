//! Tests the path of an SDK's profile from `pyroscope.receive_http` through `pyroscope.write` to a server, which may be
//! unreachable.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;

use crate::common::testing::{AnyRunning, Body, Recorder, eventually, receivers, serve};
use crate::find;
use alluvium_lang::value::{Number, Value};
use alluvium_profile::sink::Receiver;
use alluvium_wire::client::{ClientOptions, HttpClient};

/// A server of `/ingest` and the uploads that it received.
#[derive(Default)]
struct Server {
    is_down: AtomicBool,
    uploads: Mutex<Vec<(String, HeaderMap, Bytes)>>,
}

async fn ingest(
    State(server): State<Arc<Server>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    if server.is_down.load(Ordering::Relaxed) {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    server.uploads.lock().push((query.unwrap_or_default(), headers, body));
    StatusCode::OK
}

fn write_body(url: &str) -> Body {
    let endpoint = Body::new()
        .text("url", url)
        .text("min_backoff_period", "5ms")
        .text("max_backoff_period", "20ms")
        .text("tenant_label", "__team__");
    let external = Value::object([("cluster", Value::string("eu-1")), ("__team__", Value::string("blue"))]);
    Body::new()
        .with("external_labels", external)
        .block("endpoint", endpoint)
}

async fn receive(sink: Receiver) -> (AnyRunning, String) {
    let recorder = Recorder::new("pyroscope.receive_http.test", Path::new("/nonexistent"));
    let http = Body::new()
        .text("listen_address", "127.0.0.1")
        .with("listen_port", Value::Number(Number::Int(0)));
    let body = Body::new().with("forward_to", receivers([sink])).block("http", http);
    let running = AnyRunning::start(find("pyroscope.receive_http").unwrap(), &recorder, &body);
    eventually("the port", || recorder.health().1.contains("listening")).await;
    let address = recorder.health().1.replace("listening on ", "http://");
    (running, address)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_was_answered_arrives_after_a_kill() {
    let server = Arc::new(Server::default());
    server.is_down.store(true, Ordering::Relaxed);
    let router = Router::new()
        .route("/profile/ingest", post(ingest))
        .with_state(server.clone());
    let (url, _guard) = serve(router).await;
    let url = format!("{url}/profile");
    let folder = tempfile::tempdir().unwrap();
    {
        let recorder = Recorder::new("pyroscope.write.test", folder.path());
        let write = AnyRunning::start(find("pyroscope.write").unwrap(), &recorder, &write_body(&url));
        let (receive, address) = receive(recorder.receiver()).await;
        let client = HttpClient::new(&ClientOptions::new("sdk".into())).unwrap();
        for number in 0..20 {
            let path = format!("{address}/ingest?name=shop.cpu%7Bn%3D{number}%7D&from=1&until=2&format=jfr");
            let request = client.client().post(path).header("content-type", "application/x-jfr");
            let response = request.body(format!("FLR\0 {number}")).send().await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
        }
        receive.kill().await;
        write.kill().await;
    }
    assert!(server.uploads.lock().is_empty());
    server.is_down.store(false, Ordering::Relaxed);
    let recorder = Recorder::new("pyroscope.write.test", folder.path());
    let write = AnyRunning::start(find("pyroscope.write").unwrap(), &recorder, &write_body(&url));
    eventually("all uploads", || server.uploads.lock().len() == 20).await;
    let mut uploads = server.uploads.lock().clone();
    uploads.sort_by_key(|(query, ..)| query.clone());
    let (query, headers, body) = &uploads[0];
    assert_eq!(
        query,
        "name=shop.cpu%7Bcluster%3Deu-1%2Cn%3D0%7D&from=1&until=2&format=jfr"
    );
    assert_eq!(
        (&headers["content-type"], &headers["x-scope-orgid"]),
        (&"application/x-jfr".parse().unwrap(), &"blue".parse().unwrap())
    );
    assert_eq!(body, "FLR\0 0");
    write.stop().await;
}
