//! Unwind rows of Go functions, which have no `.eh_frame`. For each instruction, Go's function table contains the
//! distance of the stack pointer from its value at the call.
//!
//! Go keeps a chain of frame pointers across its switches between stacks (of a goroutine and of the thread), so the
//! functions that switch stacks are unwound by frame pointer.

use crate::row::{Arch, Row, Rule, aux};

#[derive(Debug, Clone, Copy)]
pub struct Function<'a> {
    pub start: u64,
    /// End address (exclusive).
    pub end: u64,
    /// True if the function is the outermost frame.
    pub is_top: bool,
    /// True if the function switches to another stack.
    pub switches: bool,
    /// True if a signal handler returns to the function.
    pub is_signal_return: bool,
    /// For each piece of the code, its end address and the number of bytes by which the stack pointer is below its
    /// value at the call.
    pub offsets: &'a [(u64, i64)],
}

/// Appends the rows of a function to `into`.
pub fn rows(arch: Arch, function: &Function<'_>, into: &mut Vec<Row>) {
    let Ok(start) = u32::try_from(function.start) else {
        return;
    };
    if function.is_signal_return {
        into.push(Row::plain(start.saturating_sub(1), Rule::Signal));
        return;
    }
    if function.is_top {
        into.push(Row::plain(start, Rule::End));
        return;
    }
    let deepest = function.offsets.iter().map(|(_, offset)| *offset).max().unwrap_or(0);
    let mut from = start;
    for (index, (end, offset)) in function.offsets.iter().enumerate() {
        let Ok(end) = u32::try_from(*end) else { return };
        if end < from {
            return;
        }
        let at_entry = index == 0 && *offset == 0 && deepest > 0;
        let row = if function.switches && !at_entry {
            switching(arch, deepest)
        } else {
            plain(arch, *offset)
        };
        into.push(row.map_or(Row::plain(from, Rule::Complex), |row| Row { pc: from, ..row }));
        from = end;
    }
}

/// Returns the row that finds the caller by the stack pointer.
fn plain(arch: Arch, offset: i64) -> Option<Row> {
    let words = eighths(offset)?;
    Some(match arch {
        // The function first pushes the frame pointer.
        Arch::X86_64 => Row {
            pc: 0,
            cfa: words.checked_add(1)?,
            bp: if words > 0 { -2 } else { 0 },
            rule: Rule::Sp as u8 | aux::LOST << 4,
        },
        Arch::Aarch64 => Row {
            pc: 0,
            cfa: words,
            bp: 0,
            rule: Rule::Sp as u8 | if words > 0 { aux::BELOW } else { aux::SAME } << 4,
        },
    })
}

/// Returns the row that finds the caller by the frame pointer, for functions that switch stacks.
fn switching(arch: Arch, deepest: i64) -> Option<Row> {
    Some(match arch {
        Arch::X86_64 => Row {
            pc: 0,
            cfa: 2,
            bp: -2,
            rule: Rule::Switch as u8 | aux::LOST << 4,
        },
        Arch::Aarch64 => {
            // The frame pointer points to one word below the function's frame.
            let words = eighths(deepest)?.checked_add(1)?;
            Row {
                pc: 0,
                cfa: words,
                bp: i8::try_from(words).ok()?.checked_neg()?,
                rule: Rule::Switch as u8 | aux::AFTER << 4,
            }
        }
    })
}

fn eighths(offset: i64) -> Option<i16> {
    (offset >= 0 && offset % 8 == 0)
        .then(|| i16::try_from(offset / 8).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_followed_by_its_stack_pointer_and_one_that_changes_stacks_by_its_frame_pointer() {
        let offsets = [(0x1001, 0), (0x1010, 24), (0x1011, 0)];
        let mut function = Function {
            start: 0x1000,
            end: 0x1020,
            is_top: false,
            switches: false,
            is_signal_return: false,
            offsets: &offsets,
        };
        let mut compiled = Vec::new();
        rows(Arch::X86_64, &function, &mut compiled);
        let columns: Vec<_> = compiled
            .iter()
            .map(|row| (row.pc, row.kind(), row.cfa, row.bp))
            .collect();
        assert_eq!(
            columns,
            [
                (0x1000, Rule::Sp, 1, 0),
                (0x1001, Rule::Sp, 4, -2),
                (0x1010, Rule::Sp, 1, 0)
            ]
        );
        function.switches = true;
        compiled.clear();
        rows(Arch::X86_64, &function, &mut compiled);
        assert_eq!(compiled[0].kind(), Rule::Sp);
        assert_eq!(compiled[1].kind(), Rule::Switch);
        compiled.clear();
        rows(Arch::Aarch64, &function, &mut compiled);
        assert_eq!(
            (compiled[1].cfa, compiled[1].bp, compiled[1].extra()),
            (4, -4, aux::AFTER)
        );
        function.is_top = true;
        compiled.clear();
        rows(Arch::Aarch64, &function, &mut compiled);
        assert_eq!(compiled, [Row::plain(0x1000, Rule::End)]);
    }
}
