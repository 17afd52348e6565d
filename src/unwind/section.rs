//! Bounded access to the sections of a file, and the errors of compiling a table.

use object::ObjectSection;

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
    /// Stacks of its architecture cannot be walked.
    #[error("machine {0:?} is not supported")]
    Machine(object::Architecture),
}

/// Most bytes of a section; the largest seen have 30 MB.
const MAX_SECTION: u64 = 128 << 20;

/// The bytes of a section, unless there are too many of them.
pub(crate) fn bounded<'data, S: ObjectSection<'data>>(
    section: &S,
) -> Result<std::borrow::Cow<'data, [u8]>, CompileError> {
    if section.compressed_file_range()?.uncompressed_size > MAX_SECTION {
        return Err(CompileError::TooLong(MAX_SECTION));
    }
    Ok(section.uncompressed_data()?)
}
