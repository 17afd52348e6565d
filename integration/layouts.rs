//! Data folders of every released layout can be opened, queried and merged. `fixtures/store/` has one small store of
//! each layout.
//!
//! A fixture has the files of a data folder as `0.bin`, `1.bin` and so on, and their paths in `files.txt`. [`unpack`]
//! copies the files to these paths in a data folder. To add a fixture for this program's layout: `cargo test --test
//! integration layouts::write_the_fixture_of_this_layout -- --ignored`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use alluvium::query::{QueryEngine, QueryLimits, StackQuery, TimeRange};
use alluvium::store::common::schema::{LAYOUT_VERSION, Table};
use alluvium::store::maintenance::Work;
use alluvium::store::tables::snapshot::{Snapshot, SnapshotSource};
use alluvium::store::tools::inspect;
use alluvium::store::{Limits, Store, StoreConfig};
use alluvium_profile::{Labels, RawProfile, pprof};
use alluvium_telemetry::metrics::Scope;
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};

use crate::harness::{tenant, tenants};
use crate::tidy::root;

const SHAPE: Shape = Shape {
    functions: 20,
    samples: 30,
    depth: 6,
    labelled_every: 0,
};

fn config(dir: &Path) -> StoreConfig {
    StoreConfig {
        limits: Limits {
            reject_older_than: Duration::ZERO,
            ..Limits::default()
        }
        .into(),
        ..StoreConfig::new(dir)
    }
}

/// Opens the store in a folder on a thread for blocking work.
pub(crate) async fn open(dir: &Path) -> Arc<Store> {
    let opened = config(dir);
    let store = tokio::task::spawn_blocking(|| Store::open(opened, &Scope::new()));
    store.await.unwrap().unwrap()
}

/// Creates the data folder that a program of this layout wrote.
pub(crate) fn written_by(layout: u32, dir: &Path) {
    unpack(&root().join(format!("integration/fixtures/store/v{layout}")), dir);
}

/// Creates the data folder of a fixture.
fn unpack(fixture: &Path, dir: &Path) {
    let names = std::fs::read_to_string(fixture.join("files.txt")).unwrap();
    for (number, name) in names.lines().enumerate() {
        let target = dir.join(name);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(fixture.join(format!("{number}.bin")), target).unwrap();
    }
}

