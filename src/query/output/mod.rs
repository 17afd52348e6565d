//! Writes answers of SQL in the format that the caller asked for.
//!
//! In: batches of an answer. Out: JSON, CSV, Arrow, Parquet or pprof ([`format`]), or single values for the PostgreSQL
//! port ([`cells`]).

pub(crate) mod cells;
pub mod format;
pub(in crate::query) mod names;
mod text_values;
