//! A bucket that lies. A test proxy before the real S3 server refuses requests, reports errors for requests that the S3
//! server has carried out, sends requests twice, and returns late or truncated responses.
//!
//! Guarantee: the server still accepts pushes, because they need only the local log. A flush succeeds, or fails and is
//! tried again. The server answers a query completely or refuses it. When the bucket is honest again, the tables
//! contain every acknowledged profile exactly once. The server counts the errors.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, CONTENT_RANGE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use parking_lot::Mutex;

use crate::harness::client;
use crate::kill::check;
use crate::objects::{Server, push_for};
use crate::program::{PATIENCE, run};
use crate::seaweed::Seaweed;

/// Maximum size of a request body for the bucket.
const MOST_BYTES: usize = 64 << 20;

/// An error of the bucket that the proxy simulates.
#[derive(Debug, Clone, Copy)]
enum Lie {
    /// The proxy returns an error and does not forward the request.
    Refuse(u16),
    /// The proxy forwards the request, but returns an error.
    Deny(u16),
    /// The proxy forwards the request twice and returns the second response.
    Repeat,
    Late(Duration),
    /// The connection ends in the middle of the body.
    Cut,
    /// The response contains only half of the bytes of the requested range.
    Halve,
}

#[derive(Clone)]
struct Liar {
    target: String,
    client: reqwest::Client,
    /// The current lie, and the number of requests from one lie to the next.
    lie: Arc<Mutex<Option<(Lie, u64)>>>,
    requests: Arc<AtomicU64>,
    told: Arc<AtomicU64>,
}

impl Liar {
    /// Starts the proxy before the server at `target`. The proxy runs until the test's runtime ends. Returns the proxy
    /// and its address, `127.0.0.1:PORT`.
    async fn start(target: String) -> (Self, String) {
        let liar = Self {
            target,
            client: client(),
            lie: Arc::default(),
            requests: Arc::default(),
            told: Arc::default(),
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let routes = Router::new().fallback(pass).with_state(liar.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        (liar, address)
    }

    fn lies(&self, lie: Lie, to_each: u64) {
        *self.lie.lock() = Some((lie, to_each));
    }

    /// Makes the proxy honest. Returns the number of lies since the last call.
    fn stops(&self) -> u64 {
        *self.lie.lock() = None;
        self.told.swap(0, Ordering::SeqCst)
    }

    fn lie(&self) -> Option<Lie> {
        let (lie, to_each) = (*self.lie.lock())?;
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        number.is_multiple_of(to_each).then_some(lie)
    }

    async fn ask(&self, head: &http::request::Parts, body: Bytes) -> (StatusCode, HeaderMap, Bytes) {
        let target = format!("http://{}{}", self.target, head.uri);
        let mut headers = head.headers.clone();
        // The signature covers the host name, so the proxy does not change it.
        for name in [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
            headers.remove(name);
        }
        // The proxy requests the body without compression, so that it can return the body unchanged.
        headers
            .entry(ACCEPT_ENCODING)
            .or_insert(HeaderValue::from_static("identity"));
        let request = self.client.request(head.method.clone(), target).headers(headers);
        let failed = |error: reqwest::Error| (StatusCode::BAD_GATEWAY, HeaderMap::new(), error.to_string().into());
        let answer = match request.body(body).send().await {
            Ok(answer) => answer,
            Err(error) => return failed(error),
        };
        let (status, mut headers) = (answer.status(), answer.headers().clone());
        for name in [CONNECTION, TRANSFER_ENCODING] {
            headers.remove(name);
        }
        match answer.bytes().await {
            Ok(body) => (status, headers, body),
            Err(error) => failed(error),
        }
    }
}

async fn pass(State(liar): State<Liar>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MOST_BYTES).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let lie = liar.lie();
    if let Some(Lie::Refuse(status)) = lie {
        liar.told.fetch_add(1, Ordering::SeqCst);
        return StatusCode::from_u16(status).unwrap().into_response();
    }
    let (status, mut headers, mut answer) = liar.ask(&head, body.clone()).await;
    let is_read = head.method == Method::GET && status.is_success() && answer.len() > 1;
    let is_told = match lie {
        Some(Lie::Deny(status)) => {
            liar.told.fetch_add(1, Ordering::SeqCst);
            return StatusCode::from_u16(status).unwrap().into_response();
        }
        Some(Lie::Repeat) => {
            let (status, headers, answer) = liar.ask(&head, body).await;
            liar.told.fetch_add(1, Ordering::SeqCst);
            return (status, headers, answer).into_response();
        }
        Some(Lie::Late(time)) => {
            tokio::time::sleep(time).await;
            true
        }
        Some(Lie::Cut) if is_read => {
            liar.told.fetch_add(1, Ordering::SeqCst);
            headers.insert(CONTENT_LENGTH, answer.len().into());
            let half = answer.split_to(answer.len() / 2);
            let pieces = [Ok(half), Err(io::Error::from(io::ErrorKind::BrokenPipe))];
            return (status, headers, Body::from_stream(futures::stream::iter(pieces))).into_response();
        }
        Some(Lie::Halve) if is_read && headers.contains_key(CONTENT_RANGE) => {
            answer.truncate(answer.len() / 2);
            headers.insert(CONTENT_LENGTH, answer.len().into());
            true
        }
        _ => false,
    };
    liar.told.fetch_add(is_told.into(), Ordering::SeqCst);
    (status, headers, answer).into_response()
}

/// A server that reaches its bucket through the proxy.
struct Site {
    server: Server,
    liar: Liar,
    next: Arc<AtomicU64>,
    acknowledged: BTreeSet<u64>,
    _weed: Seaweed,
    folder: tempfile::TempDir,
}

impl Site {
    /// Returns `None` if there is no S3 server.
    async fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let weed = Seaweed::start(folder.path()).await?;
        let (liar, address) = Liar::start(weed.endpoint()).await;
        // The cache has the size 0, so the server reads from the bucket for every query.
        let storage = weed
            .storage("lies")
            .replace(&weed.endpoint(), &address)
            .replace("2MiB", "\"0\"");
        let server = Server::start(folder.path(), "one", &storage).await;
        Some(Self {
            server,
            liar,
            next: Arc::new(AtomicU64::new(1)),
            acknowledged: BTreeSet::new(),
            _weed: weed,
            folder,
        })
    }

