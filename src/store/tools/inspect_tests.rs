//! Tests of check and repair: every kind of damage is recognised, and a repair loses nothing.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::store::Store;
use crate::store::config::StoreConfig;
use crate::store::rules::limits::Limits;
use crate::store::tables::delta::Operation;
use crate::store::tables::snapshot::{ScanFilter, SnapshotSource};
use crate::store::tools::repair;
use alluvium_profile::{Labels, RawProfile, pprof};
use alluvium_telemetry::metrics::Scope;
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};
use alluvium_testing::tenant_id;

const SHAPE: Shape = Shape {
    functions: 40,
    samples: 60,
    depth: 8,
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

/// Returns a folder with two flushed profiles and one profile in the log.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store: Arc<Store> = Store::open(config(dir.path()), &Scope::new()).unwrap();
        let names = Names::new(SHAPE.functions);
        for seed in 0..3 {
            let profile = RawProfile {
                labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", "shop")]),
                id: "".into(),
                pprof: pprof::encode(&cpu_profile(&names, SHAPE, seed)).into(),
            };
            assert!(store.append(&tenant_id("t"), vec![profile]).await.is_empty());
            if seed < 2 {
                store.flush().await.unwrap();
            }
        }
    });
    dir
}

fn kinds(dir: &Path) -> Vec<&'static str> {
    let checked = check(dir).unwrap();
    checked.findings.iter().map(|finding| finding.kind).collect()
}

fn live_file(dir: &Path, table: Table) -> PathBuf {
    let snapshot = Store::open_read_only(dir).unwrap().snapshot();
    let file = snapshot.files.iter().find(|file| file.table == table).unwrap();
    dir.join("tables").join(&file.path)
}

fn profiles(dir: &Path) -> u64 {
    let snapshot = Store::open_read_only(dir).unwrap().snapshot();
    let in_files: u64 = snapshot
        .files
        .iter()
        .filter(|file| file.table == Table::Profiles)
        .map(|file| file.rows)
        .sum();
    let in_heads = snapshot
        .heads
        .iter()
        .flat_map(|head| head.scan(Table::Profiles, &ScanFilter::default()));
    in_files + in_heads.map(|batch| batch.num_rows() as u64).sum::<u64>()
}

#[test]
fn a_sound_folder_has_no_findings_and_its_sizes_add_up() {
    let dir = folder();
    assert_eq!(kinds(dir.path()), [""; 0]);
    let stats = stats(dir.path()).unwrap();
    assert_eq!((stats.tables["profiles"].files, stats.tables["profiles"].rows), (2, 4));
    assert_eq!(stats.log.files, 1);
    assert!(stats.bytes_per_value().unwrap() > 0.0);
    assert_eq!(repair::repair(dir.path(), false).unwrap(), []);
}

