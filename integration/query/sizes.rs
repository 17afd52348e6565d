//! Statements with a short text and large rows, names or plans.
//!
//! Scenario: an engine with little memory for a query. Guarantee: the engine refuses statements that exceed a limit,
//! and answers reasonable statements in smaller batches.

use alluvium::query::output::format::{Format, encode_all};
use alluvium::query::{QueryEngine, QueryError, QueryLimits};
use serde_json::{Value, json};

use super::{engine_with, rows, two_services};
use crate::harness::tenants;

fn small() -> QueryEngine {
    let limits = QueryLimits {
        max_query_memory_bytes: 8 << 20,
        max_output_bytes: 5 << 20,
        ..QueryLimits::default()
    };
    engine_with(two_services(), limits)
}

async fn answer(engine: &QueryEngine, sql: &str, format: Format) -> Result<Vec<u8>, QueryError> {
    encode_all(engine.sql(&tenants("one"), sql).await?, format).await
}

async fn refusal(engine: &QueryEngine, sql: &str, format: Format) -> String {
    let shown: String = sql.chars().take(120).collect();
    match answer(engine, sql, format).await {
        Err(QueryError::Limit(reason)) => reason,
        Err(other) => panic!("{shown}: {other:?}"),
        Ok(bytes) => panic!("{shown}: {} bytes", bytes.len()),
    }
}

/// Returns a subquery with `count` rows of one column `n`, which counts from 0.
fn numbers(count: usize) -> String {
    format!("(SELECT unnest(range(0, {count})) AS n) t")
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_many_rows_are_made_in_small_batches() {
    let engine = small();
    for (text, bytes) in [
        ("lpad(n::text, 6000, 'x')", 6_000_000),
        ("concat(n::text, repeat('x', 6000))", 6_002_890),
        ("n::text || repeat('x', 6000)", 6_002_890),
        ("CASE WHEN n >= 0 THEN repeat('x', 6000) ELSE n::text END", 6_000_000),
    ] {
        let sql = format!(
            "SELECT count(*) AS n, sum(length({text})) AS bytes FROM {}",
            numbers(1000)
        );
        assert_eq!(
            rows(&engine, "one", &sql).await,
            json!([{"n": 1000, "bytes": bytes}]),
            "{text}"
        );
        let sql = format!(
            "SELECT count(*) AS n FROM (SELECT {text} AS x FROM {}) t WHERE length(x) > 1",
            numbers(1000)
        );
        assert_eq!(rows(&engine, "one", &sql).await, json!([{"n": 1000}]), "{text}");
    }
    let sql = format!(
        "SELECT n, repeat('x', 1500) AS x FROM {} ORDER BY n DESC",
        numbers(1000)
    );
    let all = rows(&engine, "one", &sql).await;
    let first: Vec<&Value> = all.as_array().unwrap().iter().map(|row| &row["n"]).collect();
    assert_eq!((first.len(), first[0], first[999]), (1000, &json!(999), &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_that_do_not_fit_the_memory_of_a_query_are_refused() {
    let engine = small();
    let columns: Vec<String> = (0..20)
        .map(|column| format!("repeat('x', 60000) AS c{column}"))
        .collect();
    let grown: Vec<String> = (0..20)
        .map(|column| format!("repeat('x', 40000 + n) AS c{column}"))
        .collect();
    let copies = vec!["SELECT * FROM t"; 100].join(" UNION ALL ");
    for sql in [
        // A row has 1.2 MB, so the response is too large.
        format!("SELECT n, {} FROM {}", columns.join(", "), numbers(8192)),
        format!("SELECT n, {} FROM {}", grown.join(", "), numbers(8192)),
        format!("SELECT n, '{}' AS x FROM {}", "x".repeat(200_000), numbers(8192)),
        // Each copy has its own constant.
        format!("WITH t AS (SELECT {}) {copies}", columns.join(", ")),
        // The engine repeats the text for each element of the list.
        "SELECT unnest(range(0, 8192)) AS n, repeat('x', 60000) AS x".to_owned(),
    ] {
        let reason = refusal(&engine, &sql, Format::Arrow).await;
        assert!(
            reason.contains("sql.max_query_memory") || reason.contains("sql.max_output"),
            "{reason}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_escapes_count_as_often_as_json_writes_them() {
    let engine = small();
    let column = |number: usize| format!("n AS \"{number}{}\"", "x".repeat(900));
    let named = |columns: usize, rows: usize| {
        let columns: Vec<String> = (0..columns).map(column).collect();
        format!("SELECT {} FROM {}", columns.join(", "), numbers(rows))
    };
    // A row of the JSON response has 18 KB because of the names. In memory, its 20 numbers have 160 bytes.
    let reason = refusal(&engine, &named(20, 8192), Format::Json).await;
    assert!(
        reason.contains("more than 5 MiB") && reason.contains("sql.max_output"),
        "{reason}"
    );
    assert!(answer(&engine, &named(20, 200), Format::Json).await.unwrap().len() > 3_600_000);
    assert!(answer(&engine, &named(20, 8192), Format::Arrow).await.is_ok());
    // The name of the column is the text of an expression.
    let literal = format!("SELECT n, '{}' FROM {}", "x".repeat(2000), numbers(8192));
    refusal(&engine, &literal, Format::Json).await;
    // JSON needs six bytes for one byte in the column.
    let escaped = format!("SELECT repeat(chr(1), 200) AS x FROM {}", numbers(8192));
    assert!(answer(&engine, &escaped, Format::Arrow).await.is_ok());
    refusal(&engine, &escaped, Format::Json).await;
    let reason = refusal(&engine, &format!("SELECT 1 AS \"{}\"", "x".repeat(2000)), Format::Json).await;
    assert!(reason.contains("a name of 2000 bytes"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_is_charged_while_it_is_planned() {
    let values = |count: usize| vec!["1"; count].join(",");
    let within = format!(
        "WITH t AS (SELECT 1 AS x WHERE 1 IN ({})) SELECT * FROM t",
        values(100_000)
    );
    let reason = refusal(&small(), &within, Format::Json).await;
    assert!(reason.contains("sql.max_query_memory"), "{reason}");
    let engine = engine_with(two_services(), QueryLimits::default());
    let usual = format!(
        "SELECT count(*) AS n FROM samples WHERE value NOT IN ({})",
        values(5000)
    );
    assert_eq!(rows(&engine, "one", &usual).await, json!([{"n": 20}]));
}