fn rows(snapshot: &Snapshot, table: Table) -> u64 {
    let files = snapshot.files.iter().filter(|file| file.table == table);
    files.map(|file| file.rows).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_layout_that_was_ever_written_opens_and_can_be_merged() {
    for version in 1..=LAYOUT_VERSION {
        let dir = tempfile::tempdir().unwrap();
        written_by(version, dir.path());
        assert_eq!(inspect::stats(dir.path()).unwrap().layout, version);
        assert!(!inspect::check(dir.path()).unwrap().has_errors());
        let store = open(dir.path()).await;
        // The folder has the new layout, so that programs of the old layout refuse to write to it.
        assert_eq!(inspect::stats(dir.path()).unwrap().layout, LAYOUT_VERSION);
        let before = store.snapshot();
        // Two profiles of two types each, flushed one by one.
        assert_eq!(rows(&before, Table::Profiles), 4);
        assert!(rows(&before, Table::Samples) > 20 && rows(&before, Table::Stacks) > 10);
        store.maintain(Work::Compact).await.unwrap();
        let after = store.snapshot();
        for table in [Table::Profiles, Table::Samples, Table::Stacks] {
            assert_eq!(rows(&after, table), rows(&before, table), "{table:?}");
        }
        assert_eq!(after.files.len(), 4);
    }
}

/// Returns the profiles of a fixture in the form in which a client sent them.
fn sent(id: &str) -> Vec<RawProfile> {
    let names = Names::new(SHAPE.functions);
    let profile = |seed| RawProfile {
        labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", "shop")]),
        id: format!("{id}-{seed}").into(),
        pprof: pprof::encode(&cpu_profile(&names, SHAPE, seed)).into(),
    };
    (0..2).map(profile).collect()
}

/// Returns the distinct lines at which functions start, in a merge of all profiles.
async fn start_lines(engine: &QueryEngine) -> BTreeSet<i64> {
    let kind = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
    let query = StackQuery::new(kind.parse().unwrap(), Vec::new(), TimeRange::ALL);
    let merged = engine.merge_profile(&tenants("t"), query, pprof::encode).await.unwrap();
    let profile = pprof::decode(&merged).unwrap();
    profile.functions.iter().map(|function| function.start_line).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stacks_of_layout_1_get_the_lines_at_which_functions_start_from_the_profiles_that_follow() {
    let names = Names::new(SHAPE.functions);
    let source = cpu_profile(&names, SHAPE, 0);
    let known: BTreeSet<i64> = source.functions.iter().map(|function| function.start_line).collect();
    assert!(known.len() > 10, "{known:?}");
    let dir = tempfile::tempdir().unwrap();
    written_by(1, dir.path());
    let store = open(dir.path()).await;
    let engine = || QueryEngine::new(store.clone(), QueryLimits::default()).unwrap();
    assert_eq!(start_lines(&engine()).await, BTreeSet::from([0]));
    let before = rows(&store.snapshot(), Table::Stacks);
    let refused = store.append(&tenant("t"), sent("again")).await;
    assert!(refused.is_empty(), "{refused:?}");
    // The new rows are first in the head, then in files beside those of the old layout, and at last in a file merged
    // from both.
    let in_head = start_lines(&engine()).await;
    assert!(in_head.len() > 10 && in_head.is_subset(&known), "{in_head:?}");
    store.flush().await.unwrap();
    assert_eq!(rows(&store.snapshot(), Table::Stacks), 2 * before);
    assert_eq!(start_lines(&engine()).await, in_head);
    store.maintain(Work::Compact).await.unwrap();
    assert_eq!(rows(&store.snapshot(), Table::Stacks), before);
    assert_eq!(start_lines(&engine()).await, in_head);
    assert!(!inspect::check(dir.path()).unwrap().has_errors());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tables_of_layout_1_have_the_new_column_once_they_are_opened_and_only_once() {
    let dir = tempfile::tempdir().unwrap();
    written_by(1, dir.path());
    let log = dir.path().join("tables/stacks/_delta_log");
    let entries = || {
        let names = std::fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().path());
        let mut texts: Vec<(PathBuf, String)> = names
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .map(|path| (path.clone(), std::fs::read_to_string(&path).unwrap()))
            .collect();
        texts.sort();
        texts
    };
    let before = entries();
    assert!(before.iter().all(|(_, text)| !text.contains("start_lines")));
    for _ in 0..2 {
        drop(open(dir.path()).await);
        let after = entries();
        assert_eq!(after.len(), before.len() + 1);
        let (_, added) = after.last().unwrap();
        assert!(
            added.contains("ALTER TABLE") && added.contains("start_lines"),
            "{added}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "writes the fixture of this program's layout"]
async fn write_the_fixture_of_this_layout() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    for profile in sent("profile") {
        assert!(store.append(&tenant("t"), vec![profile]).await.is_empty());
        store.flush().await.unwrap();
    }
    drop(store);
    let fixture = root().join(format!("integration/fixtures/store/v{LAYOUT_VERSION}"));
    std::fs::create_dir_all(&fixture).unwrap();
    let mut files: Vec<PathBuf> = Vec::new();
    let mut folders = vec![dir.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.retain(|path| !path.ends_with("LOCK") && path.extension().is_none_or(|end| end != "seg"));
    files.sort();
    let names: Vec<String> = files
        .iter()
        .map(|path| path.strip_prefix(dir.path()).unwrap().display().to_string())
        .collect();
    std::fs::write(fixture.join("files.txt"), names.join("\n") + "\n").unwrap();
    for (number, path) in files.iter().enumerate() {
        std::fs::copy(path, fixture.join(format!("{number}.bin"))).unwrap();
    }
}

fn command(arguments: &[&str]) -> (bool, serde_json::Value, String) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_alluvium"))
        .args(["store", "--format", "json"])
        .args(arguments)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let answer = serde_json::from_str(&text).unwrap_or_default();
    (
        output.status.success(),
        answer,
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn the_command_measures_merges_deletes_and_finds_damage() {
    let dir = tempfile::tempdir().unwrap();
    written_by(LAYOUT_VERSION, dir.path());
    let path = dir.path().to_string_lossy().into_owned();
    let (ok, answer, errors) = command(&["check", &path]);
    assert!(ok && answer["findings"] == serde_json::json!([]), "{answer} {errors}");
    let (_, stats, _) = command(&["stats", &path]);
    assert_eq!(stats["tables"]["profiles"]["rows"], 4);
    let (ok, merged, errors) = command(&["compact", &path]);
    assert!(
        ok && merged["files_in"].as_u64() > merged["files_out"].as_u64(),
        "{merged} {errors}"
    );
    let (_, vacuumed, _) = command(&["vacuum", &path, "--grace", "0"]);
    assert_eq!(vacuumed["deleted_files"], merged["files_in"]);
    let (_, stats, _) = command(&["stats", &path]);
    assert_eq!(stats["dead"]["files"], 0);
    let (ok, _, errors) = command(&["delete", &path, "--tenant", "t", "--selector", "{broken"]);
    assert!(!ok && errors.contains("selector"), "{errors}");
    let kind = "process_cpu:samples:count:cpu:nanoseconds{service_name=\"shop\"}";
    let (ok, deleted, errors) = command(&["delete", &path, "--tenant", "t", "--selector", kind]);
    assert!(ok, "{errors}");
    let gone = |answer: &serde_json::Value| answer["rows_in"].as_u64().unwrap() - answer["rows_out"].as_u64().unwrap();
    assert!(gone(&deleted) > 2);
    let (_, stats, _) = command(&["stats", &path]);
    assert_eq!(stats["tables"]["profiles"]["rows"], 2);
    let snapshot = Store::open_read_only(dir.path()).unwrap().snapshot();
    let file = snapshot.files.iter().find(|file| file.table == Table::Samples).unwrap();
    std::fs::remove_file(snapshot.root.name(&file.path)).unwrap();
    let (ok, answer, _) = command(&["check", &path]);
    assert!(!ok && answer.to_string().contains("file-missing"), "{answer}");
    let (ok, _, errors) = command(&["stats", "/nowhere/at/all"]);
    assert!(!ok && errors.contains("cannot read the data folder"), "{errors}");
}
