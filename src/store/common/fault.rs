//! Places at which a test can make the store fail, to simulate every crash and a full disk.
//!
//! In production there is no hook, and [`Faults::check`] only notes the step of the thread. The hook decides by place
//! and may count calls.

use std::io;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;

use crate::store::common::disk_wait::DiskWait;
use crate::store::common::schema::Table;

/// A point at which the store accesses the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// `VERSION`, `WRITER`, `COMMITS` or the folders of the data folder are written.
    FolderWrite,
    /// A new segment of the write-ahead log is created.
    LogCreate,
    /// The new segment, or the folder of the log, is synced.
    LogCreateSync,
    /// Records are written to the log.
    LogWrite,
    /// After records were written to the log, before the sync.
    LogSync,
    /// A segment is cut back to its durable part and synced.
    LogCut,
    /// The durable length of a segment that cannot be cut is written beside it.
    LogMark,
    /// What a start found in the last segment is written again and synced.
    LogRenew,
    /// After the log was rotated for a flush, before any table file is written.
    FlushStart,
    /// Before the Parquet files of a table are written.
    FilesWrite(Table),
    /// Parquet files are durable, the table's commit is not written.
    Commit(Table),
    /// The table's commit is durable.
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
    /// A folder on the way down to a new Parquet file is synced.
    FolderSync(Table),
    /// An entry of a table's log is written under a temporary name.
    EntryWrite(Table),
    /// The entry is synced under its temporary name.
    EntrySync(Table),
    /// The entry gets its name.
    EntryLink(Table),
    /// The folder of the log is synced.
    EntryFolderSync(Table),
    /// A job of maintenance begins; its name is that of the metrics.
    Job(&'static str),
    /// The checksums of an entry or checkpoint are written; nothing relies on them.
    LogSums(Table),
    /// A checkpoint is written under a temporary name.
    CheckpointWrite(Table),
    /// The checkpoint is synced.
    CheckpointSync(Table),
    /// The checkpoint gets its name.
    CheckpointRename(Table),
    /// The folder of the log is synced after a checkpoint.
    CheckpointFolderSync(Table),
    /// `_last_checkpoint` is written.
    CheckpointHint(Table),
    /// A file that is no longer needed is deleted.
    FileDelete(Table),
    /// A request for a deletion is made durable: folder, file, sync, rename, sync of two folders.
    RequestWrite,
    /// A request that was carried out is removed.
    RequestRemove,
    /// The folder of the requests is synced after that.
    RequestRemoveSync,
}

/// Decides whether an operation fails.
pub trait FaultHook: Send + Sync {
    /// Called before the operation at `place`; an error makes the operation fail with it.
    fn check(&self, place: Place) -> io::Result<()>;

    /// Called after the operation at `place`; for tests of the order of operations.
    fn done(&self, _place: Place) {}

    /// Called with the rows of a flush before they are encoded; a hook may panic.
    fn encode(&self, _table: Table, _rows: &RecordBatch) {}

    /// Called when the records of `_appends` appends are written and not yet synced: between the `done` of
    /// [`Place::LogWrite`] and the check of [`Place::LogSync`].
    fn logged(&self, _appends: usize) {}
}

/// The hook, if there is one. Clones share it.
#[derive(Clone, Default)]
pub struct Faults {
    hook: Option<Arc<dyn FaultHook>>,
    /// Where the steps of the thread that uses it are noted.
    wait: Option<DiskWait>,
}

impl Faults {
    /// Faults decided by `hook`.
    pub fn new(hook: Arc<dyn FaultHook>) -> Self {
        Self {
            hook: Some(hook),
            wait: None,
        }
    }

    /// The same faults for the work of one thread, whose steps are noted in `wait`.
    #[must_use]
    pub(crate) fn noting(&self, wait: &DiskWait) -> Self {
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

    /// Asks the hook about `place`; always `Ok` without a hook.
    pub fn check(&self, place: Place) -> io::Result<()> {
        self.step();
        self.hook.as_ref().map_or(Ok(()), |hook| hook.check(place))
    }

    /// Runs `operation` unless the hook fails it, and then calls the hook's `done`.
    pub fn run<T>(&self, place: Place, operation: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.check(place)?;
        let result = operation()?;
        self.done(place);
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

    /// Tells the hook that the operation at `place` succeeded.
    pub fn done(&self, place: Place) {
        self.step();
        if let Some(hook) = &self.hook {
            hook.done(place);
        }
    }
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(if self.hook.is_some() { "Faults(hook)" } else { "Faults" })
    }
}
