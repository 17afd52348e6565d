//! Other engines read our tables while the server runs: DuckDB the Parquet files, the Python package `deltalake` the tables.
//!
//! Scenario: the real server, one known profile, a flush, then a Python program that knows nothing of us. Guarantee: function names, labels and
//! values are there in plain columns. Python is taken from `ALLUVIUM_PYTHON` (`make tools` sets it up).

use std::process::Command;

use crate::harness::client;
use crate::known;
use crate::program::{Program, free_address, other, sql};

/// Prints `name value` lines that the test compares.
const READER: &str = r#"
import os, sys, duckdb, deltalake
tables = sys.argv[1]

db = duckdb.connect()
def files(table):
    return f"read_parquet('{tables}/{table}/**/*.parquet', hive_partitioning = true)"
rows = db.sql(f"""
    SELECT frame.function, sum(value)
    FROM {files('samples')} samples
    JOIN (SELECT DISTINCT stack, frames FROM {files('stacks')}) stacks USING (stack), unnest(frames[1:1]) AS leaf(frame)
    GROUP BY 1 ORDER BY 1
""").fetchall()
for function, value in rows:
    print("duckdb", function, value)
for name, version in db.sql(f"SELECT DISTINCT service_name, labels['version'] FROM {files('series')}").fetchall():
    print("duckdb-series", name, version if isinstance(version, str) else version[0])

for name in ["profiles", "samples", "stacks", "series"]:
    table = deltalake.DeltaTable(f"{tables}/{name}").to_pyarrow_table()
    print("delta", name, table.num_rows)
    if name == "stacks":
        functions = {frame["function"] for frames in table["frames"].to_pylist() for frame in frames}
        print("delta-functions", ",".join(sorted(functions)))
    if name == "series":
        for row in table.to_pylist():
            print("delta-series", row["service_name"], dict(row["labels"])["version"])
    if name == "profiles":
        print("delta-total", sum(table["total"].to_pylist()))

# All is read; an error above has ended the program otherwise. The thread pools of the three libraries in one process sometimes abort while the interpreter
# takes them down, which says nothing of our files.
sys.stdout.flush()
os._exit(0)
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duckdb_and_deltalake_read_the_tables_while_the_server_runs() {
    let python = std::env::var("ALLUVIUM_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let modules = ["-c", "import duckdb, deltalake, pyarrow"];
    let Some(python) = other(&python, &modules, "the Python packages duckdb, deltalake and pyarrow") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let address = free_address();
    let url = format!("http://{address}");
    let http = client();
    let mut server = Program::alluvium(
        &["serve", "--listen", &address, "--data", &data.to_string_lossy()],
        &folder.path().join("log"),
    );
    server.ready(&http, &format!("{url}/ready")).await;
    known::push(&url, &[("service_name", "readers"), ("version", "1.2")]).await;
    let answer = http.post(format!("{url}/flush")).send().await.unwrap();
    assert!(answer.status().is_success(), "{}", server.tail());

    let output = Command::new(python)
        .arg("-c")
        .arg(READER)
        .arg(data.join("tables"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut expected: Vec<String> = known::LEAVES
        .iter()
        .map(|(function, value)| format!("duckdb {function} {value}"))
        .collect();
    expected.extend([
        "duckdb-series readers 1.2".to_owned(),
        "delta profiles 1".into(),
        format!("delta-total {}", known::TOTAL),
        format!("delta samples {}", known::LEAVES.len()),
        format!("delta stacks {}", known::LEAVES.len()),
        "delta-functions alpha,beta,main".into(),
        "delta series 1".into(),
        "delta-series readers 1.2".into(),
    ]);
    let lines: Vec<_> = text.lines().map(str::to_owned).collect();
    assert_eq!(lines, expected, "{text}");

    // The server goes on meanwhile.
    known::push(&url, &[("service_name", "readers"), ("version", "1.2")]).await;
    let rows = sql(&http, &url, "SELECT sum(total) FROM profiles").await;
    assert_eq!(rows, [[(2 * known::TOTAL).to_string()]]);
}
