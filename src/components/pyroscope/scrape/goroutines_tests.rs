//! Tests of goroutine dumps: only running targets are asked, with the component's client and within its limits.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body as HttpBody;
use axum::extract::RawQuery;
use axum::response::IntoResponse;
use axum::routing::get;
use bytes::Bytes;
use http::{HeaderMap, Request};
use parking_lot::Mutex;

use crate::common::testing::{Body, Collector, Recorder, Running, Server, eventually, receivers, serve, targets};
use crate::pyroscope::scrape::DEFINITION;
use crate::pyroscope::scrape::arguments::ScrapeArguments;

const DUMP: &str = "goroutine 1 [running]:\nmain.main()\n\t/app/main.go:7 +0x1d\n";
const PATH: &str = "/debug/pprof/goroutine";

/// Queries and credentials that the target received.
type Requests = Arc<Mutex<Vec<(String, String)>>>;

/// Starts a target that sends a dump below `/app`, and wrong responses elsewhere.
async fn target() -> (Requests, String, Server) {
    let requests = Requests::default();
    let seen = requests.clone();
    let dump = move |headers: HeaderMap, RawQuery(query): RawQuery| {
        let authorization = headers.get("authorization").and_then(|value| value.to_str().ok());
        let request = (query.unwrap_or_default(), authorization.unwrap_or_default().to_owned());
        seen.lock().push(request);
        async { DUMP }
    };
    let gzipped = || async {
        let body = alluvium_profile::pprof::gzip(DUMP.as_bytes());
        ([("content-encoding", "gzip")], body)
    };
    let endless = || async {
        let megabyte = Bytes::from(vec![b'x'; 1 << 20]);
        let chunks = (0..65).map(move |_| Ok::<_, std::io::Error>(megabyte.clone()));
        HttpBody::from_stream(futures::stream::iter(chunks)).into_response()
    };
    let router = Router::new()
        .route(&format!("/app{PATH}"), get(dump))
        .route(&format!("/gzip{PATH}"), get(gzipped))
        .route(&format!("/html{PATH}"), get(|| async { "<html>no</html>" }))
        .route(&format!("/empty{PATH}"), get(|| async {}))
        .route(&format!("/endless{PATH}"), get(endless))
        .route(
            &format!("/slow{PATH}"),
            get(|| tokio::time::sleep(Duration::from_mins(1))),
        );
    let (url, server) = serve(router).await;
    (requests, url.trim_start_matches("http://").to_owned(), server)
}

/// A running component with one target, and the URL of its goroutine profile.
struct Scraped {
    running: Running<ScrapeArguments>,
    recorder: Recorder,
    url: String,
}

impl Scraped {
    /// Starts a component that scrapes the target below `prefix`. The interval is so long that the target receives only
    /// requests for dumps.
    async fn start(address: &str, prefix: &str) -> Self {
        Self::with_timeout(address, prefix, "2m").await
    }

    async fn with_timeout(address: &str, prefix: &str, timeout: &str) -> Self {
        let body = Body::new()
            .with(
                "targets",
                targets(&[&[("__address__", address), ("__profile_path_prefix__", prefix)]]),
            )
            .with("forward_to", receivers([Arc::new(Collector::default()) as _]))
            .text("bearer_token", "secret")
            .text("scrape_interval", "1000h")
            .text("scrape_timeout", timeout);
        let recorder = Recorder::new("pyroscope.scrape.test", Path::new("/nonexistent"));
        let running = Running::start(&DEFINITION, &recorder, &body);
        let info = || format!("{:?}", running.component.debug_info());
        eventually("the loops", || info().contains("goroutine_dump")).await;
        assert_eq!(info().matches("goroutine_dump").count(), 1, "{}", info());
        Self {
            url: format!("http://{address}{prefix}{PATH}"),
            running,
            recorder,
        }
    }

    /// Returns status and body of the response to a request.
    async fn request(&self, method: &str, path: &str) -> (u16, String) {
        let request = Request::builder().method(method).uri(path).body(Bytes::new()).unwrap();
        let response = self.running.component.serve(request).unwrap().await;
        assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
        let body = String::from_utf8_lossy(response.body()).into_owned();
        (response.status().as_u16(), body)
    }

    /// Requests the dump of the target with this URL.
    async fn dump(&self, url: &str) -> (u16, String) {
        let query: String = url::form_urlencoded::byte_serialize(url.as_bytes()).collect();
        self.request("POST", &format!("/goroutines?target={query}")).await
    }
}

