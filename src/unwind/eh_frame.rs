//! Compiles `.eh_frame` (or `.debug_frame`) of an ELF file into a [`Table`].
//!
//! The call frame information is that of the DWARF 5 standard, section 6.4, in the form of the Linux Standard Base
//! (`.eh_frame`). Rules that a [`Row`] cannot represent become [`Rule::Complex`].

use gimli::{BaseAddresses, CieOrFde, EndianSlice, RunTimeEndian, UnwindContext, UnwindSection};
use object::{Object, ObjectSection, ReadRef};

use crate::arm_code;
use crate::cfi_row::compile_row;
use crate::row::{Arch, Row, Rule, Table};
pub use crate::section::CompileError;
use crate::section::section_bytes;

/// Maximum number of rows of a table. The largest known binaries (browsers) have a few million rows, which take 30 MB.
const MAX_ROWS: usize = 4_000_000;
/// Maximum number of bytes of instructions that are executed. The instructions of a common entry (CIE) count once per
/// function that refers to it, because a small file can refer to a long entry a million times. The largest programs use
/// a fifth of this limit.
const MAX_WORK: u64 = 256 << 20;
/// Cost of an instruction that saves or restores all registers, in the unit of [`MAX_WORK`]. The instruction copies up
/// to ten kilobytes.
const COPY_WORK: u64 = 256;
/// Opcode of `DW_CFA_remember_state`, which saves all registers. Each instruction that restores them needs an earlier
/// one that saved them, so a count of the saving instructions limits the restoring ones too.
const REMEMBER: u8 = 0x0a;
/// Cost of a function whose common entry cannot be read, in the unit of [`MAX_WORK`]. The reader may have searched
/// most of a section for the end of a text in that entry.
const DAMAGED_WORK: u64 = 1 << 20;

/// Information that a table could not represent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// Number of functions whose description could not be read. They have no rules.
    pub functions: usize,
    /// Number of rows that became [`Rule::Complex`].
    pub complex: usize,
}

/// Compiles the call frame information of a file. The table is empty if the file has none.
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
    if let Some(base) = address(".eh_frame") {
        bases = bases.set_eh_frame(base);
    }
    if let Some(base) = address(".text") {
        bases = bases.set_text(base);
    }
    if let Some(base) = address(".got") {
        bases = bases.set_got(base);
    }
    let mut rows = Vec::new();
    let mut losses = Losses::default();
    if let Some(section) = file.section_by_name(".eh_frame") {
        let data = section_bytes(&section)?;
        let mut frames = gimli::EhFrame::new(&data, endian);
        frames.set_address_size(8);
        frames.set_vendor(vendor);
        compile_section(arch, &data, &frames, &bases, &mut rows, &mut losses)?;
    }
    if rows.is_empty()
        && let Some(section) = file.section_by_name(".debug_frame")
    {
        let data = section_bytes(&section)?;
        let mut frames = gimli::DebugFrame::new(&data, endian);
        frames.set_address_size(8);
        frames.set_vendor(vendor);
        compile_section(arch, &data, &frames, &bases, &mut rows, &mut losses)?;
    }
    if arch == Arch::Aarch64 {
        rows = arm_code::describe(file, rows)?;
    }
    let mut rows = Table::new(rows).into_rows();
    bridge_gaps(arch, file, &mut rows);
    let table = Table::new(rows);
    // Entry points written in assembly (such as that of the dynamic linker) have no call frame information, because
    // they have no caller.
    let entry = u32::try_from(file.entry()).unwrap_or(0);
    if entry != 0 && table.find(entry).is_some_and(|row| row.rule == Rule::None as u8) {
        let mut rows = table.into_rows();
        rows.push(Row::plain(entry, Rule::End));
        return Ok((Table::new(rows), losses));
    }
    Ok((table, losses))
}

/// Undescribed code of at least this length comes from a code generator (V8's builtins). Such code keeps frame
/// pointers.
const GENERATED: u32 = 64 << 10;

