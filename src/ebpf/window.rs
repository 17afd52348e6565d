//! A window: the stacks and ticks of each process during an interval, and an account of every tick.

use std::collections::HashMap;
use std::sync::Arc;

use crate::binary::Binary;
use crate::copies::Copied;
use crate::files::FileId;
use crate::proc::ProcessKey;
use alluvium_unwind::Stop;

/// An entry of a stack: an address in a binary, or an entry that belongs to no known binary, such as the name of a
/// thread. [`FileId`] has a special id for each kind of entry without a binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    pub file: FileId,
    /// Virtual address in the binary. In the frame of a caller, it is the last byte of the call. For [`FileId::COMM`],
    /// it is the index of the thread's name.
    pub address: u64,
}

/// A process, identified by its id and its start time: ids are reused, but start times are not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProcessInfo {
    pub pid: u32,
    /// Start on CLOCK_BOOTTIME in nanoseconds.
    pub start: u64,
    /// Path of the program; empty for kernel threads.
    pub executable: String,
    /// Name of the main thread.
    pub comm: String,
    /// Id of the container of the process; empty if there is none.
    pub container_id: String,
    /// User that owns the files that the process creates; `None` if the process ended before the user was read.
    pub user: Option<u32>,
}

impl ProcessInfo {
    pub fn key(&self) -> ProcessKey {
        ProcessKey {
            pid: self.pid,
            start: self.start,
        }
    }
}

/// Number of ticks of a stack, and their CPU time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weight {
    pub ticks: u64,
    /// CPU time in nanoseconds. Each tick counts according to the rate at the time of the tick.
    pub nanos: u64,
}

impl std::ops::AddAssign for Weight {
    fn add_assign(&mut self, other: Self) {
        self.ticks += other.ticks;
        self.nanos += other.nanos;
    }
}

/// Stacks of one process, leaf first.
#[derive(Debug, Default)]
pub struct Stacks {
    pub weights: HashMap<Box<[Frame]>, Weight>,
}

impl Stacks {
    pub fn ticks(&self) -> u64 {
        self.weights.values().map(|weight| weight.ticks).sum()
    }
}

/// The binaries and thread names that frames of a window refer to.
#[derive(Debug, Default)]
pub struct FrameSources {
    /// Names of threads. Frames refer to them by index.
    pub comms: Vec<Arc<str>>,
    pub binaries: HashMap<FileId, Arc<Binary>>,
}

/// Counts of ticks since the start of the profiler.
///
/// `expected` is the sum of `missed` and `ticks`, and `ticks` is the sum of `stacks`, `snapshots`, `ring_full`, `idle`
/// and `ignored`. Each record written to the ring (`stacks` and `snapshots`) is counted as `samples`, `filtered` or
/// `malformed`, unless it is still in transit. `samples` is the sum of `by_stop`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Accounts {
    /// Ticks that were due: the running time of all clocks, divided by their period.
    pub expected: u64,
    /// Due ticks that did not occur, because the machine did not run or interrupts were off.
    pub missed: u64,
    pub ticks: u64,
    /// Ticks written to the ring with their frames.
    pub stacks: u64,
    /// Ticks written to the ring as a copy of the stack.
    pub snapshots: u64,
    /// Ticks lost because the ring was full.
    pub ring_full: u64,
    pub idle: u64,
    /// Ticks of ignored processes, counted by the BPF program.
    pub ignored: u64,
    /// Records from the ring that are in a window.
    pub samples: u64,
    /// Records of processes that are not profiled.
    pub filtered: u64,
    /// Records that could not be parsed.
    pub malformed: u64,
    /// Samples that were folded into one stack per process, because a window had too many different stacks.
    pub folded: u64,
    /// Samples by the reason why the walk of the user stack ended, in the order of [`Stop::ALL`].
    pub by_stop: [u64; Stop::ALL.len()],
    /// Process events, such as new mappings and forks, that were lost because their ring was full.
    pub events_lost: u64,
    /// Mappings that were left out because their process has too many.
    pub mappings_lost: u64,
    /// CPU time of the BPF program in nanoseconds.
    pub kernel_nanos: u64,
    /// CPU time of the profiler's threads in nanoseconds.
    pub agent_nanos: u64,
    /// Number of bytes of unwind table rows in the kernel.
    pub table_bytes: u64,
}

#[derive(Debug, Default)]
pub struct Window {
    /// Stacks of each process.
    pub processes: HashMap<(u32, u64), (Arc<ProcessInfo>, Stacks)>,
    /// The binaries and names that frames refer to.
    pub places: Arc<FrameSources>,
    /// Counts of ticks up to the end of the window.
    pub accounts: Accounts,
    /// Ticks per second of each CPU at the end of the window.
    pub hertz: u32,
    /// User stacks, each with a copy of its first bytes. Empty unless the settings enable such copies.
    pub copies: Vec<Copied>,
}

