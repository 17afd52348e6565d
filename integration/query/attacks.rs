//! SQL statements of malicious or careless users. The engine refuses each statement, stops it at a limit, or answers it
//! without data that the tenant must not see. It still works afterwards.
//!
//! The tests run these statements in the engine, as HTTP requests do, and over the PostgreSQL port with the same
//! limits. They also check how much the memory of the process grows while all statements run.

use std::time::{Duration, Instant};

use alluvium::query::output::format::{Format, encode_all};
use alluvium::query::{QueryEngine, QueryError, QueryLimits};

use super::expected::Expected::{self, Harmless, Refused, Stopped};
use super::{attacks_extreme, engine_with, two_services};
use crate::harness::tenants;

/// Maximum memory growth of the process while all statements run, in bytes: twice the memory limit of all queries, and
/// slack for the tests that run concurrently. The module `memory` measures a separate process.
#[cfg(target_os = "linux")]
const MEMORY: u64 = 1200 << 20;

/// Limits under which all statements run.
pub(super) fn limits() -> QueryLimits {
    QueryLimits {
        timeout: Duration::from_secs(1),
        memory_bytes: 96 << 20,
        max_query_memory_bytes: 64 << 20,
        max_rows: 100_000,
        max_output_bytes: 32 << 20,
        max_concurrent_queries: 4,
        parallelism: 2,
        ..QueryLimits::default()
    }
}

