//! Strangers at the ports: foreign pages that make a browser send requests, and request bodies that use much memory.
//!
//! Scenario: real processes, and many greedy clients at once beside an honest one. Guarantee: requests of foreign
//! pages get 403, memory is bounded, and the honest client is served, as `docs/operations.md` promises.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alluvium_profile::pprof::{self, Profile, ValueType};
use alluvium_profile::{Labels, RawProfile};
use alluvium_wire::push;
use prost::Message as _;

use crate::harness::client;
use crate::program::{Address, PATIENCE, Program};

const PUSH: &str = "/push.v1.PusherService/Push";

/// Maximum total memory of a server in bytes.
const MOST_MEMORY: usize = 512 << 20;

async fn serve(folder: &std::path::Path, flags: &[&str]) -> (Program, String) {
    let (address, data) = (Address::keep(), folder.join("data").display().to_string());
    let arguments = [&["serve", "--listen", &address, "--data", &data], flags].concat();
    let mut program = Program::alluvium(&arguments, &folder.join("log"));
    let url = format!("http://{address}");
    program.ready(&client(), &format!("{url}/ready")).await;
    (program, url)
}

async fn answer(request: reqwest::RequestBuilder) -> (u16, String) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test]
async fn the_server_answers_browsers_for_its_own_pages_and_hides_secrets_of_its_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let secret = "not-to-be-read";
    let flags = [
        "--http.allowed-host",
        "profiles.example.com",
        "--storage.s3.secret-access-key",
        secret,
    ];
    let (program, url) = serve(folder.path(), &flags).await;
    let client = client();
    let sql = |headers: &[(&str, &str)]| {
        let request = client.post(format!("{url}/api/v1/sql")).body("SELECT 1");
        let request = headers
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value));
        answer(request)
    };
    let plain = ("content-type", "text/plain");
    for (headers, status) in [
        (&[plain][..], 200),
        (&[plain, ("host", "evil.example")], 200),
        (&[plain, ("origin", &url)], 200),
        (&[plain, ("sec-fetch-site", "same-origin")], 200),
        (&[plain, ("sec-fetch-site", "cross-site")], 403),
        (&[plain, ("origin", "https://evil.example")], 403),
        (&[plain, ("origin", "null")], 403),
        (
            &[plain, ("origin", "http://evil.example"), ("host", "evil.example")],
            403,
        ),
        (&[plain, ("accept-language", "en"), ("host", "evil.example")], 403),
        (
            &[
                plain,
                ("origin", "http://profiles.example.com"),
                ("host", "profiles.example.com"),
            ],
            200,
        ),
    ] {
        let (got, text) = sql(headers).await;
        assert_eq!(got, status, "{headers:?}: {text}");
    }
    let (_, text) = sql(&[plain, ("origin", "http://evil.example"), ("host", "evil.example")]).await;
    assert!(text.contains("--http.allowed-host evil.example"), "{text}");

    let from_link = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
    for (path, status) in [
        ("/", 200),
        ("/profile?q=1", 200),
        ("/debug/pprof/profile?seconds=1", 403),
    ] {
        let request = client.get(format!("{url}{path}"));
        let request = from_link
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value));
        assert_eq!(answer(request).await.0, status, "{path}");
    }

    let (status, text) = answer(client.get(format!("{url}/debug/pprof/cmdline"))).await;
    assert_eq!(status, 200);
    assert!(text.contains("--storage.s3.secret-access-key\0<hidden>"), "{text}");
    assert!(!text.contains(secret));
    assert!(!program.tail().contains("can reach this port without a password"));
}

