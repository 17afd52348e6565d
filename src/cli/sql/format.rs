//! Output formats of SQL answers.

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
    /// True for binary formats, which are not printed on a terminal.
    pub(super) fn is_binary(self) -> bool {
        matches!(self, Format::Arrow | Format::Parquet | Format::Pprof)
    }
}
