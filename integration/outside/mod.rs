//! Attacks of an external scanner on the port of the real server program, with raw sockets and bytes.
//!
//! In: headers, paths, lengths, slow and silent clients, HTTP/2 frames. Guarantee: the right status or a closed
//! connection, bounded memory, and responses for all other clients meanwhile. `docs/security.md` has a row for each
//! attack.

mod frames;
mod http1;
mod http2;
mod many;
mod tls;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use alluvium_base::Shutdown;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::disk::Client;
use crate::harness::client;
use crate::program::{Address, PATIENCE, Program, run};

/// Maximum total memory of a server in bytes, the same as in the module `strangers`.
const MOST_MEMORY: usize = 512 << 20;

/// A server: the real program with its own data folder.
struct House {
    program: Program,
    address: Address,
    url: String,
    folder: tempfile::TempDir,
}

impl House {
    async fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), &[]).await
    }

    async fn start_in(folder: tempfile::TempDir, flags: &[&str]) -> Self {
        let (address, data) = (Address::keep(), data(folder.path()));
        let arguments = [&["serve", "--listen", &address, "--data", &data], flags].concat();
        let mut program = Program::alluvium(&arguments, &folder.path().join("log"));
        let url = format!("http://{address}");
        program.ready(&client(), &format!("{url}/ready")).await;
        Self {
            program,
            address,
            url,
            folder,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(&*self.address).await.unwrap()
    }

    /// Sends bytes, and returns everything that the server sends until it closes the connection.
    async fn raw(&self, bytes: &[u8]) -> String {
        String::from_utf8_lossy(&self.raw_bytes(bytes).await).into_owned()
    }

    async fn raw_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect().await;
        // The server may have refused and closed the connection before it has read everything.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        assert!(
            ended.is_ok(),
            "the server keeps the connection open after {:?}",
            String::from_utf8_lossy(&bytes[..bytes.len().min(200)])
        );
        answer
    }

    /// Starts an honest client. It sends requests over new connections and over one persistent connection until
    /// [`Honest::end`].
    fn honest(&self) -> Honest {
        let (stop, pushed) = (Shutdown::new(), Arc::<AtomicUsize>::default());
        let task = tokio::spawn({
            let (url, stop, pushed) = (self.url.clone(), stop.clone(), pushed.clone());
            async move {
                let kept = client();
                let mut number = 0;
                loop {
                    for client in [&kept, &client()] {
                        let answer = client.get(format!("{url}/ready")).timeout(PATIENCE).send().await;
                        assert_eq!(answer.unwrap().status(), 200);
                    }
                    number += 1;
                    Client::new(&url).push(number).await.unwrap();
                    pushed.fetch_add(1, Ordering::SeqCst);
                    if stop.is_cancelled() {
                        return;
                    }
                }
            }
        });
        Honest { stop, pushed, task }
    }

    /// Checks that the server runs and never used too much memory.
    fn check(&mut self) {
        self.program.check();
        let peak = self.program.peak_memory();
        assert!(peak < MOST_MEMORY, "the peak memory is {} MiB", peak >> 20);
    }
}

/// Memory limit of a small server.
const SMALL: &str = "128MiB";

/// Checks that a small server uses less anonymous memory than its limit.
fn check_small(house: &House) {
    let memory = house.program.own_memory();
    println!("{} MiB", memory >> 20);
    assert!(memory < 128 << 20, "{} MiB\n{}", memory >> 20, house.program.tail());
}

