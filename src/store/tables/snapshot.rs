//! What a reader sees: one consistent set of Parquet files and heads, fixed at the moment it was taken.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use object_store::ObjectStore;

use crate::profile::{ProfileTypeId, SeriesId, StackId, TenantId, Tenants, TimeSpan};
use crate::store::common::schema::Table;
use crate::store::tables::root::Root;
use crate::store::tables::stats::Bounds;

/// A consistent view: every acknowledged profile is in exactly one of the files or heads.
#[derive(Clone, Default)]
pub struct Snapshot {
    pub root: Root,
    /// Live Parquet files of all tables.
    pub files: Arc<[FileEntry]>,
    /// Rows in memory that are in no file yet.
    pub heads: Vec<Arc<dyn HeadScan>>,
}

/// A Parquet file of a table with its metadata from the table's log.
#[derive(Debug, Clone)]
pub struct FileEntry {
    /// The table that names it.
    pub table: Table,
    /// Path relative to [`Snapshot::root`].
    pub path: String,
    /// Size of the file in bytes.
    pub size: u64,
    /// Number of rows, 0 if unknown.
    pub rows: u64,
    /// Partition: the tenant whose rows it has.
    pub tenant: TenantId,
    /// Partition: days since 1970.
    pub day: i32,
    /// Smallest and largest `time` in microseconds, where the table has that column.
    pub time: Option<Bounds<i64>>,
    /// Smallest and largest `profile_type`, where the table has that column.
    pub profile_type: Option<Bounds<ProfileTypeId>>,
    /// Smallest and largest `series`, where the table has that column.
    pub series: Option<Bounds<SeriesId>>,
    /// Checksums of the file's bytes, if its writer recorded them.
    pub checksum: Option<Checksum>,
}

/// Checksums of a Parquet file, as the table's log has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum {
    /// XXH3 of the whole file.
    pub file: u64,
    /// The end of the file, which holds the checksums of the rest; `None` in files of earlier versions.
    pub tail: Option<Tail>,
}

/// The end of a Parquet file: page indexes and footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// Position of the first byte after the row groups.
    pub start: u64,
    /// XXH3 from there to the end of the file.
    pub hash: u64,
}

/// Which rows a reader wants; a head may give more rows than these, never fewer.
#[derive(Debug, Clone, Default)]
pub struct ScanFilter {
    /// Only these tenants; `None` for all.
    pub tenants: Option<Tenants>,
    /// Only times in this span.
    pub time: Option<TimeSpan>,
    /// Only this profile type.
    pub profile_type: Option<ProfileTypeId>,
    /// Only rows of these series.
    pub series: Option<Arc<HashSet<SeriesId>>>,
    /// Only these stacks (for [`Table::Stacks`]).
    pub stacks: Option<Arc<HashSet<StackId>>>,
    /// Only these columns, as indices into [`Table::schema`], in this order; `None` for all. A text column that nobody
    /// reads costs more than all numbers of a head together.
    pub projection: Option<Arc<[usize]>>,
}

/// Takes batches one by one, each as soon as it is made; `Break` ends the scan. It is called without a lock of the
/// head.
pub type Receive<'a> = dyn FnMut(RecordBatch) -> ControlFlow<()> + 'a;

/// Rows in memory, as batches of the table's schema ([`Table::schema`]): all columns, or those of
/// [`ScanFilter::projection`].
pub trait HeadScan: Send + Sync {
    /// Passes the rows of `table` that the filter selects to `receive`. No batch is built after a `Break`, so a reader
    /// that counts bytes gets at most one batch more than it wants.
    fn scan_with(&self, table: Table, filter: &ScanFilter, receive: &mut Receive<'_>);

    /// Collects the same rows; for scans that are known to be small.
    fn scan(&self, table: Table, filter: &ScanFilter) -> Vec<RecordBatch> {
        let mut batches = Vec::new();
        self.scan_with(table, filter, &mut |batch| {
            batches.push(batch);
            ControlFlow::Continue(())
        });
        batches
    }

    /// Sums values by stack over the rows of `samples` that the filter selects, each stack once. `None` from a head
    /// that can only return rows, and when a sum does not fit 64 bits. Avoids building batches.
    fn sum_stacks(&self, _filter: &ScanFilter) -> Option<Vec<(StackId, i64)>> {
        None
    }

    /// True when [`HeadScan::scan`] applies tenant, time, profile type and series to the letter (time by the day where
    /// a table has only that), so that a reader need not ask for those columns only to check them: two of them are
    /// text.
    fn is_exact(&self) -> bool {
        false
    }
}

/// A source of snapshots: the store, or a test.
pub trait SnapshotSource: Send + Sync {
    /// The snapshot of this moment. Cheap, since it shares all data.
    fn snapshot(&self) -> Arc<Snapshot>;

    /// Where the files of all snapshots are read from; `None` for the local disk.
    fn object_store(&self) -> Option<Arc<dyn ObjectStore>> {
        None
    }
}
