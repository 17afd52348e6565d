//! Copied stacks that wait for the tables of their process, bounded in bytes and in time.
//!
//! In: snapshots of the program. Out: frames, by the same rules as in the kernel.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::ebpf::files::Files;
use crate::ebpf::process::{Image, mapping_at};
use crate::ebpf::records::Record;
use crate::ebpf::window::ProcessInfo;
use crate::unwind::walk::{Found, REGISTERS, Snapshot, walk};
use crate::unwind::{Arch, Stop};

/// User frames at most, as in the program.
const MAX_FRAMES: usize = 896;
/// Batches that a stack waits for its tables at most.
const MAX_WAIT: u32 = 30;

/// A copied stack.
pub struct Waiting {
    /// The mappings that it was taken of.
    pub image: Image,
    /// Its process.
    pub info: Arc<ProcessInfo>,
    /// Name of its thread.
    pub comm: [u8; 16],
    /// Kernel frames, leaf first.
    pub kernel: Vec<u64>,
    /// Nanoseconds that it stands for.
    pub period: u64,
    ip: u64,
    sp: u64,
    bp: u64,
    aux: u64,
    registers: [u64; REGISTERS],
    bytes: Vec<u8>,
    waited: u32,
}

impl Waiting {
    /// Copies what a record holds.
    pub fn new(record: &Record<'_>, snapshot: &Snapshot<'_>, image: Image, info: Arc<ProcessInfo>) -> Self {
        Self {
            image,
            info,
            comm: record.comm,
            kernel: record.kernel().iter().collect(),
            period: record.period,
            ip: snapshot.ip,
            sp: snapshot.sp,
            bp: snapshot.bp,
            aux: snapshot.aux,
            registers: snapshot.registers,
            bytes: snapshot.bytes.to_vec(),
            waited: 0,
        }
    }

    /// Walks the stack with the tables that are there; user addresses, leaf first, are added to `addresses`.
    pub fn walk(&self, files: &Files, addresses: &mut Vec<u64>) -> Stop {
        let mappings = self.image.read();
        let snapshot = Snapshot {
            ip: self.ip,
            sp: self.sp,
            bp: self.bp,
            aux: self.aux,
            registers: self.registers,
            bytes: &self.bytes,
        };
        let find = |address: u64| {
            let Some(mapping) = mapping_at(&mappings, address) else {
                return Found::NoMapping;
            };
            let Some(table) = files.table(mapping.file) else {
                return Found::FramePointers;
            };
            u32::try_from(address.wrapping_sub(mapping.bias))
                .ok()
                .and_then(|pc| table.find(pc))
                .map_or(Found::NoMapping, |row| Found::Row(*row))
        };
        let arch = Arch::native().unwrap_or(Arch::X86_64);
        walk(arch, &snapshot, MAX_FRAMES, find, addresses)
    }

    fn size(&self) -> usize {
        self.bytes.len() + self.kernel.len() * 8 + size_of::<Self>()
    }
}

/// The queue.
pub struct Pending {
    queue: VecDeque<Waiting>,
    bytes: usize,
    limit: usize,
}

impl Pending {
    /// An empty queue for so many bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            bytes: 0,
            limit,
        }
    }

    /// Adds a stack.
    pub fn push(&mut self, waiting: Waiting) {
        self.bytes += waiting.size();
        self.queue.push_back(waiting);
    }

    /// The stacks whose tables are there, those that waited too long, and the oldest beyond the bytes; every one when `all`.
    pub fn due(&mut self, files: &mut Files, all: bool) -> Vec<Waiting> {
        let mut due = Vec::new();
        for _ in 0..self.queue.len() {
            let Some(mut waiting) = self.queue.pop_front() else {
                break;
            };
            waiting.waited += 1;
            // The news of what was mapped just before may come one batch later.
            let waits = !all
                && waiting.waited < MAX_WAIT
                && self.bytes <= self.limit
                && (waiting.waited < 2 || !files.want_tables(waiting.image.read().iter().map(|mapping| mapping.file)));
            if waits {
                self.queue.push_back(waiting);
            } else {
                self.bytes = self.bytes.saturating_sub(waiting.size());
                due.push(waiting);
            }
        }
        due
    }
}
