//! Merges sorted Parquet files into larger files. A rewrite can also omit deleted rows, or sum samples over intervals.
//!
//! In: live files of one partition of a table. Out: new files, which `maintenance::exchange` commits. The size and the
//! checksum of each input are verified first ([`input`]).

pub(in crate::store) mod input;
mod names;
mod parts;
mod profiles;
pub(in crate::store) mod rewrite;
mod samples;
pub(in crate::store) mod series;
