//! The real program as a collector that holds uploads of SDKs while it is killed.
//!
//! Scenario: `pyroscope.receive_http` accepts uploads on `/ingest` for `pyroscope.write`. Either the server does not
//! run, or it stores the uploads, but its responses do not arrive. Then the collector is killed and started again.
//! Guarantee: when the server responds, it has each acknowledged upload exactly once.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, HOST};
use tempfile::TempDir;

use crate::http_store::now_ms;
use crate::outage::collector;
use crate::program::{Address, PATIENCE, Program, client};
use crate::repeats::{profile, stored};

/// Number of uploads, and the sum of their profiles in nanoseconds.
const UPLOADS: (u64, i64) = (3, 1_070_000_007);

/// The files of a collector and a server, and the server's address.
struct Site {
    folder: TempDir,
    address: Address,
    http: reqwest::Client,
}

impl Site {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            address: Address::keep(),
            http: client(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn url(&self) -> String {
        format!("http://{}", &*self.address)
    }

    async fn serve(&self) -> Program {
        let data = self.path("store").display().to_string();
        let arguments = ["serve", "--listen", &self.address, "--data", &data];
        let mut server = Program::alluvium(&arguments, &self.path("serve.log"));
        server.ready(&self.http, &format!("{}/ready", self.url())).await;
        server
    }

    async fn collect(&self, endpoint: &str) -> (Address, Program) {
        let (receiver, _, collector) = collector(&self.path("queue"), &[endpoint], &self.path("collect.log")).await;
        (receiver, collector)
    }

    /// Sends the uploads as SDKs do: pprof with a time, text with times in the query, and text without a time.
    async fn upload(&self, receiver: &str) {
        let now = now_ms() / 1000;
        let pprof = profile("", "unused", now_ms() * 1_000_000, 7).pprof.to_vec();
        let range = format!("from={}&until={now}", now - 10);
        for (query, body) in [
            ("name=shop&format=pprof".to_owned(), pprof),
            (
                format!("name=cart%7Bzone%3Deu%7D&{range}"),
                b"main;work 3\nmain;idle 4\n".to_vec(),
            ),
            ("name=desk&format=groups".to_owned(), b"main;work 100\n".to_vec()),
        ] {
            let url = format!("http://{receiver}/ingest?{query}");
            let response = self.http.post(url).body(body).send().await.unwrap();
            assert_eq!(response.status(), 200, "{query}");
        }
    }

    /// Waits until the server has all uploads.
    async fn wait_for_uploads(&self, collector: &mut Program) {
        let deadline = Instant::now() + PATIENCE;
        while stored(&self.http, &self.url()).await.0 < UPLOADS.0 {
            collector.check();
            assert!(Instant::now() < deadline, "{}", collector.tail());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends the collector, which has then sent its whole queue, and checks that the server has each upload once.
    async fn check(&self, mut collector: Program) {
        assert!(collector.terminate().success(), "{}", collector.tail());
        assert_eq!(stored(&self.http, &self.url()).await, UPLOADS, "{}", collector.tail());
    }
}

/// A proxy before a server. It forwards requests, and returns the status of the response unless it is silent.
#[derive(Clone)]
struct Proxy {
    server: Arc<str>,
    http: reqwest::Client,
    is_silent: Arc<AtomicBool>,
    /// Number of requests that the server has answered.
    answered: Arc<AtomicUsize>,
}

impl Proxy {
    fn new(site: &Site) -> Self {
        Self {
            server: site.url().into(),
            http: site.http.clone(),
            is_silent: Arc::new(AtomicBool::new(true)),
            answered: Arc::default(),
        }
    }

    /// Serves while the test's runtime exists. Returns the URL.
    async fn serve(&self) -> String {
        let routes = Router::new().fallback(forward).with_state(self.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        url
    }
}

async fn forward(State(proxy): State<Proxy>, request: Request) -> StatusCode {
    let (mut parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    for name in [HOST, CONTENT_LENGTH] {
        parts.headers.remove(name);
    }
    let url = format!("{}{}", proxy.server, parts.uri);
    let request = proxy.http.request(parts.method, url).headers(parts.headers).body(body);
    let status = request.send().await.unwrap().status();
    proxy.answered.fetch_add(1, Ordering::SeqCst);
    if proxy.is_silent.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
    status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploads_that_are_held_while_the_server_is_away_survive_a_kill_and_arrive_once() {
    let site = Site::new();
    let (receiver, mut collector) = site.collect(&site.url()).await;
    site.upload(&receiver).await;
    collector.kill();
    let (_receiver, mut collector) = site.collect(&site.url()).await;
    let mut server = site.serve().await;
    site.wait_for_uploads(&mut collector).await;
    site.check(collector).await;
    assert!(server.terminate().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploads_that_are_sent_again_after_a_kill_are_stored_once() {
    let site = Site::new();
    let mut server = site.serve().await;
    let proxy = Proxy::new(&site);
    let endpoint = proxy.serve().await;
    let (receiver, mut collector) = site.collect(&endpoint).await;
    site.upload(&receiver).await;
    let deadline = Instant::now() + PATIENCE;
    while proxy.answered.load(Ordering::SeqCst) == 0 {
        collector.check();
        assert!(Instant::now() < deadline, "{}", collector.tail());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The server has stored at least one upload, and the collector does not know it.
    collector.kill();
    proxy.is_silent.store(false, Ordering::SeqCst);
    let (_receiver, mut collector) = site.collect(&endpoint).await;
    site.wait_for_uploads(&mut collector).await;
    site.check(collector).await;
    let metrics = site.http.get(format!("{}/metrics", site.url())).send().await.unwrap();
    let metrics = metrics.text().await.unwrap();
    let name = "alluvium_store_rejected_profiles_total{reason=\"repeated\"} ";
    let repeated = metrics.lines().find_map(|line| line.strip_prefix(name));
    let repeated: u64 = repeated.unwrap_or_else(|| panic!("{metrics}")).parse().unwrap();
    assert!(repeated > 0);
    assert!(server.terminate().success());
}
