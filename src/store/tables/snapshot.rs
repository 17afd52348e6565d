//! Snapshots: the consistent sets of Parquet files and heads that readers see. A snapshot is fixed at its creation.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use object_store::ObjectStore;

use crate::store::common::schema::Table;
use crate::store::tables::root::Root;
use crate::store::tables::stats::Bounds;
use alluvium_profile::{ProfileTypeId, SeriesId, StackId, TenantId, Tenants, TimeSpan};

/// A consistent set of files and heads. Every acknowledged profile is in exactly one of them.
#[derive(Clone, Default)]
pub struct Snapshot {
    pub root: Root,
    /// Live Parquet files of all tables.
    pub files: Arc<[FileEntry]>,
    /// Rows in memory that are not in a file yet.
    pub heads: Vec<Arc<dyn HeadScan>>,
}

/// A Parquet file of a table with its metadata from the table's log.
#[derive(Debug, Clone)]
pub struct FileEntry {
    /// The table that contains the file.
    pub table: Table,
    /// Path relative to [`Snapshot::root`].
    pub path: String,
    /// Size of the file in bytes.
    pub size: u64,
    /// Number of rows, or 0 if unknown.
    pub rows: u64,
    /// Partition: the tenant that owns the rows.
    pub tenant: TenantId,
    /// Partition: days since 1970.
    pub day: i32,
    /// Smallest and largest `time` in microseconds since 1970, if the table has that column.
    pub time: Option<Bounds<i64>>,
    /// Smallest and largest `profile_type`, if the table has that column.
    pub profile_type: Option<Bounds<ProfileTypeId>>,
    /// Smallest and largest `series`, if the table has that column.
    pub series: Option<Bounds<SeriesId>>,
    /// Checksums of the file's bytes, if its writer recorded them.
    pub checksum: Option<Checksum>,
}

/// Checksums of a Parquet file, as in the table's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum {
    /// XXH3 of the whole file.
    pub file: u64,
    /// Position and checksum of the end of the file, which holds the checksums of the blocks before it. `None` if an
    /// earlier version of the program wrote the file.
    pub tail: Option<Tail>,
}

/// The end of a Parquet file: page indexes and footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// Position of the first byte after the row groups.
    pub start: u64,
    /// XXH3 from `start` to the end of the file.
    pub hash: u64,
}

/// The rows that a reader requests. A head returns all of these rows, and may return more rows.
#[derive(Debug, Clone, Default)]
pub struct ScanFilter {
    /// Selects only rows of these tenants; `None` for all.
    pub tenants: Option<Tenants>,
    /// Selects only rows with times in this span; `None` for all.
    pub time: Option<TimeSpan>,
    /// Selects only rows of this profile type; `None` for all.
    pub profile_type: Option<ProfileTypeId>,
    /// Selects only rows of these series; `None` for all.
    pub series: Option<Arc<HashSet<SeriesId>>>,
    /// Selects only rows of these stacks (for [`Table::Stacks`]); `None` for all.
    pub stacks: Option<Arc<HashSet<StackId>>>,
    /// Returns only these columns, as indices into [`Table::schema`], in this order; `None` for all. Building an unused
    /// text column costs more than building all columns of numbers.
    pub projection: Option<Arc<[usize]>>,
}

/// Receives each batch as soon as it is built. `Break` ends the scan. The head holds no lock during the call.
pub type Receive<'a> = dyn FnMut(RecordBatch) -> ControlFlow<()> + 'a;

/// Rows in memory, as batches with the table's schema ([`Table::schema`]): all columns, or only the columns of
/// [`ScanFilter::projection`].
pub trait HeadScan: Send + Sync {
    /// Passes the rows of `table` that the filter selects to `receive`. No batch is built after a `Break`, so a reader
    /// with a limit on bytes exceeds the limit by at most one batch.
    fn scan_with(&self, table: Table, filter: &ScanFilter, receive: &mut Receive<'_>);

    /// Collects the batches of [`HeadScan::scan_with`], for scans that are known to be small.
    fn scan(&self, table: Table, filter: &ScanFilter) -> Vec<RecordBatch> {
        let mut batches = Vec::new();
        self.scan_with(table, filter, &mut |batch| {
            batches.push(batch);
            ControlFlow::Continue(())
        });
        batches
    }

    /// Sums values by stack over the rows of `samples` that the filter selects. Each stack occurs once. Returns `None`
    /// if the head can only return rows, or if a sum does not fit 64 bits. Avoids building batches.
    fn sum_stacks(&self, _filter: &ScanFilter) -> Option<Vec<(StackId, i64)>> {
        None
    }

    /// Returns true if [`HeadScan::scan`] applies tenant, time, profile type and series exactly. In a table with days
    /// but without times, the time selects whole days. If the result is true, a reader need not request these columns
    /// to check the rows again. Two of the columns are text, so building them is expensive.
    fn is_exact(&self) -> bool {
        false
    }
}

/// A source of snapshots: the store, or a test.
pub trait SnapshotSource: Send + Sync {
    /// Returns the present snapshot. The call is cheap, because snapshots share all data.
    fn snapshot(&self) -> Arc<Snapshot>;

    /// Returns the object store that holds the files of all snapshots, or `None` for the local disk.
    fn object_store(&self) -> Option<Arc<dyn ObjectStore>> {
        None
    }
}
