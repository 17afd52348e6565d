//! Memory pressure of the process, and the memory use of its parts. A watcher sets a flag while memory is short, and
//! components read the flag before they allocate more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag for memory shortage, initially false. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct MemoryPressure(Arc<AtomicBool>);

impl MemoryPressure {
    /// Sets the flag. Returns true if its value changed.
    pub fn set(&self, is_short: bool) -> bool {
        self.0.swap(is_short, Ordering::Relaxed) != is_short
    }

    pub fn is_short(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A part of the process with a memory limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryPart {
    /// Value of the label `part` in metrics.
    pub name: &'static str,
    /// Estimated number of bytes in use.
    pub used: u64,
    /// Maximum number of bytes that the part may hold.
    pub limit: u64,
}
