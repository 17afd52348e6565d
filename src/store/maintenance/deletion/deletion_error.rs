//! The reason why a deletion cannot be carried out.

use alluvium_profile::selector::SelectorError;

use crate::store::common::error::StoreError;

/// The reason why a deletion cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum DeletionError {
    #[error("cannot parse the selector `{selector}`: {source}")]
    Selector { selector: String, source: SelectorError },
    /// A matcher of the selector names a label that begins with `__`. The tables do not store such labels.
    #[error("the label `{0}` is not stored; to choose a profile type, write its id before the brace")]
    Label(String),
    /// A merged file may hold rows that the request covers and rows that arrived later. They cannot be distinguished,
    /// because an earlier version of the server wrote the request without a list of the covered files.
    #[error(
        "an earlier version of the server accepted the request, and the merged file {0} may hold profiles that \
        arrived later"
    )]
    Merged(String),
    /// In a file that another server has written, rows that the request covers cannot be distinguished from rows that
    /// arrived later.
    #[error(
        "another server has rewritten files that the deletion covers, and the file {0} may hold profiles that arrived \
        later"
    )]
    Mixed(String),
}

impl From<DeletionError> for StoreError {
    fn from(error: DeletionError) -> Self {
        Self::Request(error.to_string())
    }
}
