//! The largest SQL statements that the server accepts, sent to the real program with its default settings.
//!
//! Scenario: a server of this build with its defaults and an empty store, over HTTP and PostgreSQL. The statements have
//! joins, subqueries, unions, windows and expressions at the bounds of `query::guard`. Guarantee: the server answers or
//! refuses each of them and keeps running, and the SQL threads use less than half of their stack. Linux only: the test
//! reads the stack usage from `/proc/PID/smaps`.

use std::time::Duration;

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::program::{Address, PATIENCE, Program, client};

/// Stack size of the SQL threads in bytes.
const STACK_BYTES: u64 = 64 << 20;

/// Returns the head repeated `count` times, the core, and the tail repeated `count` times.
fn nested(count: usize, head: &str, core: &str, tail: &str) -> String {
    format!("{}{core}{}", head.repeat(count), tail.repeat(count))
}

fn joined(count: usize, kind: &str) -> String {
    let joins: String = (1..=count)
        .map(|number| format!(" {kind} series s{number} ON s{number}.series = s{}.series", number - 1))
        .collect();
    format!("SELECT 1 AS n FROM series s0{joins}")
}

fn parts(count: usize, body: &str) -> String {
    let parts: String = (1..=count)
        .map(|number| format!(", t{number} AS ({})", body.replace('$', &format!("t{}", number - 1))))
        .collect();
    format!("WITH t0 AS (SELECT value AS n FROM samples){parts} SELECT n FROM t{count}")
}

/// Returns a statement with `columns` columns that pass through `count` subqueries.
fn wide(columns: usize, count: usize) -> String {
    let columns: Vec<String> = (0..columns).map(|number| format!("value AS c{number}")).collect();
    let parts: String = (1..=count)
        .map(|number| format!(", t{number} AS (SELECT * FROM t{})", number - 1))
        .collect();
    format!(
        "WITH t0 AS (SELECT {} FROM samples){parts} SELECT c0 AS n FROM t{count}",
        columns.join(", ")
    )
}

