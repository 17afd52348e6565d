//! Other engines read Alluvium's tables while the server runs: DuckDB reads the Parquet files, the Python package
//! `deltalake` and chDB (ClickHouse) read the tables.
//!
//! Scenarios: the real server, one known profile, a flush, and then a Python program that uses no code of Alluvium. In
//! a second test, readers read repeatedly while the server accepts profiles, flushes, merges and deletes replaced
//! files. Guarantee: function names, labels and values are in plain columns, and a reader sees consistent tables at
//! every moment. `ALLUVIUM_PYTHON` names the Python interpreter (`make tools` sets it up).

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use alluvium::store::common::schema::Table;
use alluvium::store::tables::snapshot::SnapshotSource;
use alluvium_profile::{Labels, RawProfile};

use crate::harness::{client, tenant};
use crate::program::{Address, Program, other, sql};
use crate::{known, layouts};

/// Python program that prints `name value` lines, which the test compares.
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

# All tables were read, because an error would have ended the program. The program ends here at once, because the thread
# pools of the libraries sometimes abort while the interpreter shuts down.
sys.stdout.flush()
os._exit(0)
"#;

/// Python program that reads the tables with chDB. The function `deltaLakeLocal` of chDB reads the table log. It
/// accepts only paths below the current folder.
const CHDB: &str = r#"
import os, sys, chdb
tables = sys.argv[1]
os.chdir(tables)

def ask(query):
    text = str(chdb.query(query, "TSV"))
    return [line.split("\t") for line in text.splitlines() if line]
def table(name):
    return f"deltaLakeLocal('{tables}/{name}')"
for function, value in ask(f"""
    SELECT tupleElement(frames[1], 'function') AS leaf, sum(value)
    FROM {table('samples')} AS samples
    JOIN (SELECT DISTINCT stack, frames FROM {table('stacks')}) AS stacks USING (stack)
    GROUP BY leaf ORDER BY leaf
"""):
    print("chdb", function, value)
for row in ask(f"SELECT DISTINCT service_name, labels['version'] FROM {table('series')}"):
    print("chdb-series", *row)
for row in ask(f"SELECT tenant, count(), sum(total) FROM {table('profiles')} WHERE day >= today() - 1 GROUP BY tenant"):
    print("chdb-profiles", *row)
sys.stdout.flush()
os._exit(0)
"#;

/// Python program that prints sums of `profiles` and `samples` repeatedly, until standard input ends.
const AGAIN: &str = r#"
import os, select, sys
reader, tables = sys.argv[1], sys.argv[2]
os.chdir(tables)
if reader == "chdb":
    import chdb
    def total(name, column):
        return int(str(chdb.query(f"SELECT sum({column}) FROM deltaLakeLocal('{tables}/{name}')", "TSV")))
else:
    import deltalake, pyarrow.compute
    def total(name, column):
        table = deltalake.DeltaTable(f"{tables}/{name}").to_pyarrow_table(columns=[column])
        return pyarrow.compute.sum(table[column]).as_py()
while True:
    print(total("profiles", "total"), total("samples", "value"), flush=True)
    if select.select([sys.stdin], [], [], 0)[0]:
        os._exit(0)
"#;

/// Python program that prints the number of stacks, the number of stacks with start lines of functions, the sum of
/// these lines, and the number of frames.
const LINES: &str = r#"
import os, sys
reader, tables = sys.argv[1], sys.argv[2]
os.chdir(tables)
if reader == "chdb":
    import chdb
    question = f"""SELECT count(), countIf(notEmpty(start_lines)), sum(arraySum(start_lines)), sum(length(frames))
                   FROM deltaLakeLocal('{tables}/stacks')"""
    print(str(chdb.query(question, "TSV")).strip())
else:
    import deltalake, duckdb
    table = deltalake.DeltaTable(f"{tables}/stacks")
    if reader == "deltalake":
        rows = table.to_pyarrow_table(columns=["frames", "start_lines"]).to_pylist()
    else:
        rows = [{"frames": frames, "start_lines": lines} for frames, lines in duckdb.execute(
            "SELECT frames, start_lines FROM read_parquet(?, union_by_name = true)", [table.file_uris()]).fetchall()]
    lines = [row["start_lines"] for row in rows if row["start_lines"] is not None]
    print(len(rows), len(lines), sum(sum(of) for of in lines), sum(len(row["frames"]) for row in rows), sep="\t")
