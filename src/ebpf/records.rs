//! Records that the BPF program writes to its ring, as borrowed views. `bpf/include/records.h` defines the layout.

use crate::bytes::{u16_at, u32_at, u64_at};
use alluvium_unwind::Stop;
use alluvium_unwind::walk::{REGISTERS, Snapshot};

/// Length of `struct record`.
const HEAD: usize = 64;
/// Offset of the registers in `struct snapshot_record`.
const SNAPSHOT_REGISTERS: usize = HEAD + 40;
/// Offset of the kernel frames in `struct snapshot_record`. The bytes of the stack follow them.
const SNAPSHOT_KERNEL: usize = SNAPSHOT_REGISTERS + REGISTERS * 8;

/// One tick of the CPU clock, with the stack of the task that was running.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    /// Time on CLOCK_MONOTONIC in nanoseconds.
    pub time: u64,
    pub pid: u32,
    /// The CPU on which the tick occurred.
    pub cpu: u32,
    /// Start of the process on CLOCK_BOOTTIME in nanoseconds. Together with the id it identifies the process.
    pub start: u64,
    /// Name of the thread, padded with zeros.
    pub comm: [u8; 16],
    /// The reason why the walk of the user stack ended.
    pub stop: Stop,
    /// Nanoseconds of CPU time that the tick stands for.
    pub period: u64,
    /// Key of the unwind table that the BPF program lacked; 0 for none.
    pub missing: u32,
    /// Kernel frames, leaf first, as the bytes of addresses.
    kernel: &'a [u8],
    pub user: User<'a>,
}

/// The user stack of a tick.
#[derive(Debug, Clone, Copy)]
pub(crate) enum User<'a> {
    Frames(Addresses<'a>),
    /// Registers and bytes of the stack, which the worker walks.
    Snapshot(Snapshot<'a>),
    /// Like a snapshot, but the frames of the same tick follow in the next record of this CPU.
    Copy(Snapshot<'a>),
}

/// Values of a record's head, from the callers of [`write_kernel_only`] and [`write_snapshot`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    /// Time on CLOCK_MONOTONIC in nanoseconds.
    pub time: u64,
    pub pid: u32,
    pub tid: u32,
    /// Nanoseconds of CPU time that the tick stands for.
    pub period: u64,
}

/// Returns the time of a record without parsing its other fields.
pub(crate) fn time_of(bytes: &[u8]) -> Option<u64> {
    u64_at(bytes, 0)
}

/// Appends a record with kernel frames only, such as that of a kernel thread.
pub(crate) fn write_kernel_only(out: &mut Vec<u8>, head: Head, kernel: &[u64]) {
    write_head(out, head, 1, kernel.len(), 0);
    kernel
        .iter()
        .for_each(|address| out.extend_from_slice(&address.to_ne_bytes()));
}

/// Appends a record with a copy of the stack.
pub(crate) fn write_snapshot(out: &mut Vec<u8>, head: Head, kernel: &[u64], snapshot: &Snapshot<'_>) {
    let stack = snapshot.bytes;
    write_head(out, head, 2, kernel.len(), stack.len());
    let missing = 0;
    let first = [snapshot.ip, snapshot.sp, snapshot.bp, snapshot.aux, missing];
    for word in first.iter().chain(&snapshot.registers).chain(kernel) {
        out.extend_from_slice(&word.to_ne_bytes());
    }
    out.extend_from_slice(stack);
}

fn write_head(out: &mut Vec<u8>, head: Head, kind: u8, kernel_frames: usize, stack_bytes: usize) {
    let stop = if kind == 1 { Stop::NoUser } else { Stop::NewProcess };
    out.extend_from_slice(&head.time.to_ne_bytes());
    out.extend_from_slice(&0_u64.to_ne_bytes());
    for number in [head.pid, head.tid, 0] {
        out.extend_from_slice(&number.to_ne_bytes());
    }
    out.extend_from_slice(&u16::try_from(kernel_frames).unwrap_or(u16::MAX).to_ne_bytes());
    out.extend_from_slice(&[0, 0, kind, stop as u8, 0, 0]);
    out.extend_from_slice(&u32::try_from(stack_bytes).unwrap_or(u32::MAX).to_ne_bytes());
    out.extend_from_slice(&[0; 16]);
    out.extend_from_slice(&head.period.to_ne_bytes());
}

/// Addresses, as bytes of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addresses<'a>(&'a [u8]);

impl<'a> Addresses<'a> {
    /// Iterates over the addresses in order.
    pub(super) fn iter(self) -> impl Iterator<Item = u64> + 'a {
        self.0.as_chunks::<8>().0.iter().map(|bytes| u64::from_ne_bytes(*bytes))
    }
}

