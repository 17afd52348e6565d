//! The store under SIGKILL. A child process appends and flushes profiles, and the test kills it after a number of
//! acknowledgements. The store must contain every acknowledged profile exactly once and complete.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use alluvium::store::common::schema::Table;
use alluvium::store::tables::snapshot::{ScanFilter, SnapshotSource};
use alluvium::store::{Limits, Store, StoreConfig};
use alluvium_profile::{Labels, RawProfile, pprof};
use alluvium_telemetry::metrics::Scope;
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::harness::tenant;

/// Environment variable with the child's data folder. Without it, the child's test does nothing.
const CHILD: &str = "ALLUVIUM_TEST_STORE_CHILD";
/// Environment variable with the number of the child's first profile.
const FIRST: &str = "ALLUVIUM_TEST_STORE_FIRST";
/// Number of rows that a profile has in the profiles table: one per sample type.
const ROWS: u64 = 2;

const SHAPE: Shape = Shape {
    functions: 100,
    samples: 200,
    depth: 20,
    labelled_every: 0,
};

fn config(dir: &Path) -> StoreConfig {
    StoreConfig {
        // The store flushes after every few dozen profiles, so that kills hit all steps of a flush.
        flush_bytes: 400_000,
        limits: Limits {
            reject_older_than: Duration::ZERO,
            ..Limits::default()
        }
        .into(),
        ..StoreConfig::new(dir)
    }
}

/// Contents of the files and heads of a store.
#[derive(Debug, Default, PartialEq, Eq)]
struct Stored {
    /// Number of rows in `profiles` by profile number.
    profiles: BTreeMap<u64, u64>,
    /// Number of samples according to the rows in `profiles`.
    expected: u64,
    // Number of rows in `samples`.
    samples: u64,
}

impl Stored {
    fn of(store: &impl SnapshotSource) -> Self {
        let snapshot = store.snapshot();
        let mut stored = Self::default();
        for file in snapshot.files.iter() {
            let open = File::open(snapshot.root.name(&file.path)).unwrap();
            let reader = ParquetRecordBatchReaderBuilder::try_new(open).unwrap().build().unwrap();
            reader.for_each(|batch| stored.add(file.table, &batch.unwrap()));
        }
        for head in &snapshot.heads {
            for table in [Table::Profiles, Table::Samples] {
                let batches = head.scan(table, &ScanFilter::default());
                batches.iter().for_each(|batch| stored.add(table, batch));
            }
        }
        stored
    }

    fn add(&mut self, table: Table, batch: &RecordBatch) {
        match table {
            Table::Profiles => {
                let ids = batch.column_by_name("profile_id").unwrap().as_string::<i32>();
                for id in ids {
                    *self.profiles.entry(id.unwrap().parse().unwrap()).or_default() += 1;
                }
                let counts = batch
                    .column_by_name("sample_count")
                    .unwrap()
                    .as_primitive::<Int64Type>();
                self.expected += counts.values().iter().map(|count| count.cast_unsigned()).sum::<u64>();
            }
            Table::Samples => self.samples += batch.num_rows() as u64,
            Table::Stacks | Table::Series => {}
        }
    }

    /// Checks that the store contains each acknowledged profile exactly once and complete. The store may also
    /// contain other sent profiles, each exactly once and complete.
    fn check(&self, kept: &BTreeSet<u64>, sent: &BTreeSet<u64>) {
        let lost: Vec<_> = kept
            .iter()
            .filter(|number| !self.profiles.contains_key(number))
            .collect();
        let unknown: Vec<_> = self.profiles.keys().filter(|number| !sent.contains(number)).collect();
        let uneven: Vec<_> = self.profiles.iter().filter(|(_, rows)| **rows != ROWS).collect();
        assert!(
            lost.is_empty() && unknown.is_empty() && uneven.is_empty(),
            "lost: {lost:?}, never sent: {unknown:?}, not {ROWS} rows: {uneven:?}"
        );
        assert_eq!(self.samples, self.expected);
    }
}

#[test]
fn child_that_is_killed() {
    let Some(dir) = std::env::var_os(CHILD) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::open(config(Path::new(&dir)), &Scope::new()).unwrap();
        let first = std::env::var(FIRST).unwrap().parse().unwrap();
        let next = Arc::new(AtomicU64::new(first));
        let clients = (0..8).map(|_| {
            let (store, next) = (store.clone(), next.clone());
            tokio::spawn(async move {
                let names = Names::new(SHAPE.functions);
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let profile = RawProfile {
                        labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", "shop")]),
                        id: number.to_string().into(),
                        pprof: pprof::gzip(&pprof::encode(&cpu_profile(&names, SHAPE, number))).into(),
                    };
                    say(&format!("sent {number}"));
                    assert!(store.append(&tenant("t"), vec![profile]).await.is_empty());
                    say(&format!("kept {number}"));
                }
            })
        });
        futures::future::join_all(clients).await;
    });
}

/// Prints a line that the parent receives even if this process dies right after.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "@{line}").unwrap();
    out.flush().unwrap();
}

#[test]
fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let (mut kept, mut sent) = (BTreeSet::new(), BTreeSet::new());
    for round in 0..6u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::child_that_is_killed", "--nocapture"])
            .env(CHILD, dir.path())
            .env(FIRST, (round * 1_000_000).to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Each round waits for a different number of acknowledgements, so that the kills hit different steps.
        let limit = 40 + round * 17;
        let mut seen = 0;
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            // The test harness writes text before the first line of the child.
            let Some((_, said)) = line.split_once('@') else {
                continue;
            };
            let (word, number) = said.split_once(' ').unwrap();
            let number: u64 = number.parse().unwrap();
            if word == "sent" {
                sent.insert(number);
                continue;
            }
            kept.insert(number);
            seen += 1;
            if seen == limit {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(seen >= limit, "the child ended by itself after {seen} profiles");
        let read_only = Store::open_read_only(dir.path()).unwrap();
        let found = Stored::of(&read_only);
        found.check(&kept, &sent);
        let store = Store::open(config(dir.path()), &Scope::new()).unwrap();
        assert_eq!(Stored::of(store.as_ref()), found);
    }
    // After a flush, the result is the same.
    let store = Store::open(config(dir.path()), &Scope::new()).unwrap();
    let found = Stored::of(store.as_ref());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(store.close(Duration::from_secs(30))).unwrap();
    assert_eq!(Stored::of(store.as_ref()), found);
    // The number of files depends on the merges so far, so the test requires only one.
    assert!(store.snapshot().files.iter().any(|file| file.table == Table::Profiles));
}
