//! Walks a copied stack with the same rules as the BPF program.
//!
//! In: registers and the top of a stack as bytes, and how an address finds its table. Out: the return addresses, leaf first, and
//! why the walk ended. Reads nothing but what it is given.

use crate::unwind::row::{Row, Rule};

/// Registers of the interrupted thread and the bytes from its stack pointer up.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// Instruction pointer.
    pub ip: u64,
    /// Stack pointer; the address of the first of `bytes`.
    pub sp: u64,
    /// Frame pointer.
    pub bp: u64,
    /// Stack memory.
    pub bytes: &'a [u8],
}

/// Why a walk ended; the numbers are those of `enum stop` in `bpf/include/records.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stop {
    /// There was no user half: a kernel thread.
    NoUser = 0,
    /// The outermost frame was reached.
    End = 1,
    /// Deeper than is followed.
    Depth = 2,
    /// Stack memory could not be read.
    Read = 3,
    /// The address lies in no known mapping.
    NoMapping = 4,
    /// The table says nothing of the address.
    NoRule = 5,
    /// The rule is of a kind that is not followed.
    Rule = 6,
    /// The next frame is not above this one.
    Order = 7,
    /// The mappings of the process were not known.
    NewProcess = 8,
}

impl Stop {
    /// Every reason.
    pub const ALL: [Self; 9] = [
        Self::NoUser,
        Self::End,
        Self::Depth,
        Self::Read,
        Self::NoMapping,
        Self::NoRule,
        Self::Rule,
        Self::Order,
        Self::NewProcess,
    ];

    /// The reason of a number; `None` for numbers that the program never writes.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// A word for metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoUser => "kernel_thread",
            Self::End => "complete",
            Self::Depth => "too_deep",
            Self::Read => "unreadable_stack",
            Self::NoMapping => "no_mapping",
            Self::NoRule => "no_rule",
            Self::Rule => "complex_rule",
            Self::Order => "broken_chain",
            Self::NewProcess => "new_process",
        }
    }
}

/// What is known of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// No mapping holds it.
    NoMapping,
    /// The mapping has no table: follow frame pointers.
    FramePointers,
    /// The rule that holds there.
    Row(Row),
}

/// Walks the stack. `find` is asked with each address (of the instruction, for callers one byte before the return address).
/// Frames are pushed to `frames`, at most `limit`.
pub fn walk(snapshot: &Snapshot<'_>, limit: usize, find: impl Fn(u64) -> Found, frames: &mut Vec<u64>) -> Stop {
    let mut registers = (snapshot.ip, snapshot.sp, snapshot.bp);
    let mut is_return = false;
    for _ in 0..limit {
        let (ip, sp, bp) = registers;
        frames.push(ip);
        let address = ip.wrapping_sub(u64::from(is_return));
        let row = match find(address) {
            Found::NoMapping => return Stop::NoMapping,
            Found::FramePointers => Row {
                pc: 0,
                cfa: 2,
                bp: -2,
                rule: Rule::Bp as u8,
            },
            Found::Row(row) => row,
        };
        let offset = i64::from(row.cfa) * 8;
        let mut saved_bp = (row.bp != 0).then_some(i64::from(row.bp) * 8);
        let mut caller_bp = bp;
        let cfa = match Rule::from_number(row.rule) {
            Rule::Sp => sp.wrapping_add_signed(offset),
            Rule::Bp if bp == 0 => return Stop::End,
            Rule::Bp => bp.wrapping_add_signed(offset),
            Rule::Plt => sp.wrapping_add(if address & 15 >= 11 { 16 } else { 8 }),
            Rule::BpDeref => {
                let (Some(cfa), Some(outer)) = (read(snapshot, bp.wrapping_add_signed(offset)), read(snapshot, bp))
                else {
                    return Stop::Read;
                };
                saved_bp = None;
                caller_bp = outer;
                cfa
            }
            Rule::Signal => {
                // rt_sigframe of x86-64: bp, sp and ip of the ucontext, from the stack pointer.
                let saved = [120, 160, 168].map(|at| read(snapshot, sp.wrapping_add(at)));
                let [Some(saved_bp), Some(saved_sp), Some(saved_ip)] = saved else {
                    return Stop::Read;
                };
                if saved_ip == 0 {
                    return Stop::End;
                }
                registers = (saved_ip, saved_sp, saved_bp);
                is_return = false;
                continue;
            }
            Rule::End => return Stop::End,
            Rule::None => return Stop::NoRule,
            Rule::Complex => return Stop::Rule,
        };
        if cfa <= sp && frames.len() > 1 {
            return Stop::Order;
        }
        let Some(next) = read(snapshot, cfa.wrapping_sub(8)) else {
            return Stop::Read;
        };
        if let Some(at) = saved_bp {
            match read(snapshot, cfa.wrapping_add_signed(at)) {
                Some(value) => caller_bp = value,
                None => return Stop::Read,
            }
        }
        if next == 0 {
            return Stop::End;
        }
        registers = (next, cfa, caller_bp);
        is_return = true;
    }
    Stop::Depth
}

fn read(snapshot: &Snapshot<'_>, address: u64) -> Option<u64> {
    let offset = usize::try_from(address.checked_sub(snapshot.sp)?).ok()?;
    let bytes = snapshot.bytes.get(offset..offset.checked_add(8)?)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_of_frame_pointers_is_followed_to_its_end() {
        // Two frames: [bp0] = bp1, [bp0 + 8] = return address, [bp1] = 0.
        let words: [u64; 6] = [0, 0x1020, 0x5001, 0, 0, 0x5002];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let snapshot = Snapshot {
            ip: 0x5000,
            sp: 0x1000,
            bp: 0x1008,
            bytes: &bytes,
        };
        let mut frames = Vec::new();
        let stop = walk(&snapshot, 100, |_| Found::FramePointers, &mut frames);
        assert_eq!((stop, frames), (Stop::End, vec![0x5000, 0x5001, 0x5002]));
    }

    #[test]
    fn a_stack_pointer_rule_needs_no_frame_pointer_and_the_copy_ends_the_walk() {
        let words: [u64; 4] = [7, 8, 0x5001, 9];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let snapshot = Snapshot {
            ip: 0x5000,
            sp: 0x1000,
            bp: 0,
            bytes: &bytes,
        };
        let row = Row {
            pc: 0,
            cfa: 3,
            bp: 0,
            rule: Rule::Sp as u8,
        };
        let mut frames = Vec::new();
        let stop = walk(&snapshot, 100, |_| Found::Row(row), &mut frames);
        assert_eq!((stop, frames), (Stop::Read, vec![0x5000, 0x5001]));
    }
}
