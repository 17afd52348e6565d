//! The real program as a server with little memory. It receives more pushes and queries than its memory can hold at
//! once.
//!
//! Scenario: eight clients send the profiles of a synthetic fleet as fast as they can. Meanwhile, another client
//! queries flame graphs of all profiles. A second test sends short SQL statements with large rows, names and plans.
//! Guarantee: the anonymous memory of the process stays within `--memory-limit`, and after retries every profile is
//! stored once.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alluvium_base::Shutdown;
use alluvium_profile::{RawProfile, pprof};
use alluvium_testing::fleet::{Fleet, FleetShape};
use alluvium_wire::call::Caller;
use alluvium_wire::push::PushClient;

use crate::harness::client;
use crate::program::{Address, PATIENCE, Program, sql};

const LIMIT_BYTES: u64 = 128 << 20;
const CLIENTS: usize = 8;
const TICKS: u64 = 12;

/// Parts of a server that have a memory limit.
const PARTS: [&str; 7] = [
    "heads",
    "decoding",
    "bodies",
    "answers",
    "queries",
    "caches",
    "maintenance",
];

/// Returns the value of a memory metric for a part, in bytes.
fn of_part(metrics: &str, kind: &str, part: &str) -> u64 {
    let name = format!("alluvium_memory_{kind}_bytes{{part=\"{part}\"}} ");
    let value = metrics.lines().find_map(|line| line.strip_prefix(&name));
    value.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
}

/// Returns the anonymous memory of a process in bytes, without the pages of mapped files.
fn own_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// Starts a server with little memory.
fn serve(address: &str, folder: &Path) -> Program {
    let (data, limit) = (folder.join("data"), LIMIT_BYTES.to_string());
    let arguments = [
        "serve",
        "--listen",
        address,
        "--data",
        &data.to_string_lossy(),
        "--memory-limit",
        &limit,
    ];
    Program::alluvium(&arguments, &folder.join("log"))
}

