//! The Delta tables: their location, their live files, and the checksums of the files.
//!
//! In: Parquet files that `flush` and `maintenance` wrote, as entries of a table's log. Out: live files with
//! statistics, as a snapshot for queries. The tables are in a folder or in a bucket ([`root`]).

pub mod bucket;
pub(crate) mod checksums;
pub(in crate::store) mod delta;
pub(in crate::store) mod references;
pub(crate) mod root;
pub(crate) mod shelf;
pub mod snapshot;
pub mod stats;