sys.stdout.flush()
os._exit(0)
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_reader_takes_files_of_an_old_layout_beside_those_of_the_new_one() {
    let python = std::env::var("ALLUVIUM_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let modules = ["-c", "import chdb, deltalake, duckdb, pyarrow"];
    let packages = "the Python packages chdb, deltalake, duckdb and pyarrow";
    let Some(python) = other(&python, &modules, packages) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    layouts::written_by(1, folder.path());
    let store = layouts::open(folder.path()).await;
    let profile = RawProfile {
        labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", "readers")]),
        id: "".into(),
        pprof: known::bytes().into(),
    };
    assert!(store.append(&tenant("t"), vec![profile]).await.is_empty());
    store.flush().await.unwrap();
    let files = store.snapshot().files.clone();
    let stacks = files.iter().filter(|file| file.table == Table::Stacks);
    let rows: u64 = stacks.map(|file| file.rows).sum();
    let tables = std::fs::canonicalize(folder.path().join("tables")).unwrap();
    let mut answers = Vec::new();
    for reader in ["deltalake", "duckdb", "chdb"] {
        let output = Command::new(&python)
            .args(["-c", LINES, reader])
            .arg(&tables)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        // Each of the two stacks of the known profile has two frames with the start line `START_LINE`.
        let lines = 4 * known::START_LINE;
        assert!(
            text.starts_with(&format!("{rows}\t2\t{lines}\t")),
            "{reader}: {text}\n{errors}"
        );
        answers.push(text);
    }
    assert!(
        rows > 10 && answers.iter().all(|answer| *answer == answers[0]),
        "{answers:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chdb_reads_the_tables_and_every_reader_finds_them_whole_while_they_are_written() {
    let python = std::env::var("ALLUVIUM_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let modules = ["-c", "import chdb, deltalake, pyarrow"];
    let Some(python) = other(&python, &modules, "the Python packages chdb, deltalake and pyarrow") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let yaml = folder.path().join("server.yaml");
    // Files are merged within a moment. The server deletes a replaced file 30 seconds after the merge, because a reader
    // may still open it.
    let text = "maintenance:\n  interval: 200ms\n  vacuum_interval: 500ms\n  deletion_delay: 30s\n";
    std::fs::write(&yaml, text).unwrap();
    let address = Address::keep();
    let url = format!("http://{address}");
    let http = client();
    let arguments = [
        "serve",
        "--listen",
        &address,
        "--data",
        &data.to_string_lossy(),
        "--config",
        &yaml.to_string_lossy(),
    ];
    let mut server = Program::alluvium(&arguments, &folder.path().join("log"));
    server.ready(&http, &format!("{url}/ready")).await;
    let push = async || {
        known::push(&url, &[("service_name", "readers"), ("version", "1.2")]).await;
        let answer = http.post(format!("{url}/flush")).send().await.unwrap();
        assert!(answer.status().is_success());
    };
    push().await;
    let tables = std::fs::canonicalize(data.join("tables")).unwrap();
    let output = Command::new(&python).arg("-c").arg(CHDB).arg(&tables).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let mut expected: Vec<String> = known::LEAVES
        .iter()
        .map(|(function, value)| format!("chdb {function} {value}"))
        .collect();
    expected.push("chdb-series readers 1.2".to_owned());
    expected.push(format!("chdb-profiles anonymous 1 {}", known::TOTAL));
    assert_eq!(text.lines().collect::<Vec<_>>(), expected, "{errors}");

    let mut pushed = 1;
    for reader in ["chdb", "deltalake"] {
        let mut child = Command::new(&python)
            .args(["-c", AGAIN, reader])
            .arg(&tables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (lines, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        let listener = std::thread::spawn(move || {
            out.lines()
                .map_while(Result::ok)
                .for_each(|line| drop(lines.send(line)));
        });
        let mut readings = Vec::new();
        // After eight flushes, the server merges their files. Ten flushes therefore cause a merge.
        let least = pushed + 10;
        while pushed < least || readings.len() < 4 {
            push().await;
            pushed += 1;
            while let Ok(line) = heard.try_recv() {
                readings.push(line);
            }
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none() || readings.len() >= 4, "{reader} ended with {ended:?}");
            server.check();
        }
        drop(child.stdin.take());
        let output = child.wait_with_output().unwrap();
        listener.join().unwrap();
        while let Ok(line) = heard.try_recv() {
            readings.push(line);
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{reader}: {readings:?}\n{errors}");
        let mut last = [0, 0];
        for line in &readings {
            let found: Vec<i64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
            for (table, total) in found.into_iter().enumerate() {
                assert!(
                    total % known::TOTAL == 0 && total >= last[table] && total <= pushed * known::TOTAL,
                    "{reader}: the sums {readings:?} do not fit {pushed} pushed profiles"
                );
                last[table] = total;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duckdb_and_deltalake_read_the_tables_while_the_server_runs() {
    let python = std::env::var("ALLUVIUM_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let modules = ["-c", "import duckdb, deltalake, pyarrow"];
    let Some(python) = other(&python, &modules, "the Python packages duckdb, deltalake and pyarrow") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let address = Address::keep();
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

    // The server still accepts pushes and answers queries.
    known::push(&url, &[("service_name", "readers"), ("version", "1.2")]).await;
    let rows = sql(&http, &url, "SELECT sum(total) FROM profiles").await;
    assert_eq!(rows, [[(2 * known::TOTAL).to_string()]]);
}
