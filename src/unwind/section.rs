//! Bounded access to the sections of a file, and the errors of compiling a table.

use object::ObjectSection;

use alluvium_base::expand::{self, ExpandError};

/// The reason why a table could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The file is not an ELF file, or a section cannot be read.
    #[error("cannot read the ELF file: {0}")]
    Elf(#[from] object::Error),
    /// The call frame information is malformed.
    #[error("malformed call frame information: {0}")]
    Frames(#[from] gimli::Error),
    /// There are more rows than a table may have.
    #[error("the table has more than {0} rows")]
    TooLarge(usize),
    /// A section has more bytes than may be read, or its instructions have more bytes than may be executed.
    #[error("there are more than {0} bytes of call frame information")]
    TooLong(u64),
    /// A compressed section cannot be unpacked.
    #[error("a compressed section is damaged, or its size is not the one that it states")]
    Damaged,
    /// The unwinder does not support the architecture of the file.
    #[error("machine {0:?} is not supported")]
    Machine(object::Architecture),
}

impl CompileError {
    /// Returns true if the file has a table that exceeds a limit on its rows or bytes.
    pub fn is_excess(&self) -> bool {
        matches!(self, Self::TooLarge(_) | Self::TooLong(_))
    }
}

/// Maximum number of bytes of a section. The largest known sections have 30 MB.
const MAX_SECTION: u64 = 128 << 20;

/// Returns the bytes of a section, unless there are too many.
pub(crate) fn section_bytes<'data, S: ObjectSection<'data>>(
    section: &S,
) -> Result<std::borrow::Cow<'data, [u8]>, CompileError> {
    expand::section(section, MAX_SECTION).map_err(|error| match error {
        ExpandError::TooLong(max) => CompileError::TooLong(max),
        ExpandError::Elf(error) => error.into(),
        ExpandError::Damaged => CompileError::Damaged,
    })
}
