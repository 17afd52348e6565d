//! The columns of a table's schema. They are set at the creation of the table, and a newer layout adds columns.
//!
//! An added column is null in older files, as Delta Lake specifies for every reader.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use delta_kernel::committer::Committer;
use delta_kernel::engine::arrow_conversion::TryIntoKernel;
use delta_kernel::expressions::ColumnName;
use delta_kernel::schema::{StructField, StructType};
use delta_kernel::transaction::create_table::create_table;
use delta_kernel::transaction::data_layout::DataLayout;
use delta_kernel::transaction::{CommitResult, Transaction, UpdateTableOperation};
use delta_kernel::{Engine, KernelResult, SnapshotRef};
use url::Url;

use crate::store::common::schema::{LAYOUT_VERSION, Table};

/// Table property that holds the layout version.
pub(super) const LAYOUT_PROPERTY: &str = "alluvium.layoutVersion";
/// Name of this program as a writer in the log.
pub(super) const ENGINE_INFO: &str = concat!("alluvium/", env!("CARGO_PKG_VERSION"));

/// Creates a table with the columns of the layout.
pub(super) fn create(url: &Url, engine: &dyn Engine, table: Table, committer: Box<dyn Committer>) -> KernelResult<()> {
    let schema: StructType = table.schema().as_ref().try_into_kernel()?;
    let transaction = create_table(url.as_str(), Arc::new(schema), ENGINE_INFO, false)
        .with_table_properties([(LAYOUT_PROPERTY, LAYOUT_VERSION.to_string())])
        .with_data_layout(DataLayout::Partitioned {
            columns: vec![ColumnName::new(["tenant"]), ColumnName::new(["day"])],
        })
        .build(engine, committer)?;
    match transaction.commit(engine)? {
        // Another process may have created the table at the same time.
        CommitResult::Committed(_) | CommitResult::Conflicted(_) => Ok(()),
        CommitResult::Retryable(failed) => Err(failed.error),
    }
}

/// Returns the transaction that adds the missing columns of the layout to a table, or `None` if no column is missing.
pub(super) fn addition(
    snapshot: &SnapshotRef,
    table: Table,
    engine: &dyn Engine,
    committer: Box<dyn Committer>,
) -> KernelResult<Option<Transaction>> {
    let (current, expected) = (snapshot.schema(), table.schema());
    let is_missing = |field: &&FieldRef| current.field(field.name()).is_none();
    let new: Vec<&FieldRef> = expected.fields().iter().filter(is_missing).collect();
    if new.is_empty() {
        return Ok(None);
    }
    let mut alter = snapshot
        .clone()
        .update_table(UpdateTableOperation::AlterTable, ENGINE_INFO, false);
    for field in new {
        let column: StructField = field.as_ref().try_into_kernel()?;
        alter = alter.add_column(column);
    }
    alter.build(engine, committer).map(Some)
}
