//! The flush: a frozen head becomes Parquet files and one commit in each table.
//!
//! In: a generation, that is, a frozen head and the last log segment that it covers. Out: committed files, published to
//! queries, and deleted segments of the log. No segment is deleted before files, commits and folders are synced
//! ([`write`]).

pub(in crate::store) mod commits;
pub(in crate::store) mod files;
pub(in crate::store) mod flushes;
pub(in crate::store) mod isolate;
pub(in crate::store) mod lineage;
pub(in crate::store) mod published;
pub(in crate::store) mod sync;
mod unsynced_files;
pub(in crate::store) mod write;
