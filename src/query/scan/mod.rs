//! Reads rows of the tables and of the heads.
//!
//! In: a snapshot and a filter. Out: a stream of batches, or a plan for SQL ([`read`], [`provider`]).

pub(in crate::query) mod frame_columns;
pub(in crate::query) mod heads;
pub(in crate::query) mod provider;
pub(in crate::query) mod read;