/// Measures the memory of a process until `stop` is cancelled. Returns the maximum in bytes.
async fn peak(process: u32, stop: Shutdown) -> u64 {
    let mut peak = 0;
    while !stop.is_cancelled() {
        peak = own_memory(process).max(peak);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    peak
}

/// Pushes profile after profile until none is left. Retries a push until it succeeds, and fails if an error is not
/// retryable.
async fn push_all(url: String, fleet: Arc<Fleet>, start: i64, next: Arc<AtomicUsize>, refused: Arc<AtomicU64>) {
    let pusher = PushClient::new(Caller::new(client(), url.parse().unwrap()).with_timeout(PATIENCE));
    let each = fleet.profiles_per_tick();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= each * TICKS as usize {
            return;
        }
        let (labels, profile) = fleet.profile((number / each) as u64, number % each, start);
        let raw = RawProfile {
            labels,
            id: "".into(),
            pprof: pprof::gzip(&pprof::encode(&profile)).into(),
        };
        while let Err(error) = pusher.push(std::slice::from_ref(&raw)).await {
            assert!(error.is_retryable(), "{error}");
            refused.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Queries the flame graph of all profiles until `stop` is cancelled. The server may refuse a query for lack of memory.
/// Returns the number of successful queries.
async fn ask(url: String, stop: Shutdown) -> u64 {
    let http = client();
    let mut answered = 0;
    while !stop.is_cancelled() {
        let graph = http.get(format!(
            "{url}/pyroscope/render?query=process_cpu:cpu:nanoseconds:cpu:nanoseconds{{}}&from=now-1h"
        ));
        let answer = graph.send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success() || text.contains("memory"), "{status} {text}");
        answered += u64::from(status.is_success());
    }
    answered
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_little_memory_stays_within_it_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (address, http) = (Address::keep(), client());
    let url = format!("http://{address}");
    let mut server = serve(&address, folder.path());
    server.ready(&http, &format!("{url}/ready")).await;

    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let start = i64::try_from(now.checked_sub(Duration::from_mins(30)).unwrap().as_nanos()).unwrap();
    let fleet = Arc::new(Fleet::new(FleetShape::default(), 7));
    let (next, refused, stop) = (
        Arc::<AtomicUsize>::default(),
        Arc::<AtomicU64>::default(),
        Shutdown::new(),
    );
    let peak = tokio::spawn(peak(server.id(), stop.clone()));
    let asked = tokio::spawn(ask(url.clone(), stop.clone()));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            tokio::spawn(push_all(
                url.clone(),
                fleet.clone(),
                start,
                next.clone(),
                refused.clone(),
            ))
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    stop.cancel();
    let (peak, answered) = (peak.await.unwrap(), asked.await.unwrap());
    server.check();
    println!(
        "peak {} MiB, {answered} graphs, {} pushes refused for now",
        peak >> 20,
        refused.load(Ordering::Relaxed)
    );
    assert!(peak > 0 && peak <= LIMIT_BYTES, "{peak} bytes\n{}", server.tail());
    assert!(answered > 0, "no query succeeded during the pushes");
    let metrics = http.get(format!("{url}/metrics")).send().await.unwrap();
    let metrics = metrics.text().await.unwrap();
    let limits: u64 = PARTS
        .iter()
        .map(|part| {
            let (used, limit) = (of_part(&metrics, "used", part), of_part(&metrics, "limit", part));
            assert!(limit > 0 && used <= limit + (8 << 20), "{part}: {used} of {limit}");
            limit
        })
        .sum();
    assert!(limits <= LIMIT_BYTES, "{limits}");

    let wanted = fleet.profiles_per_tick() as u64 * TICKS;
    // Each profile has a unique time.
    let each = "select time, profile_type, count(*) as times from profiles group by time, profile_type";
    let stored = sql(
        &http,
        &url,
        &format!("select count(distinct time), max(times) from ({each})"),
    )
    .await;
    assert_eq!(stored, [[wanted.to_string(), "1".to_owned()]]);
    assert!(server.terminate().success());
}

/// Returns statements of at most 256 KiB that would produce gigabytes.
fn large_statements() -> Vec<String> {
    let numbers = "(SELECT unnest(range(0, 8192)) AS n) t";
    let columns = |each: &dyn Fn(usize) -> String| (0..20).map(each).collect::<Vec<_>>().join(", ");
    let constants = columns(&|column| format!("repeat('x', 60000) AS c{column}"));
    let grown = columns(&|column| format!("repeat('x', 10000 + n) AS c{column}"));
    let literal = "x".repeat(200_000);
    vec![
        format!("SELECT n, {constants} FROM {numbers}"),
        format!("SELECT n, {grown} FROM {numbers}"),
        format!("SELECT n, '{literal}' AS x FROM {numbers}"),
        format!("SELECT count(DISTINCT x) FROM (SELECT n, '{literal}' || n AS x FROM {numbers}) y WHERE length(x) > 1"),
        format!("SELECT a.*, t.n FROM (SELECT {constants}) a CROSS JOIN {numbers}"),
        format!("SELECT unnest(range(0, 30000)) AS n, {constants}"),
        format!("SELECT n AS \"{literal}\" FROM {numbers}"),
        format!("SELECT n, '{literal}' FROM {numbers}"),
        format!(
            "SELECT concat(n, '{literal}') AS x, upper('{}' || n) AS y FROM {numbers}",
            &literal[..50_000]
        ),
        format!(
            "WITH t AS (SELECT 1 AS x WHERE 1 IN ({})) SELECT * FROM t",
            vec!["1"; 131_000].join(",")
        ),
        format!(
            "WITH t AS (SELECT {constants}) {}",
            vec!["SELECT * FROM t"; 100].join(" UNION ALL ")
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn short_statements_with_large_rows_names_or_plans_stay_within_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let (address, http) = (Address::keep(), client());
    let url = format!("http://{address}");
    let mut server = serve(&address, folder.path());
    server.ready(&http, &format!("{url}/ready")).await;
    let (stop, process) = (Shutdown::new(), server.id());
    let before = own_memory(process);
    let peak = tokio::spawn(peak(process, stop.clone()));
    for text in large_statements() {
        let shown: String = text.chars().take(80).collect();
        let asked = http.post(format!("{url}/api/v1/sql?format=json"));
        let asked = asked.header("content-type", "text/plain").body(text).send();
        let answer = asked.await.unwrap();
        let status = answer.status();
        // If a response exceeds a limit after it has begun, the server aborts it.
        let rest = answer.bytes().await.map(|bytes| bytes.len());
        println!("{shown}: {status}, {rest:?}, {} MiB", own_memory(process) >> 20);
        server.check();
    }
    stop.cancel();
    let peak = peak.await.unwrap();
    println!("peak {} MiB, {} MiB before", peak >> 20, before >> 20);
    assert!(peak > 0 && peak <= LIMIT_BYTES, "{peak} bytes\n{}", server.tail());
    assert_eq!(sql(&http, &url, "SELECT 1 AS one").await, [["1"]]);
    assert!(server.terminate().success());
}
