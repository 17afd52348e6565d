//! Errors of the store: the operation, the file or table, and the cause.
//!
//! Errors about single profiles are [`crate::profile::SinkError`]; the ones here concern the store as a whole.

use std::io;
use std::path::{Path, PathBuf};

use crate::store::schema::Table;

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
