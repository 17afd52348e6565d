//! Pairs each stack that the BPF program walked with a copy of the stack memory, so that another unwinder can walk the
//! copy for comparison.
//!
//! In: records of copies and of frames. Out: pairs of both, bounded in bytes. There are no copies unless
//! [`Settings::copies`] enables them.
//!
//! [`Settings::copies`]: crate::Settings::copies

use std::collections::HashMap;

use crate::records::Record;
use alluvium_unwind::Stop;
use alluvium_unwind::walk::{OwnedSnapshot, Snapshot};

/// A user stack that the BPF program walked, with a copy of its first bytes.
#[derive(Debug, Clone)]
pub struct Copied {
    pub pid: u32,
    /// User addresses that the BPF program found, leaf first.
    pub frames: Vec<u64>,
    pub stop: Stop,
    stack: OwnedSnapshot,
}

impl Copied {
    pub fn stack(&self) -> Snapshot<'_> {
        self.stack.borrow()
    }
}

/// Pairs copies with the frames of the same tick.
pub(crate) struct Copies {
    /// For each CPU, the time and the copy whose frames follow in the next record.
    copies_by_cpu: HashMap<u32, (u64, Copied)>,
    pairs: Vec<Copied>,
    bytes: usize,
    limit: usize,
}

impl Copies {
    /// Creates an empty collection. `limit` bounds the bytes of copies; further copies are dropped.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            copies_by_cpu: HashMap::new(),
            pairs: Vec::new(),
            bytes: 0,
            limit,
        }
    }

    /// Keeps a copy until its frames arrive.
    pub(super) fn keep_copy(&mut self, record: &Record<'_>, stack: &Snapshot<'_>) {
        let copied = Copied {
            pid: record.pid,
            frames: Vec::new(),
            stop: record.stop,
            stack: stack.into(),
        };
        self.copies_by_cpu.insert(record.cpu, (record.time, copied));
    }

    /// Adds the frames of a tick to its copy, if there is one.
    pub(crate) fn pair(&mut self, record: &Record<'_>, frames: &[u64]) {
        if self.copies_by_cpu.is_empty() {
            return;
        }
        let Some((time, mut copied)) = self.copies_by_cpu.remove(&record.cpu) else {
            return;
        };
        // The ring may have had no room for one of the two records.
        let bytes = copied.stack().bytes.len();
        if time != record.time || self.bytes + bytes > self.limit {
            return;
        }
        self.bytes += bytes;
        copied.frames.extend_from_slice(frames);
        copied.stop = record.stop;
        self.pairs.push(copied);
    }

    /// Returns the pairs collected since the last call.
    pub(super) fn take(&mut self) -> Vec<Copied> {
        self.bytes = 0;
        std::mem::take(&mut self.pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{Head, write_kernel_only, write_snapshot};
    use alluvium_unwind::walk::REGISTERS;

    /// Creates a record of `kind` with this time.
    fn record(kind: u8, time: u64) -> Vec<u8> {
        let head = Head {
            time,
            pid: 7,
            tid: 7,
            period: 1,
        };
        let mut bytes = Vec::new();
        if kind == 1 {
            write_kernel_only(&mut bytes, head, &[]);
        } else {
            let stack = Snapshot {
                ip: time,
                sp: 0,
                bp: 0,
                aux: 0,
                registers: [0; REGISTERS],
                bytes: &[1; 64],
            };
            write_snapshot(&mut bytes, head, &[], &stack);
        }
        bytes
    }

    #[test]
    fn frames_join_the_copy_of_the_same_tick_within_the_bytes() {
        let mut copies = Copies::new(128);
        let mut tick = |copy: Option<u64>, frames: u64| {
            if let Some(time) = copy {
                let bytes = record(2, time);
                let record = Record::parse(&bytes).unwrap();
                let crate::records::User::Snapshot(stack) = record.user else {
                    panic!("{record:?}")
                };
                copies.keep_copy(&record, &stack);
            }
            let bytes = record(1, frames);
            copies.pair(&Record::parse(&bytes).unwrap(), &[frames, 1]);
        };
        tick(Some(10), 10);
        tick(Some(20), 21);
        tick(None, 20);
        tick(Some(30), 30);
        tick(Some(40), 40);
        let pairs = copies.take();
        let summaries: Vec<_> = pairs
            .iter()
            .map(|pair| (pair.stack().ip, pair.frames.clone()))
            .collect();
        assert_eq!(summaries, [(10, vec![10, 1]), (30, vec![30, 1])]);
        assert_eq!(copies.take().len(), 0);
    }
}
