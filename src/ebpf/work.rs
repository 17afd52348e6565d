//! What the polling thread hands to the worker.

#[cfg(test)]
use std::sync::mpsc::Receiver;
use std::sync::mpsc::Sender;

use crate::ebpf::events::ProcessEvent;
use crate::ebpf::window::{Accounts, Window};

/// Bytes that an event counts for.
const EVENT_BYTES: usize = 128;

/// What the worker is given to do.
pub(super) enum Work {
    Batch(Batch),
    /// End the window and answer with it.
    Take {
        /// What the polling thread knows of the accounts.
        accounts: Accounts,
        /// Ticks a second at present.
        hertz: u32,
        /// It is the last one: nothing may wait for the next.
        is_last: bool,
        reply: Sender<Window>,
    },
    /// Wait until the other side is dropped.
    #[cfg(test)]
    Hold(Receiver<()>),
}

/// What was read in one go.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    /// Time and place of each record, in order of time.
    pub(super) order: Vec<(u64, usize, usize)>,
    /// Events of processes, in order of time.
    pub events: Vec<(u64, ProcessEvent)>,
    /// Records that could not be read.
    pub malformed: u64,
}

impl Batch {
    /// Time and bytes of the records, in order of time.
    pub(crate) fn records(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.order
            .iter()
            .filter_map(|(time, from, to)| Some((*time, self.bytes.get(*from..*to)?)))
    }

    /// What it counts for in the backlog.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + self.events.len() * EVENT_BYTES
    }
}
