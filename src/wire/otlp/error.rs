//! Errors that refuse an export request.

use crate::connect::ConnectError;

/// An error that refuses the whole request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ExportError {
    /// An index exceeds its table.
    #[error("{field} is {index}, but {table} has {count} entries")]
    Index {
        /// The field with the index, such as `stack_index`.
        field: &'static str,
        /// The value of the field.
        index: i32,
        /// The table that the field refers to.
        table: &'static str,
        /// Number of entries in the table.
        count: usize,
    },
    /// A profile has samples but does not state their type.
    #[error("a profile has samples but no sample_type")]
    NoSampleType,
    /// The request refers to tables that it does not have.
    #[error("the request has profiles but no dictionary")]
    NoDictionary,
    /// Stacks, labels and names would take too much memory.
    #[error(
        "the profiles would take more than {limit} bytes in memory, the limit for a request of this size: send it in \
            parts"
    )]
    Memory {
        /// Maximum memory in bytes.
        limit: usize,
    },
    /// The request has too many profiles.
    #[error("after the split by service, the request has more than {limit} profiles: send it in parts")]
    TooManyProfiles {
        /// Maximum number of profiles in a request.
        limit: usize,
    },
}

impl From<ExportError> for ConnectError {
    fn from(error: ExportError) -> Self {
        let message = error.to_string();
        match error {
            ExportError::Index { .. } | ExportError::NoSampleType | ExportError::NoDictionary => Self::invalid(message),
            ExportError::Memory { .. } | ExportError::TooManyProfiles { .. } => Self::too_large(message),
        }
    }
}
