//! Writes SQL results in the format that the caller requested.
//!
//! In: batches of a result. Out: JSON, CSV, Arrow, Parquet or pprof ([`format`]), or single values for the PostgreSQL
//! protocol ([`cells`]).

pub(crate) mod cells;
pub mod format;
pub(in crate::query) mod names;
mod text_values;
