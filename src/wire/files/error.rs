//! Errors of importing a file.

use std::fmt::Display;

use crate::files::imported::FileFormat;
use alluvium_profile::pprof::GzipError;

/// Reason why a file was not imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The file contains no bytes.
    #[error("the file is empty")]
    Empty,
    /// The bytes cannot be decompressed, or they exceed the size limit.
    #[error(transparent)]
    Gzip(#[from] GzipError),
    /// The format is known but not supported.
    #[error("this is {format_name}, which is not supported: {advice}")]
    Unsupported {
        /// The name of the format.
        format_name: &'static str,
        /// Advice on what to do instead.
        advice: &'static str,
    },
    /// No known format begins like this file.
    #[error(
        "the format of this file is unknown (it begins with `{start}`): supported are pprof, Go's text profiles, JFR, \
            folded stacks, speedscope, `perf script`, .cpuprofile, Chrome traces, profiles of Firefox and samply, \
            .nettrace, Instruments XML"
    )]
    Unknown {
        /// The first bytes as text.
        start: String,
    },
    /// The format was recognised, but the contents are invalid.
    #[error("cannot read the file as {format}: {problem}")]
    Invalid {
        /// The format that was recognised.
        format: FileFormat,
        /// Description of the error, with its position.
        problem: String,
    },
}

impl FileFormat {
    /// Creates the error for a file of this format.
    pub(super) fn invalid(self, problem: &dyn Display) -> FileError {
        FileError::Invalid {
            format: self,
            problem: problem.to_string(),
        }
    }
}
