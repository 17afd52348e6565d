//! Forms in which an answer is written.

use clap::ValueEnum;

/// How the rows of an answer are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns for people.
    Table,
    /// What the server gives as JSON.
    Json,
    /// Comma-separated values with a header.
    Csv,
    /// A stream of Arrow IPC messages.
    Arrow,
    /// One file in Parquet format.
    Parquet,
    /// The pprof profile that the statement makes: SELECT * FROM pprof(...).
    Pprof,
}

impl Format {
    /// Bytes that are not for a terminal.
    pub(super) fn is_binary(self) -> bool {
        matches!(self, Format::Arrow | Format::Parquet | Format::Pprof)
    }
}
