//! The kernel's perf events: the CPU clock that triggers the BPF program, and the side band that reports new
//! mappings, programs, forks and exits. Numbers and layouts come from perf_event_open(2).
//!
//! All system calls and shared memory of perf events are in this file, which returns only owned values.
#![allow(
    unsafe_code,
    reason = "no crate in use wraps perf_event_open, and its ring is memory shared with the kernel"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::perf_sample;

/// `sizeof(struct perf_event_attr)` up to and including `sig_data` (version 7).
const ATTRIBUTE_SIZE: usize = 128;
const TYPE_SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;
const DUMMY: u64 = 9;
const MMAP: u64 = 1 << 8;
const COMM: u64 = 1 << 9;
const TASK: u64 = 1 << 13;
const WATERMARK: u64 = 1 << 14;
const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
const MMAP2: u64 = 1 << 23;
const COMM_EXEC: u64 = 1 << 24;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCK_ID: u64 = 1 << 25;
const CLOSE_ON_EXEC: u64 = 1 << 3;
/// The sample field PERF_SAMPLE_TIME. With this field and `SAMPLE_ID_ALL`, each record ends with its time.
const SAMPLE_TIME: u64 = 1 << 2;
// `_IOW('$', 8, __u32)`
const SET_BPF: libc::c_ulong = 0x4004_2408;
/// Size of the ring of each side band in bytes, a power of two. It has room for about 500 events of new mappings.
const BAND_BYTES: usize = 64 << 10;
/// Minimum and maximum size of a ring of samples in bytes, powers of two.
const SAMPLE_RING_BYTES: (usize, usize) = (256 << 10, 4 << 20);

/// The clock of one CPU. It triggers the BPF program as long as it is open.
#[derive(Debug)]
pub(super) struct Clock {
    event: OwnedFd,
    period: u64,
}

impl Clock {
    /// Opens the software clock of `cpu` with a tick every `period` nanoseconds, also while the CPU is idle. Each
    /// tick runs `program`.
    pub(super) fn open(cpu: u32, period: u64, program: BorrowedFd<'_>) -> io::Result<Self> {
        let event = open(
            cpu,
            &Event {
                config: CPU_CLOCK,
                period,
                ..Event::default()
            },
        )?;
        // SAFETY: both descriptors are open for the duration of the call, and the request receives the second one by
        // value.
        let status = unsafe { libc::ioctl(event.as_raw_fd(), SET_BPF as _, program.as_raw_fd()) };
        if status != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { event, period })
    }

    /// Returns the number of ticks due since the clock was opened.
    pub(super) fn due(&self) -> u64 {
        elapsed(&self.event) / self.period.max(1)
    }
}

/// Returns how many nanoseconds a clock event has been running.
fn elapsed(event: &OwnedFd) -> u64 {
    let mut count = [0_u8; 8];
    // SAFETY: the buffer is valid for writes of its length.
    let read = unsafe { libc::read(event.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    if read == 8 { u64::from_ne_bytes(count) } else { 0 }
}

/// A clock event of one CPU for systems where no BPF program can run: at each tick, the kernel itself copies the
/// registers and the stack to a ring.
#[derive(Debug)]
pub(crate) struct SampleRing {
    event: OwnedFd,
    ring: Ring,
    period: u64,
    scratch: Vec<u8>,
}

impl SampleRing {
    /// Opens the clock of `cpu` with a tick every `period` nanoseconds.
    pub(super) fn open(cpu: u32, period: u64) -> io::Result<Self> {
        let event = open(
            cpu,
            &Event {
                config: CPU_CLOCK,
                period,
                sample_type: perf_sample::SAMPLE_TYPE,
                flags: WATERMARK | EXCLUDE_CALLCHAIN_USER | USE_CLOCK_ID,
                registers: perf_sample::REGISTERS,
                stack_bytes: perf_sample::STACK_BYTES,
            },
        )?;
        // A ring of this size has room for the full samples of a third of a second.
        let estimated_bytes = (333_000_000 / period.max(1)) as usize * (perf_sample::STACK_BYTES as usize + 512);
        let (min, max) = SAMPLE_RING_BYTES;
        let mut bytes = estimated_bytes.clamp(min, max).next_power_of_two();
        loop {
            match Ring::map(&event, bytes) {
                // Without CAP_IPC_LOCK the kernel limits the size of locked memory.
                Err(error) if error.raw_os_error() == Some(libc::EPERM) && bytes > min / 4 => bytes /= 2,
                other => {
                    return Ok(Self {
                        event,
                        ring: other?,
                        period,
                        scratch: Vec::new(),
                    });
                }
            }
        }
    }

    /// Passes the body of every new sample to `take`. Returns the number of lost samples.
    pub(super) fn drain(&mut self, mut take: impl FnMut(&[u8])) -> u64 {
        self.ring.read(&mut self.scratch);
        let mut lost = 0;
        let mut rest = self.scratch.as_slice();
        while let Some((kind, _, body, after)) = split_record(rest) {
            match kind {
                2 => lost += u64_at(body, 8).unwrap_or(0),
                9 => take(body),
                _ => {}
            }
            rest = after;
        }
        lost
    }

    /// Returns the number of ticks due since the event was opened.
    pub(super) fn due(&self) -> u64 {
        elapsed(&self.event) / self.period.max(1)
    }
}

/// An event in the life of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProcessEvent {
    /// A process mapped executable memory.
    Mapped {
        pid: u32,
        start: u64,
        /// End address (exclusive).
        end: u64,
        offset: u64,
        /// Device, as major and minor number.
        device: (u32, u32),
        /// Inode; 0 if there is no file.
        inode: u64,
        /// Path as the process sees it, or a name such as `[vdso]` or `//anon`.
        path: String,
    },
    /// A process replaced its program by execve(2), so its earlier mappings are gone.
    Executed { pid: u32, comm: String },
    /// A process was forked. The child has the mappings of its parent.
    Forked { pid: u32, parent: u32 },
    /// A process or one of its threads ended.
    Exited { pid: u32, tid: u32 },
    /// The ring was full, and this many records are missing.
    Lost(u64),
}

impl ProcessEvent {
    /// Returns the path or name in the event, or an empty text if it has neither.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Mapped { path, .. } => path,
            Self::Executed { comm, .. } => comm,
            Self::Forked { .. } | Self::Exited { .. } | Self::Lost(_) => "",
        }
    }
}

