//! What maintenance has done.

/// Files and rows that were exchanged, and what was deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Rewrites that were committed.
    pub jobs: u64,
    /// Files that left the tables.
    pub files_in: u64,
    /// Files that came for them.
    pub files_out: u64,
    /// Bytes of the files that left.
    pub bytes_in: u64,
    /// Bytes of the files that came.
    pub bytes_out: u64,
    /// Rows of the files that left.
    pub rows_in: u64,
    /// Rows of the files that came.
    pub rows_out: u64,
    /// Files that no reader can need.
    pub vacuumed: Vacuumed,
}

/// What was, or would be, deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vacuumed {
    /// Parquet files that were deleted.
    pub files: u64,
    /// Bytes of the files that were deleted.
    pub bytes: u64,
    /// Entries and checkpoints of the log.
    pub entries: u64,
    /// Files that are not needed and too young.
    pub waiting: u64,
}
