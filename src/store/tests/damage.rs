//! Tests that damage each part of a data folder in turn. For each damage, a table of cases contains the findings of
//! `check`, the error if the store does not open, the findings after `repair`, and the number of remaining profiles.
//! The folder has a checkpoint, entries after it, files and a log.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use crate::store::common::schema::Table;
use crate::store::log::wal;
use crate::store::maintenance::MaintenanceConfig;
use crate::store::tables::delta;
use crate::store::tables::delta::DeltaTable;
use crate::store::tables::root::Root;
use crate::store::tables::snapshot;
use crate::store::tables::snapshot::ScanFilter;
use crate::store::tables::snapshot::SnapshotSource;
use crate::store::tests::scratch;
use crate::store::tools::{inspect, repair};
use crate::store::*;
use alluvium_profile::RawProfile;
use alluvium_profile::{Labels, pprof};
use alluvium_telemetry::metrics::Scope;
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};
use alluvium_testing::tenant_id;

const SHAPE: Shape = Shape {
    functions: 20,
    samples: 20,
    depth: 6,
    labelled_every: 0,
};
/// Number of profiles of the folder: two flushed before the checkpoint, one after it, three in the log.
const ALL: u64 = 6;

fn config(dir: &Path) -> StoreConfig {
    StoreConfig {
        checkpoint_interval: 10,
        limits: Limits {
            reject_older_than: Duration::ZERO,
            ..Limits::default()
        }
        .into(),
        maintenance: MaintenanceConfig {
            interval: Duration::from_hours(1),
            ..MaintenanceConfig::default()
        },
        ..StoreConfig::new(dir)
    }
}

async fn push(store: &Store, seed: u64) {
    let names = Names::new(SHAPE.functions);
    let profile = RawProfile {
        labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", "shop")]),
        id: "".into(),
        pprof: pprof::encode(&cpu_profile(&names, SHAPE, seed)).into(),
    };
    assert!(store.append(&tenant_id("t"), vec![profile]).await.is_empty());
}

/// Returns the intact folder that each case copies and damages. It is built once.
fn sound() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            let dir = scratch();
            let work = || {
                let runtime = tokio::runtime::Runtime::new().unwrap();
                let open = || Store::open(config(dir.path()), &Scope::new()).unwrap();
                runtime.block_on(async {
                    let store = open();
                    push(&store, 1).await;
                    store.flush().await.unwrap();
                });
                // Another writer adds empty entries, up to the entry before the checkpoint.
                for table in Table::ALL {
                    let mut opened = DeltaTable::open(&Root::from(dir.path().join("tables").as_path()), table).unwrap();
                    for version in 1..=8 {
                        opened.append(("another", version), None, &[]).unwrap();
                    }
                }
                runtime.block_on(async {
                    let store = open();
                    for seed in [2, 3] {
                        push(&store, seed).await;
                        store.flush().await.unwrap();
                    }
                    for seed in [4, 5, 6] {
                        push(&store, seed).await;
                    }
                });
            };
            std::thread::scope(|threads| threads.spawn(work).join().unwrap());
            dir
        })
        .path()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, target) = entry.map(|entry| (entry.path(), to.join(entry.file_name()))).unwrap();
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// Returns the number of profiles that a reader finds.
fn profiles(dir: &Path) -> u64 {
    let snapshot = Store::open_read_only(dir).unwrap().snapshot();
    let is_profiles = |file: &&snapshot::FileEntry| file.table == Table::Profiles;
    let in_files: u64 = snapshot.files.iter().filter(is_profiles).map(|file| file.rows).sum();
    let in_heads = snapshot
        .heads
        .iter()
        .flat_map(|head| head.scan(Table::Profiles, &ScanFilter::default()));
    // Each profile has two types.
    u64::midpoint(in_files, in_heads.map(|batch| batch.num_rows() as u64).sum::<u64>())
}

fn segment(dir: &Path) -> PathBuf {
    let folder = dir.join("wal");
    wal::segment_path(&folder, *wal::segments(&folder).unwrap().last().unwrap())
}

fn entry(dir: &Path, version: u64) -> PathBuf {
    dir.join(format!("tables/profiles/_delta_log/{version:020}.json"))
}

