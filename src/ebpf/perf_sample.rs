//! Converts samples of a perf event, with registers and stack, to the record format of the BPF program. Does no I/O.
//!
//! The profiler uses these samples on systems that allow perf_event_open(2) but deny bpf(2). The kernel stack arrives
//! as addresses. For the user stack, each tick copies the registers and the top of the stack, and the profiler walks
//! this copy in user space.

use crate::bytes::{u32_at, u64_at};
use crate::records::{self, Head};
use alluvium_unwind::walk::{self, Snapshot};

/// The fields of a sample: PERF_SAMPLE_TID, TIME, CALLCHAIN, PERIOD, REGS_USER and STACK_USER.
pub(crate) const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 5 | 1 << 8 | 1 << 12 | 1 << 13;
/// Number of bytes of the stack that are copied.
pub(crate) const STACK_BYTES: u32 = 16 << 10;
/// The copied registers, as bits (asm/perf_regs.h).
pub(super) const REGISTERS: u64 = if cfg!(target_arch = "x86_64") { X86_64 } else { ARM64 };
/// The copied registers on x86-64: ax, bx, cx, dx, si, di, bp, sp, ip, and r8 to r15.
const X86_64: u64 = 0x1ff | 0xff << 16;
/// The copied registers on arm64: frame pointer, return address, stack pointer and instruction pointer.
const ARM64: u64 = 0xf << 29;

/// Number of copied registers. They are in the order of their bits.
const COPIED: usize = REGISTERS.count_ones() as usize;

/// Instruction pointer, stack pointer, frame pointer, the third tracked register (bx on x86-64, the return address on
/// arm64), and all registers by their DWARF numbers (zeros on arm64).
type TrackedRegisters = (u64, u64, u64, u64, [u64; walk::REGISTERS]);

/// Arranges the copied registers by purpose. The number of registers identifies the architecture, so that tests on
/// either architecture can cover the code for both.
fn arrange(registers: &[u64]) -> Option<TrackedRegisters> {
    match *registers {
        [ax, bx, cx, dx, si, di, bp, sp, ip, r8, r9, r10, r11, r12, r13, r14, r15] => {
            let dwarf = [ax, dx, cx, bx, si, di, bp, sp, r8, r9, r10, r11, r12, r13, r14, r15];
            Some((ip, sp, bp, bx, dwarf))
        }
        [fp, lr, sp, pc] => Some((pc, sp, fp, lr, [0; walk::REGISTERS])),
        _ => None,
    }
}

/// Maximum number of kernel frames, as in the BPF program.
const MAX_KERNEL_FRAMES: usize = 127;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sample {
    Idle,
    /// A sample of a task, with its time on CLOCK_MONOTONIC in nanoseconds.
    Task(u64),
}

