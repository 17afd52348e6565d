//! Walks a copied stack with the same rules as the BPF program.
//!
//! In: registers and the top of a stack as bytes, and a function that finds the rule for an address. Out: the address
//! of the leaf, the return addresses of its callers, and the reason why the walk ended. The walk reads only its
//! arguments.

use crate::row::{Arch, Row, Rule, aux};

/// Registers of the interrupted thread, and the bytes from its stack pointer upwards.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    pub ip: u64,
    /// Stack pointer, which is the address of the first of `bytes`.
    pub sp: u64,
    pub bp: u64,
    /// The third tracked register: rbx on x86-64, x30 on 64-bit Arm.
    pub aux: u64,
    /// All registers by their DWARF numbers, x86-64 only.
    pub registers: [u64; REGISTERS],
    pub bytes: &'a [u8],
}

/// Number of registers of a [`Snapshot`].
pub const REGISTERS: usize = 16;

/// A [`Snapshot`] that owns its bytes.
#[derive(Debug, Clone)]
pub struct OwnedSnapshot {
    /// All fields of the snapshot except the bytes.
    registers: Snapshot<'static>,
    bytes: Vec<u8>,
}

impl From<&Snapshot<'_>> for OwnedSnapshot {
    fn from(snapshot: &Snapshot<'_>) -> Self {
        Self {
            registers: Snapshot {
                bytes: &[],
                ..*snapshot
            },
            bytes: snapshot.bytes.to_vec(),
        }
    }
}

impl OwnedSnapshot {
    pub fn borrow(&self) -> Snapshot<'_> {
        Snapshot {
            bytes: &self.bytes,
            ..self.registers
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct FrameState {
    ip: u64,
    sp: u64,
    bp: u64,
    aux: u64,
    /// All registers, if they are known: at the leaf and after a signal frame.
    all: Option<[u64; REGISTERS]>,
}

/// The reason why a walk ended. The numbers are those of `enum stop` in `bpf/include/records.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stop {
    /// The thread is a kernel thread and has no user stack.
    NoUser = 0,
    /// The walk reached the outermost frame.
    End = 1,
    /// The stack is deeper than the limit.
    Depth = 2,
    /// Stack memory could not be read.
    Read = 3,
    /// The address lies in no known mapping.
    NoMapping = 4,
    /// The table has no rule for the address.
    NoRule = 5,
    /// The walk does not follow this kind of rule.
    Rule = 6,
    /// The chain of frames is broken: the caller's frame is not above the frame of the function that it called.
    Order = 7,
    /// The mappings of the process were not known.
    NewProcess = 8,
    /// The table of the file was not available yet.
    NoTable = 9,
}

impl Stop {
    pub const ALL: [Self; 10] = [
        Self::NoUser,
        Self::End,
        Self::Depth,
        Self::Read,
        Self::NoMapping,
        Self::NoRule,
        Self::Rule,
        Self::Order,
        Self::NewProcess,
        Self::NoTable,
    ];

    /// Returns the reason with a number, or `None` for numbers that the BPF program never writes.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

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
            Self::NoTable => "no_table",
        }
    }
}

/// The result of looking up the rule for an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleLookup {
    NoMapping,
    /// The mapping has no table. The walk follows frame pointers.
    FramePointers,
    /// The rule that applies at the address.
    Row(Row),
    /// The table is not available yet. The caller retries the walk later.
    NoTable,
}

/// Address bits of a 64-bit Arm pointer. The other bits may contain a signature.
const ADDRESS_BITS: u64 = 0x0000_ffff_ffff_ffff;

/// Walks the stack. Calls `find` with an address of each frame: the address of the instruction, or for a caller the
/// address of the byte before the return address. Pushes at most `limit` frames to `frames`.
pub fn walk(
    arch: Arch,
    snapshot: &Snapshot<'_>,
    limit: usize,
    find: impl Fn(u64) -> RuleLookup,
    frames: &mut Vec<u64>,
) -> Stop {
    let mut frame = FrameState {
        ip: snapshot.ip,
        sp: snapshot.sp,
        bp: snapshot.bp,
        aux: match arch {
            Arch::X86_64 => snapshot.aux,
            Arch::Aarch64 => snapshot.aux & ADDRESS_BITS,
        },
        all: Some(snapshot.registers),
    };
    for _ in 0..limit {
        frames.push(frame.ip);
        // Except at the leaf and after a signal frame, the address is a return address, and the rule of the byte before
        // it applies.
        let address = frame.ip.wrapping_sub(u64::from(frame.all.is_none()));
        let row = match find(address) {
            RuleLookup::NoMapping => return Stop::NoMapping,
            RuleLookup::FramePointers => Row::frame_pointers(arch),
            RuleLookup::Row(row) => row,
            RuleLookup::NoTable => return Stop::NoTable,
        };
        match caller(arch, snapshot, &frame, address, row) {
            Ok(next) => frame = next,
            Err(stop) => return stop,
        }
    }
    Stop::Depth
}

