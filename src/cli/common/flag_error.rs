//! The reason why the value of a flag is invalid. The parser of the command line prints the flag and the value before
//! the error.

use alluvium_base::duration::DurationError;

/// The reason why the value of a flag is invalid.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum FlagError {
    #[error("write it as KEY=VALUE")]
    Label,
    #[error("must be none, simplified, templates or full")]
    Demangle,
    /// A percentage is not a number, or not positive.
    #[error("must be a number greater than 0")]
    Percent,
    #[error("write it as a number from 0 to 1")]
    Number,
    #[error("must be from 0 to 1")]
    Share,
    #[error("use true or false")]
    Boolean,
    #[error(transparent)]
    Duration(#[from] DurationError),
    #[error("use HOST:PORT, such as alloy.internal:12345")]
    Address,
}
