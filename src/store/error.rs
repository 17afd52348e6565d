//! Errors of the store: what was being done to which file or table, and what went wrong.
//!
//! Errors about single profiles are [`crate::profile::SinkError`]; the ones here concern the store as a whole.

use std::io;
use std::path::{Path, PathBuf};

use crate::store::schema::Table;

/// The store could not be opened, flushed or closed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was being done, as a verb: `write`, `create`.
        action: &'static str,
        /// The file or folder that it happened to.
        path: PathBuf,
        /// What the operating system said.
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
        /// What was being done, as a verb.
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
    /// Files were to be exchanged that another program has exchanged or deleted meanwhile.
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
    /// The write-ahead log takes nothing at the moment.
    #[error("the write-ahead log is not writable: {0}")]
    LogUnavailable(String),
    /// A request for maintenance cannot be understood.
    #[error("{0}")]
    Request(String),
    /// The store was closed before the answer.
    #[error("the store is closed")]
    Closed,
    /// A thread of the store has ended, which only a restart mends.
    #[error("{0}")]
    ThreadEnded(String),
    /// A fault of ours ended an operation.
    #[error("the operation failed by a fault of the program: {0}")]
    Panicked(String),
    /// The work did not end in the time given; what is in the write-ahead log is replayed at the next start.
    #[error("the last flush did not end within {0:?}: the rest stays in the write-ahead log")]
    Deadline(std::time::Duration),
}

impl StoreError {
    /// True when not the disk but what was to be written may be the cause.
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