/// Appends the body of a PERF_RECORD_SAMPLE to `out` as a record of the BPF program. Returns `None` and appends
/// nothing if the body is malformed.
pub(super) fn encode(body: &[u8], out: &mut Vec<u8>) -> Option<Sample> {
    let (pid, tid) = (u32_at(body, 0)?, u32_at(body, 4)?);
    let time = u64_at(body, 8)?;
    let period = u64_at(body, 16)?;
    if pid == 0 {
        return Some(Sample::Idle);
    }
    let chain = usize::try_from(u64_at(body, 24)?).ok()?;
    let chain_end = chain.checked_mul(8)?.checked_add(32)?;
    let (addresses, _) = body.get(32..chain_end)?.as_chunks::<8>();
    let mut kernel = [0_u64; MAX_KERNEL_FRAMES];
    let mut kernel_frames = 0;
    for address in addresses {
        let address = u64::from_ne_bytes(*address);
        // Values in the last page of the address space are context markers and not addresses.
        if address < u64::MAX - 4095
            && let Some(slot) = kernel.get_mut(kernel_frames)
        {
            *slot = address;
            kernel_frames += 1;
        }
    }
    let kernel = kernel.get(..kernel_frames)?;
    let mut offset = chain_end;
    let abi = u64_at(body, offset)?;
    offset += 8;
    let mut registers = [0_u64; COPIED];
    if abi != 0 {
        for register in &mut registers {
            *register = u64_at(body, offset)?;
            offset += 8;
        }
    }
    let copied_bytes = usize::try_from(u64_at(body, offset)?).ok()?;
    offset += 8;
    let mut stack: &[u8] = &[];
    if copied_bytes > 0 {
        let bytes = body.get(offset..offset.checked_add(copied_bytes)?)?;
        let used = usize::try_from(u64_at(body, offset + copied_bytes)?).ok()?;
        stack = bytes.get(..used.min(bytes.len()))?;
    }
    let head = Head { time, pid, tid, period };
    if abi == 0 {
        records::write_kernel_only(out, head, kernel);
    } else {
        let (ip, sp, bp, aux, dwarf) = arrange(&registers)?;
        let snapshot = Snapshot {
            ip,
            sp,
            bp,
            aux,
            registers: dwarf,
            bytes: stack,
        };
        records::write_snapshot(out, head, kernel, &snapshot);
    }
    Some(Sample::Task(time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{Record, User};

    fn with_registers() -> Vec<u8> {
        let mut words = vec![2];
        words.extend((0..COPIED as u64).map(|index| 10 + index));
        words.extend([16, 0x11, 0x22, 8]);
        body(&words)
    }

    fn without_registers() -> Vec<u8> {
        body(&[0, 0])
    }

    /// Creates a sample of a kernel stack, with `extra_words` after it.
    fn body(extra_words: &[u64]) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend_from_slice(&7_u32.to_ne_bytes());
        body.extend_from_slice(&8_u32.to_ne_bytes());
        let words = [1000, 5_000_000, 3, u64::MAX - 127, 0xffff_0001, 0xffff_0002];
        for word in words.iter().chain(extra_words) {
            body.extend_from_slice(&word.to_ne_bytes());
        }
        body
    }

    #[test]
    fn a_sample_becomes_a_record_of_the_program() {
        let mut out = Vec::new();
        assert_eq!(encode(&with_registers(), &mut out), Some(Sample::Task(1000)));
        let record = Record::parse(&out).unwrap();
        assert_eq!((record.pid, record.period), (7, 5_000_000));
        assert_eq!(record.kernel().iter().collect::<Vec<_>>(), [0xffff_0001, 0xffff_0002]);
        let User::Snapshot(snapshot) = record.user else {
            panic!("{record:?}")
        };
        let expected = if cfg!(target_arch = "x86_64") {
            (18, 17, 16, 11)
        } else {
            (13, 12, 10, 11)
        };
        assert_eq!((snapshot.ip, snapshot.sp, snapshot.bp, snapshot.aux), expected);
        assert_eq!(snapshot.bytes, 0x11_u64.to_ne_bytes());
        out.clear();
        assert!(encode(&without_registers(), &mut out).is_some());
        assert!(matches!(Record::parse(&out).unwrap().user, User::Frames(_)));
    }

    #[test]
    fn registers_of_both_machines_are_arranged() {
        let bits = |mask: u64| (0..u64::from(mask.count_ones())).collect::<Vec<u64>>();
        let (ip, sp, bp, bx, dwarf) = arrange(&bits(X86_64)).unwrap();
        assert_eq!((ip, sp, bp, bx, dwarf[3], dwarf[15]), (8, 7, 6, 1, 1, 16));
        let (pc, sp, fp, lr, _) = arrange(&bits(ARM64)).unwrap();
        assert_eq!((pc, sp, fp, lr), (3, 2, 0, 1));
        assert_eq!(arrange(&bits(0x7)), None);
    }

    #[test]
    fn a_short_sample_is_refused_and_nothing_is_written() {
        let sample = with_registers();
        for length in 0..sample.len() {
            let mut out = Vec::new();
            assert_eq!(encode(&sample[..length], &mut out), None, "{length} bytes");
            assert!(out.is_empty());
        }
    }
}
