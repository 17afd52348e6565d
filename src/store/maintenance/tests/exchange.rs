//! Tests of an exchange of files with a lost result: the entry of the exchange was written, but the server receives an
//! error. In the meantime, another server removes one of the files that the exchange added.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::store::Store;
use crate::store::common::error::StoreError;
use crate::store::common::fault::{FaultHook, FaultPoint, Faults};
use crate::store::common::schema::Table;
use crate::store::config::StoreConfig;
use crate::store::maintenance::Work;
use crate::store::maintenance::merge::rewrite;
use crate::store::maintenance::tests::{config, contents, fill, open};
use crate::store::tables::delta::{DeltaTable, Operation};
use crate::store::tables::root::Root;
use crate::store::tables::snapshot::SnapshotSource;
use crate::store::tests::scratch;

/// Once `is_on` is true, the next commit to the samples table returns an error although its entry exists. Between the
/// entry and the error, another server removes one of the merged files that the entry adds.
struct Overtakes {
    tables: PathBuf,
    is_on: AtomicBool,
}

impl FaultHook for Overtakes {
    fn check(&self, point: FaultPoint) -> io::Result<()> {
        if point != FaultPoint::EntryFolderSync(Table::Samples) || !self.is_on.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        let mut other = DeltaTable::open(&Root::from(self.tables.as_path()), Table::Samples).unwrap();
        let merged = merged(&self.tables);
        let first = [merged[0].clone()].into();
        other.replace(&first, &[], Operation::Delete).unwrap();
        Err(io::Error::other("the answer is lost"))
    }
}

/// Returns the paths of the merged files in the samples table.
fn merged(tables: &Path) -> Vec<String> {
    let table = DeltaTable::open(&Root::from(tables), Table::Samples).unwrap();
    let paths = table.files().unwrap().into_iter().map(|file| file.path);
    paths.filter(|path| rewrite::MergedName::of(path).level > 0).collect()
}

#[tokio::test]
async fn files_of_an_exchange_that_another_server_has_overtaken_stay_while_they_are_live() {
    let dir = scratch();
    let hook = Arc::new(Overtakes {
        tables: dir.path().join("tables"),
        is_on: AtomicBool::new(false),
    });
    let store = open(StoreConfig {
        faults: Faults::new(hook.clone()),
        ..config(dir.path())
    });
    // The profiles cover eight and a half hours of one day, so that a merge writes a file for each hour.
    fill(&store, "t", 9, 2, 1700).await;
    let before = contents(&store.snapshot(), "t");
    hook.is_on.store(true, Ordering::SeqCst);
    let error = store.maintain(Work::Due).await.unwrap_err();
    assert!(matches!(error, StoreError::Outdated(Table::Samples)), "{error}");
    store.maintain(Work::Due).await.unwrap();
    let after = contents(&store.snapshot(), "t");
    assert!(!after.samples.is_empty() && after.samples.len() < before.samples.len());
    assert!(
        after
            .samples
            .iter()
            .all(|(key, values)| before.samples.get(key) == Some(values))
    );
    assert_eq!(after.profiles, before.profiles);
    let read = Store::open_read_only(dir.path()).unwrap().snapshot();
    assert_eq!(contents(&read, "t"), after);
}
