//! Errors of the store: the operation, the file or table, and the cause.
//!
//! Errors about single profiles are [`crate::profile::SinkError`]; the ones here concern the store as a whole.

use std::io;
use std::path::{Path, PathBuf};

use crate::store::common::schema::Table;

/// An error of the store as a whole, such as a failed open, flush or close.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation, as a verb: `write`, `create`.
        action: &'static str,
        /// The file or folder of the operation.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process holds the folder.
    #[error("the data folder {} is in use by another process: stop it or give this one another folder", .0.display())]
    Locked(PathBuf),
    /// The folder was written by a newer program.
    #[error("the data folder {} has layout version {found}, this program knows versions up to {known}: use a newer \
        program", path.display())]
    NewerLayout {
        /// The folder of the store.
        path: PathBuf,
        /// Version that the folder has.
        found: u32,
        /// Version that this program writes.
        known: u32,
    },
    /// A file of the folder does not hold what it should.
    #[error("the file {} is damaged: {reason}", path.display())]
    Damaged {
        /// The file that is damaged.
        path: PathBuf,
        /// What is wrong with its contents.
        reason: String,
    },
    /// A table lacks a commit that it had when segments of the log were deleted.
    #[error("the log of table `{}` has lost an entry: its last flush is that of segment {committed}, and it had that \
        of segment {flushed}, of which the write-ahead log is deleted. Nothing was changed; put the missing files of \
        {} back from a backup, or accept the loss with `alluvium store repair --accept-loss`", table.name(),
        place.join("_delta_log").display())]
    MissingEntry {
        /// The table that lacks the commit.
        table: Table,
        /// Path or address of the table.
        place: PathBuf,
        /// Last segment that the table has.
        committed: u64,
        /// Last segment that all tables had.
        flushed: u64,
    },
    /// Some tables have a generation that the others lack, and the log has not all of it.
    #[error("the write-ahead log {} lacks profiles: some tables have the flush of the segments {first} to {last}, \
        others need it, and of its {} profiles the log has {found}. Nothing was changed; put the missing segments, or \
        missing entries of the tables' logs, back from a backup, or accept the loss with `alluvium store repair \
        --accept-loss`", log.display(), expected.map_or_else(|| "unknown number of".to_owned(), |all| all.to_string()))]
    MissingRecords {
        /// The folder of the write-ahead log.
        log: PathBuf,
        /// The first segment of the generation.
        first: u64,
        /// The last segment of the generation.
        last: u64,
        /// Number of its profiles, where the tables say it.
        expected: Option<u64>,
        /// Number of its profiles in the log.
        found: u64,
    },
    /// Another process has committed under the identity of this folder's writer.
    #[error("table `{}` has a commit of a process that did not run on this data folder, under the identity of its \
        writer {writer}: the data folder was copied, and both copies write to the same tables. The write-ahead log is \
        kept; stop one of the servers, and remove the file WRITER of its data folder to give it an identity of its \
        own (docs/operations.md, Copies of a data folder)", table.name())]
    CopiedFolder {
        /// The table with the commit.
        table: Table,
        /// The identity that both have.
        writer: String,
    },
    /// An operation on a Delta table failed.
    #[error("cannot {action} table `{}`: {reason}", table.name())]
    Table {
        /// The operation, as a verb.
        action: &'static str,
        /// The table that it happened to.
        table: Table,
        /// The reason that the Delta library gave.
        reason: String,
    },
    /// A bucket cannot be used as it is configured.
    #[error("cannot use the bucket {address}: {reason}")]
    Bucket {
        /// The address of the bucket.
        address: String,
        reason: String,
    },
    /// Files were to be replaced that another program has replaced or deleted meanwhile.
    #[error("another program has removed files of table `{}` first; its list is read again", .0.name())]
    Outdated(Table),
    /// A Parquet file could not be written.
    #[error("cannot write the parquet file {}: {reason}", path.display())]
    Parquet {
        /// The file that was written or read.
        path: PathBuf,
        /// The reason that the Parquet library gave.
        reason: String,
    },
    /// A request for a deletion was taken and cannot be finished; it stays.
    #[error("cannot finish the deletion {}: {reason}; ask for the same deletion again", request.display())]
    Unfinished {
        /// The file of the request.
        request: PathBuf,
        /// Which file prevents it, and how.
        reason: String,
    },
    /// The write-ahead log does not accept records at the moment.
    #[error("the write-ahead log is not writable: {0}")]
    LogUnavailable(String),
    /// A request for maintenance cannot be understood.
    #[error("{0}")]
    Request(String),
    /// The store was closed before the answer.
    #[error("the store is closed")]
    Closed,
    /// A thread of the store has ended; only a restart helps.
    #[error("{0}")]
    ThreadEnded(String),
    /// A bug in the store ended an operation.
    #[error("the operation failed by a fault of the program: {0}")]
    Panicked(String),
    /// The work did not end in the time given; what is in the write-ahead log is replayed at the next start.
    #[error("the last flush did not end within {0:?}: the rest stays in the write-ahead log")]
    Deadline(std::time::Duration),
    /// Threads did not end because the disk does not answer them.
    #[error(
        "the disk has not answered for {after:?}: {threads} still wait for it and are given up; the folder is free \
        when the process has ended"
    )]
    Stuck {
        /// How long the close waited.
        after: std::time::Duration,
        /// The names of the threads.
        threads: String,
    },
}

impl StoreError {
    /// True when the cause may be the data to be written and not the disk.
    pub(crate) fn may_be_the_data(&self) -> bool {
        matches!(self, Self::Parquet { .. } | Self::Panicked(_))
    }

    /// True when the disk has no room.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_full(source))
    }

    /// For `map_err`: an error of a file operation.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// For `map_err`: an error of the Delta library.
    pub(crate) fn table<E: std::fmt::Display>(action: &'static str, table: Table) -> impl FnOnce(E) -> Self {
        move |error| Self::Table {
            action,
            table,
            reason: error.to_string(),
        }
    }
}

/// True for the errors of a disk, or of a quota, that has no room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
