//! Converts a row of call frame information to a [`Row`].
//!
//! Registers have their DWARF numbers: for x86-64 from the System V ABI, figure 3.36, and for 64-bit Arm from "DWARF
//! for the Arm 64-bit architecture", section 4.1. Expressions are compared with those that compilers and assemblers
//! write. Any other expression becomes [`Rule::Complex`].

use gimli::{
    CfaRule, EndianSlice, Expression, Register, RegisterRule, RunTimeEndian, UnwindExpression, UnwindSection,
    UnwindTableRow,
};

use crate::row::{Arch, Row, Rule, aux};

const RBX: Register = Register(3);
const RBP: Register = Register(6);
const RSP: Register = Register(7);
/// The column of the return address on x86-64.
const RETURN_ADDRESS: Register = Register(16);
const X29: Register = Register(29);
const X30: Register = Register(30);
const SP: Register = Register(31);
/// The expression that binutils writes for a PLT: `rsp + 8 + ((((rip & 15) >= 11) ? 1 : 0) << 3)`.
const PLT_EXPRESSION: [u8; 11] = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];

/// Converts `row`, a row of call frame information, to the [`Row`] that begins at `pc`.
pub(crate) fn compile_row<'a, S>(arch: Arch, pc: u32, row: &UnwindTableRow<usize>, frames: &S) -> Row
where
    S: UnwindSection<EndianSlice<'a, RunTimeEndian>>,
{
    let compiled = match arch {
        Arch::X86_64 => compile_x86(pc, row, frames),
        Arch::Aarch64 => compile_arm(pc, row),
    };
    compiled.unwrap_or(Row::plain(pc, Rule::Complex))
}

fn compile_x86<'a, S>(pc: u32, row: &UnwindTableRow<usize>, frames: &S) -> Option<Row>
where
    S: UnwindSection<EndianSlice<'a, RunTimeEndian>>,
{
    let mut return_register = None;
    match row.register(RETURN_ADDRESS) {
        Some(RegisterRule::Undefined) => return Some(Row::plain(pc, Rule::End)),
        Some(RegisterRule::Register(Register(number))) => {
            return_register = u8::try_from(number).ok().filter(|index| *index < 16);
        }
        None | Some(RegisterRule::Offset(-8)) => {}
        Some(_) => return None,
    }
    if let CfaRule::RegisterAndOffset { register: RSP, offset } = row.cfa()
        && eighths(*offset).is_none()
        && return_register.is_none()
    {
        return far_row(pc, *offset, row.register(RBP));
    }
    let mut register = 0;
    let (mut rule, cfa) = match row.cfa() {
        CfaRule::RegisterAndOffset { register: base, offset } => {
            let rule = match *base {
                RSP => Rule::Sp,
                RBP => Rule::Bp,
                RBX => Rule::Aux,
                Register(number @ 0..=15) => {
                    register = number as u8;
                    Rule::Register
                }
                _ => return None,
            };
            (rule, eighths(*offset)?)
        }
        CfaRule::Expression(expression) => match known_expression(expression, frames)? {
            (Rule::Plt, _) => return Some(Row::plain(pc, Rule::Plt)),
            known => known,
        },
    };
    let bp = match row.register(RBP) {
        None | Some(RegisterRule::Undefined | RegisterRule::SameValue) if rule != Rule::BpDeref => 0,
        Some(RegisterRule::Offset(offset)) if rule != Rule::BpDeref => eighths(offset)
            .and_then(|units| i8::try_from(units).ok())
            .filter(|units| *units != 0)?,
        // On a realigned stack, the caller's frame pointer is saved at the address in the frame pointer.
        Some(RegisterRule::Expression(expression))
            if rule == Rule::BpDeref && is_frame_pointer(&expression, frames) =>
        {
            0
        }
        _ => return None,
    };
    let mut extra = match row.register(RBX) {
        None | Some(RegisterRule::SameValue) => aux::SAME,
        Some(RegisterRule::Offset(offset)) => words_below(offset, 15).unwrap_or(aux::LOST),
        Some(_) => aux::LOST,
    };
    if rule == Rule::Register {
        extra = register;
    }
    if let Some(number) = return_register {
        if rule != Rule::Sp {
            return None;
        }
        rule = Rule::Return;
        extra = number;
    }
    Some(Row {
        pc,
        cfa,
        bp,
        rule: rule as u8 | extra << 4,
    })
}

/// Returns the row of a frame that is too large for the other rules, as in programs with large arrays on the stack.
fn far_row(pc: u32, offset: i64, frame_pointer: Option<RegisterRule<usize>>) -> Option<Row> {
    let bp = match frame_pointer {
        None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => 0,
        Some(RegisterRule::Offset(offset)) => words_below(offset, 15)?,
        Some(_) => return None,
    };
    Row::sp_far(pc, offset, bp)
}

fn compile_arm(pc: u32, row: &UnwindTableRow<usize>) -> Option<Row> {
    let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else {
        return None;
    };
    let rule = match *register {
        SP => Rule::Sp,
        X29 => Rule::Bp,
        _ => return None,
    };
    let saved = |register| match register {
        None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => Some(None),
        Some(RegisterRule::Offset(offset)) => Some(Some(offset)),
        Some(_) => None,
    };
    if row.register(X30) == Some(RegisterRule::Undefined) {
        return Some(Row::plain(pc, Rule::End));
    }
    let (frame, link) = (saved(row.register(X29))?, saved(row.register(X30))?);
    let (bp, extra) = register_slots(*offset, frame, link)?;
    Some(Row {
        pc,
        cfa: eighths(*offset)?,
        bp,
        rule: rule as u8 | extra << 4,
    })
}

