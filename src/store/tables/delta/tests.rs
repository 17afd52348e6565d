//! Tests of the tables: appended files are listed once, with their statistics, also after a checkpoint and with two
//! writers.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::store::common::fault::{FaultHook, FaultPoint};
use crate::store::tables::snapshot::{Checksum, Tail};
use crate::store::tables::stats::{Bounds, FileStats};
use alluvium_base::file::temporary_name;
use alluvium_profile::{SeriesId, StackId};
use alluvium_testing::tenant_id;

const CHECKSUM: Checksum = Checksum {
    file: 0xfedc_ba98_7654_3210,
    tail: Some(Tail { start: 1000, hash: 7 }),
};

fn file(name: &str) -> NewFile {
    NewFile {
        path: format!("tenant=t/day=2026-11-21/{name}.parquet"),
        size: 1234,
        modified_ms: 1_800_000_000_000,
        tenant: tenant_id("t"),
        day: 20_778,
        stats: FileStats {
            rows: 17,
            time: Some(Bounds::new(1_800_000_000_000_001, 1_800_000_000_999_001)),
            profile_type: Some(Bounds::new("a:b:c:d:e".into(), "z:b:c:d:e".into())),
            series: Some(Bounds::new(SeriesId(i64::MIN), SeriesId(-5))),
            stack: Some(Bounds::new(StackId(-1), StackId(i64::MAX))),
        },
        checksum: Some(CHECKSUM),
    }
}

#[test]
fn an_appended_file_is_listed_with_its_statistics_after_a_reopen() {
    let root = tempfile::tempdir().unwrap();
    let mut table = DeltaTable::open_or_create(&Root::from(root.path()), Table::Samples, Faults::default()).unwrap();
    assert_eq!(table.files().unwrap().len(), 0);
    assert_eq!(table.committed("w").unwrap(), None);
    table.append(("w", 3), None, &[file("one"), file("two")]).unwrap();
    // A repeated transaction changes nothing.
    table.append(("w", 3), None, &[file("again")]).unwrap();
    table.append(("w", 5), None, &[]).unwrap();
    drop(table);
    let table = DeltaTable::open(&Root::from(root.path()), Table::Samples).unwrap();
    assert_eq!(table.committed("w").unwrap(), Some(5));
    assert_eq!(table.committed("other").unwrap(), None);
    let mut files = table.files().unwrap();
    files.sort_by(|left, right| left.path.cmp(&right.path));
    assert_eq!(files.len(), 2);
    let one = &files[0];
    assert_eq!(one.path, "samples/tenant=t/day=2026-11-21/one.parquet");
    assert_eq!(
        (one.size, one.rows, one.day, one.tenant.as_str()),
        (1234, 17, 20_778, "t")
    );
    assert_eq!(one.series, file("x").stats.series);
    assert_eq!(one.checksum, Some(CHECKSUM));
    assert_eq!(one.profile_type, file("x").stats.profile_type);
    let Bounds { min: low, max: high } = one.time.unwrap();
    assert!((1_799_999_999_998_000..=1_800_000_000_000_001).contains(&low));
    assert!((1_800_000_000_999_001..1_800_000_001_002_000).contains(&high));
}

#[test]
fn checkpoints_keep_files_and_transactions() {
    let root = tempfile::tempdir().unwrap();
    let mut table = DeltaTable::open_or_create(&Root::from(root.path()), Table::Profiles, Faults::default()).unwrap();
    for version in 1..=CHECKPOINT_INTERVAL as i64 + 2 {
        table
            .append(("w", version), None, &[file(&format!("f{version}"))])
            .unwrap();
        table.checkpoint_if_due();
    }
    let log = table.location().join("_delta_log");
    assert!(
        log.join(format!("{CHECKPOINT_INTERVAL:020}.checkpoint.parquet"))
            .exists()
    );
    assert!(log.join("_last_checkpoint").exists());
    // The entries before the checkpoint are no longer needed.
    for version in 0..CHECKPOINT_INTERVAL {
        fs::remove_file(log.join(format!("{version:020}.json"))).unwrap();
    }
    let opens = || {
        let table = DeltaTable::open_or_create(&Root::from(root.path()), Table::Profiles, Faults::default()).unwrap();
        assert_eq!(table.files().unwrap().len(), CHECKPOINT_INTERVAL as usize + 2);
        assert_eq!(table.files().unwrap()[0].rows, 17);
        assert_eq!(table.committed("w").unwrap(), Some(CHECKPOINT_INTERVAL as i64 + 2));
    };
    opens();
    // The hint is not needed either. A backup omits a hint that is newer than the copy, and `repair` removes a damaged
    // hint.
    fs::remove_file(log.join("_last_checkpoint")).unwrap();
    let sums = || {
        let names = fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().ends_with(".crc")).count()
    };
    let before = sums();
    opens();
    assert_eq!(sums(), before);
    assert!(before > 0);
}

