//! Bounded access to the sections of a file, and the errors of compiling a table.

use object::ObjectSection;

use crate::base::expand::{self, ExpandError};

/// The table could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The file is no ELF file, or a section cannot be read.
    #[error("cannot read the ELF file: {0}")]
    Elf(#[from] object::Error),
    /// The call frame information is malformed.
    #[error("malformed call frame information: {0}")]
    Frames(#[from] gimli::Error),
    /// More rows than a table may have.
    #[error("more than {0} rules")]
    TooLarge(usize),
    /// More bytes than may be read or executed.
    #[error("more than {0} bytes of call frame information")]
    TooLong(u64),
    /// A compressed section cannot be unpacked.
    #[error("a compressed section is damaged, or not of the size that it states")]
    Damaged,
    /// Stacks of its architecture cannot be walked.
    #[error("machine {0:?} is not supported")]
    Machine(object::Architecture),
}

impl CompileError {
    /// True when there is a table that is too large or takes too long.
    pub(crate) fn is_excess(&self) -> bool {
        matches!(self, Self::TooLarge(_) | Self::TooLong(_))
    }
}

/// Most bytes of a section; the largest seen have 30 MB.
const MAX_SECTION: u64 = 128 << 20;

/// The bytes of a section, unless there are too many of them.
pub(crate) fn bounded<'data, S: ObjectSection<'data>>(
    section: &S,
) -> Result<std::borrow::Cow<'data, [u8]>, CompileError> {
    expand::section(section, MAX_SECTION).map_err(|error| match error {
        ExpandError::TooLong(most) => CompileError::TooLong(most),
        ExpandError::Elf(error) => error.into(),
        ExpandError::Damaged => CompileError::Damaged,
    })
}