/// A client that sends only valid requests.
struct Honest {
    stop: Shutdown,
    pushed: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Honest {
    /// Waits until the client has completed this many more rounds of requests.
    async fn is_served(&self, times: usize) {
        let wanted = self.pushed.load(Ordering::SeqCst) + times;
        while self.pushed.load(Ordering::SeqCst) < wanted && !self.task.is_finished() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until the client has completed another round of requests, stops it, and checks that no request failed.
    async fn end(self) {
        self.is_served(1).await;
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

fn data(folder: &Path) -> String {
    folder.join("data").to_string_lossy().into_owned()
}

/// Returns the status codes of the responses that arrived over a connection.
fn statuses(answers: &str) -> Vec<u16> {
    let starts = answers.split("HTTP/1.1 ").skip(1);
    starts.map(|answer| answer[..3].parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_have_the_headers_that_browsers_need_and_tell_nothing_of_the_server() {
    let house = House::start().await;
    let page = [
        ("content-security-policy", "default-src 'self'"),
        ("content-security-policy", "frame-ancestors 'none'"),
        ("x-frame-options", "DENY"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ];
    let any = [("x-content-type-options", "nosniff")];
    let http = client();
    for (path, wanted) in [
        ("/", &page[..]),
        ("/profile", &page),
        ("/profile/", &page),
        ("/ready", &any),
        ("/metrics", &any),
        ("/nothing/<script>", &any),
        ("/api/v1/status/buildinfo", &any),
        ("/api/v1/status/config", &any),
        ("/pyroscope/render?query=<script>", &any),
        ("/debug/pprof/cmdline", &any),
        ("/flush", &any),
    ] {
        // The test also sends the request as from a foreign page, which must not get permission to read the response.
        for origin in [None, Some("https://evil.example")] {
            let mut request = http.get(format!("{}{path}", house.url));
            if let Some(origin) = origin {
                request = request.header("origin", origin);
            }
            let answer = request.send().await.unwrap();
            let headers = answer.headers().clone();
            let (is_page, is_refused) = (wanted.len() > 1, answer.status() == 403);
            assert_eq!(is_refused, origin.is_some(), "{path} {origin:?}: {}", answer.status());
            for (name, value) in wanted.iter().filter(|(name, _)| !is_refused || any[0].0 == *name) {
                let values: Vec<_> = headers.get_all(*name).iter().collect();
                assert_eq!(values.len(), 1, "{path}: {name} is {values:?}");
                assert!(
                    values[0].to_str().unwrap().contains(value),
                    "{path}: {name} is {values:?}"
                );
            }
            for name in ["server", "x-powered-by", "access-control-allow-origin", "via"] {
                assert!(!headers.contains_key(name), "{path}: header {name}");
            }
            let kind = headers.get("content-type").map(|kind| kind.to_str().unwrap());
            let is_html = kind.is_some_and(|kind| kind.starts_with("text/html"));
            assert_eq!(is_html, is_page && !is_refused, "{path}: {kind:?}");
        }
    }
    for method in ["TRACE", "TRACK", "DEBUG", "PROPFIND", "CONNECT"] {
        let target = if method == "CONNECT" {
            "evil.example:80"
        } else {
            "/ready"
        };
        let request = format!("{method} {target} HTTP/1.1\r\nHost: x\r\nX-Echo: echoed\r\nConnection: close\r\n\r\n");
        let answer = house.raw(request.as_bytes()).await;
        let status = statuses(&answer);
        assert!(matches!(status[..], [400 | 404 | 405 | 501]), "{method}: {status:?}");
        assert!(!answer.contains("echoed"), "{method}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_spelling_of_a_path_leaves_the_page_or_finds_a_file_of_the_data() {
    let house = House::start().await;
    std::fs::write(house.folder.path().join("secret.txt"), "the-secret").unwrap();
    let up = [
        "..",
        "%2e%2e",
        ".%2e",
        "%252e%252e",
        "%c0%ae%c0%ae",
        "..;",
        "....",
        "..%00",
        "..%c0%af",
    ];
    let slash = ["/", "%2f", "%252f", "\\", "%5c", "//"];
    let mut targets: Vec<String> = Vec::new();
    for start in ["/", "/assets/", "/profile/", "/speedscope/", "/profile/assets/", "//"] {
        for up in up {
            for slash in slash {
                let climb = [up, slash].concat().repeat(6);
                targets.push(format!("{start}{climb}etc/passwd"));
                targets.push(format!("{start}{up}{slash}{up}{slash}Cargo.toml"));
                targets.push(format!("{start}{up}{slash}secret.txt"));
            }
        }
    }
    for plain in [
        "/./ready/../VERSION",
        "/tokens.json",
        "/profile/tokens.json",
        "/VERSION",
        "/wal/000000000001.seg",
        "/tables/profiles/_delta_log/00000000000000000000.json",
        "/.git/config",
        "/.env",
        "/assets/.",
        "/assets/",
        "/Cargo.toml",
        "/file:///etc/passwd",
        "file:///etc/passwd",
        "http://evil.example/../../etc/passwd",
    ] {
        targets.push(plain.to_owned());
    }
    let all = targets.iter().map(|target| {
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\nAccept: */*\r\nConnection: close\r\n\r\n");
        let house = &house;
        async move { (target, house.raw(request.as_bytes()).await) }
    });
    // Sends up to 16 requests concurrently.
    let mut answers = futures::StreamExt::buffer_unordered(futures::stream::iter(all), 16);
    while let Some((target, answer)) = futures::StreamExt::next(&mut answers).await {
        let status = statuses(&answer);
        assert!(matches!(status[..], [400 | 404]), "{target}: {answer}");
        for secret in ["root:", "[package]", "the-secret"] {
            assert!(!answer.contains(secret), "{target}: {answer}");
        }
    }
    // The test also requests uploaded profiles with file names as their ids.
    for id in [
        "../../VERSION",
        "..%2f..%2fVERSION",
        "/etc/passwd",
        "",
        "a/../../VERSION",
    ] {
        let answer = client()
            .post(format!("{}/adhocprofiles.v1.AdHocProfileService/Get", house.url))
            .header("content-type", "application/json")
            .body(serde_json::json!({ "id": id }).to_string());
        let status = answer.send().await.unwrap().status();
        assert!(status.is_client_error(), "{id}: {status}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_spelling_of_a_path_comes_past_the_question_who_asks() {
    let folder = tempfile::tempdir().unwrap();
    let (good, _, errors) = run(&["token", "new", "me", "--role", "admin", "--data", &data(folder.path())]);
    assert!(good, "{errors}");
    let house = House::start_in(folder, &[]).await;
    for (method, path) in [
        ("POST", "/flush"),
        ("POST", "/%66lush"),
        ("POST", "//flush"),
        ("POST", "/flush/"),
        ("POST", "/FLUSH"),
        ("POST", "/./flush"),
        ("POST", "/ready/../flush"),
        ("POST", "/ready%2f..%2fflush"),
        ("POST", "/ready;/flush"),
        ("POST", "/flush?/ready"),
        ("POST", "/profile/flush"),
        ("POST", "/profile//flush"),
        ("POST", "/profile/../flush"),
        ("GET", "/metrics"),
        ("GET", "/assets/../metrics"),
        ("GET", "/assets/%2e%2e/metrics"),
        ("GET", "/index.html/../metrics"),
        ("HEAD", "/metrics"),
        ("GET", "http://x/metrics"),
        ("GET", "/debug//pprof/heap"),
    ] {
        for header in ["", "X-Original-URL: /ready\r\n", "X-Forwarded-For: 127.0.0.1\r\n"] {
            let request = format!(
                "{method} {path} HTTP/1.1\r\nHost: x\r\n{header}Content-Length: 0\r\nConnection: close\r\n\r\n"
            );
            let answer = house.raw(request.as_bytes()).await;
            let status = statuses(&answer);
            assert!(
                matches!(status[..], [400 | 401 | 404 | 405]),
                "{method} {path}: {answer}"
            );
        }
    }
}