    async fn push(&mut self) {
        let pushed = push_for(&self.server.url, &self.next, Duration::from_millis(200)).await;
        assert!(!pushed.is_empty(), "no push\n{}", self.server.process.tail());
        self.acknowledged.extend(pushed);
    }

    async fn check(&mut self, round: u64) {
        self.server.process.check();
        check(&client(), &self.server.url, &self.acknowledged, round).await;
    }

    /// Shuts the server down cleanly and checks the tables without it.
    fn end(mut self) {
        let status = self.server.process.terminate();
        assert!(status.success(), "{status}\n{}", self.server.process.tail());
        let own = self.folder.path().join("one");
        let (data, config) = (own.join("data"), own.join("server.yaml"));
        let arguments = [
            "store",
            "check",
            &data.to_string_lossy(),
            "--config",
            &config.to_string_lossy(),
        ];
        let (sound, out, errors) = run(&arguments);
        assert!(sound, "{}{errors}", String::from_utf8_lossy(&out));
        println!("{} profiles acknowledged, each stored once", self.acknowledged.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_lies_about_what_it_has_done_loses_and_doubles_nothing() {
    let Some(mut site) = Site::start().await else {
        return;
    };
    // The server retries a request after a server error. It does not retry after status 403, so the flush fails.
    let lies = [
        (Lie::Refuse(503), 5),
        (Lie::Deny(500), 5),
        (Lie::Refuse(403), 4),
        (Lie::Deny(403), 5),
        (Lie::Repeat, 1),
    ];
    for (round, (lie, to_each)) in (0..).zip(lies) {
        site.push().await;
        site.liar.lies(lie, to_each);
        let flush = client().post(format!("{}/flush", site.server.url));
        let (flushed, ()) = tokio::join!(flush.send(), site.push());
        let flushed = flushed.unwrap().status();
        assert!(
            matches!(flushed.as_u16(), 204 | 503),
            "{lie:?}: {flushed}\n{}",
            site.server.process.tail()
        );
        assert!(site.liar.stops() > 0, "{lie:?} never happened");
        site.server.flush().await;
        site.check(round).await;
    }
    assert!(site.server.metric("alluvium_store_object_failures_total").await > 0.0);
    assert!(site.server.metric("alluvium_store_flush_failures_total").await > 0.0);
    site.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_answers_late_or_in_part_is_never_believed_in_part() {
    let Some(mut site) = Site::start().await else {
        return;
    };
    let lies = [
        (Lie::Cut, 2),
        (Lie::Halve, 1),
        (Lie::Refuse(403), 2),
        (Lie::Late(Duration::from_millis(100)), 2),
    ];
    for (round, (lie, to_each)) in (0..).zip(lies) {
        // Creates files that the server has not read yet.
        site.push().await;
        site.server.flush().await;
        site.liar.lies(lie, to_each);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let question = "SELECT total, count(*) FROM profiles GROUP BY 1";
            let request = client()
                .post(format!("{}/api/v1/sql?format=csv", site.server.url))
                .header("content-type", "text/plain")
                .body(question);
            let answer = request.send().await.unwrap();
            let status = answer.status();
            match answer.text().await {
                Ok(text) if status.is_success() => {
                    let rows = text.lines().skip(1).count();
                    assert!(
                        rows >= site.acknowledged.len(),
                        "{lie:?}: {rows} of {}",
                        site.acknowledged.len()
                    );
                }
                // The response had already begun. It ends with an error, so that it does not look complete.
                Err(_) if status.is_success() => {}
                text => assert!(status.is_server_error(), "{lie:?}: {status} {text:?}"),
            }
            if site.liar.told.load(Ordering::SeqCst) > 0 {
                break;
            }
            // The proxy has not lied yet, because the queries caused too few requests to which this lie applies. So the
            // test makes a new file.
            assert!(Instant::now() < deadline, "{lie:?} never happened");
            site.push().await;
            let _ = client().post(format!("{}/flush", site.server.url)).send().await;
        }
        site.liar.stops();
        site.server.flush().await;
        site.check(round).await;
    }
    assert!(site.server.metric("alluvium_store_object_failures_total").await > 0.0);
    site.end();
}
