//! Tests of merges whose names (stacks and series) exceed the memory limit of maintenance: such a merge works in
//! pieces, and writes the same rows as a merge with enough memory.

use crate::store::Store;
use crate::store::common::schema::Table;
use crate::store::config::StoreConfig;
use crate::store::maintenance::tests::{SHAPE, START_NS, config, contents, open};
use crate::store::maintenance::*;
use crate::store::tables::snapshot::{Snapshot, SnapshotSource};
use crate::store::tests::scratch;
use alluvium_profile::{Labels, RawProfile, pprof};
use alluvium_testing::synthetic::{Names, cpu_profile};
use alluvium_testing::tenant_id;

/// Flushes profiles. Half of their series and stacks were flushed before.
async fn flush_one(store: &Store, flush: u64) {
    let names = Names::new(SHAPE.functions);
    let profiles = (0..40).map(|number| {
        let mut profile = cpu_profile(&names, SHAPE, flush * 20 + number);
        profile.time_nanos = START_NS + (flush * 40 + number) as i64 * 1_000_000_000;
        let series = format!("{}", flush * 20 + number);
        RawProfile {
            labels: Labels::from_pairs([
                ("__name__", "process_cpu"),
                ("service_name", "shop"),
                ("bad", series.as_str()),
            ]),
            id: format!("{flush}-{number}").into(),
            pprof: pprof::gzip(&pprof::encode(&profile)).into(),
        }
    });
    assert!(store.append(&tenant_id("t"), profiles.collect()).await.is_empty());
    store.flush().await.unwrap();
}

fn files(snapshot: &Snapshot, table: Table) -> Vec<String> {
    let own = snapshot.files.iter().filter(|file| file.table == table);
    own.map(|file| file.path.clone()).collect()
}

#[tokio::test]
async fn a_merge_of_more_names_than_memory_may_hold_works_in_pieces_and_leaves_them() {
    let merged = |memory_bytes: usize| async move {
        let dir = scratch();
        let maintenance = MaintenanceConfig {
            memory_bytes,
            ..config(dir.path()).maintenance
        };
        let store = open(StoreConfig {
            maintenance,
            ..config(dir.path())
        });
        let mut stacks = Vec::new();
        for flush in 0..16 {
            flush_one(&store, flush).await;
            store.maintain(Work::Due).await.unwrap();
            stacks.push(files(&store.snapshot(), Table::Stacks).len());
        }
        store.maintain(Work::Compact).await.unwrap();
        let before = files(&store.snapshot(), Table::Stacks);
        store.maintain(Work::Compact).await.unwrap();
        let snapshot = store.snapshot();
        // Files that do not fit into memory together are not merged again and again.
        assert_eq!(files(&snapshot, Table::Stacks), before);
        assert_eq!(files(&snapshot, Table::Series).len(), 1);
        let series = snapshot.files.iter().find(|file| file.table == Table::Series).unwrap();
        assert_eq!(series.rows as usize, contents(&snapshot, "t").series.len());
        assert!(series.rows >= 15 * 20 + 40);
        assert_eq!(
            store.memory().map(|part| part.name),
            ["heads", "decoding", "maintenance"]
        );
        assert_eq!(store.memory()[2].used, 0);
        (contents(&snapshot, "t"), before.len(), stacks)
    };
    let (one_piece, one, _) = merged(64 << 20).await;
    let (pieces, several, max) = merged(400 << 10).await;
    assert_eq!(one, 1);
    assert!(several > 1 && several < 40, "{several} files of stacks, {max:?}");
    assert_eq!(one_piece, pieces);
}
