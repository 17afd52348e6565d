//! Creates, opens, checkpoints and lists the four Delta tables of a data folder, and appends files with a transaction
//! id.
//!
//! delta_kernel implements the protocol. Its defaults do not sync files on a local disk. This module syncs every entry
//! and checkpoint before its name appears ([`commit`]). In a bucket an entry is a conditional put, which only one
//! writer can win. `docs/adr/0002-delta-kernel.md` has the details. Other modules write the data files.

mod actions;
mod columns;
pub(crate) mod commit;
mod connection;
pub(crate) mod executor;
pub(crate) mod log_files;
mod log_store;
mod replace;
pub(crate) mod sums;
mod transactions;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use delta_kernel::checkpoint::LastCheckpointHintStats;
use delta_kernel::committer::Committer;
use delta_kernel::engine::arrow_data::ArrowEngineData;
use delta_kernel::engine_data::FilteredEngineData;
use delta_kernel::transaction::CommitResult;
use delta_kernel::transaction::UpdateTableOperation;
use delta_kernel::{Engine, KernelError, KernelResult, SnapshotRef};
use delta_kernel_default_engine::DefaultEngine;
use url::Url;

use crate::store::common::error::StoreError;
use crate::store::common::fault::{FaultPoint, Faults};
use crate::store::common::schema::{LAYOUT_VERSION, Table};
use crate::store::tables::root::{Root, log_of};
use crate::store::tables::snapshot::FileEntry;
use alluvium_base::file::{self, Staged};

pub(crate) use actions::{NewFile, day_text, unescape};
use columns::{ENGINE_INFO, LAYOUT_PROPERTY};
use connection::{committer, connect};
use executor::InlineExecutor;
pub(crate) use replace::{Operation, ReplaceOutcome};
pub(crate) use transactions::FlushStamp;

/// Number of commits between checkpoints. Opening a table reads at most this many entries one by one.
pub(crate) const CHECKPOINT_INTERVAL: u64 = 50;
/// A failed checkpoint is retried when the version is a multiple of this number.
const CHECKPOINT_RETRY: u64 = 5;
/// Maximum number of attempts of a commit while other writers commit first. If all attempts fail, the flush retries the
/// commit later.
const COMMIT_ATTEMPTS: usize = 20;

/// One table, opened at a version of its log.
pub(crate) struct DeltaTable {
    table: Table,
    root: Root,
    url: Url,
    engine: Arc<DefaultEngine<InlineExecutor>>,
    snapshot: SnapshotRef,
    checkpoint_interval: u64,
    faults: Faults,
}

impl DeltaTable {
    /// Opens the table in `root`, or creates it if it does not exist. Adds the columns that an older layout lacks.
    pub(crate) fn open_or_create(root: &Root, table: Table, faults: Faults) -> Result<Self, StoreError> {
        let exists = match root {
            Root::Folder(folder) => {
                let folder = folder.join(table.name());
                let log = folder.join("_delta_log");
                fs::create_dir_all(&log).map_err(StoreError::io("create", &log))?;
                for name in [&log, &folder] {
                    file::sync_parent(name).map_err(StoreError::io("sync the folder of", name))?;
                }
                log_files::has_begun(&log).map_err(StoreError::io("read", &log))?
            }
            Root::Bucket(_) => root.has_log(table)?,
        };
        if !exists {
            let (url, engine) = connect(root, table)?;
            let committer = committer(root, table, faults.clone());
            if let Err(error) = columns::create(&url, engine.as_ref(), table, committer) {
                // Another server may have created the table at the same time.
                if root.bucket().is_none() || !root.has_log(table)? {
                    return Err(StoreError::table("create", table)(error));
                }
            }
        }
        let mut opened = Self::open(root, table)?.with_faults(faults);
        // A killed process may have left an entry with a name that is not durable. The store treats every entry that it
        // reads as committed, and then deletes segments and finishes deletions.
        opened.make_durable()?;
        let added = opened.add_new_columns();
        added.map_err(StoreError::table("add columns to", table))?;
        Ok(opened)
    }