#[tokio::test]
async fn a_port_that_other_machines_reach_without_a_password_is_told_once_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("empty.alloy");
    std::fs::write(&config, "").unwrap();
    let (data, config) = (
        folder.path().join("data").display().to_string(),
        config.display().to_string(),
    );
    let serve: &[&str] = &["serve", "--listen", "0.0.0.0:0", "--auth", "none", "--data", &data];
    let run: &[&str] = &[
        "run",
        &config,
        "--server.http.listen-addr",
        "0.0.0.0:0",
        "--storage.path",
        &data,
    ];
    for (name, flags, begun) in [("serve", serve, "serving"), ("run", run, "collecting")] {
        let log = folder.path().join(name);
        let mut program = Program::alluvium(flags, &log);
        let text = || std::fs::read_to_string(&log).unwrap();
        let deadline = std::time::Instant::now() + PATIENCE;
        while !text().contains(&format!("msg={begun}")) || !text().contains("password") {
            program.check();
            assert!(std::time::Instant::now() < deadline, "timed out\n{}", text());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(program.terminate().success());
        assert_eq!(
            text().matches("can reach this port without a password").count(),
            1,
            "{}",
            text()
        );
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns a push of one small profile with the current time.
fn honest(number: usize) -> Vec<u8> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let profile = Profile {
        sample_types: vec![ValueType {
            kind: "cpu",
            unit: "nanoseconds",
        }],
        time_nanos: i64::try_from(now).unwrap(),
        sample_starts: vec![0],
        label_starts: vec![0],
        ..Profile::default()
    };
    let profile = RawProfile {
        labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", &format!("s{number}"))]),
        id: "".into(),
        pprof: pprof::gzip(&pprof::encode(&profile)).into(),
    };
    push::to_request(&[profile]).encode_to_vec()
}

/// A greedy client's request: path, content type, content encoding, body.
type Greedy = (&'static str, &'static str, &'static str, bytes::Bytes);

/// Returns requests with bodies that would use some hundred megabytes to some gigabytes of memory.
fn greedy() -> Vec<Greedy> {
    let proto = "application/proto";
    let zeros = vec![0u8; 125 << 20];
    let empty_series = [0x0a, 0].repeat(31 << 20);
    // This body has one series with 31 million empty labels.
    let mut empty_labels = vec![0x0a];
    prost::encoding::encode_varint(60 << 20, &mut empty_labels);
    empty_labels.extend([0x0a, 0].repeat(30 << 20));
    let json = [&br#"{"series":["#[..], &b"{},".repeat(8 << 20), b"{}]}"].concat();
    let text = b"a;b;c;d 1\n".repeat(400_000);
    let ingest = "/ingest?name=greedy";
    vec![
        (PUSH, proto, "gzip", gzip(&zeros).into()),
        (PUSH, proto, "gzip", gzip(&zeros[..62 << 20]).into()),
        (PUSH, proto, "gzip", gzip(&empty_series).into()),
        (PUSH, proto, "gzip", gzip(&empty_labels).into()),
        (
            PUSH,
            proto,
            "zstd",
            zstd::encode_all(zeros.as_slice(), 1).unwrap().into(),
        ),
        (PUSH, "application/json", "gzip", gzip(&json).into()),
        (ingest, "text/plain", "gzip", gzip(&text).into()),
        (ingest, "text/plain", "identity", gzip(&zeros).into()),
        (
            "/querier.v1.QuerierService/LabelNames",
            proto,
            "gzip",
            gzip(&empty_series).into(),
        ),
        ("/api/v1/sql", "text/plain", "gzip", gzip(&zeros).into()),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_with_bodies_that_grow_take_bounded_memory_and_an_honest_one_is_served() {
    const CLIENTS: usize = 64;
    let folder = tempfile::tempdir().unwrap();
    let (mut program, url) = serve(folder.path(), &[]).await;
    let bodies = Arc::new(greedy());
    let (is_done, refused) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let greedy: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (bodies, is_done, refused, url) = (bodies.clone(), is_done.clone(), refused.clone(), url.clone());
            tokio::spawn(async move {
                let client = client();
                let mut next = number;
                while !is_done.load(Ordering::Relaxed) {
                    let (path, kind, encoding, body) = &bodies[next % bodies.len()];
                    next += 1;
                    let request = client
                        .post(format!("{url}{path}"))
                        .header("content-type", *kind)
                        .header("content-encoding", *encoding)
                        .body(body.clone());
                    let (status, text) = answer(request).await;
                    assert!(matches!(status, 400 | 413 | 503), "{path}: {status} {text}");
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let client = client();
    let mut sent = 0;
    // Runs until enough greedy requests were refused, so that every kind of body has been sent.
    while sent < 30 || refused.load(Ordering::Relaxed) < 2 * CLIENTS {
        let body = honest(sent);
        let (body, encoding) = match sent % 2 {
            0 => (body, "identity"),
            _ => (gzip(&body), "gzip"),
        };
        let request = client
            .post(format!("{url}{PUSH}"))
            .header("content-type", "application/proto")
            .header("content-encoding", encoding)
            .body(body);
        assert_eq!(answer(request).await, (200, String::new()), "push {sent}");
        sent += 1;
    }
    is_done.store(true, Ordering::Relaxed);
    for client in greedy {
        client.await.unwrap();
    }
    let peak = program.peak_memory();
    println!(
        "{sent} honest pushes, {} others refused, {} MiB at most",
        refused.load(Ordering::Relaxed),
        peak >> 20
    );
    assert!(peak < MOST_MEMORY, "{} MiB", peak >> 20);
    program.check();
    let found = crate::program::sql(&client, &url, "SELECT count(*) AS n FROM profiles").await;
    assert_eq!(found, [[sent.to_string()]]);
}