fn checkpoint(dir: &Path) -> PathBuf {
    dir.join(format!("tables/profiles/_delta_log/{:020}.checkpoint.parquet", 10))
}

fn hint(dir: &Path) -> PathBuf {
    dir.join("tables/profiles/_delta_log/_last_checkpoint")
}

fn data(dir: &Path) -> PathBuf {
    let snapshot = Store::open_read_only(dir).unwrap().snapshot();
    let file = snapshot
        .files
        .iter()
        .find(|file| file.table == Table::Profiles)
        .unwrap();
    dir.join("tables").join(&file.path)
}

/// Removes the newest entry of the profiles table, as in a copy that was made during a flush.
fn forget(dir: &Path) {
    let path = entry(dir, 11);
    fs::remove_file(delta::sums::sums_path(&path)).unwrap();
    fs::remove_file(path).unwrap();
}

/// Removes the parts of a table's newest entry that older versions of the program do not write.
fn forget_process(dir: &Path, table: Table) {
    let log = dir.join("tables").join(table.name()).join("_delta_log");
    let path = log.join(format!("{:020}.json", 11));
    let Ok(text) = fs::read_to_string(&path) else { return };
    let kept: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("\"txn\"") || !line.contains('/'))
        .collect();
    fs::write(&path, kept.join("\n") + "\n").unwrap();
    delta::sums::write(&path).unwrap();
}

fn cut(path: &Path, keep: impl Fn(usize) -> usize) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..keep(bytes.len())]).unwrap();
}

/// Flips bits at an offset of `permille` thousandths of the file's length.
fn flip(path: &Path, permille: usize, bits: u8) {
    let mut bytes = fs::read(path).unwrap();
    let offset = bytes.len() * permille / 1000;
    bytes[offset] ^= bits;
    fs::write(path, bytes).unwrap();
}

/// A kind of damage, and the results of check and repair.
struct Case {
    name: &'static str,
    damage: fn(&Path),
    /// Kinds of the findings of a check.
    kinds: &'static [&'static str],
    /// Part of the error if the store does not open.
    refuses: Option<&'static str>,
    /// Kinds of the findings that are left after a repair.
    left: &'static [&'static str],
    /// Number of profiles after the repair, if the store then opens.
    profiles: Option<u64>,
}

