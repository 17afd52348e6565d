//! What was seen in a while: stacks and their ticks a process, and where every tick went.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ebpf::files::FileId;
use crate::unwind::Stop;

/// An address in a binary, or at one of the special places of [`FileId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// The binary.
    pub file: FileId,
    /// Virtual address in the binary; of a caller the last byte of the call. For [`FileId::COMM`] the index of the thread's name.
    pub address: u64,
}

/// A process for good: ids are used again, starts are not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProcessInfo {
    /// Process id.
    pub pid: u32,
    /// Start on CLOCK_BOOTTIME, nanoseconds.
    pub start: u64,
    /// Path of the program; empty for kernel threads.
    pub executable: String,
    /// Name of the main thread.
    pub comm: String,
    /// Container that it runs in; empty for none.
    pub container_id: String,
}

/// Stacks of one process, leaf first, with their number of ticks.
#[derive(Debug, Default)]
pub struct Stacks {
    /// Ticks of each stack.
    pub ticks: HashMap<Box<[Frame]>, u64>,
}

/// Where ticks went, since the start of the profiler. `ticks` is the sum of the next six, and `samples` that of `by_stop`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Accounts {
    /// Ticks of the clock.
    pub ticks: u64,
    /// Written to the ring with its frames.
    pub stacks: u64,
    /// Written to the ring as a copy of the stack.
    pub snapshots: u64,
    /// Lost: the ring was full.
    pub ring_full: u64,
    /// Lost: no memory for the record.
    pub no_scratch: u64,
    /// Of the idle task.
    pub idle: u64,
    /// Of a process that is not looked at, told by the program.
    pub ignored: u64,
    /// Records read from the ring that are in a window.
    pub samples: u64,
    /// Records of processes that are not looked at.
    pub filtered: u64,
    /// Records that could not be read.
    pub malformed: u64,
    /// Samples whose stack was folded into one because a window had too many different ones.
    pub folded: u64,
    /// Samples by why the walk of the user half ended, in the order of [`Stop::ALL`].
    pub by_stop: [u64; Stop::ALL.len()],
    /// Records of the side band that were lost.
    pub news_lost: u64,
}

/// Different stacks that a window keeps at most; more are folded into one a process, and counted.
pub const MAX_STACKS: usize = 100_000;

/// A while of samples.
#[derive(Debug, Default)]
pub struct Window {
    /// Stacks of each process.
    pub processes: HashMap<(u32, u64), (Arc<ProcessInfo>, Stacks)>,
    /// Names of threads, by the index in their frames.
    pub comms: Vec<Arc<str>>,
    comm_index: HashMap<[u8; 16], u64>,
    stacks: usize,
}

impl Window {
    /// Counts one tick. Answers false when the stack was folded.
    pub fn add(&mut self, process: &Arc<ProcessInfo>, frames: &[Frame]) -> bool {
        let (_, stacks) = self
            .processes
            .entry((process.pid, process.start))
            .or_insert_with(|| (process.clone(), Stacks::default()));
        if let Some(ticks) = stacks.ticks.get_mut(frames) {
            *ticks += 1;
            return true;
        }
        if self.stacks >= MAX_STACKS {
            *stacks.ticks.entry(Box::default()).or_default() += 1;
            return false;
        }
        self.stacks += 1;
        stacks.ticks.insert(frames.into(), 1);
        true
    }

    /// The frame of a thread's name.
    pub fn comm(&mut self, comm: &[u8; 16]) -> Frame {
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

    /// Ticks of all stacks of all processes.
    pub fn ticks(&self) -> u64 {
        self.processes
            .values()
            .flat_map(|(_, stacks)| stacks.ticks.values())
            .sum()
    }
}
