//! The memory limit of the profiler, and the share of each part of it.

/// Most bytes of the profiler's tables, names and buffers together, without the base memory of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    bytes: usize,
}

impl Budget {
    /// The smallest useful budget: below it, every table would be dropped at once.
    pub(crate) const SMALLEST: usize = 8 << 20;

    /// A budget of `bytes` bytes, at least [`Self::SMALLEST`].
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes: bytes.max(Self::SMALLEST),
        }
    }

    /// Bytes of unwind tables, whose rows are in the kernel.
    pub fn tables(self) -> usize {
        self.bytes / 8 * 3
    }

    /// Bytes of the function indexes of files.
    pub(crate) fn indexes(self) -> usize {
        self.bytes / 4
    }

    /// Bytes of names that were looked up.
    pub fn names(self) -> usize {
        self.bytes / 8
    }

    /// Bytes of records that wait for the worker, and of copied stacks that wait for tables: each may use half of it,
    /// and the stacks also what the window leaves free.
    pub(crate) fn backlog(self) -> usize {
        self.bytes / 8
    }

    /// Bytes of the stacks in the current window.
    pub fn window(self) -> usize {
        self.bytes / 8
    }
}

impl Default for Budget {
    // 64 MiB.
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
        assert_eq!(Budget::new(1), Budget::new(Budget::SMALLEST));
    }
}
