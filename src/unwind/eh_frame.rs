//! `.eh_frame` (or `.debug_frame`) of an ELF file into a [`Table`].
//!
//! The call frame information is that of the DWARF 5 standard, section 6.4, in the form of the Linux Standard Base (`.eh_frame`). What the
//! two register rules and the few well-known expressions of x86-64 compilers cannot say becomes [`Rule::Complex`].

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EndianSlice, Expression, RegisterRule, RunTimeEndian, UnwindContext,
    UnwindExpression, UnwindSection,
};
use object::{Object, ObjectSection, ReadRef};

use crate::unwind::row::{Row, Rule, Table};

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
}

/// Rows at most: of the largest binaries seen (browsers), some millions would be 30 MB.
const MAX_ROWS: usize = 4_000_000;
/// DWARF numbers of the registers of x86-64 (System V ABI, figure 3.36).
const RBP: gimli::Register = gimli::Register(6);
const RSP: gimli::Register = gimli::Register(7);
const RETURN_ADDRESS: gimli::Register = gimli::Register(16);
/// What binutils writes for a PLT: `rsp + 8 + ((((rip & 15) >= 11) ? 1 : 0) << 3)`.
const PLT_EXPRESSION: [u8; 11] = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];

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
        let data = section.uncompressed_data()?;
        let mut frames = gimli::EhFrame::new(&data, endian);
        frames.set_address_size(8);
        compile_section(&frames, &bases, &mut rows, &mut losses)?;
    }
    if rows.is_empty()
        && let Some(section) = file.section_by_name(".debug_frame")
    {
        let data = section.uncompressed_data()?;
        let mut frames = gimli::DebugFrame::new(&data, endian);
        frames.set_address_size(8);
        compile_section(&frames, &bases, &mut rows, &mut losses)?;
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

fn compile_section<'a, S>(
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
    // A damaged section is used as far as it can be read.
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(fde) = partial.parse(S::cie_from_offset) else {
            losses.functions += 1;
            continue;
        };
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
                    let compiled = compile_row(pc, row, frames);
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

fn compile_row<'a, S>(pc: u32, row: &gimli::UnwindTableRow<usize>, frames: &S) -> Row
where
    S: UnwindSection<EndianSlice<'a, RunTimeEndian>>,
{
    if row.register(RETURN_ADDRESS) == Some(RegisterRule::Undefined) {
        return Row::plain(pc, Rule::End);
    }
    let complex = Row::plain(pc, Rule::Complex);
    let (rule, cfa) = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            let rule = match *register {
                RSP => Rule::Sp,
                RBP => Rule::Bp,
                _ => return complex,
            };
            match eighths(*offset) {
                Some(cfa) => (rule, cfa),
                None => return complex,
            }
        }
        CfaRule::Expression(expression) => match known_expression(expression, frames) {
            Some((Rule::Plt, _)) => return Row::plain(pc, Rule::Plt),
            Some((rule, cfa)) => (rule, cfa),
            None => return complex,
        },
    };
    let bp = match row.register(RBP) {
        None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => 0,
        Some(RegisterRule::Offset(offset)) => match eighths(offset).and_then(|units| i8::try_from(units).ok()) {
            Some(units) if units != 0 => units,
            _ => return complex,
        },
        // Realigned stacks save it where it points.
        Some(RegisterRule::Expression(expression))
            if rule == Rule::BpDeref && is_frame_pointer(&expression, frames) =>
        {
            0
        }
        _ => return complex,
    };
    if rule == Rule::BpDeref && !matches!(row.register(RBP), Some(RegisterRule::Expression(_))) {
        return complex;
    }
    Row {
        pc,
        cfa,
        bp,
        rule: rule as u8,
    }
}

fn eighths(offset: i64) -> Option<i16> {
    (offset % 8 == 0).then(|| i16::try_from(offset / 8).ok()).flatten()
}

fn known_expression<'a, S>(expression: &UnwindExpression<usize>, frames: &S) -> Option<(Rule, i16)>
where
    S: UnwindSection<EndianSlice<'a, RunTimeEndian>>,
{
    let Expression(bytes) = expression.get(frames).ok()?;
    let bytes = bytes.slice();
    if bytes == PLT_EXPRESSION {
        return Some((Rule::Plt, 0));
    }
    // DW_OP_breg6 N, DW_OP_deref
    let [0x76, offset, 0x06] = bytes else { return None };
    let offset = signed_leb128_byte(*offset)?;
    Some((Rule::BpDeref, eighths(offset)?))
}

fn is_frame_pointer<'a, S>(expression: &UnwindExpression<usize>, frames: &S) -> bool
where
    S: UnwindSection<EndianSlice<'a, RunTimeEndian>>,
{
    expression
        .get(frames)
        .is_ok_and(|Expression(bytes)| bytes.slice() == [0x76, 0])
}

/// The value of a signed LEB128 number of one byte.
fn signed_leb128_byte(byte: u8) -> Option<i64> {
    match byte {
        0..=0x3f => Some(i64::from(byte)),
        0x40..=0x7f => Some(i64::from(byte) - 128),
        _ => None,
    }
}