impl<'a> Record<'a> {
    /// Parses a record. Returns `None` if its layout is not that of the BPF program.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let kernel_frames = usize::from(u16_at(bytes, 28)?);
        let user_frames = usize::from(u16_at(bytes, 30)?);
        let kind = *bytes.get(32)?;
        let stop = Stop::from_number(*bytes.get(33)?)?;
        let mut missing = 0;
        let (kernel, user) = match kind {
            1 => {
                let kernel_end = HEAD + kernel_frames * 8;
                (
                    bytes.get(HEAD..kernel_end)?,
                    User::Frames(Addresses(bytes.get(kernel_end..kernel_end + user_frames * 8)?)),
                )
            }
            2 | 3 => {
                let length = usize::try_from(u32_at(bytes, 36)?).ok()?;
                let kernel_end = SNAPSHOT_KERNEL + kernel_frames * 8;
                let mut registers = [0; REGISTERS];
                for (index, register) in registers.iter_mut().enumerate() {
                    *register = u64_at(bytes, SNAPSHOT_REGISTERS + index * 8)?;
                }
                missing = u32::try_from(u64_at(bytes, HEAD + 32)?).ok()?;
                let snapshot = Snapshot {
                    ip: u64_at(bytes, HEAD)?,
                    sp: u64_at(bytes, HEAD + 8)?,
                    bp: u64_at(bytes, HEAD + 16)?,
                    aux: u64_at(bytes, HEAD + 24)?,
                    registers,
                    bytes: bytes.get(kernel_end..kernel_end.checked_add(length)?)?,
                };
                let user = match kind {
                    2 => User::Snapshot(snapshot),
                    _ => User::Copy(snapshot),
                };
                (bytes.get(SNAPSHOT_KERNEL..kernel_end)?, user)
            }
            _ => return None,
        };
        Some(Self {
            time: u64_at(bytes, 0)?,
            pid: u32_at(bytes, 16)?,
            cpu: u32_at(bytes, 24)?,
            start: u64_at(bytes, 8)?,
            comm: bytes.get(40..56)?.try_into().ok()?,
            period: u64_at(bytes, 56)?,
            stop,
            missing,
            kernel,
            user,
        })
    }

    /// Returns the kernel frames, leaf first.
    pub(super) fn kernel(&self) -> Addresses<'a> {
        Addresses(self.kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_record_is_read_and_a_short_one_refused() {
        let mut bytes = vec![0_u8; HEAD];
        bytes[16..20].copy_from_slice(&7_u32.to_ne_bytes());
        bytes[28..30].copy_from_slice(&1_u16.to_ne_bytes());
        bytes[30..32].copy_from_slice(&2_u16.to_ne_bytes());
        bytes[32] = 1;
        bytes[33] = Stop::End as u8;
        for address in [100_u64, 200, 300] {
            bytes.extend_from_slice(&address.to_ne_bytes());
        }
        let record = Record::parse(&bytes).unwrap();
        assert_eq!((record.pid, record.stop), (7, Stop::End));
        assert_eq!(record.kernel().iter().collect::<Vec<_>>(), [100]);
        let User::Frames(user) = record.user else {
            panic!("{record:?}")
        };
        assert_eq!(user.iter().collect::<Vec<_>>(), [200, 300]);
        for length in 0..bytes.len() {
            assert!(Record::parse(&bytes[..length]).is_none(), "{length} bytes");
        }
    }

    #[test]
    fn a_copy_is_read_as_a_snapshot_is_and_told_from_it() {
        let snapshot = Snapshot {
            ip: 1,
            sp: 2,
            bp: 3,
            aux: 4,
            registers: [5; REGISTERS],
            bytes: &[6; 24],
        };
        let head = Head {
            time: 7,
            pid: 8,
            tid: 9,
            period: 10,
        };
        let mut bytes = Vec::new();
        write_snapshot(&mut bytes, head, &[100], &snapshot);
        bytes[24..28].copy_from_slice(&11_u32.to_ne_bytes());
        assert!(matches!(Record::parse(&bytes).unwrap().user, User::Snapshot(_)));
        assert_eq!(Record::parse(&bytes).unwrap().missing, 0);
        bytes[HEAD + 32..HEAD + 40].copy_from_slice(&12_u64.to_ne_bytes());
        assert_eq!(Record::parse(&bytes).unwrap().missing, 12);
        bytes[32] = 3;
        let record = Record::parse(&bytes).unwrap();
        assert_eq!((record.time, record.pid, record.cpu), (7, 8, 11));
        let User::Copy(copy) = record.user else {
            panic!("{record:?}")
        };
        assert_eq!((copy.ip, copy.sp, copy.bp, copy.aux), (1, 2, 3, 4));
        assert_eq!((copy.registers, copy.bytes), ([5; REGISTERS], &[6; 24][..]));
        bytes[32] = 4;
        assert!(Record::parse(&bytes).is_none());
    }
}
