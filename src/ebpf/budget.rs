//! The memory limit of the profiler, divided among unwind tables, indexes, names, waiting records and stacks.

/// Maximum number of bytes for the profiler's tables, names and buffers together, without the base memory of the
/// process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    bytes: usize,
}

impl Budget {
    /// Smallest useful budget. With less, no unwind table would stay long enough to be useful.
    pub const MIN_BYTES: usize = 8 << 20;

    /// Creates a budget of `bytes` bytes, but at least [`Self::MIN_BYTES`].
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes: bytes.max(Self::MIN_BYTES),
        }
    }

    /// Returns the limit in bytes for unwind tables. Their rows are in the kernel.
    pub fn tables(self) -> usize {
        self.bytes / 8 * 3
    }

    /// Returns the limit in bytes for the function indexes of files.
    pub(crate) fn indexes(self) -> usize {
        self.bytes / 4
    }

    /// Returns the limit in bytes for names that the symbolizer has looked up.
    pub fn names(self) -> usize {
        self.bytes / 8
    }

    /// Returns the limit in bytes for waiting data. Records that wait for the worker may use half of it. Copied stacks
    /// that wait for unwind tables may use the other half, and also the bytes that the window leaves free.
    pub(crate) fn backlog(self) -> usize {
        self.bytes / 8
    }

    /// Returns the limit in bytes for the stacks of the current window.
    pub fn window(self) -> usize {
        self.bytes / 8
    }
}

impl Default for Budget {
    // The default is 64 MiB.
    fn default() -> Self {
        Self::new(64 << 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_make_up_the_whole() {
        let budget = Budget::new(80 << 20);
        let parts = budget.tables() + budget.indexes() + budget.names() + budget.backlog() + budget.window();
        assert_eq!(parts, 80 << 20);
        assert_eq!(Budget::new(1), Budget::new(Budget::MIN_BYTES));
    }
}