    /// Opens an existing table in `root`.
    pub(crate) fn open(root: &Root, table: Table) -> Result<Self, StoreError> {
        if let Root::Folder(folder) = root {
            sums::check(&folder.join(log_of(table)))?;
        }
        let (url, engine) = connect(root, table)?;
        let snapshot = delta_kernel::Snapshot::builder_for(url.as_str())
            .build(engine.as_ref())
            .map_err(StoreError::table("open", table))?;
        let opened = Self {
            table,
            root: root.clone(),
            url,
            engine,
            snapshot,
            checkpoint_interval: CHECKPOINT_INTERVAL,
            faults: Faults::default(),
        };
        match opened.layout_version() {
            Some(version) if version > LAYOUT_VERSION => Err(StoreError::NewerLayout {
                path: opened.location(),
                version,
                known: LAYOUT_VERSION,
            }),
            _ => Ok(opened),
        }
    }

    /// Sets the hooks at which a test makes the table fail.
    #[must_use]
    pub(crate) fn with_faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Sets the number of commits between checkpoints.
    #[must_use]
    pub(crate) fn with_checkpoint_interval(mut self, commits: u64) -> Self {
        self.checkpoint_interval = commits;
        self
    }

    /// Returns the layout version in the table's properties, that is, the version at the creation of the table.
    pub(crate) fn layout_version(&self) -> Option<u32> {
        self.snapshot
            .metadata_configuration()
            .get(LAYOUT_PROPERTY)?
            .parse()
            .ok()
    }

    pub(crate) fn table(&self) -> Table {
        self.table
    }

    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// Returns the path or address of the table, for messages.
    pub(crate) fn location(&self) -> PathBuf {
        self.root.name(self.table.name())
    }

    /// Returns the version of the log that was last read.
    pub(crate) fn version(&self) -> u64 {
        self.snapshot.version()
    }

    /// Returns the last transaction version that `writer` committed: the last segment of its log that the table
    /// contains.
    pub(crate) fn committed(&self, writer: &str) -> Result<Option<i64>, StoreError> {
        self.snapshot
            .get_app_id_version(writer, self.engine.as_ref())
            .map_err(StoreError::table("read the transactions of", self.table))
    }

    /// Returns the number of the last segment of the log of `writer` that the table contains, or 0 if it contains none.
    pub(crate) fn last_segment(&self, writer: &str) -> Result<u64, StoreError> {
        Ok(self.committed(writer)?.map_or(0, |version| version.max(0) as u64))
    }

    pub(crate) fn files(&self) -> Result<Vec<FileEntry>, StoreError> {
        self.list().map_err(StoreError::table("list the files of", self.table))
    }

    /// Returns the random number that was last recorded with a commit of `writer`, or `None` if there is none. The
    /// number identifies the process that committed. Older programs record no number.
    pub(crate) fn process(&self, writer: &str) -> Result<Option<u64>, StoreError> {
        transactions::process(&self.snapshot, self.engine.as_ref(), writer)
            .map_err(StoreError::table("read the transactions of", self.table))
    }

    /// Returns the number of profiles of the last commit of `writer`, if that commit is `version` and records the
    /// number.
    pub(crate) fn profiles(&self, writer: &str, version: i64) -> Result<Option<u64>, StoreError> {
        transactions::profiles(&self.snapshot, self.engine.as_ref(), writer, version)
            .map_err(StoreError::table("read the transactions of", self.table))
    }

    /// Adds files as transaction `version` of `writer`. The commit is durable when the function returns. If `version`
    /// is already committed, returns `false` and adds nothing.
    pub(crate) fn append(
        &mut self,
        (writer, version): (&str, i64),
        stamp: Option<FlushStamp>,
        files: &[NewFile],
    ) -> Result<bool, StoreError> {
        self.try_append(writer, version, stamp, files)
            .map_err(StoreError::table("commit to", self.table))
    }

