//! The rows of a file's unwind table. They are in this process's memory until the kernel has them, and then only in
//! the kernel's memory, so that they exist once.
//!
//! In: a packed table, or the kernel's memory. Out: the row for an address. `files` decides which tables exist.

use crate::arrays::SharedArray;
use alluvium_unwind::{Line, Packed, Row, packed};

/// A table, in this process's memory or in the kernel's.
#[derive(Debug)]
pub(crate) enum Rows {
    Own(Packed),
    Kernel(SharedArray<Line>),
}

impl Rows {
    pub(crate) fn lines(&self) -> &[Line] {
        match self {
            Self::Own(table) => table.lines(),
            Self::Kernel(lines) => lines,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.lines())
    }

    /// Returns the row that applies at `pc`.
    pub(crate) fn find(&self, pc: u32) -> Option<Row> {
        packed::find(self.lines(), pc)
    }
}

impl PartialEq for Rows {
    fn eq(&self, other: &Self) -> bool {
        self.lines() == other.lines()
    }
}

impl Eq for Rows {}