#[tokio::test]
async fn a_dump_is_the_text_of_the_target_fetched_with_the_credentials_of_the_component() {
    let (requests, address, _server) = target().await;
    let scraped = Scraped::start(&address, "/app").await;
    assert_eq!(scraped.dump(&scraped.url).await, (200, DUMP.to_owned()));
    assert_eq!(*requests.lock(), [("debug=2".to_owned(), "Bearer secret".to_owned())]);
    scraped.running.stop().await;

    let scraped = Scraped::start(&address, "/gzip").await;
    assert_eq!(scraped.dump(&scraped.url).await, (200, DUMP.to_owned()));
    scraped.running.stop().await;
}

#[tokio::test]
async fn nothing_but_a_running_target_is_requested() {
    let (requests, address, _server) = target().await;
    let scraped = Scraped::start(&address, "/app").await;
    for url in [
        format!("http://{address}/app{PATH}?debug=2"),
        format!("http://{address}/app/debug/pprof/allocs"),
        format!("http://{address}/html{PATH}"),
        format!("http://{address}"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "file:///etc/passwd".to_owned(),
        String::new(),
    ] {
        let (status, text) = scraped.dump(&url).await;
        let reason = format!("this component does not scrape goroutines from `{url}` right now\n");
        assert_eq!((status, text), (404, reason));
    }
    let query = format!("/goroutines?target={}", scraped.url);
    for (method, path, status) in [
        ("GET", query.as_str(), 405),
        ("HEAD", &query, 405),
        ("POST", "/goroutines", 400),
        ("POST", "/goroutines?url=x", 400),
        ("POST", "/", 404),
        ("POST", "/goroutines/x", 404),
    ] {
        assert_eq!(scraped.request(method, path).await.0, status, "{method} {path}");
    }
    assert_eq!(*requests.lock(), []);
    scraped.running.stop().await;
}

#[tokio::test]
async fn a_target_that_sends_no_dump_is_a_bad_gateway_with_the_reason() {
    let (_requests, address, _server) = target().await;
    for (prefix, reason) in [
        ("/nowhere", "the target responded with HTTP status 404 Not Found\n"),
        (
            "/html",
            "the response of the target is not a goroutine dump; it starts with `<html>no</html>`\n",
        ),
        ("/empty", "the target responded with an empty body\n"),
        ("/endless", "cannot read the dump: the response is longer than 64 MiB\n"),
    ] {
        let scraped = Scraped::start(&address, prefix).await;
        assert_eq!(scraped.dump(&scraped.url).await, (502, reason.to_owned()));
        scraped.running.stop().await;
    }
    let scraped = Scraped::start("127.0.0.1:1", "").await;
    let (status, text) = scraped.dump(&scraped.url).await;
    assert!(
        status == 502 && text.starts_with("cannot reach the target: "),
        "{status} {text}"
    );
    scraped.running.stop().await;
}

#[tokio::test]
async fn a_target_that_does_not_respond_is_a_gateway_timeout() {
    let (_requests, address, _server) = target().await;
    let scraped = Scraped::with_timeout(&address, "/slow", "100ms").await;
    assert_eq!(
        scraped.dump(&scraped.url).await,
        (504, "the target did not send the dump within 100ms\n".to_owned())
    );
    scraped.running.stop().await;
}

#[tokio::test]
async fn dumps_in_memory_are_bounded_until_they_are_sent() {
    let (_requests, address, _server) = target().await;
    let scraped = Scraped::start(&address, "/app").await;
    let limit = scraped.recorder.context.large_responses.clone();
    let mut reservations: Vec<_> = std::iter::from_fn(|| limit.reserve()).collect();
    let busy = (503, "other dumps are being transferred: try again later\n".to_owned());
    assert_eq!(scraped.dump(&scraped.url).await, busy);
    reservations.pop();
    let request = Request::post(format!("/goroutines?target={}", scraped.url))
        .body(Bytes::new())
        .unwrap();
    let unsent = scraped.running.component.serve(request).unwrap().await;
    assert_eq!(unsent.status(), 200);
    assert_eq!(scraped.dump(&scraped.url).await, busy);
    drop(unsent);
    assert_eq!(scraped.dump(&scraped.url).await.0, 200);
    scraped.running.stop().await;
}
