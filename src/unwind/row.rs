//! An unwind rule in eight bytes, in the same format as in the BPF program (`bpf/include/records.h`).
//!
//! A row applies from its address to that of the next row. It can represent nearly everything that compilers write.
//! Any other rule becomes [`Rule::Complex`], which ends a walk and is counted.

/// The method by which an unwinder finds the registers of the caller. CFA is DWARF's canonical frame address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Rule {
    /// The addresses have no rule.
    None = 0,
    /// CFA = stack pointer + `cfa`.
    Sp = 1,
    /// CFA = frame pointer + `cfa`.
    Bp = 2,
    /// The outermost frame: there is no caller.
    End = 3,
    /// A signal trampoline: the interrupted registers are in memory.
    Signal = 4,
    /// A stub of the procedure linkage table: CFA = stack pointer + 8, or + 16 if the address modulo 16 is 11 or more.
    Plt = 5,
    /// The call frame information of the addresses cannot be represented by a row.
    Complex = 6,
    /// CFA = the word at frame pointer + `cfa`. The caller's frame pointer is saved at the frame pointer (the
    /// compiler realigned the stack).
    BpDeref = 7,
    /// Like [`Rule::Bp`], but the caller's frame may be at any address, because the function switches stacks.
    Switch = 8,
    /// CFA = the word at stack pointer + `cfa`, plus 8 (assembly that keeps the address of its frame on the stack).
    SpDeref = 9,
    /// CFA = `cfa` + the register whose number is in the high four bits of [`Row::rule`]. Only valid where all
    /// registers are known: at the leaf and after a signal frame.
    Register = 10,
    /// CFA = stack pointer + `cfa`, and the return address is in the register whose number is in the high four bits of
    /// [`Row::rule`]. Only valid where all registers are known.
    Return = 11,
    /// CFA = the third tracked register + `cfa`.
    Aux = 12,
    /// CFA = stack pointer + [`Row::far`], for frames above 256 KiB, on x86-64 only. The high four bits of
    /// [`Row::rule`] are a number: if it is 0, the frame pointer is still in its register, otherwise the frame pointer
    /// is saved at CFA - 8 * number. The third tracked register is lost.
    SpFar = 13,
}

/// Instruction set of a file, as far as it matters for the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arch {
    /// x86-64: a call pushes the return address. The third tracked register is rbx.
    X86_64,
    /// 64-bit Arm: a call leaves the return address in x30, which is the third tracked register.
    Aarch64,
}

impl Arch {
    /// Returns the instruction set of this process, or `None` if its stacks cannot be walked.
    pub fn native() -> Option<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Some(Self::X86_64),
            "aarch64" => Some(Self::Aarch64),
            _ => None,
        }
    }
}

/// The place of the caller's third tracked register, in the high four bits of a [`Row`]'s rule. A number from 2 to 12
/// (to 15 on x86-64) stands for the address CFA - 8 * number.
pub(crate) mod aux {
    /// The value is still in the register.
    pub(crate) const SAME: u8 = 0;
    /// x86-64: the value is not known.
    pub(crate) const LOST: u8 = 1;
    /// 64-bit Arm: the return address is at the base register of the CFA plus `bp` words, and the frame pointer is
    /// still in its register. GCC writes this for frames of any size without a frame pointer.
    pub(crate) const RETURN_AT_BASE: u8 = 1;
    /// 64-bit Arm: the frame pointer is at the base register of the CFA plus `bp` words, and the return address is in
    /// the next word. GCC writes this for large frames, whose distance from the CFA does not fit into a row.
    pub(crate) const RECORD_AT_BASE: u8 = 13;
    /// 64-bit Arm: the frame pointer is saved in the word below the stack pointer, and the return address in the word
    /// at the stack pointer (Go).
    pub(crate) const BELOW: u8 = 14;
    /// 64-bit Arm: the return address is in the word after the saved frame pointer.
    pub(crate) const AFTER: u8 = 15;
}

impl Rule {
    /// Returns the rule whose number is in the low four bits of `number`, as in the BPF program.
    pub(crate) fn from_number(number: u8) -> Self {
        match number & 15 {
            1 => Self::Sp,
            2 => Self::Bp,
            3 => Self::End,
            4 => Self::Signal,
            5 => Self::Plt,
            6 => Self::Complex,
            7 => Self::BpDeref,
            8 => Self::Switch,
            9 => Self::SpDeref,
            10 => Self::Register,
            11 => Self::Return,
            12 => Self::Aux,
            13 => Self::SpFar,
            _ => Self::None,
        }
    }
}

/// A rule and the address at which it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Row {
    /// First address to which the row applies (virtual address before relocation, as in the file's tables).
    pub pc: u32,
    /// Offset of the CFA from its register, in units of 8 bytes.
    pub cfa: i16,
    /// Position of the caller's saved frame pointer, relative to the CFA in units of 8 bytes; 0 if the frame pointer is
    /// still in its register.
    pub bp: i8,
    /// Number of the [`Rule`] in the low four bits. The high four bits are a register for [`Rule::Register`] and
    /// [`Rule::Return`], the place of the frame pointer for [`Rule::SpFar`], and otherwise the place of the third
    /// tracked register ([`aux`]).
    pub rule: u8,
}

impl Row {
    pub fn plain(pc: u32, rule: Rule) -> Self {
        Self {
            pc,
            cfa: 0,
            bp: 0,
            rule: rule as u8,
        }
    }

    pub fn kind(&self) -> Rule {
        Rule::from_number(self.rule)
    }

    /// Returns the high four bits of `rule`.
    pub(crate) fn extra(&self) -> u8 {
        self.rule >> 4
    }

