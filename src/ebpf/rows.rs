//! The rows of a file's table, in our memory until the kernel has them, and then in the kernel's, so that they are
//! there once.
//!
//! In: a packed table, or the kernel's memory. Out: the row of an address. Which tables there are is decided by
//! `files`.

use crate::ebpf::arrays::SharedArray;
use crate::unwind::{Line, Packed, Row, packed};

/// A table, where it lies.
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

    /// The row that holds at `pc`.
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
