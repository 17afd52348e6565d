//! Unwind rows for 64-bit Arm code without call frame information: signal trampolines, and functions of the vDSO.
//!
//! In: an ELF file and the rows of its call frame information. Out: additional rows, derived from the instructions.
//! The encoding of instructions comes from the "Arm Architecture Reference Manual", C4.1.

use object::{Object, ObjectSection, ObjectSymbol, ReadRef};

use crate::row::{Row, Rule, Table};
use crate::section::{CompileError, section_bytes};

/// `mov x8, 139; svc 0`: the code by which a signal handler of 64-bit Arm returns (139 is rt_sigreturn).
const RETURN_OF_SIGNALS: [u8; 8] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];
/// Maximum size in bytes of a `.text` section that is searched for these instructions. Files with a larger section are
/// skipped. The vDSO and C libraries contain the instructions.
const MAX_SEARCHED: u64 = 4 << 20;

/// Adds rows for signal trampolines and for functions of the vDSO.
pub(crate) fn describe<'data, R: ReadRef<'data>>(
    file: &object::File<'data, R>,
    rows: Vec<Row>,
) -> Result<Vec<Row>, CompileError> {
    let Some(text) = file.section_by_name(".text").filter(|text| text.size() <= MAX_SEARCHED) else {
        return Ok(rows);
    };
    let code = section_bytes(&text)?;
    let table = Table::new(rows);
    let mut new_rows = trampolines(&table, text.address(), &code);
    if table.is_empty() && !new_rows.is_empty() {
        new_rows.extend(leaves(file, text.address(), &code));
    }
    let mut rows = table.into_rows();
    rows.append(&mut new_rows);
    Ok(rows)
}

/// Maximum number of symbols that are checked. The vDSO has ten.
const MAX_SYMBOLS: usize = 1000;

/// Name of the signal trampoline in the vDSO of 64-bit Arm.
const SIGRETURN: &str = "__kernel_rt_sigreturn";

/// Returns rows for the functions of the 64-bit Arm vDSO, which has no call frame information. A function that
/// neither calls another one nor moves the stack pointer has its return address in x30 and nothing on the stack, from
/// its first instruction to its last.
fn leaves<'data, R: ReadRef<'data>>(file: &object::File<'data, R>, address: u64, code: &[u8]) -> Vec<Row> {
    let symbols = || {
        let all = file.dynamic_symbols().take(MAX_SYMBOLS);
        all.filter(|symbol| symbol.size() > 0)
    };
    if !symbols().any(|symbol| symbol.name() == Ok(SIGRETURN)) {
        return Vec::new();
    }
    let rows = symbols().filter_map(|symbol| {
        let from = symbol.address().checked_sub(address)?;
        let to = from.checked_add(symbol.size())?;
        let body = code.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)?;
        let (first, after) = (address.checked_add(from)?, address.checked_add(to)?);
        (symbol.name() != Ok(SIGRETURN) && is_leaf(body)).then_some([
            Row::plain(u32::try_from(first).ok()?, Rule::Sp),
            Row::plain(u32::try_from(after).ok()?, Rule::None),
        ])
    });
    rows.flatten().collect()
}

/// Returns true if code of 64-bit Arm changes neither x30 nor the stack pointer. Such code contains no calls, no
/// additions to and subtractions from the stack pointer, and no loads and stores that write the stack pointer back or
/// access x30.
fn is_leaf(code: &[u8]) -> bool {
    /// Masks and values of the instructions that a leaf does not contain.
    const DISQUALIFYING_CODE: [(u32, u32); 7] = [
        // bl
        (0xfc00_0000, 0x9400_0000),
        // blr
        (0xffff_fc1f, 0xd63f_0000),
        // add, sub sp, ..., imm
        (0xbf80_001f, 0x9100_001f),
        // add, sub sp, ..., reg
        (0xbfe0_001f, 0x8b20_001f),
        // ldp, stp ..., [sp], imm and ..., [sp, imm]!
        (0x3a80_03e0, 0x2880_03e0),
        // ldr, str ..., [sp], imm and ..., [sp, imm]!
        (0x3b20_07e0, 0x3800_07e0),
        // ldr, str x30, at any address
        (0xff00_001f, 0xf900_001e),
    ];
    let (words, _) = code.as_chunks::<4>();
    words.iter().all(|word| {
        let word = u32::from_le_bytes(*word);
        DISQUALIFYING_CODE.iter().all(|(mask, value)| word & mask != *value)
    })
}

