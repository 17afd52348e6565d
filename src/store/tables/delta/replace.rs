//! Replaces files of a table with other files, in one entry of its log.

use std::collections::HashSet;

use delta_kernel::engine::arrow_data::ArrowEngineData;
use delta_kernel::engine_data::FilteredEngineData;
use delta_kernel::transaction::{CommitResult, UpdateTableOperation};
use delta_kernel::{KernelError, KernelResult};

use crate::store::common::error::StoreError;
use crate::store::tables::delta::columns::ENGINE_INFO;
use crate::store::tables::delta::{COMMIT_ATTEMPTS, DeltaTable, NewFile, actions};

/// The operation that the table's log names for replaced files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Delete,
    /// The new files contain the same rows as the replaced files.
    Merge,
    Downsample,
}

/// Result of an attempt to replace files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplaceOutcome {
    /// The replacement is committed, by this attempt or an earlier attempt.
    Done,
    /// An earlier attempt committed the replacement, and another server has replaced some of the new files since.
    Overtaken,
    /// Some of the files to replace are no longer live. This attempt changed nothing, but an earlier attempt may have
    /// been committed.
    Stale,
}

impl Operation {
    fn name(self) -> UpdateTableOperation {
        match self {
            Self::Delete => UpdateTableOperation::Delete,
            Self::Merge | Self::Downsample => UpdateTableOperation::Optimize,
        }
    }
}

impl DeltaTable {
    /// Replaces the live files that `remove` names by their paths with the files in `add`, in one entry. The entry is
    /// durable when the function returns. If an earlier attempt failed after its entry became visible, its files are
    /// already live.
    pub(crate) fn replace(
        &mut self,
        remove: &HashSet<String>,
        add: &[NewFile],
        operation: Operation,
    ) -> Result<ReplaceOutcome, StoreError> {
        self.try_replace(remove, add, operation)
            .map_err(StoreError::table("replace files of", self.table))
    }

    fn try_replace(
        &mut self,
        remove: &HashSet<String>,
        add: &[NewFile],
        operation: Operation,
    ) -> KernelResult<ReplaceOutcome> {
        let engine = self.engine.clone();
        for attempt in 0..COMMIT_ATTEMPTS {
            self.refresh()?;
            let live: HashSet<String> = self.list()?.into_iter().map(|file| file.path).collect();
            let is_live = |file: &NewFile| live.contains(&file.entry(self.table).path);
            if add.iter().any(is_live) {
                self.sync_log()?;
                let is_whole = add.iter().all(is_live);
                return Ok(if is_whole {
                    ReplaceOutcome::Done
                } else {
                    ReplaceOutcome::Overtaken
                });
            }
            if !remove.iter().all(|path| live.contains(path)) {
                return Ok(ReplaceOutcome::Stale);
            }
            let mut transaction = self
                .snapshot
                .clone()
                .update_table(operation.name(), ENGINE_INFO, operation != Operation::Merge)
                .build(engine.as_ref(), self.committer())?;
            let scan = self.snapshot.clone().scan_builder().build()?;
            for metadata in scan.scan_metadata(engine.as_ref())? {
                let (data, selected) = metadata?.scan_files.into_parts();
                let data = ArrowEngineData::try_from_engine_data(data)?;
                let removed = actions::select(self.table, data.record_batch(), &selected, remove)
                    .map_err(KernelError::generic)?;
                if removed.contains(&true) {
                    transaction.remove_files(FilteredEngineData::try_new(data, removed)?);
                }
            }
            for file in add {
                transaction.add_files(Box::new(ArrowEngineData::new(actions::add_batch(file)?)));
            }
            match transaction.commit(engine.as_ref())? {
                CommitResult::Committed(committed) => {
                    if let Some(snapshot) = committed.post_commit_snapshot() {
                        self.snapshot = snapshot.clone();
                    }
                    return Ok(ReplaceOutcome::Done);
                }
                CommitResult::Conflicted(conflict) => {
                    tracing::debug!(
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
}