/// Statements, each with a name that describes the attempt.
const STATEMENTS: &[(&str, Expected, &str)] = &[
    ("make a table", Refused, "CREATE TABLE t AS SELECT 1"),
    (
        "make a view over ours",
        Refused,
        "CREATE OR REPLACE VIEW flat AS SELECT 1",
    ),
    ("make a schema", Refused, "CREATE SCHEMA s"),
    ("drop a table", Refused, "DROP TABLE samples"),
    ("change a table", Refused, "ALTER TABLE samples ADD COLUMN a INT"),
    ("empty a table", Refused, "TRUNCATE TABLE samples"),
    ("write rows", Refused, "INSERT INTO series VALUES (1)"),
    ("change rows", Refused, "UPDATE samples SET value = 0"),
    ("delete rows", Refused, "DELETE FROM samples"),
    ("write a file", Refused, "COPY samples TO '/tmp/attack.csv'"),
    (
        "write a file as parquet",
        Refused,
        "COPY (SELECT 1) TO '/tmp/attack.parquet' STORED AS PARQUET",
    ),
    ("read a program's output", Refused, "COPY samples FROM PROGRAM 'id'"),
    (
        "mount a file",
        Refused,
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
    ),
    (
        "mount an address",
        Refused,
        "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'http://127.0.0.1/x'",
    ),
    ("read a file as a table", Refused, "SELECT * FROM '/etc/passwd'"),
    (
        "read a parquet file as a table",
        Refused,
        "SELECT * FROM 'file.parquet'",
    ),
    ("read a file by its URL", Refused, "SELECT * FROM 'file:///etc/passwd'"),
    ("read a quoted file", Refused, "SELECT * FROM \"/etc/hosts\""),
    (
        "read an address as a table",
        Refused,
        "SELECT * FROM 'https://example.com/data.csv'",
    ),
    (
        "read a bucket as a table",
        Refused,
        "SELECT * FROM 's3://bucket/data.parquet'",
    ),
    (
        "read our own store's address",
        Refused,
        "SELECT * FROM 'alluvium://store/etc/passwd'",
    ),
    (
        "a function that reads parquet",
        Refused,
        "SELECT * FROM read_parquet('file.parquet')",
    ),
    (
        "a function that reads csv",
        Refused,
        "SELECT * FROM read_csv('/etc/passwd')",
    ),
    (
        "a function that reads metadata",
        Refused,
        "SELECT * FROM parquet_metadata('file.parquet')",
    ),
    (
        "a function that reads files of PostgreSQL",
        Refused,
        "SELECT pg_read_file('/etc/passwd')",
    ),
    ("a function that lists folders", Refused, "SELECT * FROM pg_ls_dir('/')"),
    (
        "a function that reads the environment",
        Refused,
        "SELECT getenv('PATH')",
    ),
    ("a variable of the host", Refused, "SELECT @@version"),
    ("load a library", Refused, "LOAD '/tmp/x.so'"),
    (
        "make a function",
        Refused,
        "CREATE FUNCTION f(INT) RETURNS INT RETURN $1 + 1",
    ),
    ("run code", Refused, "DO $$ BEGIN END $$"),
    ("call a procedure", Refused, "CALL p()"),
    ("another catalog", Refused, "SELECT * FROM other.public.samples"),
    ("another tenant as a schema", Refused, "SELECT * FROM two.samples"),
    (
        "another tenant as a database",
        Refused,
        "SELECT * FROM two.public.samples",
    ),
    (
        "another tenant's rows by its name",
        Harmless,
        "SELECT * FROM samples WHERE tenant = 'two'",
    ),
    (
        "another tenant's rows by negation",
        Harmless,
        "SELECT * FROM samples WHERE NOT tenant = 'one' OR tenant IS NULL",
    ),
    (
        "another tenant's functions",
        Harmless,
        "SELECT * FROM stacks WHERE stack_contains(frames, 'launch_codes')",
    ),
    (
        "another tenant's labels",
        Harmless,
        "SELECT * FROM series WHERE service_name = 'secret' OR labels['service_name'] = 'secret'",
    ),
    (
        "another tenant in a selector",
        Harmless,
        "SELECT * FROM top('process_cpu:cpu:nanoseconds:cpu:nanoseconds{tenant=\"two\"}', 0, 'now')",
    ),
    (
        "settings of the engine",
        Refused,
        "SELECT * FROM information_schema.df_settings",
    ),
    ("secrets of the host", Refused, "SELECT * FROM public.secrets"),
    (
        "end the quotes of a selector",
        Refused,
        "SELECT * FROM top('x\"}'') UNION SELECT 1 --', 0, 'now')",
    ),
    (
        "a recursive query",
        Refused,
        "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t",
    ),
    ("explain a change", Refused, "EXPLAIN DELETE FROM samples"),
    (
        "explain and run a change",
        Refused,
        "EXPLAIN ANALYZE INSERT INTO series VALUES (1)",
    ),
    ("into a table", Refused, "SELECT 1 INTO t"),
    (
        "lock rows",
        Harmless,
        "SELECT count(*) AS n FROM samples WHERE tenant = 'two'",
    ),
    (
        "an endless series as a table",
        Refused,
        "SELECT * FROM generate_series(1, 1000000000000)",
    ),
    (
        "an endless series as a list",
        Stopped,
        "SELECT generate_series(1, 1000000000000)",
    ),
    (
        "an endless series by a row's value",
        Stopped,
        "SELECT range(value, 9000000000000000000) FROM samples",
    ),
    ("a gigabyte of x", Stopped, "SELECT repeat('x', 1000000000)"),
    (
        "a gigabyte of x a row",
        Stopped,
        "SELECT repeat(profile_type, 1000000000) FROM samples",
    ),
    ("a gigabyte of padding", Stopped, "SELECT lpad('x', 1000000000)"),
    (
        "a terabyte by replacing",
        Stopped,
        "SELECT replace(repeat('x', 60000), 'x', repeat('y', 60000))",
    ),
    (
        "a terabyte by matching",
        Stopped,
        "SELECT regexp_replace(repeat('x', 60000), '(.*)', repeat('\\1', 30000), 'g')",
    ),
    (
        "a giant list",
        Stopped,
        "SELECT array_repeat(repeat('x', 60000), 100000000)",
    ),
    (
        "a giant list of nothing",
        Stopped,
        "SELECT array_resize([1], 4000000000)",
    ),
    (
        "a cross join of everything",
        Stopped,
        "SELECT count(*) FROM samples a, samples b, samples c, samples d, samples e, samples f, samples g, samples h \
         WHERE a.value + b.value + c.value + d.value + e.value + f.value + g.value + h.value < 0",
    ),
    (
        "rows without end",
        Stopped,
        "SELECT a.value FROM samples a, samples b, samples c, samples d, samples e, samples f, samples g",
    ),
    (
        "bytes without end",
        Stopped,
        "SELECT repeat('x', 60000), a.value FROM samples a, samples b, samples c",
    ),
    (
        "sort everything",
        Stopped,
        "SELECT repeat('x', 1000) || a.value AS x FROM samples a, samples b, samples c, samples d, samples e ORDER BY \
         1",
    ),
    (
        "collect everything",
        Stopped,
        "SELECT array_agg(repeat('x', 1000) || a.value) FROM samples a, samples b, samples c, samples d, samples e",
    ),
    (
        "join everything as a text",
        Stopped,
        "SELECT string_agg(repeat('x', 1000) || a.value, ',') FROM samples a, samples b, samples c, samples d, samples \
         e",
    ),
    (
        "collect everything by group",
        Stopped,
        "SELECT a.value, array_agg(repeat('x', 1000)) FROM samples a, samples b, samples c, samples d, samples e GROUP \
         BY 1",
    ),
    (
        "distinct of everything",
        Stopped,
        "SELECT count(DISTINCT repeat('x', 1000) || a.value || b.value || c.value || row_number() OVER ()) FROM \
         samples a, samples b, samples c, samples d, samples e",
    ),
    (
        "groups without end",
        Stopped,
        "SELECT n, count(*) FROM (SELECT row_number() OVER () AS n FROM samples a, samples b, samples c, samples d, \
         samples e) t GROUP BY n",
    ),
    (
        "a window over everything",
        Stopped,
        "SELECT sum(a.value) OVER (ORDER BY b.value, c.value, d.value ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED \
         FOLLOWING) FROM samples a, samples b, samples c, samples d, samples e",
    ),
    (
        "a regular expression that explodes when compiled",
        Stopped,
        "SELECT function_matches(frames, '((((a{100}){100}){100}){100}){100}') FROM stacks",
    ),
    (
        "a regular expression that explodes in regexp_like",
        Stopped,
        "SELECT regexp_like(profile_type, '((((a{100}){100}){100}){100}){100}') FROM samples",
    ),
    (
        "a regular expression that explodes in an operator",
        Stopped,
        "SELECT profile_type ~ '((((a{100}){100}){100}){100}){100}' FROM samples",
    ),
    (
        "a regular expression that explodes in SIMILAR TO",
        Refused,
        "SELECT profile_type SIMILAR TO '((((a{100}){100}){100}){100}){100}' FROM samples",
    ),
    (
        "a regular expression a row",
        Stopped,
        "SELECT regexp_like('x', '(a{100}){' || n || '}') FROM (SELECT unnest(range(0, 100)) AS n) t",
    ),
    (
        "a regular expression that would backtrack",
        Harmless,
        "SELECT regexp_like(repeat('a', 30000), '(a*)*(a*)*(a*)*b') AS x",
    ),
    (
        "distances of long texts",
        Refused,
        "SELECT levenshtein(repeat('x', 60000), repeat('y', 60000))",
    ),
    (
        "a cube of columns",
        Stopped,
        "SELECT count(*) FROM samples GROUP BY CUBE (tenant, day, time, series, profile_type, stack, value, span_id, \
         trace_id, tenant || 'a', tenant || 'b', tenant || 'c', tenant || 'd', tenant || 'e', tenant || 'f', tenant || \
         'g', tenant || 'h')",
    ),
    (
        "a series unrolled against long texts",
        Stopped,
        "SELECT unnest(range(0, 1000000)), repeat('x', 60000)",
    ),
    (
        "divide by nothing",
        Harmless,
        "SELECT count(*) AS n FROM samples WHERE value / 0 > 1 AND tenant = 'two'",
    ),
    (
        "the smallest number's negation",
        Harmless,
        "SELECT abs(-9223372036854775807 - 1) AS n WHERE false",
    ),
];

