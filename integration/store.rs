//! The store against kill -9: a child process appends and flushes, is killed at a random moment, and whatever it had acknowledged
//! must be there once.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use alluvium::profile::synthetic::{Names, Shape, cpu_profile};
use alluvium::profile::{Labels, RawProfile, pprof};
use alluvium::store::schema::Table;
use alluvium::store::snapshot::{ScanFilter, SnapshotSource};
use alluvium::store::{Limits, Store, StoreConfig};
use alluvium::telemetry::metrics::Scope;

/// Names the child's data folder; without it the child's test does nothing.
const CHILD: &str = "ALLUVIUM_TEST_STORE_CHILD";
/// Rows of the profiles table that a profile makes: one a sample type.
const ROWS: u64 = 2;

const SHAPE: Shape = Shape {
    functions: 100,
    samples: 200,
    depth: 20,
    labelled_every: 0,
};

fn config(dir: &Path) -> StoreConfig {
    StoreConfig {
        // A flush every few dozen profiles, so that kills fall into all of its steps.
        flush_bytes: 400_000,
        limits: Limits {
            reject_older_than: Duration::ZERO,
            ..Limits::default()
        },
        ..StoreConfig::new(dir)
    }
}

/// Rows of the profiles table in files and heads.
fn stored(store: &impl SnapshotSource) -> u64 {
    let snapshot = store.snapshot();
    let in_files: u64 = snapshot
        .files
        .iter()
        .filter(|file| file.table == Table::Profiles)
        .map(|file| file.rows)
        .sum();
    let in_heads: usize = snapshot
        .heads
        .iter()
        .flat_map(|head| head.scan(Table::Profiles, &ScanFilter::default()))
        .map(|batch| batch.num_rows())
        .sum();
    in_files + in_heads as u64
}

#[test]
fn child_that_is_killed() {
    let Some(dir) = std::env::var_os(CHILD) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::open(config(Path::new(&dir)), &Scope::new()).unwrap();
        let next = Arc::new(AtomicU64::new(0));
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
                    say("sent");
                    assert!(store.append("t", vec![profile]).await.is_empty());
                    say("kept");
                }
            })
        });
        futures::future::join_all(clients).await;
    });
}

/// One line that the parent has even when this process dies right after.
fn say(word: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "@{word}").unwrap();
    out.flush().unwrap();
}

#[test]
fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let (mut kept, mut sent) = (0u64, 0u64);
    for round in 0..6u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::child_that_is_killed", "--nocapture"])
            .env(CHILD, dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // A number of acknowledgements that differs from round to round puts the kill at different steps.
        let limit = 40 + round * 17;
        let mut seen = 0;
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            match line.unwrap().as_str() {
                "@sent" => sent += 1,
                "@kept" => {
                    kept += 1;
                    seen += 1;
                    if seen == limit {
                        child.kill().unwrap();
                    }
                }
                _ => {}
            }
        }
        child.wait().unwrap();
        assert!(seen >= limit, "the child ended by itself after {seen} profiles");
        let read_only = Store::open_read_only(dir.path()).unwrap();
        let rows = stored(&read_only);
        assert!(
            (kept * ROWS..=sent * ROWS).contains(&rows),
            "{rows} rows, {kept} profiles kept, {sent} sent"
        );
        let store = Store::open(config(dir.path()), &Scope::new()).unwrap();
        assert_eq!(stored(store.as_ref()), rows);
    }
    // Flushed, the count is the same.
    let store = Store::open(config(dir.path()), &Scope::new()).unwrap();
    let rows = stored(store.as_ref());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(store.close(Duration::from_secs(30))).unwrap();
    assert_eq!(stored(store.as_ref()), rows);
    assert!(
        store
            .snapshot()
            .files
            .iter()
            .filter(|file| file.table == Table::Profiles)
            .count()
            > 1
    );
}