/// The side band of one CPU: a ring of process events.
#[derive(Debug)]
pub(crate) struct SideBand {
    _event: OwnedFd,
    ring: Ring,
    scratch: Vec<u8>,
}

impl SideBand {
    /// Opens the side band of `cpu`.
    pub(super) fn open(cpu: u32) -> io::Result<Self> {
        let event = open(
            cpu,
            &Event {
                config: DUMMY,
                sample_type: SAMPLE_TIME,
                flags: MMAP | COMM | TASK | WATERMARK | SAMPLE_ID_ALL | MMAP2 | COMM_EXEC | USE_CLOCK_ID,
                ..Event::default()
            },
        )?;
        let ring = Ring::map(&event, BAND_BYTES)?;
        Ok(Self {
            _event: event,
            ring,
            scratch: Vec::new(),
        })
    }

    /// Appends the new events, each with its time in nanoseconds (CLOCK_MONOTONIC).
    pub(super) fn drain(&mut self, into: &mut Vec<(u64, ProcessEvent)>) {
        self.ring.read(&mut self.scratch);
        let mut rest = self.scratch.as_slice();
        while let Some((kind, misc, body, after)) = split_record(rest) {
            let time = body
                .len()
                .checked_sub(8)
                .and_then(|offset| u64_at(body, offset))
                .unwrap_or(0);
            if let Some(event) = parse(kind, misc, body) {
                into.push((time, event));
            }
            rest = after;
        }
    }
}

/// Splits off the first record: type, misc, body, and the remaining bytes.
fn split_record(bytes: &[u8]) -> Option<(u32, u16, &[u8], &[u8])> {
    let kind = u32_at(bytes, 0)?;
    let misc = u16_at(bytes, 4)?;
    let size = usize::from(u16_at(bytes, 6)?);
    Some((kind, misc, bytes.get(8..size)?, bytes.get(size..)?))
}

fn parse(kind: u32, misc: u16, body: &[u8]) -> Option<ProcessEvent> {
    match kind {
        2 => Some(ProcessEvent::Lost(u64_at(body, 8)?)),
        // Only a name change by execve(2) matters.
        3 if misc & (1 << 13) != 0 => Some(ProcessEvent::Executed {
            pid: u32_at(body, 0)?,
            comm: text(body.get(8..)?),
        }),
        4 => Some(ProcessEvent::Exited {
            pid: u32_at(body, 0)?,
            tid: u32_at(body, 8)?,
        }),
        7 => {
            let (pid, parent) = (u32_at(body, 0)?, u32_at(body, 4)?);
            // A new thread has the process id of its creator.
            (pid != parent).then_some(ProcessEvent::Forked { pid, parent })
        }
        10 => {
            let (start, length) = (u64_at(body, 8)?, u64_at(body, 16)?);
            Some(ProcessEvent::Mapped {
                pid: u32_at(body, 0)?,
                start,
                end: start.checked_add(length)?,
                offset: u64_at(body, 24)?,
                device: (u32_at(body, 32)?, u32_at(body, 36)?),
                inode: u64_at(body, 40)?,
                path: text(body.get(64..)?),
            })
        }
        _ => None,
    }
}

/// Returns the text up to the first zero byte.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The attributes that differ between the opened events.
#[derive(Debug, Default)]
struct Event {
    config: u64,
    period: u64,
    sample_type: u64,
    flags: u64,
    registers: u64,
    stack_bytes: u32,
}