#[test]
fn damage_of_files_is_recognised_and_not_repaired() {
    for (kind, damage) in [
        ("file-missing", (|path| fs::remove_file(path).unwrap()) as fn(&Path)),
        ("file-truncated", |path| {
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("file-damaged", |path| {
            let mut bytes = fs::read(path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(path, bytes).unwrap();
        }),
    ] {
        let dir = folder();
        damage(&live_file(dir.path(), Table::Samples));
        assert_eq!(kinds(dir.path()), [kind]);
        assert!(check(dir.path()).unwrap().has_errors());
        assert_eq!(repair::repair(dir.path(), false).unwrap(), []);
        assert_eq!(kinds(dir.path()), [kind]);
    }
}

#[test]
fn every_flipped_bit_of_a_file_is_recognised() {
    let dir = folder();
    let path = live_file(dir.path(), Table::Series);
    let clean = fs::read(&path).unwrap();
    for position in (0..clean.len()).step_by(97) {
        let mut bytes = clean.clone();
        bytes[position] ^= 1 << (position % 8);
        fs::write(&path, &bytes).unwrap();
        assert_eq!(kinds(dir.path()), ["file-damaged"], "{position}");
    }
}

#[test]
fn rows_whose_names_are_gone_are_recognised() {
    for (table, expected) in [
        (Table::Stacks, vec![("samples", "refer to a stack")]),
        (
            Table::Series,
            vec![("samples", "refer to a series"), ("profiles", "refer to a series")],
        ),
    ] {
        let dir = folder();
        // Each file is sound, and so are the logs. Only the references between rows are wrong.
        let mut names = DeltaTable::open(&Root::Folder(dir.path().join("tables")), table).unwrap();
        let all = names.files().unwrap().into_iter().map(|file| file.path).collect();
        names.replace(&all, &[], Operation::Delete).unwrap();
        let checked = check(dir.path()).unwrap();
        assert!(checked.has_errors());
        for (rows, text) in &expected {
            let findings = checked.findings.iter().filter(|finding| finding.kind == "reference");
            let findings = findings.filter(|finding| finding.path.starts_with(&format!("tables/{rows}/")));
            let details: Vec<&str> = findings.map(|finding| finding.detail.as_str()).collect();
            assert_eq!(details.len(), 2, "{checked:?}");
            assert!(details.iter().all(|detail| detail.contains(text)), "{details:?}");
        }
        let faults = checked.findings.iter().filter(|finding| finding.kind == "reference");
        assert_eq!(faults.count(), 2 * expected.len(), "{checked:?}");
    }
}

#[test]
fn damage_of_the_log_is_recognised_and_its_torn_end_is_cut() {
    let dir = folder();
    let all = profiles(dir.path());
    let number = wal::segments(&dir.path().join("wal")).unwrap()[0];
    let path = wal::segment_path(&dir.path().join("wal"), number);
    let clean = fs::read(&path).unwrap();
    fs::write(&path, [clean.as_slice(), &[9, 0, 0, 0, 1, 2]].concat()).unwrap();
    assert_eq!(kinds(dir.path()), ["segment-torn"]);
    assert!(!check(dir.path()).unwrap().has_errors());
    assert_eq!(repair::repair(dir.path(), false).unwrap().len(), 1);
    assert_eq!(fs::read(&path).unwrap(), clean);
    assert_eq!(profiles(dir.path()), all);
    let mut damaged = clean.clone();
    damaged[clean.len() / 2] ^= 4;
    fs::write(&path, [damaged.as_slice(), &clean[8..]].concat()).unwrap();
    assert_eq!(kinds(dir.path()), ["segment-damaged"]);
    assert_eq!(repair::repair(dir.path(), false).unwrap(), []);
}

#[test]
fn what_was_never_committed_is_named_and_removed() {
    let dir = folder();
    let all = profiles(dir.path());
    let live = live_file(dir.path(), Table::Samples);
    let writer = folder::writer_of(dir.path()).unwrap().unwrap();
    let uncommitted = live.with_file_name(format!("c1-0-0-{writer}.parquet"));
    fs::copy(&live, &uncommitted).unwrap();
    fs::copy(&live, live.with_file_name("part-0.parquet")).unwrap();
    fs::write(dir.path().join("tables/samples/_delta_log/.x.json.tmp"), "{").unwrap();
    assert_eq!(kinds(dir.path()), ["uncommitted", "orphan", "leftover"]);
    let actions = repair::repair(dir.path(), false).unwrap();
    assert_eq!(actions.len(), 2, "{actions:?}");
    // The orphan stays, because another program may be about to commit it.
    assert_eq!(kinds(dir.path()), ["orphan"]);
    assert!(!uncommitted.exists());
    assert_eq!(profiles(dir.path()), all);
}

#[test]
fn a_folder_in_use_is_not_repaired() {
    let dir = folder();
    let store = Store::open(config(dir.path()), &Scope::new()).unwrap();
    assert!(matches!(repair::repair(dir.path(), false), Err(StoreError::Locked(_))));
    assert_eq!(kinds(dir.path()), [""; 0]);
    drop(store);
}