impl Window {
    /// Returns the number of nanoseconds between two ticks at the end of the window.
    pub fn period_nanos(&self) -> i64 {
        1_000_000_000 / i64::from(self.hertz.max(1))
    }

    /// Returns the number of ticks of all stacks of all processes.
    pub fn ticks(&self) -> u64 {
        self.processes.values().map(|(_, stacks)| stacks.ticks()).sum()
    }
}

/// A window that is being filled.
#[derive(Debug)]
pub(crate) struct OpenWindow {
    processes: HashMap<(u32, u64), (Arc<ProcessInfo>, Stacks)>,
    comms: Vec<Arc<str>>,
    comm_index: HashMap<[u8; 16], u64>,
    bytes: usize,
    limit: usize,
}

/// Number of bytes of a stack without its frames: its map entry, its weight and the allocation.
const STACK_BYTES: usize = 64;

impl OpenWindow {
    /// Creates an empty window whose stacks may take `limit` bytes. Further stacks are folded into one per process.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            processes: HashMap::new(),
            comms: Vec::new(),
            comm_index: HashMap::new(),
            bytes: 0,
            limit,
        }
    }

    /// Counts a tick that stands for `nanos` nanoseconds of CPU time. Returns false if the stack was folded.
    pub(crate) fn add(&mut self, process: &Arc<ProcessInfo>, frames: &[Frame], nanos: u64) -> bool {
        let weight = Weight { ticks: 1, nanos };
        let (info, stacks) = self
            .processes
            .entry((process.pid, process.start))
            .or_insert_with(|| (process.clone(), Stacks::default()));
        if !Arc::ptr_eq(info, process) {
            // The process runs another program now, or the worker has learned more of its identity.
            *info = process.clone();
        }
        if let Some(total) = stacks.weights.get_mut(frames) {
            *total += weight;
            return true;
        }
        let bytes = size_of_val(frames) + STACK_BYTES;
        if self.bytes + bytes > self.limit {
            *stacks.weights.entry(Box::default()).or_default() += weight;
            return false;
        }
        self.bytes += bytes;
        stacks.weights.insert(frames.into(), weight);
        true
    }

    /// Returns the number of bytes that further stacks may take.
    pub(crate) fn free(&self) -> usize {
        self.limit.saturating_sub(self.bytes)
    }

    /// Returns the frame that stands for a thread's name.
    pub(crate) fn comm(&mut self, comm: &[u8; 16]) -> Frame {
        let comms = &mut self.comms;
        let address = *self.comm_index.entry(*comm).or_insert_with(|| {
            let end = comm.iter().position(|byte| *byte == 0).unwrap_or(comm.len());
            comms.push(String::from_utf8_lossy(&comm[..end]).into());
            comms.len() as u64 - 1
        });
        Frame {
            file: FileId::COMM,
            address,
        }
    }

    /// Ends the window. Calls `binary` for each file that occurs in a stack.
    pub(crate) fn finish(
        &mut self,
        mut binary: impl FnMut(FileId) -> Option<Arc<Binary>>,
        accounts: Accounts,
        hertz: u32,
    ) -> Window {
        let window = std::mem::replace(self, Self::new(self.limit));
        let mut binaries = HashMap::new();
        let frames = window
            .processes
            .values()
            .flat_map(|(_, stacks)| stacks.weights.keys())
            .flat_map(|stack| stack.iter());
        for frame in frames {
            if let std::collections::hash_map::Entry::Vacant(entry) = binaries.entry(frame.file)
                && let Some(binary) = binary(frame.file)
            {
                entry.insert(binary);
            }
        }
        Window {
            processes: window.processes,
            places: Arc::new(FrameSources {
                comms: window.comms,
                binaries,
            }),
            accounts,
            hertz,
            copies: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_is_full_folds_new_stacks_and_loses_no_tick() {
        let process = Arc::new(ProcessInfo {
            pid: 7,
            start: 1,
            executable: String::new(),
            comm: String::new(),
            container_id: String::new(),
            user: None,
        });
        let mut filling = OpenWindow::new(3 * (STACK_BYTES + 2 * size_of::<Frame>()));
        let mut folded = 0;
        for address in 0..10 {
            let frame = |address| Frame {
                file: FileId::KERNEL,
                address,
            };
            let is_kept = filling.add(&process, &[frame(address), frame(99)], 10);
            folded += u64::from(!is_kept);
        }
        assert_eq!(folded, 7);
        let window = filling.finish(|_| None, Accounts::default(), 99);
        assert_eq!(window.ticks(), 10);
        let (_, stacks) = &window.processes[&(7, 1)];
        assert_eq!(stacks.weights[&[][..]], Weight { ticks: 7, nanos: 70 });
        assert_eq!(filling.finish(|_| None, Accounts::default(), 99).ticks(), 0);
    }
}