/// Computes the registers of the caller, with the same steps as `step` of `bpf/profiler.bpf.c`.
fn caller(arch: Arch, snapshot: &Snapshot<'_>, frame: &FrameState, address: u64, row: Row) -> Result<FrameState, Stop> {
    let word = |address: u64| read(snapshot, address).ok_or(Stop::Read);
    let offset = i64::from(row.cfa) * 8;
    let rule = row.kind();
    let mut extra = row.extra();
    let mut bp_offset = i64::from(row.bp) * 8;
    let mut next = *frame;
    let mut ip = None;
    let cfa = match rule {
        Rule::Sp => frame.sp.wrapping_add_signed(offset),
        Rule::Bp | Rule::Switch if frame.bp == 0 => return Err(Stop::End),
        Rule::Bp | Rule::Switch => frame.bp.wrapping_add_signed(offset),
        Rule::End => return Err(Stop::End),
        Rule::None => return Err(Stop::NoRule),
        Rule::Signal => return interrupted(arch, snapshot, frame.sp),
        Rule::Plt if arch == Arch::X86_64 => frame.sp.wrapping_add(if address & 15 >= 11 { 16 } else { 8 }),
        Rule::BpDeref if arch == Arch::X86_64 => {
            next.bp = word(frame.bp)?;
            bp_offset = 0;
            word(frame.bp.wrapping_add_signed(offset))?
        }
        Rule::SpDeref if arch == Arch::X86_64 => word(frame.sp.wrapping_add_signed(offset))?.wrapping_add(8),
        Rule::Aux if arch == Arch::X86_64 && frame.aux != 0 => frame.aux.wrapping_add_signed(offset),
        Rule::SpFar if arch == Arch::X86_64 => {
            bp_offset = -8 * i64::from(extra);
            extra = aux::LOST;
            frame.sp.wrapping_add(row.far_offset())
        }
        Rule::Register | Rule::Return if arch == Arch::X86_64 => {
            let register_value = frame.all.and_then(|all| all.get(usize::from(extra)).copied());
            let value = register_value.ok_or(Stop::Rule)?;
            extra = aux::SAME;
            if rule == Rule::Return {
                ip = Some(value);
                frame.sp.wrapping_add_signed(offset)
            } else {
                value.wrapping_add_signed(offset)
            }
        }
        _ => return Err(Stop::Rule),
    };
    let is_return = frame.all.is_none();
    if cfa <= frame.sp && is_return && rule != Rule::Switch {
        return Err(Stop::Order);
    }
    // A leaf that is about to return may have restored a register already, but its rule still contains the address at
    // which the register was saved. That address is below the stack pointer and so not in the copy. In this case, the
    // register itself contains the value.
    let word_or = |register: u64, slot: u64| match word(slot) {
        Err(Stop::Read) if !is_return && slot < frame.sp => Ok(register),
        read => read,
    };
    let mut bp_slot = cfa.wrapping_add_signed(bp_offset);
    let saved = |number: u8| cfa.wrapping_sub(8 * u64::from(number));
    let ip = match (arch, extra) {
        (Arch::X86_64, _) => {
            next.aux = match extra {
                aux::SAME => frame.aux,
                aux::LOST => 0,
                number => word_or(frame.aux, saved(number)).unwrap_or(0),
            };
            match ip {
                Some(ip) => ip,
                None => word(cfa.wrapping_sub(8))?,
            }
        }
        // Only a leaf still has the return address in the register.
        (Arch::Aarch64, aux::SAME) if is_return => return Err(Stop::Order),
        (Arch::Aarch64, aux::SAME) => frame.aux,
        (Arch::Aarch64, aux::RETURN_AT_BASE) => {
            let return_slot = base(frame, rule).wrapping_add_signed(bp_offset);
            bp_offset = 0;
            word(return_slot)?
        }
        (Arch::Aarch64, aux::RECORD_AT_BASE) => {
            bp_slot = base(frame, rule).wrapping_add_signed(bp_offset);
            bp_offset = 8;
            word(bp_slot.wrapping_add(8))?
        }
        (Arch::Aarch64, aux::BELOW) => {
            bp_slot = frame.sp.wrapping_sub(8);
            bp_offset = -8;
            word(frame.sp)?
        }
        (Arch::Aarch64, aux::AFTER) => word(bp_slot.wrapping_add(8))?,
        (Arch::Aarch64, number) => word(saved(number))?,
    };
    if arch == Arch::Aarch64 {
        next.aux = 0;
    }
    if bp_offset != 0 {
        next.bp = word_or(frame.bp, bp_slot)?;
    }
    next.ip = match arch {
        Arch::X86_64 => ip,
        Arch::Aarch64 => ip & ADDRESS_BITS,
    };
    if next.ip == 0 {
        return Err(Stop::End);
    }
    next.sp = cfa;
    next.all = None;
    Ok(next)
}

