//! Points at which a test can make the store fail, to simulate every crash and a full disk.
//!
//! In production there is no hook, and [`Faults::check`] only records that the calling thread has made a step. A hook
//! decides by the point whether the operation fails, and may count the calls.

use std::io;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;

use crate::store::common::disk_wait::DiskWait;
use crate::store::common::schema::Table;

/// A point at which the store accesses the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultPoint {
    /// A file `VERSION`, `WRITER` or `COMMITS`, or a subfolder of the data folder, is written.
    FolderWrite,
    /// A new segment of the write-ahead log is created.
    LogCreate,
    /// A new segment of the log, or the folder of the log, is synced.
    LogCreateSync,
    /// Records are written to the log.
    LogWrite,
    /// Records were written to the log and are about to be synced.
    LogSync,
    /// A segment is cut back to its durable part and synced.
    LogCut,
    /// The durable length of a segment that cannot be cut is written to a file beside the segment.
    LogMark,
    /// At the start, the contents of the last segment are written again and synced.
    LogRenew,
    /// The log was rotated for a flush; no table file is written yet.
    FlushStart,
    /// The Parquet files of a table are about to be written.
    FilesWrite(Table),
    /// Parquet files are durable; the table's commit is not written yet.
    Commit(Table),
    /// The commit of a flush to a table is durable.
    Committed(Table),
    /// All tables are committed; a segment of the log is deleted.
    LogDelete,
    /// The folder of the log is synced after segments were deleted.
    LogDeleteSync,
    /// A profile is acknowledged.
    Acknowledge,
    /// A Parquet file is created.
    FileCreate(Table),
    /// Rows of a Parquet file, or its end, are written.
    FileWrite(Table),
    /// A Parquet file is synced.
    FileSync(Table),
    /// A parent folder of a new Parquet file is synced.
    FolderSync(Table),
    /// An entry of a table's log is written under a temporary name.
    EntryWrite(Table),
    /// An entry of a table's log is synced under its temporary name.
    EntrySync(Table),
    /// An entry of a table's log is renamed to its final name.
    EntryLink(Table),
    /// The folder of the table's log is synced after an entry.
    EntryFolderSync(Table),
    /// A maintenance job begins. The value is the name of the job in the metrics.
    Job(&'static str),
    /// The checksums of an entry or checkpoint are written. A commit is valid without its checksums.
    LogSums(Table),
    /// A checkpoint is written under a temporary name.
    CheckpointWrite(Table),
    /// A checkpoint is synced under its temporary name.
    CheckpointSync(Table),
    /// A checkpoint is renamed to its final name.
    CheckpointRename(Table),
    /// The folder of the table's log is synced after a checkpoint.
    CheckpointFolderSync(Table),
    /// `_last_checkpoint` is written.
    CheckpointHint(Table),
    /// A file that is no longer needed is deleted.
    FileDelete(Table),
    /// One step of storing a request for a deletion: the folder is created, the file is written, synced or renamed, or
    /// a parent folder is synced.
    RequestWrite,
    /// The file of a finished request is removed.
    RequestRemove,
    /// The folder of the requests is synced after the removal of a finished request.
    RequestRemoveSync,
}

/// Decides whether an operation fails.
pub trait FaultHook: Send + Sync {
    /// Runs before the operation at `point`. If it returns an error, the operation fails with that error.
    fn check(&self, point: FaultPoint) -> io::Result<()>;

    /// Runs after the operation at `point`, for tests of the order of operations.
    fn done(&self, _point: FaultPoint) {}

    /// Runs with the rows of a flush before they are encoded. A hook may panic.
    fn encode(&self, _table: Table, _rows: &RecordBatch) {}

    /// Runs when the records of `_appends` appends are written and not yet synced. The call comes after the `done` of
    /// [`FaultPoint::LogWrite`] and before the check of [`FaultPoint::LogSync`].
    fn logged(&self, _appends: usize) {}
}

/// The optional hook that makes operations fail. Clones share the hook.
#[derive(Clone, Default)]
pub struct Faults {
    hook: Option<Arc<dyn FaultHook>>,
    /// The progress of the thread that uses these faults. `None` if nobody watches the thread.
    wait: Option<DiskWait>,
}

impl Faults {
    /// Creates faults that call `hook` at every point.
    pub fn new(hook: Arc<dyn FaultHook>) -> Self {
        Self {
            hook: Some(hook),
            wait: None,
        }
    }

    /// Returns faults with the same hook that also record a step in `wait` at every call except [`Self::logged`].
    #[must_use]
    pub(crate) fn recording_waits(&self, wait: &DiskWait) -> Self {
        Self {
            hook: self.hook.clone(),
            wait: Some(wait.clone()),
        }
    }

    fn step(&self) {
        if let Some(wait) = &self.wait {
            wait.step();
        }
    }

    /// Calls the hook for `point`. Without a hook, the result is always `Ok`.
    pub fn check(&self, point: FaultPoint) -> io::Result<()> {
        self.step();
        self.hook.as_ref().map_or(Ok(()), |hook| hook.check(point))
    }

    /// Runs `operation` unless the hook makes it fail. After a success, calls the hook's `done`.
    pub fn run<T>(&self, point: FaultPoint, operation: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.check(point)?;
        let result = operation()?;
        self.done(point);
        Ok(result)
    }

    /// Passes rows that are about to be encoded to the hook.
    pub fn encode(&self, table: Table, rows: &RecordBatch) {
        self.step();
        if let Some(hook) = &self.hook {
            hook.encode(table, rows);
        }
    }

    /// Passes the number of written appends to the hook.
    pub(crate) fn logged(&self, appends: usize) {
        if let Some(hook) = &self.hook {
            hook.logged(appends);
        }
    }

    /// Tells the hook that the operation at `point` succeeded.
    pub fn done(&self, point: FaultPoint) {
        self.step();
        if let Some(hook) = &self.hook {
            hook.done(point);
        }
    }
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(if self.hook.is_some() { "Faults(hook)" } else { "Faults" })
    }
}
