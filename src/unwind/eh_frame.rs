//! `.eh_frame` (or `.debug_frame`) of an ELF file into a [`Table`].
//!
//! The call frame information is that of the DWARF 5 standard, section 6.4, in the form of the Linux Standard Base (`.eh_frame`). What the
//! two register rules and the few well-known expressions of x86-64 compilers cannot say becomes [`Rule::Complex`].

use gimli::{BaseAddresses, CieOrFde, EndianSlice, RunTimeEndian, UnwindContext, UnwindSection};
use object::{Object, ObjectSection, ReadRef};

use crate::unwind::cfi_row::compile_row;
use crate::unwind::row::{Arch, Row, Rule, Table};

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
    /// More bytes than are read or run.
    #[error("more than {0} bytes of call frame information")]
    TooLong(u64),
    /// Stacks of its machine are not walked.
    #[error("machine {0:?} is not supported")]
    Machine(object::Architecture),
}

/// Rows at most: of the largest binaries seen (browsers), some millions would be 30 MB.
const MAX_ROWS: usize = 4_000_000;
/// Bytes of a section at most; the largest seen have 30 MB.
const MAX_SECTION: u64 = 128 << 20;
/// Bytes of instructions that are run at most, those of common entries once for each function: a small file can name a long one a million times.
const MAX_WORK: u64 = 512 << 20;

/// What could not be said in rows, beside the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// Functions whose description could not be read; they have no rules.
    pub functions: usize,
    /// Rows that became [`Rule::Complex`].
    pub complex: usize,
}

/// Compiles the call frame information of a file. An empty table when it has none.
pub fn compile<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Result<(Table, Losses), CompileError> {
    let endian = if file.is_little_endian() {
        RunTimeEndian::Little
    } else {
        RunTimeEndian::Big
    };
    let (arch, vendor) = match file.architecture() {
        object::Architecture::X86_64 => (Arch::X86_64, gimli::Vendor::Default),
        object::Architecture::Aarch64 => (Arch::Aarch64, gimli::Vendor::AArch64),
        other => return Err(CompileError::Machine(other)),
    };
    let address = |name: &str| file.section_by_name(name).map(|section| section.address());
    let mut bases = BaseAddresses::default();
    if let Some(at) = address(".eh_frame") {
        bases = bases.set_eh_frame(at);
    }
    if let Some(at) = address(".text") {
        bases = bases.set_text(at);
    }
    if let Some(at) = address(".got") {
        bases = bases.set_got(at);
    }
    let mut rows = Vec::new();
    let mut losses = Losses::default();
    if let Some(section) = file.section_by_name(".eh_frame") {
        let data = bounded(&section)?;
        let mut frames = gimli::EhFrame::new(&data, endian);
        frames.set_address_size(8);
        frames.set_vendor(vendor);
        compile_section(arch, &frames, &bases, &mut rows, &mut losses)?;
    }
    if rows.is_empty()
        && let Some(section) = file.section_by_name(".debug_frame")
    {
        let data = bounded(&section)?;
        let mut frames = gimli::DebugFrame::new(&data, endian);
        frames.set_address_size(8);
        frames.set_vendor(vendor);
        compile_section(arch, &frames, &bases, &mut rows, &mut losses)?;
    }
    let table = Table::new(rows);
    // Entry points written in assembly (the dynamic linker's) have no description: whoever runs there was called by nobody.
    let entry = u32::try_from(file.entry()).unwrap_or(0);
    if entry != 0 && table.find(entry).is_some_and(|row| row.rule == Rule::None as u8) {
        let mut rows = table.rows().to_vec();
        rows.push(Row::plain(entry, Rule::End));
        return Ok((Table::new(rows), losses));
    }
    Ok((table, losses))
}

/// The bytes of a section, unless there are too many of them.
fn bounded<'data, S: ObjectSection<'data>>(section: &S) -> Result<std::borrow::Cow<'data, [u8]>, CompileError> {
    if section.compressed_file_range()?.uncompressed_size > MAX_SECTION {
        return Err(CompileError::TooLong(MAX_SECTION));
    }
    Ok(section.uncompressed_data()?)
}

fn compile_section<'a, S>(
    arch: Arch,
    frames: &S,
    bases: &BaseAddresses,
    rows: &mut Vec<Row>,
    losses: &mut Losses,
) -> Result<(), CompileError>
where
    S: UnwindSection<EndianSlice<'a, RunTimeEndian>>,
    S::Offset: gimli::UnwindOffset,
{
    let mut context = UnwindContext::new();
    let mut entries = frames.entries(bases);
    let mut work = 0_u64;
    // A damaged section is used as far as it can be read.
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(fde) = partial.parse(S::cie_from_offset) else {
            losses.functions += 1;
            continue;
        };
        work = work.saturating_add((fde.entry_len() as u64).saturating_add(fde.cie().entry_len() as u64));
        if work > MAX_WORK {
            return Err(CompileError::TooLong(MAX_WORK));
        }
        let (Ok(start), Ok(end)) = (
            u32::try_from(fde.initial_address()),
            u32::try_from(fde.initial_address().saturating_add(fde.len())),
        ) else {
            losses.functions += 1;
            continue;
        };
        if start == 0 || end <= start {
            // Discarded by the linker.
            continue;
        }
        if fde.cie().is_signal_trampoline() {
            rows.push(Row::plain(start.saturating_sub(1), Rule::Signal));
            rows.push(Row::plain(end, Rule::None));
            continue;
        }
        let Ok(mut table) = fde.rows(frames, bases, &mut context) else {
            losses.functions += 1;
            continue;
        };
        let before = rows.len();
        loop {
            match table.next_row() {
                Ok(Some(row)) => {
                    let Ok(pc) = u32::try_from(row.start_address()) else {
                        break;
                    };
                    let compiled = compile_row(arch, pc, row, frames);
                    losses.complex += usize::from(compiled.rule == Rule::Complex as u8);
                    if rows.len() == before || rows.last().is_none_or(|last| !last.says_the_same(&compiled)) {
                        rows.push(compiled);
                    }
                }
                Ok(None) => break,
                Err(_) => {
                    losses.functions += 1;
                    rows.truncate(before);
                    break;
                }
            }
        }
        if rows.len() > before {
            rows.push(Row::plain(end, Rule::None));
        }
        if rows.len() > MAX_ROWS {
            return Err(CompileError::TooLarge(MAX_ROWS));
        }
    }
    Ok(())
}