    /// Writes a checkpoint if enough commits followed the last checkpoint. A failure only slows down the opening of the
    /// table. The failure is logged, and a later commit retries.
    pub(crate) fn checkpoint_if_due(&mut self) {
        let version = self.snapshot.version();
        // The check that needs no read of the log comes first, because the log may be in a bucket.
        if version < self.checkpoint_interval || !version.is_multiple_of(CHECKPOINT_RETRY) {
            return;
        }
        let last = last_checkpoint(&self.root, self.table).unwrap_or(0);
        if version < last.saturating_add(self.checkpoint_interval) {
            return;
        }
        if let Err(error) = self.checkpoint() {
            tracing::warn!(error = %error, table = self.table.name(), version, "cannot write a checkpoint");
        }
    }

    fn try_append(
        &mut self,
        writer: &str,
        version: i64,
        stamp: Option<FlushStamp>,
        files: &[NewFile],
    ) -> KernelResult<bool> {
        let engine = self.engine.clone();
        for attempt in 0..COMMIT_ATTEMPTS {
            self.refresh()?;
            if self.snapshot.get_app_id_version(writer, engine.as_ref())? >= Some(version) {
                // An earlier attempt wrote the entry and failed later, so the name may not be durable yet.
                self.sync_log()?;
                return Ok(false);
            }
            let mut builder = self
                .snapshot
                .clone()
                .update_table(UpdateTableOperation::Write, ENGINE_INFO, true);
            for (id, number) in transactions::list(writer, version, stamp) {
                builder = builder.with_transaction_id(id, number);
            }
            // A transaction without files only records its version. delta_kernel does not treat it as an append.
            let builder = if files.is_empty() {
                builder
            } else {
                builder.with_blind_append()
            };
            let mut transaction = builder.build(engine.as_ref(), self.committer())?;
            for file in files {
                let batch = actions::add_batch(file)?;
                transaction.add_files(Box::new(ArrowEngineData::new(batch)));
            }
            match transaction.commit(engine.as_ref())? {
                CommitResult::Committed(committed) => {
                    if let Some(snapshot) = committed.post_commit_snapshot() {
                        self.snapshot = snapshot.clone();
                    }
                    return Ok(true);
                }
                CommitResult::Conflicted(conflict) => {
                    tracing::info!(
                        table = self.table.name(),
                        version = conflict.conflict_version(),
                        "another writer committed this version first, trying the next version"
                    );
                    self.wait_before_retry(attempt);
                }
                CommitResult::Retryable(failed) => return Err(failed.error),
            }
        }
        Err(KernelError::generic("other writers committed first on every attempt"))
    }

    /// Adds the columns that the table's schema lacks, in one entry. The entry is durable when the function returns.
    fn add_new_columns(&mut self) -> KernelResult<()> {
        let engine = self.engine.clone();
        for attempt in 0..COMMIT_ATTEMPTS {
            let addition = columns::addition(&self.snapshot, self.table, engine.as_ref(), self.committer())?;
            let Some(addition) = addition else { return Ok(()) };
            match addition.commit(engine.as_ref())? {
                CommitResult::Committed(_) => tracing::info!(table = self.table.name(), "added new columns"),
                // The other writer may be a server that has added the same columns.
                CommitResult::Conflicted(_) => self.wait_before_retry(attempt),
                CommitResult::Retryable(failed) => return Err(failed.error),
            }
            self.refresh()?;
        }
        Err(KernelError::generic("other writers committed first on every attempt"))
    }

    fn committer(&self) -> Box<dyn Committer> {
        committer(&self.root, self.table, self.faults.clone())
    }

    /// Makes all visible entries durable. An attempt may have written an entry and failed before it synced the folder.
    pub(crate) fn make_durable(&self) -> Result<(), StoreError> {
        self.sync_log()
            .map_err(StoreError::table("sync the log of", self.table))
    }

    /// Syncs the log's folder on a local disk, so that the names in it are durable.
    fn sync_log(&self) -> KernelResult<()> {
        let Some(folder) = self.root.folder() else {
            return Ok(());
        };
        let name = folder.join(log_of(self.table)).join("x");
        let sync = || file::sync_parent(&name);
        let synced = self.faults.run(FaultPoint::EntryFolderSync(self.table), sync);
        synced.map_err(KernelError::IOError)
    }

