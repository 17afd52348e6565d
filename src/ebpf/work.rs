//! Messages from the polling thread to the worker.

#[cfg(test)]
use std::sync::mpsc::Receiver;
use std::sync::mpsc::Sender;

use crate::events::ProcessEvent;
use crate::window::{Accounts, Window};

/// Number of bytes by which an event increases the backlog, in addition to the bytes of its text.
const EVENT_BYTES: usize = 128;

/// A message to the worker.
pub(super) enum Work {
    Batch(Batch),
    /// End the window and return it.
    Take {
        /// The counts of the polling thread. The worker adds its own counts.
        accounts: Accounts,
        /// Current rate in ticks per second.
        hertz: u32,
        /// True for the last window: no stack may wait for a later window.
        is_last: bool,
        reply: Sender<Window>,
    },
    /// Wait until the sender of this receiver is dropped.
    #[cfg(test)]
    Hold(Receiver<()>),
}

/// The records and events of one poll.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    /// Time and position of each record, ordered by time.
    pub(super) order: Vec<(u64, usize, usize)>,
    /// Process events, ordered by time.
    pub events: Vec<(u64, ProcessEvent)>,
    /// Number of records that could not be parsed.
    pub malformed: u64,
}

impl Batch {
    /// Iterates over time and bytes of the records, in the order of time.
    pub(crate) fn records(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.order
            .iter()
            .filter_map(|(time, from, to)| Some((*time, self.bytes.get(*from..*to)?)))
    }

    /// Returns the number of bytes by which the batch increases the backlog.
    pub(super) fn size(&self) -> usize {
        let events: usize = self
            .events
            .iter()
            .map(|(_, event)| EVENT_BYTES + event.text().len())
            .sum();
        self.bytes.len() + events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_counts_in_the_backlog_with_all_its_bytes() {
        let mapped = |path: String| ProcessEvent::Mapped {
            pid: 1,
            start: 0,
            end: 1,
            offset: 0,
            device: (0, 0),
            inode: 1,
            path,
        };
        let batch = |event| Batch {
            events: vec![(0, event), (1, ProcessEvent::Lost(1))],
            ..Batch::default()
        };
        let empty_size = batch(mapped(String::new())).size();
        assert_eq!(batch(mapped("x".repeat(4095))).size(), empty_size + 4095);
    }
}