fn open(cpu: u32, settings: &Event) -> io::Result<OwnedFd> {
    let mut attribute = [0_u8; ATTRIBUTE_SIZE];
    attribute[0..4].copy_from_slice(&TYPE_SOFTWARE.to_ne_bytes());
    attribute[4..8].copy_from_slice(&(ATTRIBUTE_SIZE as u32).to_ne_bytes());
    attribute[8..16].copy_from_slice(&settings.config.to_ne_bytes());
    attribute[16..24].copy_from_slice(&settings.period.to_ne_bytes());
    attribute[24..32].copy_from_slice(&settings.sample_type.to_ne_bytes());
    attribute[40..48].copy_from_slice(&settings.flags.to_ne_bytes());
    attribute[80..88].copy_from_slice(&settings.registers.to_ne_bytes());
    attribute[88..92].copy_from_slice(&settings.stack_bytes.to_ne_bytes());
    // The ring is polled, so it needs no wakeups.
    attribute[48..52].copy_from_slice(&u32::MAX.to_ne_bytes());
    if settings.flags & USE_CLOCK_ID != 0 {
        attribute[92..96].copy_from_slice(&libc::CLOCK_MONOTONIC.to_ne_bytes());
    }
    let cpu = i32::try_from(cpu).map_err(io::Error::other)?;
    // SAFETY: the attribute is valid for reads of the size that it names; the other arguments are plain numbers.
    let event = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attribute.as_ptr(),
            -1,
            cpu,
            -1,
            CLOSE_ON_EXEC,
        )
    };
    let event = i32::try_from(event).map_err(io::Error::other)?;
    if event < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above returned this new descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(event) })
}

/// A ring shared with the kernel: a page of positions, then the data.
#[derive(Debug)]
struct Ring {
    base: *mut u8,
    length: usize,
    page: usize,
}

// SAFETY: in this process the memory belongs to this value alone, and the two positions synchronise it with the
// kernel.
unsafe impl Send for Ring {}

impl Ring {
    fn map(event: &OwnedFd, bytes: usize) -> io::Result<Self> {
        // SAFETY: sysconf(3) only returns a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).map_err(io::Error::other)?;
        let length = bytes + page;
        // SAFETY: the kernel chooses the address of the new mapping, and the descriptor is open.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            base: base.cast(),
            length,
            page,
        })
    }

    /// Replaces the contents of `into` with the new bytes and frees their space in the ring.
    fn read(&mut self, into: &mut Vec<u8>) {
        into.clear();
        // data_head and data_tail of struct perf_event_mmap_page are at the offsets 1024 and 1032.
        // SAFETY: the first page is mapped, and both fields are aligned 64-bit words that the kernel accesses
        // atomically.
        let (head, tail) = unsafe {
            (
                AtomicU64::from_ptr(self.base.add(1024).cast()),
                AtomicU64::from_ptr(self.base.add(1032).cast()),
            )
        };
        let (end, start) = (head.load(Ordering::Acquire), tail.load(Ordering::Relaxed));
        let size = self.length - self.page;
        let length = usize::try_from(end.wrapping_sub(start)).unwrap_or(size).min(size);
        let offset = (start % size as u64) as usize;
        let first = length.min(size - offset);
        // SAFETY: both ranges lie within the data pages, and the kernel does not write between tail and head.
        unsafe {
            let data = self.base.add(self.page);
            into.extend_from_slice(std::slice::from_raw_parts(data.add(offset), first));
            into.extend_from_slice(std::slice::from_raw_parts(data, length - first));
        }
        tail.store(end, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and nothing uses it any more.
        unsafe { libc::munmap(self.base.cast(), self.length) };
    }
}

/// Returns the numbers of the online CPUs, from `/sys/devices/system/cpu/online` (`0-3,5`).
pub(crate) fn online_cpus() -> io::Result<Vec<u32>> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.parse::<u32>().map_err(io::Error::other);
        cpus.extend(number(first)?..=number(last)?);
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_record_is_read_and_damaged_ones_are_passed_over() {
        let mut body = Vec::new();
        for number in [42_u32, 43] {
            body.extend_from_slice(&number.to_ne_bytes());
        }
        for number in [0x1000_u64, 0x2000, 0x3000] {
            body.extend_from_slice(&number.to_ne_bytes());
        }
        for number in [8_u32, 1] {
            body.extend_from_slice(&number.to_ne_bytes());
        }
        for number in [99_u64, 1] {
            body.extend_from_slice(&number.to_ne_bytes());
        }
        body.extend_from_slice(&[5, 0, 0, 0, 2, 0, 0, 0]);
        body.extend_from_slice(b"/bin/x\0\0");
        assert_eq!(
            parse(10, 2, &body),
            Some(ProcessEvent::Mapped {
                pid: 42,
                start: 0x1000,
                end: 0x3000,
                offset: 0x3000,
                device: (8, 1),
                inode: 99,
                path: "/bin/x".to_owned()
            })
        );
        for length in 0..64 {
            assert_eq!(parse(10, 2, &body[..length]), None);
        }
        assert!(split_record(&[10, 0, 0, 0, 0, 0, 200, 0]).is_none());
        assert!(split_record(&[10, 0, 0, 0, 0, 0, 3, 0]).is_none());
    }
}