    /// Waits before the next attempt to commit, after another writer has committed first. The wait is random, and its
    /// maximum grows with the number of attempts. If the table is not in a bucket, returns at once.
    fn wait_before_retry(&self, attempt: usize) {
        if self.root.bucket().is_some() {
            let max = 10u64 << attempt.min(6);
            std::thread::sleep(Duration::from_millis(rand::random_range(1..=max)));
        }
    }

    /// Reads the commits since the last read. They are from other writers, or from an attempt of this store that failed
    /// after its entry was visible.
    pub(crate) fn reload(&mut self) -> Result<(), StoreError> {
        self.refresh().map_err(StoreError::table("read", self.table))
    }

    fn refresh(&mut self) -> KernelResult<()> {
        self.snapshot = delta_kernel::Snapshot::builder_from(self.snapshot.clone()).build(self.engine.as_ref())?;
        Ok(())
    }

    fn list(&self) -> KernelResult<Vec<FileEntry>> {
        let scan = self.snapshot.clone().scan_builder().build()?;
        let mut files = Vec::new();
        for metadata in scan.scan_metadata(self.engine.as_ref())? {
            let (data, selected) = metadata?.scan_files.into_parts();
            let batch = ArrowEngineData::try_from_engine_data(data)?;
            files.extend(actions::entries(self.table, batch.record_batch(), &selected).map_err(KernelError::generic)?);
        }
        Ok(files)
    }

    fn checkpoint(&mut self) -> KernelResult<()> {
        let engine = self.engine.clone();
        let writer = self.snapshot.clone().create_checkpoint_writer(engine.as_ref())?;
        let staged = match &self.root {
            Root::Folder(_) => {
                let path = commit::local_path(&writer.checkpoint_path()?)?;
                if path.exists() {
                    return Ok(());
                }
                Some((Staged::new(&path), path))
            }
            // Objects are written atomically, so a checkpoint needs no temporary name and no check for an existing one.
            Root::Bucket(_) => None,
        };
        let target = match &staged {
            Some((staged, _)) => commit::file_url(staged.temporary())?,
            None => writer.checkpoint_path()?,
        };
        let data = writer.checkpoint_data(engine.as_ref())?;
        let state = data.state();
        let data = data.map(|batch| batch.and_then(FilteredEngineData::apply_selection_vector));
        let (table, faults) = (self.table, &self.faults);
        faults
            .check(FaultPoint::CheckpointWrite(table))
            .map_err(KernelError::IOError)?;
        let written = engine
            .parquet_handler()
            .write_parquet_file(target, Box::new(data))
            .and_then(|size| {
                faults.done(FaultPoint::CheckpointWrite(table));
                if let Some((staged, _)) = &staged {
                    faults
                        .run(FaultPoint::CheckpointSync(table), || staged.sync())
                        .and_then(|()| faults.run(FaultPoint::CheckpointRename(table), || staged.replace()))
                        .map_err(KernelError::IOError)?;
                }
                Ok(size)
            });
        let size = written?;
        if let Some((_, path)) = &staged {
            let synced = faults.run(FaultPoint::CheckpointFolderSync(table), || file::sync_parent(path));
            commit::write_sums(path, table, faults);
            synced.map_err(KernelError::IOError)?;
        }
        let state =
            Arc::into_inner(state).ok_or_else(|| KernelError::generic("the checkpoint's data is still in use"))?;
        let stats = LastCheckpointHintStats::from_reconciliation_state(state, size, 0)?;
        faults
            .check(FaultPoint::CheckpointHint(table))
            .map_err(KernelError::IOError)?;
        writer.finalize(engine.as_ref(), &stats)?;
        faults.done(FaultPoint::CheckpointHint(table));
        let reopened = delta_kernel::Snapshot::builder_for(self.url.as_str()).build(engine.as_ref())?;
        // A listing of the bucket may lag behind the version that this table has seen.
        if reopened.version() >= self.snapshot.version() {
            self.snapshot = reopened;
        }
        Ok(())
    }
}

/// Returns the version of the last checkpoint that a table's log names.
pub(crate) fn last_checkpoint(root: &Root, table: Table) -> Option<u64> {
    let text = root.read(&format!("{}/_last_checkpoint", log_of(table))).ok()?;
    log_files::version_of_hint(&text)
}

#[cfg(test)]
mod tests;
