//! Whether the process is short of memory: said by who watches it, read by who would take more.

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
