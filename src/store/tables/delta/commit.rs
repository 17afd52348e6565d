//! Committers, which write an entry of a table's log atomically and durably, even across a power failure.
//!
//! delta_kernel's own committer writes through `object_store`, which does not sync local files. [`SyncedCommitter`]
//! writes the entry under a temporary name and syncs it. It then links the entry to its real name, which fails if
//! another writer was first, and syncs the folder. In a bucket delta_kernel's committer suffices, because a conditional
//! put is atomic, and durable once the bucket has confirmed it.

use std::io;
use std::path::{Path, PathBuf};

use delta_kernel::committer::{CommitMetadata, CommitResponse, Committer, FileSystemCommitter, PublishMetadata};
use delta_kernel::{Engine, FileMeta, FilteredEngineData, KernelError, KernelResult, KernelResultIterator};
use url::Url;

use crate::store::common::fault::{FaultPoint, Faults};
use crate::store::common::schema::Table;
use crate::store::tables::delta::sums;
use alluvium_base::file::{Staged, sync_parent};

/// Commits to logs on the local disk.
#[derive(Debug)]
pub(crate) struct SyncedCommitter {
    pub(crate) table: Table,
    pub(crate) faults: Faults,
}

impl Committer for SyncedCommitter {
    fn commit(
        &self,
        engine: &dyn Engine,
        actions: KernelResultIterator<'_, FilteredEngineData>,
        commit_metadata: CommitMetadata,
    ) -> KernelResult<CommitResponse> {
        let version = commit_metadata.version();
        let url = commit_metadata.published_commit_path()?;
        let path = local_path(&url)?;
        let staged = Staged::new(&path);
        let temporary_url = file_url(staged.temporary())?;
        let (table, faults) = (self.table, &self.faults);
        faults
            .check(FaultPoint::EntryWrite(table))
            .map_err(KernelError::IOError)?;
        let size = engine
            .json_handler()
            .write_json_file(&temporary_url, Box::new(actions), true)?;
        faults.done(FaultPoint::EntryWrite(table));
        let linked = faults
            .run(FaultPoint::EntrySync(table), || staged.sync())
            .and_then(|()| faults.run(FaultPoint::EntryLink(table), || staged.link()));
        drop(staged);
        match linked {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Ok(CommitResponse::Conflict { version });
            }
            Err(error) => return Err(KernelError::IOError(error)),
        }
        let synced = faults.run(FaultPoint::EntryFolderSync(table), || sync_parent(&path));
        // The checksums are also written if the sync failed, because the entry has its name and readers already see the
        // entry.
        write_sums(&path, table, faults);
        synced.map_err(KernelError::IOError)?;
        let file_meta = FileMeta::new(url, commit_metadata.in_commit_timestamp(), size);
        Ok(CommitResponse::Committed { file_meta })
    }

    fn is_catalog_committer(&self) -> bool {
        false
    }

    fn publish(&self, _engine: &dyn Engine, publish_metadata: PublishMetadata) -> KernelResult<()> {
        if publish_metadata.commits_to_publish().is_empty() {
            return Ok(());
        }
        Err(KernelError::generic(
            "tables of this store have no catalog to publish to",
        ))
    }
}

/// Writes the checksums of a file of the log. Errors are logged and ignored, because the commit is valid without
/// checksums. However, damage of a file without checksums goes unnoticed.
pub(crate) fn write_sums(path: &Path, table: Table, faults: &Faults) {
    if let Err(error) = faults.run(FaultPoint::LogSums(table), || sums::write(path)) {
        tracing::warn!(error = %error, path = %path.display(), "cannot write the checksums of a file of the table's \
            log");
    }
}

/// Commits to logs in a bucket, with a put that fails if the version exists.
#[derive(Debug)]
pub(crate) struct ObjectCommitter {
    table: Table,
    faults: Faults,
    inner: FileSystemCommitter,
}

impl ObjectCommitter {
    /// Creates a committer for the log of `table`.
    pub(crate) fn new(table: Table, faults: Faults) -> Self {
        Self {
            table,
            faults,
            inner: FileSystemCommitter::new(),
        }
    }
}

impl Committer for ObjectCommitter {
    fn commit(
        &self,
        engine: &dyn Engine,
        actions: KernelResultIterator<'_, FilteredEngineData>,
        commit_metadata: CommitMetadata,
    ) -> KernelResult<CommitResponse> {
        self.faults
            .check(FaultPoint::EntryLink(self.table))
            .map_err(KernelError::IOError)?;
        let response = self.inner.commit(engine, actions, commit_metadata)?;
        // A failure from here on means that only the response was lost. The entry exists.
        self.faults
            .check(FaultPoint::EntryFolderSync(self.table))
            .map_err(KernelError::IOError)?;
        Ok(response)
    }

    fn is_catalog_committer(&self) -> bool {
        false
    }

    fn publish(&self, engine: &dyn Engine, publish_metadata: PublishMetadata) -> KernelResult<()> {
        self.inner.publish(engine, publish_metadata)
    }
}

/// Returns the path of a `file://` URL.
pub(crate) fn local_path(url: &Url) -> KernelResult<PathBuf> {
    url.to_file_path()
        .map_err(|()| KernelError::generic(format!("`{url}` is not a local file")))
}

/// Returns the `file://` URL of an absolute path.
pub(crate) fn file_url(path: &Path) -> KernelResult<Url> {
    Url::from_file_path(path)
        .map_err(|()| KernelError::generic(format!("`{}` is not an absolute path", path.display())))
}
