//! Summary of what maintenance has done.

/// Counts of exchanged and deleted files and rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Rewrites that were committed.
    pub jobs: u64,
    /// Files that were removed from the tables.
    pub files_in: u64,
    /// Files that replaced them.
    pub files_out: u64,
    /// Bytes of the removed files.
    pub bytes_in: u64,
    /// Bytes of the new files.
    pub bytes_out: u64,
    /// Rows of the removed files.
    pub rows_in: u64,
    /// Number of rows of the new files.
    pub rows_out: u64,
    /// Deleted files that no reader needed.
    pub vacuumed: Vacuumed,
}

/// Counts of the files that were, or would be, deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vacuumed {
    /// Parquet files that were deleted.
    pub files: u64,
    /// Bytes of the files that were deleted.
    pub bytes: u64,
    /// Entries and checkpoints of the log.
    pub entries: u64,
    /// Files that are not needed but too young to delete.
    pub waiting: u64,
}