/// Returns the value of the register that the CFA is relative to.
fn base(frame: &FrameState, rule: Rule) -> u64 {
    if rule == Rule::Sp { frame.sp } else { frame.bp }
}

/// Returns the registers of the code that a signal interrupted, from the kernel's frame above `sp`.
fn interrupted(arch: Arch, snapshot: &Snapshot<'_>, sp: u64) -> Result<FrameState, Stop> {
    let word = |offset: u64| read(snapshot, sp.wrapping_add(offset)).ok_or(Stop::Read);
    let frame = match arch {
        Arch::X86_64 => {
            /// DWARF numbers of r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx and rsp, in the order of the ucontext,
            /// which contains them from offset 40 on.
            const ORDER: [usize; REGISTERS] = [8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7];
            let mut all = [0; REGISTERS];
            for (index, register) in ORDER.into_iter().enumerate() {
                all[register] = word(40 + 8 * index as u64)?;
            }
            FrameState {
                ip: word(168)?,
                sp: all[7],
                bp: all[6],
                aux: all[3],
                all: Some(all),
            }
        }
        Arch::Aarch64 => FrameState {
            bp: word(544)?,
            aux: word(552)? & ADDRESS_BITS,
            sp: word(560)?,
            ip: word(568)?,
            all: Some([0; REGISTERS]),
        },
    };
    if frame.ip == 0 { Err(Stop::End) } else { Ok(frame) }
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
            aux: 0,
            registers: [0; REGISTERS],
            bytes: &bytes,
        };
        let mut frames = Vec::new();
        let stop = walk(Arch::X86_64, &snapshot, 100, |_| RuleLookup::FramePointers, &mut frames);
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
            aux: 0,
            registers: [0; REGISTERS],
            bytes: &bytes,
        };
        let row = Row {
            pc: 0,
            cfa: 3,
            bp: 0,
            rule: Rule::Sp as u8,
        };
        let mut frames = Vec::new();
        let stop = walk(Arch::X86_64, &snapshot, 100, |_| RuleLookup::Row(row), &mut frames);
        assert_eq!((stop, frames), (Stop::Read, vec![0x5000, 0x5001]));
    }

    #[test]
    fn a_leaf_that_has_restored_its_registers_has_them_though_they_are_said_to_lie_below_the_stack() {
        // `pop rbp` is done and `ret` follows. The caller's CFA is 16 bytes above the address in rbp and in rbx.
        let words: [u64; 4] = [0x5001, 7, 0, 0x7001];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let snapshot = Snapshot {
            ip: 0x6000,
            sp: 0x1000,
            bp: 0x1010,
            aux: 0x1010,
            registers: [0; REGISTERS],
            bytes: &bytes,
        };
        let row = |rule: Rule, cfa, bp, extra: u8| {
            RuleLookup::Row(Row {
                pc: 0,
                cfa,
                bp,
                rule: rule as u8 | extra << 4,
            })
        };
        for caller in [Rule::Bp, Rule::Aux] {
            let find = |address| match address {
                0x6000 => row(Rule::Sp, 1, -2, 3),
                0x5000 => row(caller, 2, 0, aux::SAME),
                _ => row(Rule::End, 0, 0, 0),
            };
            let mut frames = Vec::new();
            let stop = walk(Arch::X86_64, &snapshot, 100, find, &mut frames);
            assert_eq!((stop, frames), (Stop::End, vec![0x6000, 0x5001, 0x7001]));
        }
    }
}
