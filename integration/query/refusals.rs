//! Statements that the engine must not run, and the limits that stop a query.

use std::time::{Duration, Instant};

use alluvium::query::{QueryError, QueryLimits};

use super::{engine, engine_with, rows, short, two_services};
use crate::harness::tenants;

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_not_a_query_of_our_tables_is_refused() {
    let engine = engine(two_services());
    let attacks = [
        "CREATE TABLE t AS SELECT 1",
        "CREATE TABLE t (a INT)",
        "CREATE VIEW v AS SELECT * FROM samples",
        "CREATE OR REPLACE VIEW flat AS SELECT 1",
        "CREATE SCHEMA s",
        "CREATE DATABASE d",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
        "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'http://127.0.0.1/x'",
        "CREATE FUNCTION f(INT) RETURNS INT RETURN $1 + 1",
        "DROP TABLE samples",
        "DROP VIEW flat",
        "ALTER TABLE samples ADD COLUMN a INT",
        "TRUNCATE TABLE samples",
        "INSERT INTO samples SELECT * FROM samples",
        "INSERT INTO series VALUES (1)",
        "UPDATE samples SET value = 0",
        "DELETE FROM samples",
        "MERGE INTO samples USING profiles ON true WHEN MATCHED THEN DELETE",
        "COPY samples TO '/tmp/out.csv'",
        "COPY (SELECT 1) TO '/tmp/out.parquet' STORED AS PARQUET",
        "SELECT 1 INTO t",
        "SET datafusion.execution.batch_size = 1",
        "RESET datafusion.execution.batch_size",
        "SHOW ALL",
        "SHOW TABLES",
        "SHOW datafusion.execution.batch_size",
        "PREPARE p AS SELECT 1",
        "EXECUTE p",
        "BEGIN",
        "COMMIT",
        "USE other",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE samples",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM 'file:///etc/passwd'",
        "SELECT * FROM \"/etc/hosts\"",
        "SELECT * FROM 'data.parquet'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_parquet('x.parquet')",
        "SELECT * FROM parquet_metadata('x.parquet')",
        "SELECT * FROM 'https://example.com/data.csv'",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM information_schema.df_settings",
        "SELECT * FROM other.public.samples",
        "SELECT * FROM public.secrets",
        "SELECT getenv('PATH')",
        "SELECT @@version",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT load_extension('x')",
        "",
        ";",
        "SELECT",
        "SELECT * FROM samples WHERE",
        "SELECT nothing FROM samples",
    ];
    for attack in attacks {
        let answer = match engine.sql(&tenants("one"), attack).await {
            Ok(result) => result.collect().await.map(|_| ()),
            Err(error) => Err(error),
        };
        match answer {
            Err(QueryError::InvalidArgument(text)) => {
                assert!(
                    !text.contains("/tmp/.") && !text.contains("panicked"),
                    "{attack}: {text}"
                );
            }
            other => panic!("{attack}: {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_query_sees_another_tenant() {
    let engine = engine(two_services());
    for sql in [
        "SELECT count(*) AS n FROM samples WHERE tenant = 'two'",
        "SELECT count(*) AS n FROM samples WHERE tenant <> 'one'",
        "SELECT count(*) AS n FROM profiles WHERE tenant = 'two' OR true AND tenant <> 'one'",
        "SELECT count(*) AS n FROM series WHERE service_name = 'secret'",
        "SELECT count(*) AS n FROM flat WHERE service_name = 'secret' OR function = 'launch_codes'",
        "SELECT count(*) AS n FROM stacks WHERE stack_contains(frames, 'launch_codes')",
        "SELECT count(*) AS n FROM flat WHERE stack_contains(frames, 'launch_codes')",
        "SELECT count(*) AS n FROM flat WHERE value >= 1000000 AND profile_type LIKE 'process_cpu%'",
        "SELECT count(*) AS n FROM samples a JOIN samples b ON a.tenant <> b.tenant",
        "SELECT count(*) AS n FROM top('process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"secret\"}', 0, \
         'now+100000h')",
    ] {
        assert_eq!(rows(&engine, "one", sql).await[0]["n"], 0, "{sql}");
    }
    let tenants = rows(&engine, "one", "SELECT DISTINCT tenant FROM samples").await;
    assert_eq!(tenants, serde_json::json!([{"tenant": "one"}]));
    let own = rows(
        &engine,
        "two",
        "SELECT sum(value) AS n FROM flat WHERE function = 'launch_codes'",
    )
    .await;
    assert_eq!(own[0]["n"], 4_000_000);
    // Tenant ids with characters that have a meaning in SQL.
    for id in ["o_e", "o*", "one'--"] {
        let none = rows(&engine, id, "SELECT count(*) AS n FROM samples").await;
        assert_eq!(none[0]["n"], 0, "{id}");
    }
}

/// A query that would run for hours.
const ENDLESS: &str = "SELECT count(*) FROM samples a, samples b, samples c, samples d, samples e, samples f, samples \
    g, samples h \
                       WHERE a.value + b.value + c.value + d.value + e.value + f.value + g.value + h.value < 0";

#[tokio::test(flavor = "multi_thread")]
async fn a_giant_cross_join_ends_at_the_time_limit() {
    let engine = engine_with(two_services(), short(Duration::from_millis(500)));
    let start = Instant::now();
    let answer = match engine.sql(&tenants("one"), ENDLESS).await {
        Ok(result) => result.collect().await.map(|_| ()),
        Err(error) => Err(error),
    };
    assert_eq!(answer, Err(QueryError::Timeout(Duration::from_millis(500))));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_memory_size_and_depth_have_limits() {
    let few = engine_with(
        two_services(),
        QueryLimits {
            max_rows: 10,
            ..QueryLimits::default()
        },
    );
    let error = few
        .sql(&tenants("one"), "SELECT * FROM samples")
        .await
        .unwrap()
        .collect()
        .await
        .unwrap_err();
    assert!(matches!(error, QueryError::Limit(_)), "{error:?}");
    assert!(
        few.sql(&tenants("one"), "SELECT * FROM samples LIMIT 10")
            .await
            .unwrap()
            .collect()
            .await
            .is_ok()
    );
    let small = engine_with(
        two_services(),
        QueryLimits {
            memory_bytes: 20_000,
            ..QueryLimits::default()
        },
    );
    let big =
        "SELECT a.stack, b.stack, c.value, count(*) FROM samples a, samples b, samples c GROUP BY 1, 2, 3 ORDER BY 4";
    let answer = match small.sql(&tenants("one"), big).await {
        Ok(result) => result.collect().await.map(|_| ()),
        Err(error) => Err(error),
    };
    assert!(matches!(answer, Err(QueryError::Limit(_))), "{answer:?}");
    let engine = engine(two_services());
    let long = format!("SELECT {}", "1+".repeat(20_000) + "1");
    assert!(matches!(
        engine.sql(&tenants("one"), &long).await,
        Err(QueryError::Limit(_))
    ));
    let deep = format!("SELECT {}1{}", "(".repeat(300), ")".repeat(300));
    assert!(matches!(
        engine.sql(&tenants("one"), &deep).await,
        Err(QueryError::InvalidArgument(_))
    ));
    let most = format!("SELECT value {} AS n FROM samples LIMIT 1", "+value".repeat(390));
    assert_eq!(rows(&engine, "one", &most).await.as_array().unwrap().len(), 1);
    let wide = format!(
        "SELECT count(*) AS n FROM samples WHERE value IN ({})",
        vec!["1"; 5000].join(",")
    );
    assert_eq!(rows(&engine, "one", &wide).await[0]["n"], 0);
    let all = format!(
        "SELECT count(*) AS n FROM samples WHERE {}",
        vec!["value = 100"; 190].join(" OR ")
    );
    assert_eq!(rows(&engine, "one", &all).await[0]["n"], 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_whose_asker_went_away_stops() {
    let engine = engine(two_services());
    let mut result = engine.sql(&tenants("one"), ENDLESS).await.unwrap();
    let _ = tokio::time::timeout(Duration::from_millis(100), futures::StreamExt::next(&mut result.stream)).await;
    drop(result);
    // The runtime is free again, so the engine answers another query at once.
    assert_eq!(rows(&engine, "one", "SELECT 1 AS n").await[0]["n"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_of_another_table_is_said_to_be_there() {
    let engine = engine(two_services());
    for statement in [
        "SELECT service_name FROM profiles",
        "SELECT count(*) FROM samples WHERE service_name = 'shop'",
    ] {
        let Err(error) = engine.sql(&tenants("one"), statement).await else {
            panic!("`{statement}` was answered");
        };
        assert!(matches!(error, QueryError::InvalidArgument(_)), "{error:?}");
        let hint = "`service_name` is a column of `series` and `flat`";
        assert!(error.to_string().contains(hint), "{error}");
    }
    let Err(error) = engine.sql(&tenants("one"), "SELECT nothing FROM profiles").await else {
        panic!("a query of the missing column `nothing` succeeded");
    };
    assert!(!error.to_string().contains("is a column of"), "{error}");
}