/// Returns statements that are generated because they are long.
pub(super) fn made() -> Vec<(&'static str, Expected, String)> {
    let levels = |count: usize, body: &str| {
        let parts: Vec<String> = (1..=count)
            .map(|level| format!("t{level} AS ({})", body.replace('$', &(level - 1).to_string())))
            .collect();
        format!(
            "WITH t0 AS (SELECT profile_type AS x, value AS n FROM samples), {} SELECT x FROM t{count} WHERE x > 'a'",
            parts.join(", ")
        )
    };
    let numbers: Vec<String> = (0..30_000).map(|number| number.to_string()).collect();
    vec![
        (
            "ten thousand parentheses",
            Refused,
            format!("SELECT {}1{}", "(".repeat(10_000), ")".repeat(10_000)),
        ),
        (
            "ten thousand nested lists",
            Refused,
            format!("SELECT {}1{}", "[".repeat(10_000), "]".repeat(10_000)),
        ),
        (
            "ten thousand NOT",
            Refused,
            format!("SELECT {} true", "NOT ".repeat(10_000)),
        ),
        (
            "ten thousand nested functions",
            Refused,
            format!("SELECT {}1{}", "abs(".repeat(10_000), ")".repeat(10_000)),
        ),
        (
            "a sum of twenty thousand",
            Refused,
            format!("SELECT {}1", "1+".repeat(20_000)),
        ),
        ("a thousand unions", Refused, vec!["SELECT 1"; 1000].join(" UNION ALL ")),
        (
            "a list of 30,000 values",
            Harmless,
            format!(
                "SELECT count(*) AS n FROM samples WHERE value IN ({}) AND tenant = 'two'",
                numbers.join(",")
            ),
        ),
        (
            "a text of a megabyte",
            Refused,
            format!("SELECT '{}'", "x".repeat(1 << 20)),
        ),
        (
            "tables doubled forty times",
            Refused,
            levels(40, "SELECT * FROM t$ UNION ALL SELECT * FROM t$"),
        ),
        (
            "a text doubled forty times",
            Stopped,
            levels(40, "SELECT x || x AS x, n FROM t$"),
        ),
        (
            "a text doubled fifteen times",
            Stopped,
            levels(15, "SELECT x || x AS x, n FROM t$"),
        ),
        (
            "a text doubled by a function",
            Stopped,
            levels(15, "SELECT concat(x, x) AS x, n FROM t$"),
        ),
        (
            "structs doubled forty times",
            Refused,
            levels(40, "SELECT struct(x, n) AS x, n FROM t$"),
        ),
        (
            "joins doubled forty times",
            Refused,
            levels(40, "SELECT a.x, a.n FROM t$ a, t$ b"),
        ),
        (
            "a parameter in the place of a table",
            Refused,
            "SELECT * FROM $1".to_owned(),
        ),
    ]
}

