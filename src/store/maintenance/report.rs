//! Summary of the work that maintenance has done.

/// Counts of the files and rows that were exchanged or deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of rewrites and removals of files that were committed.
    pub jobs: u64,
    /// Number of files that were removed from the tables.
    pub files_in: u64,
    /// Number of files that replaced the removed files.
    pub files_out: u64,
    /// Bytes of the removed files.
    pub bytes_in: u64,
    /// Bytes of the new files.
    pub bytes_out: u64,
    /// Number of rows of the removed files.
    pub rows_in: u64,
    /// Number of rows of the new files.
    pub rows_out: u64,
    /// Counts of the deleted files that no reader needed.
    pub vacuumed: Vacuumed,
}

/// Counts of the files of one vacuum.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vacuumed {
    /// Number of Parquet files that were deleted.
    pub files: u64,
    /// Number of bytes of the deleted files.
    pub bytes: u64,
    /// Number of entries and checkpoints of the tables' logs that were deleted.
    pub entries: u64,
    /// Number of files that no table uses, but that the deletion delay still protects.
    pub waiting: u64,
}
