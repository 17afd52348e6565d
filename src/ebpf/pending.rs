//! Copied stacks that wait for the unwind tables that they need, bounded in bytes and in time.
//!
//! In: snapshots of stacks from the BPF program. Out: frames, by the same rules as in the kernel.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::files::{FileId, Files, Lookup};
use crate::process::{Image, mapping_at};
use crate::records::Record;
use crate::window::ProcessInfo;
use alluvium_unwind::walk::{OwnedSnapshot, RuleLookup, Snapshot, walk};
use alluvium_unwind::{Arch, Stop};

/// Maximum number of user frames, as in the BPF program.
const MAX_FRAMES: usize = 896;
/// Maximum number of batches that a stack waits for its tables. This number of batches takes ten seconds, or 25 seconds
/// if there is little activity.
const MAX_WAIT: u32 = 100;

/// The waiting stacks that a pass walks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkPass {
    /// Stacks whose tables are available. The worker makes this pass once per batch.
    Batch,
    /// Stacks whose tables are available. The pass does not count as a batch that the other stacks have waited.
    Try,
    /// All stacks. A walk ends at a missing table, because a guess would yield wrong callers.
    Force,
}

/// A stack after its walk.
pub(crate) struct Walked {
    pub waiting: Waiting,
    /// User addresses, leaf first.
    pub addresses: Vec<u64>,
    pub stop: Stop,
}

pub(crate) struct Waiting {
    /// The mappings at the time of the copy.
    pub image: Image,
    pub info: Arc<ProcessInfo>,
    pub comm: [u8; 16],
    /// Kernel frames, leaf first.
    pub kernel: Vec<u64>,
    /// CPU time in nanoseconds that the tick stands for.
    pub period: u64,
    stack: OwnedSnapshot,
    wait_count: u32,
    /// The file whose table the walk needs next.
    needed_file: Option<FileId>,
}

impl Waiting {
    /// Copies the contents of a record.
    pub(super) fn new(record: &Record<'_>, snapshot: &Snapshot<'_>, image: Image, info: Arc<ProcessInfo>) -> Self {
        Self {
            image,
            info,
            comm: record.comm,
            kernel: record.kernel().iter().collect(),
            period: record.period,
            stack: snapshot.into(),
            wait_count: 0,
            needed_file: None,
        }
    }

    /// Walks the stack with the available tables. Appends user addresses, leaf first, to `addresses`. Also returns
    /// the file whose missing table ended the walk.
    fn walk(&self, files: &Files, addresses: &mut Vec<u64>) -> (Stop, Option<FileId>) {
        let missing = Cell::new(None);
        let mappings = self.image.read();
        let find = |address: u64| {
            let Some(mapping) = mapping_at(&mappings, address) else {
                return RuleLookup::NoMapping;
            };
            let table = match files.lookup(mapping.file) {
                Lookup::Table(table) => table,
                Lookup::Later => {
                    missing.set(Some(mapping.file));
                    return RuleLookup::NoTable;
                }
                Lookup::FramePointers => return RuleLookup::FramePointers,
            };
            // As in the BPF program, the last row also applies to all addresses after it.
            let pc = u32::try_from(address.wrapping_sub(mapping.bias)).unwrap_or(u32::MAX);
            table.find(pc).map_or(RuleLookup::NoMapping, RuleLookup::Row)
        };
        let arch = Arch::native().unwrap_or(Arch::X86_64);
        let stop = walk(arch, &self.stack.borrow(), MAX_FRAMES, find, addresses);
        (stop, missing.get())
    }

    fn size(&self) -> usize {
        self.stack.borrow().bytes.len() + self.kernel.len() * 8 + size_of::<Self>()
    }
}

pub(crate) struct Pending {
    queue: VecDeque<Waiting>,
    bytes: usize,
    limit: usize,
}

impl Pending {
    /// Creates an empty queue of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            bytes: 0,
            limit,
        }
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        self.bytes += waiting.size();
        self.queue.push_back(waiting);
    }

    /// Returns true if no stack waits.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Walks the stacks whose tables are available, the stacks that have waited too long, and the oldest stacks if the
    /// queue exceeds its limit. With [`WalkPass::Force`], walks all stacks. `spare` bytes may be used in addition to
    /// the limit.
    pub(super) fn walk(&mut self, files: &mut Files, pass: WalkPass, spare: usize) -> Vec<Walked> {
        let mut walked_stacks = Vec::new();
        for _ in 0..self.queue.len() {
            let Some(mut waiting) = self.queue.pop_front() else {
                break;
            };
            waiting.wait_count += u32::from(pass == WalkPass::Batch);
            let is_forced = pass == WalkPass::Force || waiting.wait_count > MAX_WAIT || self.bytes > self.limit + spare;
            // The event of a new mapping may arrive one batch later, so each stack waits for a second batch.
            let is_early = pass == WalkPass::Batch && waiting.wait_count < 2;
            let is_waiting = is_early || waiting.needed_file.is_some_and(|file| !files.request_table(file));
            if is_waiting && !is_forced {
                self.queue.push_back(waiting);
                continue;
            }
            let mut addresses = Vec::new();
            let (stop, needed_file) = waiting.walk(files, &mut addresses);
            if let Some(file) = needed_file {
                files.request_table(file);
                if !is_forced {
                    waiting.needed_file = Some(file);
                    self.queue.push_back(waiting);
                    continue;
                }
            }
            self.bytes = self.bytes.saturating_sub(waiting.size());
            walked_stacks.push(Walked {
                waiting,
                addresses,
                stop,
            });
        }
        walked_stacks
    }
}