    /// Creates a row of [`Rule::SpFar`] with the CFA `offset` bytes above the stack pointer and the position `bp` of
    /// the frame pointer. Returns `None` if the offset does not fit.
    pub(crate) fn sp_far(pc: u32, offset: i64, bp: u8) -> Option<Self> {
        let words = u32::try_from(offset).ok().filter(|bytes| bytes % 8 == 0)? / 8;
        let [low, middle, high, 0] = words.to_le_bytes() else {
            return None;
        };
        Some(Self {
            pc,
            cfa: i16::from_le_bytes([low, middle]),
            bp: i8::from_le_bytes([high]),
            rule: Rule::SpFar as u8 | bp << 4,
        })
    }

    /// Returns the number of bytes that [`Rule::SpFar`] adds to the stack pointer. `cfa` and `bp` form one unsigned
    /// number of words.
    pub(crate) fn far_offset(&self) -> u64 {
        let ([low, middle], [high]) = (self.cfa.to_le_bytes(), self.bp.to_le_bytes());
        u64::from(u32::from_le_bytes([low, middle, high, 0])) * 8
    }

    /// Returns the row that is used for a file without a table. It follows the chain of frame pointers.
    pub(crate) fn frame_pointers(arch: Arch) -> Self {
        let extra = match arch {
            Arch::X86_64 => aux::LOST,
            Arch::Aarch64 => aux::AFTER,
        };
        Self {
            pc: 0,
            cfa: 2,
            bp: -2,
            rule: Rule::Bp as u8 | extra << 4,
        }
    }

    /// Returns true if the rules are equal, wherever they begin.
    pub(crate) fn has_same_rule(&self, other: &Self) -> bool {
        (self.cfa, self.bp, self.rule) == (other.cfa, other.bp, other.rule)
    }
}

/// Returns the row of sorted `rows` that applies at `pc`.
pub(crate) fn find(rows: &[Row], pc: u32) -> Option<&Row> {
    let after = rows.partition_point(|row| row.pc <= pc);
    rows.get(after.checked_sub(1)?)
}

/// The rows of one file, sorted by address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// Sorts rows and drops those that repeat the rule of the row before. If several rows have the same address, the
    /// last one counts, but a gap ([`Rule::None`]) never replaces a rule.
    pub fn new(mut rows: Vec<Row>) -> Self {
        let key = |row: &Row| (row.pc, row.rule != Rule::None as u8);
        // A sort needs half as much memory again, so rows that an earlier call has sorted are not sorted again.
        if !rows.is_sorted_by_key(key) {
            rows.sort_by_key(key);
        }
        // The loop works in place: the first `kept` rows are the result so far, and each later row is read once.
        let mut kept = 0;
        for index in 0..rows.len() {
            let row = rows[index];
            if kept > 0 && rows[kept - 1].pc == row.pc {
                rows[kept - 1] = row;
                // Drop the row if it now repeats its predecessor.
                if kept >= 2 && rows[kept - 2].has_same_rule(&row) {
                    kept -= 1;
                }
            } else if kept == 0 || !rows[kept - 1].has_same_rule(&row) {
                rows[kept] = row;
                kept += 1;
            }
        }
        rows.truncate(kept);
        rows.shrink_to_fit();
        Self { rows }
    }

    pub(crate) fn into_rows(self) -> Vec<Row> {
        self.rows
    }

    /// Returns the rows, sorted by address. No two neighbours are alike.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Replaces the rules for `from..to` with the rows of `replacement`.
    pub fn overlay(self, replacement: Vec<Row>, from: u32, to: u32) -> Self {
        let after = self.find(to).copied();
        let mut rows = self.rows;
        rows.retain(|row| row.pc < from || row.pc >= to);
        rows.extend(replacement.into_iter().filter(|row| row.pc >= from && row.pc < to));
        let resumes = rows.iter().any(|row| row.pc == to);
        if !resumes {
            rows.push(after.map_or(Row::plain(to, Rule::None), |row| Row { pc: to, ..row }));
        }
        Self::new(rows)
    }

    /// Returns the row that applies at `pc`.
    pub fn find(&self, pc: u32) -> Option<&Row> {
        find(&self.rows, pc)
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn bytes(&self) -> usize {
        self.rows.len() * size_of::<Row>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_sorted_without_repeats_and_a_rule_wins_over_a_gap() {
        let sp = |pc, cfa| Row {
            pc,
            cfa,
            bp: 0,
            rule: Rule::Sp as u8,
        };
        let table = Table::new(vec![
            sp(20, 1),
            sp(10, 1),
            sp(14, 2),
            sp(16, 2),
            Row::plain(20, Rule::None),
            Row::plain(30, Rule::None),
        ]);
        assert_eq!(
            table.rows(),
            [sp(10, 1), sp(14, 2), sp(20, 1), Row::plain(30, Rule::None)]
        );
        assert_eq!(table.find(9), None);
        assert_eq!(table.find(15), Some(&sp(14, 2)));
        assert_eq!(table.find(99).map(|row| row.rule), Some(Rule::None as u8));
    }

    #[test]
    fn a_far_frame_is_as_large_as_it_was_said_to_be() {
        for offset in [262_144, 540_080, 8 * 0xff_ffff] {
            let row = Row::sp_far(7, offset, 6).unwrap();
            assert_eq!(
                (row.far_offset(), row.kind(), row.extra()),
                (offset as u64, Rule::SpFar, 6)
            );
        }
        for offset in [-8, 540_081, 8 * 0x100_0000, i64::MAX] {
            assert_eq!(Row::sp_far(7, offset, 6), None);
        }
    }

    #[test]
    fn a_row_takes_eight_bytes() {
        assert_eq!(size_of::<Row>(), 8);
    }
}
