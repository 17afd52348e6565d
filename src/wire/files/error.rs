//! Why a file was not imported.

use std::fmt::Display;

use crate::profile::pprof::GzipError;
use crate::wire::files::imported::FileFormat;

/// Why a file was not imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// There are no bytes in the file.
    #[error("the file is empty")]
    Empty,
    /// The bytes cannot be decompressed, or are more than are allowed.
    #[error(transparent)]
    Gzip(#[from] GzipError),
    /// Known, and not read; with what to do instead.
    #[error("this is {what}, which is not read: {instead}")]
    NotRead {
        /// The name of the format.
        what: &'static str,
        /// What the user should do instead.
        instead: &'static str,
    },
    /// Nothing that is known begins like this.
    #[error(
        "this is no profile that is known (it begins with `{start}`): read are pprof, the text of Go's profiles, JFR, \
            folded stacks, speedscope, `perf script`, .cpuprofile, traces of Chrome, profiles of Firefox and samply, \
            .nettrace, XML of Instruments"
    )]
    Unknown {
        /// The first bytes as text.
        start: String,
    },
    /// Recognised, and then something was wrong.
    #[error("cannot read the file as {format}: {problem}")]
    Wrong {
        /// What it was recognised as.
        format: FileFormat,
        /// What is wrong with it, and where.
        problem: String,
    },
}

impl FileFormat {
    /// The error of a file of this format.
    pub(super) fn wrong(self, problem: &dyn Display) -> FileError {
        FileError::Wrong {
            format: self,
            problem: problem.to_string(),
        }
    }
}
