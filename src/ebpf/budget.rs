//! The bound of memory, and what each part of the profiler may take of it.

/// Bytes that the profiler's tables, names and buffers may take in all. What every program takes for itself comes on
/// top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    bytes: usize,
}

impl Budget {
    /// The smallest that makes sense: below, every table would be thrown away at once.
    pub(crate) const SMALLEST: usize = 8 << 20;

    /// A budget of so many bytes, [`Self::SMALLEST`] at least.
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes: bytes.max(Self::SMALLEST),
        }
    }

    /// Rows of unwind tables, which lie in the kernel.
    pub fn tables(self) -> usize {
        self.bytes / 8 * 3
    }

    /// Indexes of the functions of files.
    pub(crate) fn indexes(self) -> usize {
        self.bytes / 4
    }

    /// Names that were looked up.
    pub fn names(self) -> usize {
        self.bytes / 8
    }

    /// Records that wait for the worker, and copied stacks that wait for tables: each may have half of it, and the
    /// stacks what the window has not filled.
    pub(crate) fn backlog(self) -> usize {
        self.bytes / 8
    }

    /// Stacks of the running window.
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