const CASES: &[Case] = &[
    Case {
        name: "nothing",
        damage: |_| {},
        kinds: &[],
        refuses: None,
        left: &[],
        profiles: Some(ALL),
    },
    Case {
        name: "segment with an unfinished record at its end",
        damage: |dir| {
            let bytes = fs::read(segment(dir)).unwrap();
            fs::write(segment(dir), [bytes.as_slice(), &[9, 0, 0, 0, 1, 2]].concat()).unwrap();
        },
        kinds: &["segment-torn"],
        refuses: None,
        left: &[],
        profiles: Some(ALL),
    },
    Case {
        name: "segment cut in its last record",
        damage: |dir| cut(&segment(dir), |length| length - 20),
        kinds: &["segment-torn"],
        refuses: None,
        left: &[],
        profiles: Some(ALL - 1),
    },
    Case {
        name: "segment of three bytes",
        damage: |dir| cut(&segment(dir), |_| 3),
        kinds: &["segment-torn"],
        refuses: None,
        left: &[],
        profiles: Some(ALL - 3),
    },
    Case {
        name: "flipped bit in the last record of the segment",
        damage: |dir| flip(&segment(dir), 950, 4),
        kinds: &["segment-damaged"],
        refuses: None,
        left: &["segment-damaged"],
        profiles: Some(ALL - 1),
    },
    Case {
        name: "segment cut in its last record, followed by another segment",
        damage: |dir| {
            cut(&segment(dir), |length| length - 20);
            let number: u64 = segment(dir).file_stem().unwrap().to_str().unwrap().parse().unwrap();
            drop(alluvium_base::segment::create(&wal::segment_path(&dir.join("wal"), number + 1)).unwrap());
        },
        kinds: &["segment-damaged"],
        refuses: None,
        left: &["segment-damaged"],
        profiles: Some(ALL - 1),
    },
    Case {
        name: "newest entry of a table gone",
        damage: |dir| forget(dir),
        kinds: &["uncommitted", "entry-missing"],
        refuses: Some("table `profiles` has lost an entry"),
        left: &["uncommitted", "entry-missing"],
        profiles: None,
    },
    Case {
        name: "newest entry of a table gone, after a flush of an older version of the program",
        damage: |dir| {
            forget(dir);
            let text = fs::read_to_string(dir.join("COMMITS")).unwrap();
            let mut remembered: serde_json::Value = serde_json::from_str(&text).unwrap();
            remembered["flushed"] = 0.into();
            fs::write(dir.join("COMMITS"), remembered.to_string()).unwrap();
            for table in Table::ALL {
                forget_process(dir, table);
            }
        },
        kinds: &["uncommitted", "records-missing"],
        refuses: Some("lacks profiles"),
        left: &["uncommitted", "records-missing"],
        profiles: None,
    },
    Case {
        name: "file COMMITS cut",
        damage: |dir| cut(&dir.join("COMMITS"), |length| length / 2),
        kinds: &["folder"],
        refuses: Some("COMMITS"),
        left: &["folder"],
        profiles: None,
    },
    Case {
        name: "file COMMITS gone",
        damage: |dir| fs::remove_file(dir.join("COMMITS")).unwrap(),
        kinds: &["copied", "copied", "copied", "copied"],
        refuses: Some("was copied"),
        left: &["copied", "copied", "copied", "copied"],
        profiles: None,
    },
    Case {
        name: "flipped bit in the second record of the segment",
        damage: |dir| flip(&segment(dir), 500, 4),
        kinds: &["segment-damaged"],
        refuses: None,
        left: &["segment-damaged"],
        profiles: Some(ALL - 1),
    },
    Case {
        name: "flipped bit in the first bytes of the segment",
        damage: |dir| flip(&segment(dir), 0, 1),
        kinds: &["segment-damaged"],
        refuses: None,
        left: &["segment-damaged"],
        profiles: Some(ALL),
    },
    Case {
        name: "file of a table gone",
        damage: |dir| fs::remove_file(data(dir)).unwrap(),
        kinds: &["file-missing"],
        refuses: None,
        left: &["file-missing"],
        profiles: None,
    },
    Case {
        name: "file of a table cut",
        damage: |dir| cut(&data(dir), |length| length / 2),
        kinds: &["file-truncated"],
        refuses: None,
        left: &["file-truncated"],
        profiles: None,
    },
    Case {
        name: "flipped bit in a file of a table",
        damage: |dir| flip(&data(dir), 500, 8),
        kinds: &["file-damaged"],
        refuses: None,
        left: &["file-damaged"],
        profiles: None,
    },
    Case {
        name: "last entry cut",
        damage: |dir| cut(&entry(dir, 11), |length| length / 2),
        kinds: &["table-log"],
        refuses: Some("00011.json"),
        left: &["table-log"],
        profiles: None,
    },
    Case {
        name: "last entry empty",
        damage: |dir| cut(&entry(dir, 11), |_| 0),
        kinds: &["table-log"],
        refuses: Some("too short"),
        left: &["table-log"],
        profiles: None,
    },
    Case {
        name: "flipped bit in the last entry",
        damage: |dir| flip(&entry(dir, 11), 700, 1),
        kinds: &["table-log"],
        refuses: Some("differ from the written ones"),
        left: &[],
        profiles: Some(ALL),
    },
    Case {
        name: "two flipped bits in one part of the last entry",
        damage: |dir| flip(&entry(dir, 11), 0, 0x11),
        kinds: &["table-log"],
        refuses: Some("backup"),
        left: &["table-log"],
        profiles: None,
    },
    Case {
        name: "flipped bit in an entry that the checkpoint covers",
        damage: |dir| flip(&entry(dir, 1), 500, 2),
        kinds: &["table-log"],
        refuses: None,
        left: &[],
        profiles: Some(ALL),
    },
    Case {
        name: "first entry after the checkpoint gone, a later one there",
        damage: |dir| fs::rename(entry(dir, 11), entry(dir, 12)).unwrap(),
        kinds: &["table-log"],
        refuses: Some("00011.json"),
        left: &["table-log"],
        profiles: None,
    },
    Case {
        name: "flipped bit in the checkpoint",
        damage: |dir| flip(&checkpoint(dir), 300, 0x40),
        kinds: &["table-log"],
        refuses: Some("00010.checkpoint.parquet"),
        left: &[],
        profiles: Some(ALL),
    },
    Case {
        name: "checkpoint cut",
        damage: |dir| cut(&checkpoint(dir), |length| length / 3),
        kinds: &["table-log"],
        refuses: Some("too short"),
        left: &[],
        profiles: Some(ALL),
    },
    Case {
        name: "checkpoint gone",
        damage: |dir| fs::remove_file(checkpoint(dir)).unwrap(),
        kinds: &["table-log"],
        refuses: Some("names checkpoint 10"),
        left: &[],
        profiles: Some(ALL),
    },
    Case {
        name: "file _last_checkpoint cut",
        damage: |dir| cut(&hint(dir), |length| length / 2),
        kinds: &["table-log"],
        refuses: None,
        left: &[],
        profiles: Some(ALL),
    },
    Case {
        name: "checksums of an entry gone or torn",
        damage: |dir| {
            let sums = |version| delta::sums::sums_path(&entry(dir, version));
            fs::remove_file(sums(11)).unwrap();
            cut(&sums(10), |_| 5);
        },
        kinds: &[],
        refuses: None,
        left: &[],
        profiles: Some(ALL),
    },
    Case {
        name: "invalid layout version in the file VERSION",
        damage: |dir| fs::write(dir.join("VERSION"), "one\n").unwrap(),
        kinds: &["folder"],
        refuses: Some("`one` is not a layout version"),
        left: &["folder"],
        profiles: None,
    },
    Case {
        name: "file WRITER cut",
        damage: |dir| cut(&dir.join("WRITER"), |_| 7),
        kinds: &["folder"],
        refuses: Some("WRITER"),
        left: &["folder"],
        profiles: None,
    },
    Case {
        name: "deletion request cut",
        damage: |dir| {
            fs::create_dir_all(dir.join("deletions")).unwrap();
            fs::write(dir.join("deletions/x.json"), "{\"tenant\":\"t\",\"sel").unwrap();
        },
        kinds: &["request"],
        refuses: None,
        left: &["request"],
        profiles: Some(ALL),
    },
];

