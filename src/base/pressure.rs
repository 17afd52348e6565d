//! Whether the process is short of memory: said by who watches it, read by who would take more. And what its parts
//! hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Says whether memory is short. Clones share it; it is not until somebody says so.
#[derive(Debug, Clone, Default)]
pub struct MemoryPressure(Arc<AtomicBool>);

impl MemoryPressure {
    /// Says whether memory is short from now on; true when that is news.
    pub(crate) fn set(&self, is_short: bool) -> bool {
        self.0.swap(is_short, Ordering::Relaxed) != is_short
    }

    pub(crate) fn is_short(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A part of the process whose memory has a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryPart {
    /// Value of the label `part` in metrics.
    pub(crate) name: &'static str,
    /// Bytes in use, estimated.
    pub(crate) used: u64,
    /// The most that it may hold.
    pub(crate) limit: u64,
}