/// Returns the `bp` and the extra bits of a row, which encode where x29 and x30 are saved. x29 is saved at the offset
/// `frame` from the CFA, and x30 at the offset `link`. The CFA is `cfa` bytes above its base register.
fn register_slots(cfa: i64, frame: Option<i64>, link: Option<i64>) -> Option<(i8, u8)> {
    let words = |offset: i64| {
        eighths(offset)
            .and_then(|units| i8::try_from(units).ok())
            .filter(|units| *units != 0)
    };
    let from_base = |offset: i64| i8::try_from(eighths(cfa.checked_add(offset)?)?).ok();
    match (frame, link) {
        (None, None) => Some((0, aux::SAME)),
        (None, Some(link)) => words_below(link, 12)
            .map(|number| (0, number))
            .or_else(|| Some((from_base(link)?, aux::RETURN_AT_BASE))),
        (Some(frame), None) => Some((words(frame)?, aux::SAME)),
        (Some(frame), Some(link)) if link == frame.checked_add(8)? => words(frame)
            .map(|bp| (bp, aux::AFTER))
            .or_else(|| Some((from_base(frame)?, aux::RECORD_AT_BASE))),
        (Some(frame), Some(link)) => Some((words(frame)?, words_below(link, 12)?)),
    }
}

fn eighths(offset: i64) -> Option<i16> {
    (offset % 8 == 0).then(|| i16::try_from(offset / 8).ok()).flatten()
}

/// Returns the distance of an offset below the CFA in words, if the distance is from 2 to `max`.
fn words_below(offset: i64, max: u8) -> Option<u8> {
    let words = eighths(offset)?
        .checked_neg()
        .and_then(|words| u8::try_from(words).ok())?;
    (2..=max).contains(&words).then_some(words)
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
    match bytes.split_first()? {
        // DW_OP_breg6 N, DW_OP_deref
        (0x76, rest) => match signed_leb128(rest)? {
            (offset, [0x06]) => Some((Rule::BpDeref, eighths(offset)?)),
            _ => None,
        },
        // DW_OP_breg7 N, DW_OP_deref, DW_OP_plus_uconst 8
        (0x77, rest) => match signed_leb128(rest)? {
            (offset, [0x06, 0x23, 8]) => Some((Rule::SpDeref, eighths(offset)?)),
            _ => None,
        },
        _ => None,
    }
}

fn is_frame_pointer<'a, S>(expression: &UnwindExpression<usize>, frames: &S) -> bool
where
    S: UnwindSection<EndianSlice<'a, RunTimeEndian>>,
{
    expression
        .get(frames)
        .is_ok_and(|Expression(bytes)| bytes.slice() == [0x76, 0])
}

/// Reads a signed LEB128 number of at most three bytes. Returns it and the remaining bytes.
fn signed_leb128(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let mut value = 0_i64;
    for (index, byte) in bytes.iter().take(3).enumerate() {
        let shift = 7 * index as u32;
        value |= i64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            if byte & 0x40 != 0 {
                value -= 1 << (shift + 7);
            }
            return Some((value, bytes.get(index + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_numbers_are_read_with_their_sign() {
        assert_eq!(signed_leb128(&[0x08, 6]), Some((8, &[6][..])));
        assert_eq!(signed_leb128(&[0x78]), Some((-8, &[][..])));
        assert_eq!(signed_leb128(&[0x80, 0x02]), Some((256, &[][..])));
        assert_eq!(signed_leb128(&[0x80, 0x80]), None);
        assert_eq!(signed_leb128(&[]), None);
    }

    #[test]
    fn what_lies_far_below_the_frame_of_64_bit_arm_is_counted_from_its_register() {
        // str x30, [sp, -48]!
        assert_eq!(register_slots(48, None, Some(-48)), Some((0, 6)));
        // stp x29, x30, [sp, -64]!
        assert_eq!(register_slots(64, Some(-64), Some(-56)), Some((-8, aux::AFTER)));
        // sub sp, sp, 2064; stp x29, x30, [sp, 16]
        assert_eq!(
            register_slots(2064, Some(-2048), Some(-2040)),
            Some((2, aux::RECORD_AT_BASE))
        );
        // sub sp, sp, 2064; str x30, [sp]
        assert_eq!(register_slots(2064, None, Some(-2064)), Some((0, aux::RETURN_AT_BASE)));
        assert_eq!(register_slots(1 << 20, None, Some(-1024)), None);
        assert_eq!(register_slots(64, Some(-60), Some(-52)), None);
        assert_eq!(register_slots(i64::MAX, Some(i64::MAX), Some(i64::MAX)), None);
    }

    #[test]
    fn words_below_the_frame_are_counted_from_the_second() {
        assert_eq!(words_below(-16, 15), Some(2));
        assert_eq!(words_below(-120, 15), Some(15));
        assert_eq!(words_below(-128, 15), None);
        assert_eq!(words_below(-8, 15), None);
        assert_eq!(words_below(16, 15), None);
        assert_eq!(words_below(-12, 15), None);
    }
}