#[test]
fn damage_of_every_part_of_the_folder_is_recognised() {
    for case in CASES {
        let dir = scratch();
        copy(sound(), dir.path());
        (case.damage)(dir.path());
        let kinds = || -> Vec<&'static str> {
            let checked = inspect::check(dir.path()).unwrap();
            checked.findings.iter().map(|finding| finding.kind).collect()
        };
        assert_eq!(
            kinds(),
            case.kinds,
            "{}: {:?}",
            case.name,
            inspect::check(dir.path()).unwrap().findings
        );
        // The start uses a copy, because it would clean up the folder.
        let started = scratch();
        copy(dir.path(), started.path());
        match (Store::open(config(started.path()), &Scope::new()), case.refuses) {
            (Ok(_), None) => {}
            (Ok(_), Some(_)) => panic!("{}: the store opens", case.name),
            (Err(error), Some(word)) => assert!(error.to_string().contains(word), "{}: {error}", case.name),
            (Err(error), None) => panic!("{}: {error}", case.name),
        }
        // `repair` may fail with an error if a file at the top of the data folder is damaged.
        let repaired = repair::repair(dir.path(), false);
        match &repaired {
            Ok(actions) => {
                let changed = case.kinds != case.left;
                assert_eq!(!actions.is_empty(), changed, "{}: {actions:?}", case.name);
            }
            Err(error) => assert_eq!(case.left, ["folder"], "{}: {error}", case.name),
        }
        assert_eq!(kinds(), case.left, "{}: {repaired:?}", case.name);
        let Some(expected) = case.profiles else { continue };
        assert_eq!(profiles(dir.path()), expected, "{}", case.name);
        let store = Store::open(config(dir.path()), &Scope::new()).unwrap();
        drop(store);
        assert_eq!(profiles(dir.path()), expected, "{}: after a restart", case.name);
    }
}
