//! The engine of delta_kernel and the committer for a table. Both depend on whether the table is in a folder or bucket.

use std::fs;
use std::sync::Arc;

use delta_kernel::committer::Committer;
use delta_kernel_default_engine::storage::store_from_url;
use delta_kernel_default_engine::{DefaultEngine, DefaultEngineBuilder};
use url::Url;

use crate::store::common::error::StoreError;
use crate::store::common::fault::Faults;
use crate::store::common::schema::Table;
use crate::store::tables::delta::commit::{ObjectCommitter, SyncedCommitter};
use crate::store::tables::delta::executor::InlineExecutor;
use crate::store::tables::delta::log_store::LogStore;
use crate::store::tables::root::Root;

/// Returns the address of a table and an engine for it.
pub(super) fn connect(root: &Root, table: Table) -> Result<(Url, Arc<DefaultEngine<InlineExecutor>>), StoreError> {
    let (url, store, handle) = match root {
        Root::Folder(root) => {
            let folder = root.join(table.name());
            let folder = fs::canonicalize(&folder).map_err(StoreError::io("open", &folder))?;
            let url = Url::from_directory_path(&folder).map_err(|()| StoreError::Table {
                action: "open",
                table,
                reason: format!("`{}` is not an absolute path", folder.display()),
            })?;
            let store = store_from_url(&url).map_err(StoreError::table("open", table))?;
            (url, LogStore::verified(store), None)
        }
        Root::Bucket(bucket) => {
            let url = bucket
                .url()
                .join(&format!("{}/", table.name()))
                .map_err(StoreError::table("open", table))?;
            let store = LogStore::completed(bucket.store());
            (url, store, Some(bucket.handle().clone()))
        }
    };
    let engine = DefaultEngineBuilder::new(Arc::new(store))
        .with_task_executor(Arc::new(InlineExecutor { handle }))
        .build();
    Ok((url, Arc::new(engine)))
}

/// Returns the committer for the log of a table.
pub(super) fn committer(root: &Root, table: Table, faults: Faults) -> Box<dyn Committer> {
    match root {
        Root::Folder(_) => Box::new(SyncedCommitter { table, faults }),
        Root::Bucket(_) => Box::new(ObjectCommitter::new(table, faults)),
    }
}