/// Adds frame pointer rules for long stretches of code without rules.
fn bridge_gaps<'data, R: ReadRef<'data>>(arch: Arch, file: &object::File<'data, R>, rows: &mut Vec<Row>) {
    let text = file.section_by_name(".text").and_then(|section| {
        let end = section.address().checked_add(section.size())?;
        Some((u32::try_from(section.address()).ok()?, u32::try_from(end).ok()?))
    });
    let Some((start, end)) = text.filter(|_| !rows.is_empty()) else {
        return;
    };
    let mut next = end;
    for row in rows.iter_mut().rev() {
        let length = std::mem::replace(&mut next, row.pc).min(end).saturating_sub(row.pc);
        if row.kind() == Rule::None && row.pc >= start && length >= GENERATED {
            *row = Row {
                pc: row.pc,
                ..Row::frame_pointers(arch)
            };
        }
    }
    if let Some(end_row) = rows
        .last()
        .filter(|row| row.kind() == Rule::Bp && row.pc < end)
        .map(|_| Row::plain(end, Rule::None))
    {
        rows.push(end_row);
    }
}

/// Adds the rows of a section, whose bytes are `data`.
fn compile_section<'a, S>(
    arch: Arch,
    data: &[u8],
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
    // At damage, the loop ends and keeps the rows so far.
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        if rows.len() > MAX_ROWS {
            return Err(CompileError::TooLarge(MAX_ROWS));
        }
        if work > MAX_WORK {
            return Err(CompileError::TooLong(MAX_WORK));
        }
        let Ok(fde) = partial.parse(S::cie_from_offset) else {
            losses.functions += 1;
            work = work.saturating_add(DAMAGED_WORK);
            continue;
        };
        for (offset, length) in [
            (fde.offset(), fde.entry_len()),
            (fde.cie().offset(), fde.cie().entry_len()),
        ] {
            let entry = data.get(offset..offset.saturating_add(length)).unwrap_or_default();
            let copies = memchr::memchr_iter(REMEMBER, entry).count() as u64;
            work = work.saturating_add(length as u64 + copies * COPY_WORK);
        }
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
            // The linker discarded the function.
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
                    if rows.len() == before || rows.last().is_none_or(|last| !last.has_same_rule(&compiled)) {
                        rows.push(compiled);
                    }
                    // A single function may have more rows than the limit, so each row is checked.
                    if rows.len() > MAX_ROWS {
                        return Err(CompileError::TooLarge(MAX_ROWS));
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
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a small program that every machine has.
    fn shell() -> Vec<u8> {
        std::fs::read("/bin/sh").unwrap()
    }

    fn section_range(bytes: &[u8], name: &str) -> std::ops::Range<usize> {
        let file = object::File::parse(bytes).unwrap();
        let (start, size) = file.section_by_name(name).unwrap().file_range().unwrap();
        start as usize..(start + size) as usize
    }

    /// The output of clang for `int f(int a) { int b = g(a); return b + g(b); }` on 64-bit Arm with signed return
    /// addresses.
    const ARM: [u8; 56] = [
        0x10, 0, 0, 0, 0, 0, 0, 0, 1, 0x7a, 0x52, 0, 1, 0x7c, 0x1e, 1, 0x1b, 0x0c, 0x1f, 0, 0x20, 0, 0, 0, 0x18, 0, 0,
        0, 0, 0, 0, 0, 0x24, 0, 0, 0, 0, 0x44, 0x2d, 0x44, 0x0e, 0x10, 0x93, 2, 0x9e, 4, 0x54, 0x0e, 0, 0x44, 0x2d,
        0xd3, 0xde, 0, 0, 0,
    ];

    #[test]
    fn a_signed_return_address_of_64_bit_arm_is_found_and_its_signature_dropped() {
        use crate::walk::{REGISTERS, RuleLookup, Snapshot, Stop, walk};

        let mut frames = gimli::EhFrame::new(&ARM, RunTimeEndian::Little);
        frames.set_address_size(8);
        frames.set_vendor(gimli::Vendor::AArch64);
        let bases = BaseAddresses::default().set_eh_frame(0x10000);
        let (mut rows, mut losses) = (Vec::new(), Losses::default());
        compile_section(Arch::Aarch64, &ARM, &frames, &bases, &mut rows, &mut losses).unwrap();
        assert_eq!(losses, Losses::default());
        let table = Table::new(rows);
        let start = 0x1001c;
        let columns: Vec<_> = table
            .rows()
            .iter()
            .map(|row| (row.pc - start, row.kind(), row.cfa, row.extra()))
            .collect();
        assert_eq!(
            columns,
            [
                (0, Rule::Sp, 0, 0),
                (8, Rule::Sp, 2, 2),
                (0x1c, Rule::Sp, 0, 2),
                (0x20, Rule::Sp, 0, 0),
                (0x24, Rule::None, 0, 0)
            ]
        );
        // The stack has two nested calls of the function, and the caller of the outer call. This caller has no rule, so
        // the walk follows frame pointers: [x29] = 0.
        let words: [u64; 6] = [0x00ab_0000_0001_0030, 1, 0x00cd_0000_0009_0004, 1, 0, 0];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut snapshot = Snapshot {
            ip: u64::from(start) + 0x10,
            sp: 0x5000,
            bp: 0x5020,
            aux: 0x1234,
            registers: [0; REGISTERS],
            bytes: &bytes,
        };
        let find = |address: u64| match table.find(u32::try_from(address).unwrap()) {
            Some(row) if row.kind() != Rule::None => RuleLookup::Row(*row),
            _ => RuleLookup::FramePointers,
        };
        let mut addresses = Vec::new();
        let stop = walk(Arch::Aarch64, &snapshot, 100, find, &mut addresses);
        assert_eq!((stop, addresses), (Stop::End, vec![0x1002c, 0x10030, 0x9_0004]));
        // A leaf that has saved nothing has its return address in the register.
        (snapshot.ip, snapshot.aux) = (u64::from(start), 0x00ef_0000_0009_0004);
        let mut addresses = Vec::new();
        let stop = walk(Arch::Aarch64, &snapshot, 100, find, &mut addresses);
        assert_eq!((stop, addresses), (Stop::End, vec![u64::from(start), 0x9_0004]));
    }

    /// Creates a common entry with some instructions, and `functions` functions with other instructions.
    fn frames(augmentation: &[u8], common: &[u8], functions: usize, instructions: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut entry = |body: &[&[u8]]| {
            let body = body.concat();
            let length = body.len().next_multiple_of(4);
            bytes.extend_from_slice(&(length as u32).to_le_bytes());
            bytes.extend_from_slice(&body);
            bytes.resize(bytes.len() + length - body.len(), 0);
            bytes.len()
        };
        // Version 1; factors 1 and -8, the return address in column 16; CFA = rsp + 8.
        let mut end = entry(&[&[0; 4], &[1], augmentation, &[0, 1, 0x78, 16, 0x0c, 7, 8], common]);
        for _ in 0..functions {
            let cie_pointer = (end as u32 + 4).to_le_bytes();
            let (start, length) = (0x1000_u64.to_le_bytes(), 0x100_0000_u64.to_le_bytes());
            end = entry(&[&cie_pointer, &start, &length, instructions]);
        }
        bytes
    }

    fn compile_frames(bytes: &[u8]) -> (Result<(), CompileError>, Vec<Row>) {
        let mut frames = gimli::EhFrame::new(bytes, RunTimeEndian::Little);
        frames.set_address_size(8);
        let bases = BaseAddresses::default().set_eh_frame(0x10000);
        let (mut rows, mut losses) = (Vec::new(), Losses::default());
        let result = compile_section(Arch::X86_64, bytes, &frames, &bases, &mut rows, &mut losses);
        (result, rows)
    }

    #[test]
    fn one_function_with_more_rules_than_a_table_may_have_takes_no_more_memory_than_a_table() {
        // Twice: advance by one byte, then set another offset.
        let steps = [0x41, 0x0e, 16, 0x41, 0x0e, 24];
        let (result, rows) = compile_frames(&frames(b"", b"", 1, &steps));
        assert!(result.is_ok() && rows.len() == 4, "{result:?} {rows:?}");
        let (result, rows) = compile_frames(&frames(b"", b"", 1, &steps.repeat(MAX_ROWS / 2 + 100_000)));
        assert!(matches!(result, Err(CompileError::TooLarge(_))), "{result:?}");
        assert_eq!(rows.len(), MAX_ROWS + 1);
    }

    #[test]
    fn functions_of_a_damaged_common_entry_that_is_long_do_not_take_long() {
        // The damaged entry is inside the instructions of a function, so only functions that refer to it reach it.
        let damaged = frames(&b"?".repeat(1 << 20), b"", 0, b"");
        let compile = |functions: usize| {
            let mut bytes = frames(b"", b"", 1, &damaged);
            let damaged_offset = bytes.len() - damaged.len();
            for _ in 0..functions {
                let common = (bytes.len() + 4 - damaged_offset) as u32;
                bytes.extend_from_slice(&20_u32.to_le_bytes());
                bytes.extend_from_slice(&common.to_le_bytes());
                bytes.extend_from_slice(&[0; 16]);
            }
            compile_frames(&bytes).0
        };
        assert!(compile(100).is_ok());
        // The reader would have to search 300 GB.
        let result = compile(300_000);
        assert!(matches!(result, Err(CompileError::TooLong(_))), "{result:?}");
    }

    #[test]
    fn instructions_that_copy_all_registers_do_not_take_long() {
        // DW_CFA_remember_state, DW_CFA_restore_state
        let common = [0x0a, 0x0b].repeat(32 << 10);
        let compile = |functions| compile_frames(&frames(b"", &common, functions, &[0x41, 0x0e, 16])).0;
        assert!(compile(10).is_ok());
        // Without a limit, a hundred functions with 128 MiB of such instructions each would take half an hour.
        let result = compile(100);
        assert!(matches!(result, Err(CompileError::TooLong(_))), "{result:?}");
    }

    #[test]
    fn a_program_has_rules_for_its_code() {
        let bytes = shell();
        let file = object::File::parse(bytes.as_slice()).unwrap();
        let (table, losses) = compile(&file).unwrap();
        assert!(table.rows().len() > 100 && losses.functions == 0, "{losses:?}");
        let entry = u32::try_from(file.entry()).unwrap();
        assert_eq!(table.find(entry).map(Row::kind), Some(Rule::End));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn damaged_call_frames_give_rules_or_an_error(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..60),
        ) {
            let mut bytes = shell();
            let section = section_range(&bytes, ".eh_frame");
            for (position, value) in changes {
                let position = section.start + position.index(section.len());
                bytes[position] = value;
            }
            let file = object::File::parse(bytes.as_slice()).unwrap();
            if let Ok((table, _)) = compile(&file) {
                // An instruction of two bytes makes at most one row.
                prop_assert!(table.rows().len() < section.len());
                prop_assert!(table.rows().is_sorted_by(|a, b| a.pc < b.pc));
            }
        }

        #[test]
        fn damaged_headers_and_cut_files_give_rules_or_an_error(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
            length in any::<prop::sample::Index>(),
            is_cut in any::<bool>(),
        ) {
            let mut bytes = shell();
            // The headers of segments are at the start, and those of sections are at the end.
            let sections = bytes.len() - 64 * 32;
            for (index, (position, value)) in changes.into_iter().enumerate() {
                let position = if index % 2 == 0 { position.index(0x400) } else { sections + position.index(64 * 32) };
                bytes[position] = value;
            }
            if is_cut {
                bytes.truncate(length.index(bytes.len()));
            }
            if let Ok(file) = object::File::parse(bytes.as_slice()) {
                let _ = compile(&file);
            }
        }
    }
}