/// Returns all attacks: the attempt, the expected outcome, and the statement.
pub(super) fn all() -> Vec<(&'static str, Expected, String)> {
    let fixed = STATEMENTS
        .iter()
        .chain(attacks_extreme::STATEMENTS)
        .map(|(name, expected, sql)| (*name, *expected, (*sql).to_owned()));
    fixed.chain(made()).collect()
}

async fn answer(engine: &QueryEngine, sql: &str) -> Result<String, QueryError> {
    let result = engine.sql(&tenants("one"), sql).await?;
    let bytes = encode_all(result, Format::Json).await?;
    Ok(String::from_utf8(bytes).unwrap())
}

/// Returns the rows like [`answer`], but retries while earlier attacks are still being planned. A stopped statement
/// counts as running until the planner, which cannot be interrupted, has ended.
async fn answer_with_patience(engine: &QueryEngine, sql: &str) -> Result<String, QueryError> {
    for _ in 0..60 {
        match answer(engine, sql).await {
            Err(QueryError::Busy(_)) => {}
            answered => return answered,
        }
    }
    answer(engine, sql).await
}

#[tokio::test(flavor = "multi_thread")]
async fn attacks_are_refused_or_stopped_and_the_engine_lives() {
    let engine = engine_with(two_services(), limits());
    let attacks = all();
    assert!(attacks.len() >= 150, "{}", attacks.len());
    let (before, mut problems) = (peak_memory(), Vec::new());
    for (name, expected, sql) in &attacks {
        let answer = answer_with_patience(&engine, sql).await;
        let fits = match (&answer, expected) {
            (Err(QueryError::InvalidArgument(_) | QueryError::Limit(_)), Refused | Stopped) => true,
            (Err(QueryError::Timeout(_)), Stopped) => true,
            (Ok(rows), Harmless) => !rows.contains("launch_codes") && !rows.contains("secret"),
            // A harmless statement may also fail or reach a limit, but it must not cause an internal error.
            (Err(error), Harmless) => !matches!(error, QueryError::Internal(_)),
            _ => false,
        };
        let shown = format!("{answer:?}");
        if !fits || shown.contains("panicked") {
            let shown: String = shown.chars().take(300).collect();
            problems.push(format!("{name} ({expected:?}): {shown}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    // The engine works if at least one of twenty queries succeeds. On a busy machine, some may not end in a second.
    let mut is_alive = false;
    for _ in 0..20 {
        let answer = answer_with_patience(&engine, "SELECT count(*) AS n FROM samples").await;
        is_alive |= answer.is_ok_and(|rows| rows.contains("20"));
    }
    assert!(is_alive);
    let grown = peak_memory().saturating_sub(before);
    #[cfg(target_os = "linux")]
    assert!(grown < MEMORY, "the process grew by {} MiB", grown >> 20);
    let _ = grown;
}

/// Returns the median time of a usual query over several runs.
async fn usual_time(engine: &QueryEngine) -> Duration {
    let mut times = Vec::new();
    for _ in 0..15 {
        let began = Instant::now();
        let rows = answer(engine, "SELECT count(*) AS n FROM samples").await.unwrap();
        assert!(rows.contains("20"), "{rows}");
        times.push(began.elapsed());
    }
    times.sort();
    times[times.len() / 2]
}

/// The attackers use half of the query slots and never pause. They abandon a query if the engine has not responded
/// within 30 ms or 500 ms, in turn.
#[tokio::test(flavor = "multi_thread")]
async fn others_are_answered_in_about_their_usual_time_while_attacks_run() {
    let patient = QueryLimits {
        timeout: Duration::from_secs(20),
        ..limits()
    };
    let engine = engine_with(two_services(), patient);
    let alone = usual_time(&engine).await;
    let attackers: Vec<_> = (0..2)
        .map(|number| {
            let engine = engine.clone();
            tokio::spawn(async move {
                let attacks: Vec<_> = all().into_iter().filter(|attack| attack.1 != Harmless).collect();
                for (turn, (_, _, sql)) in attacks.iter().cycle().skip(number * 40).enumerate() {
                    let limit = Duration::from_millis(if turn % 2 == 0 { 30 } else { 500 });
                    let _ = tokio::time::timeout(limit, answer(&engine, sql)).await;
                }
            })
        })
        .collect();
    let beside = usual_time(&engine).await;
    attackers.iter().for_each(tokio::task::JoinHandle::abort);
    // The bound includes a second for a machine with other work. If the planning of abandoned queries held slots, the
    // usual queries would wait for minutes.
    let bound = alone * 2 + Duration::from_secs(1);
    assert!(beside < bound, "{beside:?} during attacks, {alone:?} without");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_limit_names_itself_and_how_to_raise_it() {
    let small = |change: fn(&mut QueryLimits)| {
        let mut limits = limits();
        change(&mut limits);
        engine_with(two_services(), limits)
    };
    let ask = async |engine: QueryEngine, sql: &str| answer(&engine, sql).await.unwrap_err().to_string();
    let rows = ask(small(|limits| limits.max_rows = 3), "SELECT * FROM samples").await;
    assert!(
        rows.contains("more than 3 rows") && rows.contains("sql.max_rows"),
        "{rows}"
    );
    let bytes = ask(
        small(|limits| limits.max_output_bytes = 1 << 20),
        "SELECT repeat('x', 60000) FROM samples a, samples b",
    )
    .await;
    assert!(bytes.contains("1 MiB") && bytes.contains("sql.max_output"), "{bytes}");
    let memory = ask(
        small(|limits| limits.max_query_memory_bytes = 100_000),
        "SELECT a.value, b.value, c.stack, count(*) FROM samples a, samples b, samples c GROUP BY 1, 2, 3 ORDER BY 4",
    )
    .await;
    assert!(memory.contains("sql.max_query_memory"), "{memory}");
    let all = ask(
        small(|limits| limits.memory_bytes = 100_000),
        "SELECT a.value, b.value, c.stack, count(*) FROM samples a, samples b, samples c GROUP BY 1, 2, 3 ORDER BY 4",
    )
    .await;
    assert!(all.contains("sql.max_memory"), "{all}");
    let endless = STATEMENTS
        .iter()
        .find(|row| row.0 == "a cross join of everything")
        .unwrap()
        .2;
    let time = ask(small(|limits| limits.timeout = Duration::from_millis(300)), endless).await;
    assert!(time.contains("300ms") && time.contains("sql.timeout"), "{time}");
    let busy = small(|limits| {
        limits.max_concurrent_queries = 1;
        limits.timeout = Duration::from_secs(2);
    });
    let held = busy.sql(&tenants("one"), "SELECT * FROM samples").await.unwrap();
    // Without this pause, the first query would reach its timeout at the moment at which the next query stops waiting.
    tokio::time::sleep(Duration::from_millis(500)).await;
    // This query receives the slot when the first query reaches its timeout, and holds it until its own timeout.
    let second = busy.clone();
    let mut next = Box::pin(async move { second.sql(&tenants("one"), "SELECT * FROM samples").await });
    assert!(futures::poll!(&mut next).is_pending());
    let next = tokio::spawn(next);
    let waiting = ask(busy.clone(), "SELECT 1").await;
    assert!(
        waiting.contains("1 queries are already running") && waiting.contains("sql.max_concurrent_queries"),
        "{waiting}"
    );
    drop((held, next.await.unwrap().unwrap()));
    assert!(answer(&busy, "SELECT 1").await.is_ok());
}

/// Returns the peak resident memory of the process in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}
