//! SQL: the queries in `docs/sql.md`, the functions, the formats, and exact sums.

use std::collections::BTreeMap;

use alluvium::query::output::format::{Format, encode_all};
use alluvium::query::{QueryError, QueryLimits};
use alluvium_profile::pprof;
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};

use super::fixture::{CPU, HEAP, NOON, OwnedFrame, TestStore, profile};
use super::{engine, engine_with, fill, minute, rows, stacks_of, two_services};
use crate::harness::tenants;

#[tokio::test(flavor = "multi_thread")]
async fn every_query_of_the_page_runs_and_gives_rows() {
    let store = TestStore::new();
    let now = chrono::Utc::now().timestamp_millis();
    fill(&store, now - 20 * 60_000);
    fill(&store, now - 45 * 60_000);
    let engine = engine(store);
    let page = include_str!("../../docs/sql.md");
    let queries: Vec<&str> = page
        .split("```sql\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```").map(|(query, _)| query))
        .collect();
    assert!(queries.len() >= 10);
    for query in queries {
        let answer = rows(&engine, "one", query).await;
        assert!(!answer.as_array().unwrap().is_empty(), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_and_their_values_come_from_files_and_heads() {
    let engine = engine(two_services());
    let answer = rows(
        &engine,
        "one",
        &format!(
            "SELECT function, sum(value) AS v FROM flat WHERE profile_type = '{CPU}' GROUP BY function ORDER BY 2 \
             DESC, 1"
        ),
    )
    .await;
    assert_eq!(
        answer,
        serde_json::json!([
            {"function": "work", "v": 428},
            {"function": "runtime.gcDrain", "v": 120},
            {"function": "idle", "v": 12},
        ])
    );
    for (condition, expected) in [
        ("service_name = 'shop'", 520),
        ("labels['region'] = 'eu'", 520),
        ("labels['region'] IS NULL", 0),
        ("labels['pod'] LIKE 'cart%' AND function = 'work'", 28),
        ("stack_contains(frames, 'main.main')", 548),
        ("NOT stack_contains(frames, 'main.main')", 12),
        ("function_matches(frames, '^runtime\\.')", 120),
        ("function_matches(frames, 'main') AND service_name = 'cart'", 28),
        ("service_name = 'cart' OR function = 'runtime.gcDrain'", 160),
        ("line = 10 AND file = 'work.go'", 428),
        ("time >= '2026-11-20T12:00:30Z'", 280),
        ("time < to_timestamp('2026-11-20T12:00:15Z')", 140),
        ("time BETWEEN '2026-11-20T12:00:15Z' AND '2026-11-20T12:00:30Z'", 280),
        ("mapping = '/usr/bin/app'", 560),
    ] {
        let sql = format!("SELECT coalesce(sum(value), 0) AS v FROM flat WHERE profile_type = '{CPU}' AND {condition}");
        assert_eq!(rows(&engine, "one", &sql).await[0]["v"], expected, "{condition}");
    }
    let both = "SELECT count(*) AS n FROM flat WHERE profile_type = 'a' AND profile_type = 'b'";
    assert_eq!(rows(&engine, "one", both).await[0]["n"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_of_flat_stand_beside_each_other_rightly() {
    let engine = engine(two_services());
    let sql = "SELECT time, service_name, labels, profile_type, function, file, line, value, array_length(frames) AS \
        depth, \
               frames[2]['function'] AS caller FROM flat WHERE value = 30 ORDER BY time LIMIT 1";
    assert_eq!(
        rows(&engine, "one", sql).await,
        serde_json::json!([{
            "time": "2026-11-20T12:00:00.000000Z",
            "service_name": "shop",
            "labels": {"pod": "shop-1", "region": "eu", "service_name": "shop"},
            "profile_type": CPU,
            "function": "runtime.gcDrain",
            "file": "mgc.go",
            "line": 7,
            "value": 30,
            "depth": 2,
            "caller": "main.main"
        }])
    );
    let all = rows(&engine, "one", "SELECT * FROM flat").await;
    assert_eq!(all.as_array().unwrap().len(), 20);
    assert_eq!(all[0].as_object().unwrap().len(), 14);
    assert_eq!(rows(&engine, "one", "SELECT count(*) AS n FROM flat").await[0]["n"], 20);
    let columns = rows(&engine, "one", "DESCRIBE flat").await;
    assert_eq!(columns.as_array().unwrap().len(), 14);
    let unique = "SELECT (SELECT count(*) FROM stacks) - (SELECT count(DISTINCT stack) FROM stacks) AS s, \
                  (SELECT count(*) FROM series) AS r";
    assert_eq!(
        rows(&engine, "one", unique).await,
        serde_json::json!([{"s": 0, "r": 2}])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_of_values_alone_reads_no_names() {
    let engine = engine(two_services());
    rows(&engine, "one", "SELECT sum(value) AS v FROM flat").await;
    assert_eq!(engine.stats().files_read, 1);
    let before = engine.stats();
    let other_day = "SELECT count(*) AS n FROM flat WHERE time > '2026-11-25'";
    assert_eq!(rows(&engine, "one", other_day).await[0]["n"], 0);
    assert_eq!(engine.stats().files_read, before.files_read);
    let other_type = "SELECT count(*) AS n FROM samples WHERE profile_type = 'zzz'";
    assert_eq!(rows(&engine, "one", other_type).await[0]["n"], 0);
    assert_eq!(engine.stats().files_read, before.files_read);
}

#[tokio::test(flavor = "multi_thread")]
async fn table_functions_take_selectors_and_times() {
    let engine = engine(two_services());
    let top = format!(
        "SELECT * FROM top('{CPU}{{service_name=\"shop\"}}', '2026-11-20T12:00:00Z', \
         to_timestamp('2026-11-20T12:01:00Z'), 2)"
    );
    assert_eq!(
        rows(&engine, "one", &top).await,
        serde_json::json!([
            {"function": "work", "self": 400, "total": 400, "file": "work.go"},
            {"function": "runtime.gcDrain", "self": 120, "total": 120, "file": "mgc.go"},
        ])
    );
    let boxes = format!(
        "SELECT function, total FROM flamegraph('{CPU}', {NOON}, {}) WHERE level < 2 ORDER BY level, x",
        NOON + 60_000
    );
    let answer = rows(&engine, "one", &boxes).await;
    assert_eq!(answer[0], serde_json::json!({"function": "total", "total": 560}));
    let sum: i64 = answer.as_array().unwrap()[1..]
        .iter()
        .map(|row| row["total"].as_i64().unwrap())
        .sum();
    assert_eq!(sum, 560);
    let flat = format!(
        "SELECT sum(value) AS v FROM profile('{CPU}{{region!=\"eu\"}}', {NOON}, {})",
        NOON + 30_000
    );
    assert_eq!(rows(&engine, "one", &flat).await[0]["v"], 20);
    for wrong in [
        "SELECT * FROM top('x', 'now-1h', 'now')".to_owned(),
        format!("SELECT * FROM top('{CPU}{{a=}}', 'now-1h', 'now')"),
        format!("SELECT * FROM top('{CPU}', 'yesterday', 'now')"),
        format!("SELECT * FROM top('{CPU}', 'now', 'now-1h')"),
        format!("SELECT * FROM top('{CPU}', 'now-1h', 'now', -1)"),
        format!("SELECT * FROM profile('{CPU}')"),
        "SELECT * FROM flamegraph(1, 2, 3)".to_owned(),
        "SELECT time_bucket('0s', time) FROM flat".to_owned(),
        "SELECT time_bucket(5, time) FROM flat".to_owned(),
        "SELECT function_matches(frames, '(') FROM flat".to_owned(),
        "SELECT stack_contains(value, 'x') FROM flat".to_owned(),
    ] {
        let answer = match engine.sql(&tenants("one"), &wrong).await {
            Ok(result) => result.collect().await.map(|_| ()),
            Err(error) => Err(error),
        };
        assert!(
            matches!(answer, Err(QueryError::InvalidArgument(_))),
            "{wrong}: {answer:?}"
        );
    }
    let buckets = "SELECT time_bucket('30s', time) AS b, count(*) AS n FROM profiles GROUP BY b ORDER BY b";
    assert_eq!(
        rows(&engine, "one", buckets).await,
        serde_json::json!([
            {"b": "2026-11-20T12:00:00.000000Z", "n": 6},
            {"b": "2026-11-20T12:00:30.000000Z", "n": 6},
        ])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn diff_and_pprof_agree_with_the_sums_of_the_rows() {
    let engine = engine(two_services());
    let (start, middle, end) = (NOON, NOON + 30_000, NOON + 60_000);
    let diff = format!(
        "SELECT function, file, self_before, self_after, self_change, total_change FROM \
         diff('{CPU}{{service_name=\"shop\"}}', \
         {start}, {middle}, '{CPU}{{service_name=\"shop\"}}', {start}, {end}, 2)"
    );
    assert_eq!(
        rows(&engine, "one", &diff).await,
        serde_json::json!([
            {"function": "work", "file": "work.go", "self_before": 200, "self_after": 400,
            "self_change": 200, "total_change": 200},
            {"function": "runtime.gcDrain", "file": "mgc.go", "self_before": 60, "self_after": 120,
            "self_change": 60, "total_change": 60},
        ])
    );
    for wrong in [
        format!("SELECT * FROM diff('{CPU}', 0, 1)"),
        format!("SELECT * FROM diff('{CPU}', 0, 1, '{HEAP}', 0, 1)"),
        format!("SELECT * FROM pprof('{CPU}', 0)"),
        "SELECT pprof(profile_type, stack, frames, value) FROM flat".to_owned(),
        "SELECT pprof(value) FROM flat".to_owned(),
    ] {
        let answer = match engine.sql(&tenants("one"), &wrong).await {
            Ok(result) => result.collect().await.map(|_| ()),
            Err(error) => Err(error),
        };
        assert!(
            matches!(answer, Err(QueryError::InvalidArgument(_))),
            "{wrong}: {answer:?}"
        );
    }
    let by_selector = format!("SELECT * FROM pprof('{CPU}{{region=\"eu\"}}', {start}, {end})");
    let by_rows = format!(
        "SELECT pprof(profile_type, stack, frames, value) FROM flat WHERE profile_type = '{CPU}' AND labels['region'] \
         = 'eu'"
    );
    for sql in [by_selector, by_rows] {
        let bytes = encode_all(engine.sql(&tenants("one"), &sql).await.unwrap(), Format::Pprof)
            .await
            .unwrap();
        let profile = pprof::decode(&bytes).unwrap();
        assert_eq!(profile.values.iter().sum::<i64>(), 520, "{sql}");
        assert_eq!(profile.sample_types[0].kind, "cpu");
        let names: Vec<&str> = profile.functions.iter().map(|function| function.name).collect();
        assert!(
            names.contains(&"work") && names.contains(&"runtime.gcDrain") && names.contains(&"main.main"),
            "{names:?}"
        );
    }
    let groups = format!(
        "SELECT service_name, pprof(profile_type, stack, frames, value) IS NOT NULL AS is_there FROM flat \
         WHERE profile_type = '{CPU}' GROUP BY service_name ORDER BY 1"
    );
    assert_eq!(
        rows(&engine, "one", &groups).await,
        serde_json::json!([{"service_name": "cart", "is_there": true}, {"service_name": "shop", "is_there": true}])
    );
    let none = "SELECT pprof(profile_type, stack, frames, value) IS NULL AS none FROM flat WHERE value < 0";
    assert_eq!(rows(&engine, "one", none).await, serde_json::json!([{"none": true}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_shows_the_plan_and_what_is_left_unread_but_no_place_on_the_disk() {
    let store = two_services();
    store.list_missing(|entry| entry.day += 100);
    let engine = engine(store);
    let text = async |sql: &str| {
        let answer = rows(&engine, "one", sql).await;
        let rows = answer.as_array().unwrap().iter();
        let rows = rows.map(|row| {
            (
                row["plan_type"].as_str().unwrap().to_owned(),
                row["plan"].as_str().unwrap().to_owned(),
            )
        });
        rows.collect::<BTreeMap<_, _>>()
    };
    let query = "SELECT sum(value) AS v FROM samples WHERE time < '2026-11-21' AND profile_type LIKE 'process%'";
    let plain = text(&format!("EXPLAIN {query}")).await;
    assert!(plain["logical_plan"].contains("TableScan: samples"), "{plain:?}");
    assert!(plain["physical_plan"].contains("AggregateExec"), "{plain:?}");
    assert_eq!(plain["scan"], "samples: 1 files read, 1 pruned");
    let run = text(&format!("EXPLAIN ANALYZE {query}")).await;
    assert!(run["plan_with_metrics"].contains("output_rows="), "{run:?}");
    assert!(run["total"].starts_with("rows: 1\ntime: "), "{run:?}");
    assert!(
        run["scan"].contains("row groups by statistics: ") && run["scan"].contains("pages by statistics: "),
        "{run:?}"
    );
    for text in plain.values().chain(run.values()) {
        assert!(
            !text.contains(std::env::temp_dir().to_string_lossy().trim_matches('/')),
            "{text}"
        );
    }
}

/// Returns a profile of two thousand samples in the form of [`super::fixture`], its total, and its values by leaf
/// function.
fn synthetic(time_ms: i64, seed: u64) -> (super::fixture::TestProfile, i64, BTreeMap<String, i64>) {
    let shape = Shape {
        functions: 500,
        samples: 2000,
        ..Shape::default()
    };
    let names = Names::new(shape.functions);
    let source = cpu_profile(&names, shape, seed);
    let bytes = pprof::encode(&source);
    let decoded = pprof::decode(&bytes).unwrap();
    let mut own = profile("one", &[("service_name", "synthetic")], CPU, time_ms, &[]);
    let (mut total, mut by_leaf) = (0, BTreeMap::new());
    for sample in 0..decoded.sample_count() {
        let mut frames = Vec::new();
        for location in decoded.stack(sample) {
            let location = &decoded.locations[*location as usize];
            let lines = decoded.lines_of(location);
            for (index, line) in lines.iter().enumerate() {
                let function = &decoded.functions[line.function as usize];
                frames.push(OwnedFrame {
                    function: function.name.to_owned(),
                    file: function.file.to_owned(),
                    line: line.line,
                    mapping: "/usr/bin/shop".to_owned(),
                    address: location.address as i64,
                    inlined: index + 1 < lines.len(),
                    start_line: i32::try_from(function.start_line).unwrap(),
                });
            }
        }
        let value = decoded.values_of(sample)[1];
        total += value;
        *by_leaf.entry(frames[0].function.clone()).or_insert(0) += value;
        own.samples.push((frames, value, None));
    }
    (own, total, by_leaf)
}

#[tokio::test(flavor = "multi_thread")]
async fn sums_by_function_equal_the_pprof_to_the_unit() {
    let store = TestStore::new();
    let (first, first_total, mut expected) = synthetic(NOON, 1);
    let (second, second_total, more) = synthetic(NOON + 1000, 2);
    store.add(first).to_files().add(second).to_head();
    for (function, value) in more {
        *expected.entry(function).or_insert(0) += value;
    }
    let engine = engine(store);
    let sql = format!("SELECT function, sum(value) AS v FROM flat WHERE profile_type = '{CPU}' GROUP BY function");
    let answer = rows(&engine, "one", &sql).await;
    let found: BTreeMap<String, i64> = answer
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let value = row["v"]
                .as_i64()
                .unwrap_or_else(|| row["v"].as_str().unwrap().parse().unwrap());
            (row["function"].as_str().unwrap().to_owned(), value)
        })
        .filter(|(_, value)| *value != 0)
        .collect();
    expected.retain(|_, value| *value != 0);
    assert_eq!(found, expected);
    let tree = engine
        .merge_stacktraces(&tenants("one"), stacks_of(CPU, "{}", minute()))
        .await
        .unwrap();
    assert_eq!(tree.total(), first_total + second_total);
    let bytes = engine
        .merge_profile(&tenants("one"), stacks_of(CPU, "{}", minute()), pprof::encode)
        .await
        .unwrap();
    assert_eq!(pprof::decode(&bytes).unwrap().values.iter().sum::<i64>(), tree.total());
}

#[tokio::test(flavor = "multi_thread")]
async fn formats_keep_numbers_text_and_nothing_apart() {
    let engine = engine(two_services());
    let sql = "SELECT 9007199254740993 AS big, -5 AS small, 'a\"b,c' AS text, NULL AS none, 1.5 AS real, \
               arrow_cast('NaN', 'Float64') AS nan, true AS yes, [1, 2] AS list, to_timestamp_micros(1000000) AS at";
    let json = encode_all(engine.sql(&tenants("one"), sql).await.unwrap(), Format::Json)
        .await
        .unwrap();
    assert_eq!(
        String::from_utf8(json).unwrap(),
        "[\n{\"big\":\"9007199254740993\",\"small\":-5,\"text\":\"a\\\"b,c\",\"none\":null,\"real\":1.5,\
        \"nan\":null,\"yes\":true,\
         \"list\":[1,2],\"at\":\"1970-01-01T00:00:01.000000Z\"}\n]\n"
    );
    let csv = encode_all(engine.sql(&tenants("one"), sql).await.unwrap(), Format::Csv)
        .await
        .unwrap();
    assert_eq!(
        String::from_utf8(csv).unwrap(),
        "big,small,text,none,real,nan,yes,list,at\r\
         \n9007199254740993,-5,\"a\"\"b,c\",,1.5,,true,\"[1,2]\",1970-01-01T00:00:01.000000Z\r\n"
    );
    let flat = "SELECT * FROM flat ORDER BY time, value";
    let bytes = encode_all(engine.sql(&tenants("one"), flat).await.unwrap(), Format::Arrow)
        .await
        .unwrap();
    let reader = arrow::ipc::reader::StreamReader::try_new(bytes.as_slice(), None).unwrap();
    let read: usize = reader.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(read, 20);
    let bytes = encode_all(engine.sql(&tenants("one"), flat).await.unwrap(), Format::Parquet)
        .await
        .unwrap();
    let reader =
        parquet::arrow::arrow_reader::ParquetRecordBatchReader::try_new(bytes::Bytes::from(bytes), 1024).unwrap();
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    assert_eq!(
        batches.iter().map(arrow::array::RecordBatch::num_rows).sum::<usize>(),
        20
    );
    assert_eq!(batches[0].num_columns(), 14);
    for no_profile in [
        "SELECT 1 AS one",
        "SELECT * FROM samples",
        "SELECT arrow_cast('x', 'Binary') FROM samples",
    ] {
        let error = encode_all(engine.sql(&tenants("one"), no_profile).await.unwrap(), Format::Pprof)
            .await
            .unwrap_err();
        assert!(error.to_string().contains("one row with one column"), "{error}");
    }
    let none = engine
        .sql(&tenants("one"), "SELECT value FROM samples WHERE value < 0")
        .await
        .unwrap();
    assert_eq!(encode_all(none, Format::Json).await.unwrap(), b"[\n]\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_stacks_survive_a_small_cache() {
    let limits = QueryLimits {
        stack_cache_bytes: 1,
        ..QueryLimits::default()
    };
    let engine = engine_with(two_services(), limits);
    for _ in 0..3 {
        let tree = engine
            .merge_stacktraces(&tenants("one"), stacks_of(CPU, "{}", minute()))
            .await
            .unwrap();
        assert_eq!(tree.total(), 560);
        let other = engine
            .merge_stacktraces(&tenants("two"), stacks_of(CPU, "{}", minute()))
            .await
            .unwrap();
        assert_eq!(other.total(), 4_000_000);
    }
}

/// Returns the error of a statement, or its rows.
async fn error_or_rows(sql: &str) -> Result<serde_json::Value, String> {
    let engine = engine(two_services());
    let result = engine.sql(&crate::harness::tenants("one"), sql).await;
    let result = result.map_err(|error| error.to_string())?;
    let text = encode_all(result, Format::Json)
        .await
        .map_err(|error| error.to_string())?;
    Ok(serde_json::from_slice(&text).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sum_that_does_not_fit_is_an_error_and_never_another_number() {
    let values = "(SELECT unnest([4611686018427387909, 4611686018427387909, 4611686018427387909]) AS n)";
    for sql in [
        format!("SELECT sum(n) AS s FROM {values} t"),
        format!("SELECT n, sum(n) AS s FROM {values} t GROUP BY n"),
        format!("SELECT sum(n) OVER () AS s FROM {values} t"),
        format!("SELECT sum(n) OVER (ORDER BY n ROWS 2 PRECEDING) AS s FROM {values} t"),
        "SELECT sum(DISTINCT n) AS s FROM (SELECT unnest([4611686018427387909, 4611686018427387910]) AS n) t"
            .to_owned(),
        "SELECT sum(value + 4611686018427387904) AS s FROM samples".to_owned(),
    ] {
        let error = error_or_rows(&sql).await.expect_err(&sql);
        assert!(error.contains("does not fit in 64 bits"), "{sql}: {error}");
    }
    let sum = error_or_rows(&format!("SELECT sum(n::decimal(38, 0))::text AS s FROM {values} t")).await;
    assert_eq!(sum, Ok(serde_json::json!([{"s": "13835058055282163727"}])));
    let sums = "SELECT sum(n) AS s, sum(n) FILTER (WHERE n > 2) AS f, sum(NULL::bigint) AS z FROM \
        (SELECT unnest([1, 2, 3, NULL]) AS n) t";
    assert_eq!(
        error_or_rows(sums).await,
        Ok(serde_json::json!([{"s": 6, "f": 3, "z": null}]))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_of_whole_numbers_fails_where_its_result_does_not_fit() {
    let most = i64::MAX;
    for sql in [
        format!("SELECT {most} + 1 AS n"),
        format!("SELECT -{most} - 2 AS n"),
        format!("SELECT {most} * 2 AS n"),
        format!("SELECT 1 + {most} - 1 AS n"),
        format!("SELECT a + b AS n FROM (SELECT {most} AS a, 1 AS b) t"),
        format!("SELECT value + {most} - value AS n FROM samples"),
        "SELECT 2::int * 1500000000::int AS n".to_owned(),
        format!("SELECT count(*) AS n FROM samples WHERE value * {most} > 0"),
        format!("SELECT sum(value * {most}) AS n FROM samples"),
    ] {
        let error = error_or_rows(&sql).await.expect_err(&sql);
        assert!(error.contains("verflow"), "{sql}: {error}");
    }
    // The engine evaluates a long chain of operators as a single call, not as nested calls.
    let chain = vec!["1"; 390].join(" + ");
    for (sql, expected) in [
        (
            "SELECT 1 + 2 * 3 - 4 AS n, (1 - 2) * (3 - 4) AS m, 7 - 2 - 1 AS k",
            serde_json::json!([{"n": 3, "m": 1, "k": 4}]),
        ),
        ("SELECT 1 + 2", serde_json::json!([{"Int64(1) + Int64(2)": 3}])),
        (
            "SELECT 1 + NULL AS n, 1 + 0.5 AS f",
            serde_json::json!([{"n": null, "f": 1.5}]),
        ),
        (&format!("SELECT {chain} AS n"), serde_json::json!([{"n": 390}])),
        (
            "SELECT (TIMESTAMP '2026-11-27 00:00:00' + INTERVAL '1 day')::text AS t",
            serde_json::json!([{"t": "2026-11-28T00:00:00"}]),
        ),
    ] {
        assert_eq!(error_or_rows(sql).await, Ok(expected), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_of_an_answer_may_have_the_same_name() {
    for (sql, keys) in [
        ("SELECT time::text FROM profiles ORDER BY time LIMIT 1", &["time"][..]),
        (
            "SELECT total, total::double FROM profiles LIMIT 1",
            &["total", "total_2"],
        ),
        (
            "SELECT total, total, total FROM profiles LIMIT 1",
            &["total", "total_2", "total_3"],
        ),
        ("SELECT 1, 1", &["1", "Int64(1)"]),
        (
            "SELECT max(time), max(time)::text FROM profiles",
            &["max(profiles.time)", "max(time)"],
        ),
        (
            "SELECT profile_type, min(total), (min(total))::double FROM profiles GROUP BY 1 ORDER BY 1",
            &["min(profiles.total)", "min(total)", "profile_type"],
        ),
        ("SELECT value AS v, stack AS v FROM samples LIMIT 1", &["v", "v_2"]),
        (
            "SELECT *, total FROM (SELECT total FROM profiles) p LIMIT 1",
            &["total", "total_2"],
        ),
        (
            "SELECT p.series, s.series FROM profiles p JOIN series s ON p.series = s.series LIMIT 1",
            &["series", "series_2"],
        ),
        (
            "SELECT n FROM (SELECT total AS n, total::double, total::double FROM profiles) t LIMIT 1",
            &["n"],
        ),
    ] {
        let rows = error_or_rows(sql).await.expect(sql);
        let row = rows[0].as_object().expect(sql);
        assert_eq!(row.keys().collect::<Vec<_>>(), keys, "{sql}");
    }
    // If duplicate column names are not the cause of an error, the error is returned unchanged.
    let error = error_or_rows("SELECT 1, 1, nothing FROM profiles").await.unwrap_err();
    assert!(error.contains("nothing"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn to_char_takes_patterns_of_postgresql_and_of_strftime() {
    let time = "TIMESTAMP '2026-11-07 15:04:05.678'";
    for (pattern, expected) in [
        ("YYYY-MM-DD", "2026-11-07"),
        ("HH24:MI:SS.MS", "15:04:05.678"),
        ("FMDD Mon YYYY, HH12 PM", "7 Nov 2026, 03 PM"),
        ("%Y/%m", "2026/11"),
    ] {
        let sql = format!("SELECT to_char({time}, '{pattern}') AS t");
        assert_eq!(
            error_or_rows(&sql).await,
            Ok(serde_json::json!([{"t": expected}])),
            "{sql}"
        );
    }
    let error = error_or_rows(&format!("SELECT to_char({time}, 'DDTH') AS t"))
        .await
        .unwrap_err();
    assert!(error.contains("the pattern `TH`"), "{error}");
}
