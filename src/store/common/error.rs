//! Errors of the store: the operation, the file or table, and the cause.
//!
//! These errors concern the store as a whole. An error about a single profile is a [`alluvium_profile::SinkError`].

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::store::common::schema::Table;

/// An error of the store as a whole, such as a failed open, flush or close.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation as a verb, such as `write` or `create`.
        action: &'static str,
        /// The file or folder that the operation used.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process uses the data folder.
    #[error("the data folder {} is in use by another process: stop it, or configure another folder", .0.display())]
    Locked(PathBuf),
    /// A newer version of the program wrote the folder.
    #[error("the data folder {} has layout version {version}, but this program knows versions up to {known}: use a \
        newer program", path.display())]
    NewerLayout {
        /// The folder of the store.
        path: PathBuf,
        /// Layout version of the folder.
        version: u32,
        /// Newest layout version that this program knows.
        known: u32,
    },
    /// A file of the data folder has unexpected contents.
    #[error("the file {} is damaged: {reason}", path.display())]
    Damaged {
        /// Path of the damaged file.
        path: PathBuf,
        /// Description of the damage.
        reason: String,
    },
    /// A table lacks a commit that it had when segments of the log were deleted.
    #[error("the log of table `{}` has lost an entry: its last flush covers segment {committed}, but a lost flush \
        covered segment {flushed}, which the write-ahead log no longer has. Nothing was changed; restore the missing \
        files of {} from a backup, or accept the loss with `alluvium store repair --accept-loss`", table.name(),
        location.join("_delta_log").display())]
    MissingEntry {
        /// The table that lacks the commit.
        table: Table,
        /// Path or address of the table.
        location: PathBuf,
        /// Number of the last segment that this table contains.
        committed: u64,
        /// Number of the last segment that all tables contained, according to the file `COMMITS`.
        flushed: u64,
    },
    /// Some tables contain a flush that other tables lack, and the log does not hold all profiles of that flush.
    #[error("the write-ahead log {} lacks profiles: some tables contain the flush of segments {first} to {last}, \
        others lack it, and the log has {logged} of the flush's {} profiles. Nothing was changed; restore the missing \
        segments or missing entries of the tables' logs from a backup, or accept the loss with `alluvium store repair \
        --accept-loss`", log.display(), expected.map_or_else(|| "unknown number of".to_owned(), |all| all.to_string()))]
    MissingRecords {
        /// The folder of the write-ahead log.
        log: PathBuf,
        /// The first segment of the flush.
        first: u64,
        /// The last segment of the flush.
        last: u64,
        /// Number of profiles of the flush, if the tables record it.
        expected: Option<u64>,
        /// Number of those profiles in the log.
        logged: u64,
    },
    /// Another process has committed with the writer identity of this folder.
    #[error("table `{}` has a commit of this data folder's writer {writer} by a process that did not run on this \
        data folder: the folder was copied, and both copies write to the same tables. The write-ahead log is \
        kept; stop one of the servers, and remove the file WRITER of its data folder to give it an identity of its \
        own (docs/operations.md, Copies of a data folder)", table.name())]
    CopiedFolder {
        /// The table with the commit.
        table: Table,
        /// The writer identity that both folders have.
        writer: String,
    },
    /// An operation on a Delta table failed.
    #[error("cannot {action} table `{}`: {reason}", table.name())]
    Table {
        /// The operation as a verb.
        action: &'static str,
        /// The table that the operation used.
        table: Table,
        /// The reason that the Delta library reported.
        reason: String,
    },
    /// The bucket cannot be used with its configuration.
    #[error("cannot use the bucket {address}: {reason}")]
    Bucket {
        /// The address of the bucket.
        address: String,
        reason: String,
    },
    /// Another program has already replaced or deleted the files that an operation was about to replace.
    #[error("another program has removed files of table `{}`; the store reads the list of files again", .0.name())]
    Outdated(Table),
    /// A Parquet file could not be written.
    #[error("cannot write the parquet file {}: {reason}", path.display())]
    Parquet {
        /// Path of the file that could not be written.
        path: PathBuf,
        /// The reason that the Parquet library reported.
        reason: String,
    },
    /// The store accepted a request for a deletion but cannot finish it. The file of the request stays.
    #[error("cannot finish the deletion {}: {reason}; request the same deletion again", request.display())]
    Unfinished {
        /// Path of the request's file.
        request: PathBuf,
        /// The file that prevents the deletion, and the reason.
        reason: String,
    },
    /// The write-ahead log accepts no records at the moment.
    #[error(transparent)]
    LogUnavailable(LogFailure),
    /// The flush that a caller waited for failed. Only the first of several callers receives the error itself.
    #[error("the flush failed: the messages of the program contain the error")]
    FlushFailed,
    /// A request for maintenance is invalid.
    #[error("{0}")]
    Request(String),
    /// The store was closed before it could respond.
    #[error("the store is closed")]
    Closed,
    /// A thread of the store has ended. Only a restart helps.
    #[error("{0}")]
    ThreadEnded(String),
    /// A bug in the store ended an operation.
    #[error("the operation failed because of a bug in the program: {0}")]
    Panicked(String),
    /// The last flush did not end in time. The next start replays the remaining profiles from the write-ahead log.
    #[error("the last flush did not end within {0:?}: the remaining profiles stay in the write-ahead log")]
    Deadline(std::time::Duration),
    /// Threads did not end because the disk does not respond to them.
    #[error(
        "the disk has not responded for {after:?}: the store no longer waits for {threads}; the folder \
        stays locked until the process ends"
    )]
    Stuck {
        /// Time for which the close has waited.
        after: std::time::Duration,
        /// The names of the threads.
        threads: String,
    },
}

/// The reason why the write-ahead log accepts no records at the moment.
#[derive(Debug, thiserror::Error)]
pub enum LogFailure {
    /// A write failed. The thread of the log retries it.
    #[error("{0}")]
    Write(Arc<str>),
    /// The next segment cannot be created.
    #[error(transparent)]
    Segment(#[from] io::Error),
}

impl StoreError {
    /// Returns true if the cause may be the data to write instead of the disk.
    pub(crate) fn may_be_data_error(&self) -> bool {
        matches!(self, Self::Parquet { .. } | Self::Panicked(_))
    }

    /// Returns true if the disk has no room.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_full(source))
    }

    /// Wraps an error of a file operation; for `map_err`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// Wraps an error of the Delta library; for `map_err`.
    pub(crate) fn table<E: std::fmt::Display>(action: &'static str, table: Table) -> impl FnOnce(E) -> Self {
        move |error| Self::Table {
            action,
            table,
            reason: error.to_string(),
        }
    }
}

/// Returns true if the error means that the disk or a disk quota has no room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
