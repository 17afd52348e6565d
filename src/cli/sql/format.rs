//! Output formats of SQL results.

use clap::ValueEnum;

/// The format of the rows of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns for people.
    Table,
    /// JSON as the server returns it.
    Json,
    /// Comma-separated values with a header.
    Csv,
    /// A stream of Arrow IPC messages.
    Arrow,
    /// One file in Parquet format.
    Parquet,
    /// The pprof profile that the statement returns: SELECT * FROM pprof(...).
    Pprof,
}

impl Format {
    /// Returns true for binary formats, which cannot be printed on a terminal.
    pub(super) fn is_binary(self) -> bool {
        matches!(self, Format::Arrow | Format::Parquet | Format::Pprof)
    }
}