/// Returns rows for signal trampolines in code at `address` that `table` does not cover.
fn trampolines(table: &Table, address: u64, code: &[u8]) -> Vec<Row> {
    memchr::memmem::find_iter(code, &RETURN_OF_SIGNALS)
        .filter_map(|offset| u32::try_from(address.checked_add(offset as u64)?).ok())
        .filter(|start| table.find(*start).is_none_or(|row| row.kind() == Rule::None))
        // The start is a return address, so the unwinder looks up the byte before it.
        .flat_map(|start| {
            [
                Row::plain(start.saturating_sub(1), Rule::Signal),
                Row::plain(start.saturating_add(8), Rule::None),
            ]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Arch;

    #[test]
    fn the_return_of_a_signal_handler_on_64_bit_arm_is_known_by_its_instructions() {
        let mut code = vec![0; 0x20];
        code[0x10..0x18].copy_from_slice(&RETURN_OF_SIGNALS);
        let rows = trampolines(&Table::default(), 0x800, &code);
        assert_eq!(rows, [Row::plain(0x80f, Rule::Signal), Row::plain(0x818, Rule::None)]);
        // If the file describes the code itself, that description applies.
        let table = Table::new(vec![Row::frame_pointers(Arch::Aarch64)]);
        assert_eq!(trampolines(&table, 0x800, &code), []);
        assert_eq!(trampolines(&Table::default(), u64::MAX - 4, &code), []);
    }

    #[test]
    fn code_of_64_bit_arm_that_calls_or_moves_its_stack_pointer_is_no_leaf() {
        // mrs x0, cntvct_el0; ldr x1, [x0, 16]; str x1, [sp, 8]; mov x2, sp; svc 0; ret; stp and ldp with [sp, 16]; stp
        // x0, x1, [x2, -16]!; str x0, [x1, 8]!; stur x0, [sp, -8]; ldr x0, [sp, x1]; cmp x0, 31; cmn sp, 3; add x0, sp,
        // 16
        let leaf = [
            0xd53b_e040,
            0xf940_0801,
            0xf900_07e1,
            0x9100_03e2,
            0xd400_0001,
            0xd65f_03c0,
            0xa901_07e0,
            0xa941_07e0,
            0xa9bf_0440,
            0xf800_8c20,
            0xf81f_83e0,
            0xf861_6be0,
            0xf100_7c1f,
            0xb100_0fff,
            0x9100_43e0_u32,
        ];
        // bl; blr x3; sub sp, sp, 64 (and 1, lsl 12); add sp, sp, 64; add sp, x29, 16; mov sp, x29; sub sp, sp, x9; stp
        // x29, x30, [sp, -128]!; ldp x29, x30, [sp], 128; stp of d8 and w1, str of x30, w1, q0 and the byte of w1 with
        // [sp, -16]!; ldr x30, [sp], 16; str x30, [x1, 16]
        let others = [
            0x9400_0000,
            0xd63f_0060,
            0xd101_03ff,
            0xd140_07ff,
            0x9101_03ff,
            0x9100_43bf,
            0x9100_03bf,
            0xcb29_63ff,
            0xa9b8_7bfd,
            0xa8c8_7bfd,
            0x6dbf_27e8,
            0x29be_0be1,
            0xf81f_0ffe,
            0xb81f_0fe1,
            0x3c9f_0fe0,
            0x381f_0fe1,
            0xf841_07fe,
            0xf900_083e_u32,
        ];
        let is_leaf =
            |words: &[u32]| super::is_leaf(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
        assert!(is_leaf(&leaf));
        for other in others {
            assert!(!is_leaf(&[leaf[0], other, leaf[5]]), "{other:#x}");
        }
    }
}