#[test]
fn an_entry_whose_folder_cannot_be_synced_has_checksums() {
    #[derive(Default)]
    struct Fails(AtomicBool);
    impl FaultHook for Fails {
        fn check(&self, point: FaultPoint) -> std::io::Result<()> {
            match point {
                FaultPoint::EntryFolderSync(_) if self.0.load(Ordering::Relaxed) => {
                    Err(std::io::Error::other("it fails"))
                }
                _ => Ok(()),
            }
        }
    }
    let root = tempfile::tempdir().unwrap();
    let tables_root = Root::from(root.path());
    let fails = Arc::new(Fails::default());
    let mut table = DeltaTable::open_or_create(&tables_root, Table::Series, Faults::new(fails.clone())).unwrap();
    fails.0.store(true, Ordering::Relaxed);
    table.append(("w", 1), None, &[file("one")]).unwrap_err();
    let entry = root.path().join("series/_delta_log/00000000000000000001.json");
    assert!(entry.exists() && sums::sums_path(&entry).exists());
}

#[test]
fn two_writers_of_one_table_lose_nothing() {
    let root = tempfile::tempdir().unwrap();
    let mut one = DeltaTable::open_or_create(&Root::from(root.path()), Table::Series, Faults::default()).unwrap();
    let mut two = DeltaTable::open_or_create(&Root::from(root.path()), Table::Series, Faults::default()).unwrap();
    for version in 1..4 {
        one.append(("one", version), None, &[file(&format!("one{version}"))])
            .unwrap();
        two.append(("two", version), None, &[file(&format!("two{version}"))])
            .unwrap();
    }
    let table = DeltaTable::open(&Root::from(root.path()), Table::Series).unwrap();
    assert_eq!(table.files().unwrap().len(), 6);
    assert_eq!(
        (table.committed("one").unwrap(), table.committed("two").unwrap()),
        (Some(3), Some(3))
    );
}

#[test]
fn every_table_can_be_created_and_says_its_layout() {
    let root = tempfile::tempdir().unwrap();
    for table in Table::ALL {
        let opened = DeltaTable::open_or_create(&Root::from(root.path()), table, Faults::default()).unwrap();
        assert_eq!(opened.layout_version(), Some(LAYOUT_VERSION));
    }
}

#[test]
fn a_table_whose_creation_was_cut_off_is_created() {
    let root = tempfile::tempdir().unwrap();
    let log = root.path().join("stacks/_delta_log");
    let first = log.join("00000000000000000000.json");
    std::fs::create_dir_all(&log).unwrap();
    std::fs::write(temporary_name(&first), "{").unwrap();
    std::fs::write(sums::sums_path(&first), "crc").unwrap();
    let opened = DeltaTable::open_or_create(&Root::from(root.path()), Table::Stacks, Faults::default()).unwrap();
    assert_eq!(opened.layout_version(), Some(LAYOUT_VERSION));
}

#[test]
fn writers_of_one_entry_do_not_share_a_temporary_file() {
    let path = std::path::Path::new("_delta_log/00000000000000000007.json");
    let [one, other] = [(); 2].map(|()| temporary_name(path));
    assert_ne!(one, other);
    for name in [one, other] {
        assert_eq!(name.parent(), path.parent());
        let name = name.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with('.') && name.ends_with(".tmp"), "{name}");
    }
}
