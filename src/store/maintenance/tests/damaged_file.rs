//! Tests of files whose bytes change on the disk: no job writes the changed bytes with new checksums, and other files
//! are still maintained.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::store::Store;
use crate::store::common::schema::Table;
use crate::store::maintenance::tests::{Contents, config, contents, deletion, fill, open};
use crate::store::maintenance::{Downsampling, Work};
use crate::store::tables::snapshot::{FileEntry, SnapshotSource};
use crate::store::tests::scratch;
use crate::store::tools::inspect;
use alluvium_telemetry::metrics::Scope;

/// A live file of a tenant, with its contents before a test alters it.
struct Victim {
    path: PathBuf,
    bytes: Vec<u8>,
}

fn files(store: &Store, table: Table, tenant: &str) -> Vec<FileEntry> {
    let snapshot = store.snapshot();
    let live_files = snapshot.files.iter();
    let live_files = live_files.filter(|file| file.table == table && file.tenant.as_str() == tenant);
    live_files.cloned().collect()
}

impl Victim {
    fn of(store: &Store, table: Table, tenant: &str) -> Self {
        let path = store.snapshot().root.name(&files(store, table, tenant)[0].path);
        let bytes = fs::read(&path).unwrap();
        Self { path, bytes }
    }

    fn flip(&self, offset: usize, bit: usize) {
        let mut bytes = self.bytes.clone();
        bytes[offset] ^= 1 << bit;
        fs::write(&self.path, bytes).unwrap();
    }

    fn restore(&self) {
        fs::write(&self.path, &self.bytes).unwrap();
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

fn damaged(scope: &Scope) -> u64 {
    let text = scope.encode();
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix("alluvium_store_damaged_files_total "));
    value.unwrap().parse().unwrap()
}

#[tokio::test]
async fn no_flipped_bit_of_an_input_is_merged_and_other_tenants_are() {
    for table in Table::ALL {
        let dir = scratch();
        let scope = Scope::new();
        let store = Store::open(config(dir.path()), &scope).unwrap();
        fill(&store, "rotten", 2, 1, 40).await;
        fill(&store, "sound", 2, 1, 40).await;
        let contents_of = |tenant: &&str| contents(&store.snapshot(), tenant);
        let before: Vec<Contents> = ["rotten", "sound"].iter().map(contents_of).collect();
        let victim = Victim::of(&store, table, "rotten");
        let flips = if table == Table::Samples { 40 } else { 15 };
        for flip in 0..flips {
            victim.flip(victim.bytes.len() * flip / flips, flip % 8);
            let merged = store.maintain(Work::Compact).await;
            let error = merged.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(&victim.name()), "{table:?}, flip {flip}: {error:?}");
            assert_eq!(files(&store, table, "rotten").len(), 2);
            assert_eq!(files(&store, table, "sound").len(), 1);
        }
        assert_eq!(damaged(&scope), 1, "a file counts once");
        let findings = inspect::check(dir.path()).unwrap().findings;
        assert!(
            findings.iter().any(|finding| finding.kind == "file-damaged"),
            "{findings:?}"
        );
        victim.restore();
        store.maintain(Work::Compact).await.unwrap();
        assert_eq!(files(&store, table, "rotten").len(), 1);
        assert_eq!(["rotten", "sound"].iter().map(contents_of).collect::<Vec<_>>(), before);
        assert!(!inspect::check(dir.path()).unwrap().has_errors());
    }
}

#[tokio::test]
async fn downsampling_leaves_an_altered_file_alone() {
    let dir = scratch();
    let mut config = config(dir.path());
    config.maintenance.compaction = false;
    config.maintenance.aging.downsample = vec![Downsampling {
        after: Duration::ZERO,
        interval: Duration::from_mins(5),
    }];
    // The clock is a day after the profiles, whose times are in the future.
    config.clock = crate::store::common::clock::Clock::set_by(
        || std::time::UNIX_EPOCH + Duration::from_secs(1_800_100_000),
        || Duration::ZERO,
    );
    let store = open(config);
    fill(&store, "t", 2, 2, 40).await;
    let victim = Victim::of(&store, Table::Samples, "t");
    let before = contents(&store.snapshot(), "t");
    for flip in 0..30 {
        victim.flip(victim.bytes.len() * flip / 30, flip % 8);
        let error = store.maintain(Work::Due).await.err().map(|error| error.to_string());
        // After the first failure, jobs leave the file out for a while.
        if let Some(error) = error {
            assert!(error.contains(&victim.name()), "flip {flip}: {error}");
        }
        assert!(
            victim.path.exists() && files(&store, Table::Samples, "t").len() == 2,
            "flip {flip}"
        );
    }
    victim.restore();
    assert_eq!(
        crate::store::maintenance::tests::sums(&contents(&store.snapshot(), "t"), 300_000_000),
        crate::store::maintenance::tests::sums(&before, 300_000_000)
    );
}

#[tokio::test]
async fn a_deletion_waits_for_an_altered_file_and_the_tables_stay_alike() {
    let dir = scratch();
    let store = open(config(dir.path()));
    fill(&store, "t", 2, 2, 40).await;
    let before = contents(&store.snapshot(), "t");
    for table in [Table::Samples, Table::Profiles, Table::Series] {
        let victim = Victim::of(&store, table, "t");
        for flip in 0..10 {
            victim.flip(victim.bytes.len() * flip / 10, flip % 8);
            let requested = store.maintain(Work::Delete(deletion("{service_name=\"cart\"}"))).await;
            let error = requested.unwrap_err().to_string();
            assert!(error.contains(&victim.name()), "{table:?}, flip {flip}: {error}");
            for path in crate::store::maintenance::deletion::request::pending(dir.path()).unwrap() {
                fs::remove_file(path).unwrap();
            }
        }
        victim.restore();
        assert_eq!(contents(&store.snapshot(), "t"), before);
    }
    store
        .maintain(Work::Delete(deletion("{service_name=\"cart\"}")))
        .await
        .unwrap();
    assert!(contents(&store.snapshot(), "t").samples.len() < before.samples.len());
}
