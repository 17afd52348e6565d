//! Why a request is not read.

use crate::wire::connect::ConnectError;

/// An error of a request, which is refused as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ExportError {
    /// An index beyond its table.
    #[error("{field} is {index}, but {table} has {count} entries")]
    Index {
        /// The field with the index, such as `stack_index`.
        field: &'static str,
        /// The value of the field.
        index: i32,
        /// The table that it refers to.
        table: &'static str,
        /// Number of entries of the table.
        count: usize,
    },
    /// A profile with samples does not say what they are.
    #[error("a profile has samples and no sample_type")]
    NoSampleType,
    /// The request refers to tables that it does not have.
    #[error("the request has profiles and no dictionary")]
    NoDictionary,
    /// Stacks, labels and names would take too much memory.
    #[error(
        "the profiles would take more than {limit} bytes in memory, the limit for a request of this size: send it in \
            parts"
    )]
    Memory {
        /// The most bytes that they may take.
        limit: usize,
    },
    /// More profiles than one request may bring.
    #[error("the request has more than {limit} profiles, counted for each service: send it in parts")]
    TooManyProfiles {
        /// The most profiles of a request.
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