/// Returns statements at the bounds: the name, true if the server must answer the statement or false if it may also
/// refuse the statement, and the text.
fn statements() -> Vec<(&'static str, bool, String)> {
    let values = "SELECT value AS n FROM samples";
    let numbers: Vec<String> = (0..30_000).map(|number| number.to_string()).collect();
    let sums: Vec<String> = (0..60)
        .map(|number| format!("sum(value) OVER (PARTITION BY stack ORDER BY time) AS c{number}"))
        .collect();
    vec![
        ("joins", true, joined(60, "JOIN")),
        ("joins of 110 tables", false, joined(110, "JOIN")),
        ("joins of 199 tables", false, joined(199, "JOIN")),
        ("outer joins", true, joined(40, "LEFT JOIN")),
        (
            "cross joins",
            false,
            format!(
                "SELECT 1 FROM {}",
                (0..195)
                    .map(|number| format!("samples s{number}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        ),
        ("subqueries", false, nested(190, "SELECT n FROM (", values, ") t")),
        (
            "subqueries within the parser's depth",
            true,
            nested(20, "SELECT n FROM (", values, ") t"),
        ),
        (
            "windows",
            false,
            nested(90, "SELECT sum(n) OVER (ORDER BY n) AS n FROM (", values, ") t"),
        ),
        ("parts", true, parts(150, "SELECT n FROM $")),
        (
            "aggregates on top of each other",
            true,
            parts(60, "SELECT n FROM $ GROUP BY n"),
        ),
        (
            "windows on top of each other",
            true,
            parts(14, "SELECT sum(n) OVER (ORDER BY n) AS n FROM $"),
        ),
        (
            "joins on top of each other",
            true,
            parts(15, "SELECT a.n FROM $ a JOIN samples b ON a.n = b.value"),
        ),
        (
            "limits on top of each other",
            true,
            parts(60, "SELECT n FROM $ ORDER BY n LIMIT 9"),
        ),
        (
            "a union",
            true,
            vec!["SELECT value FROM samples"; 150].join(" UNION ALL "),
        ),
        (
            "distinct unions",
            true,
            vec!["SELECT value FROM samples"; 60].join(" UNION "),
        ),
        (
            "differences",
            true,
            vec!["SELECT value FROM samples"; 60].join(" EXCEPT "),
        ),
        (
            "a sum",
            true,
            format!("SELECT {} AS n FROM samples", vec!["value"; 398].join(" + ")),
        ),
        (
            "alternatives",
            true,
            format!(
                "SELECT 1 AS n FROM samples WHERE {}",
                vec!["value = 1"; 198].join(" OR ")
            ),
        ),
        (
            "functions",
            false,
            format!("SELECT {} AS n", nested(390, "upper(", "'a'", ")")),
        ),
        (
            "cases in cases",
            false,
            format!(
                "SELECT {} AS n FROM samples",
                nested(130, "CASE WHEN value > 1 THEN ", "1", " ELSE 0 END")
            ),
        ),
        (
            "a long case",
            true,
            format!(
                "SELECT CASE {} END AS n FROM samples",
                "WHEN value = 1 THEN 2 ".repeat(195)
            ),
        ),
        (
            "casts",
            true,
            format!("SELECT value{} AS n FROM samples", "::text::bigint".repeat(150)),
        ),
        (
            "values of a list",
            true,
            format!("SELECT 1 AS n FROM samples WHERE value IN ({})", numbers.join(",")),
        ),
        (
            "lists in lists",
            false,
            format!("SELECT {} AS n", nested(390, "[", "1", "]")),
        ),
        ("wide subqueries", true, wide(300, 60)),
        ("wider subqueries", false, wide(1600, 25)),
        ("many windows", true, format!("SELECT {} FROM samples", sums.join(", "))),
        ("a plan as text", true, format!("EXPLAIN {}", joined(50, "JOIN"))),
        (
            "a plan that runs",
            true,
            format!("EXPLAIN ANALYZE {}", joined(50, "JOIN")),
        ),
    ]
}

/// Returns the largest peak stack usage of any SQL thread, in bytes. It is the resident size of the stack, because
/// the system never releases the pages of a stack.
fn deepest_stack(server: &Program) -> u64 {
    let maps = std::fs::read_to_string(format!("/proc/{}/smaps", server.id())).unwrap_or_default();
    let (mut is_stack, mut most) = (false, 0);
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if let Some((start, end)) = first.split_once('-') {
            let address = |text| u64::from_str_radix(text, 16).unwrap_or(0);
            // The mapping of a stack may include memory that the system places beside the stack.
            is_stack = address(end).abs_diff(address(start)).abs_diff(STACK_BYTES) < 1 << 20;
        } else if first == "Rss:" && is_stack {
            let kilobytes: u64 = words.next().and_then(|number| number.parse().ok()).unwrap_or(0);
            most = most.max(kilobytes << 10);
        }
    }
    most
}

/// Queries the PostgreSQL port by the simple protocol. Returns the type of the first message of the response, which
/// follows the `ReadyForQuery` that ends the startup.
async fn ask_postgres(address: &str, statement: &str) -> Option<u8> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let parameters = b"user\0a\0database\0alluvium\0\0";
    let mut sent = BytesMut::new();
    sent.put_u32(parameters.len() as u32 + 8);
    sent.put_u32(3 << 16);
    sent.put_slice(parameters);
    sent.put_u8(b'Q');
    sent.put_u32(statement.len() as u32 + 5);
    sent.put_slice(statement.as_bytes());
    sent.put_u8(0);
    stream.write_all(&sent).await.ok()?;
    let (mut input, mut is_ready) = (BytesMut::new(), false);
    loop {
        while input.len() >= 5 {
            let length = (&input[1..5]).get_u32() as usize;
            if input.len() <= length {
                break;
            }
            let kind = input.split_to(length + 1)[0];
            if is_ready {
                return Some(kind);
            }
            is_ready = kind == b'Z';
        }
        if stream.read_buf(&mut input).await.ok()? == 0 {
            return None;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_accepted_statements_fit_on_half_of_the_stack() {
    let folder = tempfile::tempdir().unwrap();
    let (http, postgres) = (Address::keep(), Address::keep());
    let data = folder.path().join("data").display().to_string();
    let (http_text, postgres_text) = (http.to_string(), postgres.to_string());
    let arguments = [
        "serve",
        "--listen",
        &http_text,
        "--data",
        &data,
        "--postgres.listen",
        &postgres_text,
    ];
    let mut server = Program::alluvium(&arguments, &folder.path().join("log"));
    let client = client();
    server.ready(&client, &format!("http://{http}/ready")).await;
    let mut deepest = (0, "");
    for (name, is_accepted, statement) in statements() {
        let asked = client
            .post(format!("http://{http}/api/v1/sql"))
            .header("content-type", "text/plain")
            .timeout(PATIENCE)
            .body(statement.clone());
        let answer = asked.send().await;
        server.check();
        let answer = answer.unwrap_or_else(|error| panic!("{name}: {error}\n{}", server.tail()));
        let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
        let text: String = text.chars().take(300).collect();
        assert!(
            status == 200 || !is_accepted && status == 400,
            "{name}: {status} {text}"
        );
        if status == 200 {
            let kind = tokio::time::timeout(PATIENCE, ask_postgres(&postgres.to_string(), &statement)).await;
            server.check();
            assert_eq!(kind.ok().flatten(), Some(b'T'), "{name}\n{}", server.tail());
        }
        let used = deepest_stack(&server);
        deepest = deepest.max((used, name));
    }
    println!("deepest stack: {} KiB, of {}", deepest.0 >> 10, deepest.1);
    assert!(deepest.0 > 0, "no stack of an SQL thread was found");
    assert!(
        deepest.0 < STACK_BYTES / 2,
        "{} uses {} KiB",
        deepest.1,
        deepest.0 >> 10
    );
    server.terminate();
}

/// Returns a statement that needs seconds or more to plan in a debug build.
fn expensive() -> String {
    joined(70, "JOIN")
}

#[tokio::test(flavor = "multi_thread")]
async fn planning_that_nobody_waits_for_keeps_no_place() {
    let folder = tempfile::tempdir().unwrap();
    let http = Address::keep();
    let (data, config) = (folder.path().join("data"), folder.path().join("config.yaml"));
    // The timeout is shorter than the planning of the expensive statement.
    std::fs::write(&config, "sql:\n  max_concurrent_queries: 2\n  timeout: 5s\n").unwrap();
    let (data, config) = (data.display().to_string(), config.display().to_string());
    let arguments = [
        "serve",
        "--listen",
        &http.to_string(),
        "--data",
        &data,
        "--config.file",
        &config,
    ];
    let mut server = Program::alluvium(&arguments, &folder.path().join("log"));
    let client = client();
    server.ready(&client, &format!("http://{http}/ready")).await;
    let ask = |statement: String, limit: Duration| {
        let asked = client.post(format!("http://{http}/api/v1/sql"));
        let asked = asked
            .header("content-type", "text/plain")
            .timeout(limit)
            .body(statement);
        async move { asked.send().await.map(|answer| answer.status().as_u16()) }
    };
    // Eight clients compete for two query slots and then disconnect.
    let leaving = (0..8).map(|_| ask(expensive(), Duration::from_millis(300)));
    futures::future::join_all(leaving).await;
    let answered = ask("SELECT 1 AS n".to_owned(), PATIENCE).await;
    server.check();
    assert_eq!(answered.ok(), Some(200), "{}", server.tail());
    server.terminate();
}
