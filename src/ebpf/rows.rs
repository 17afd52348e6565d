//! The rows of a file's table, in our memory until the kernel has them, and then in the kernel's, so that they are there once.
//!
//! In: a packed table, or the kernel's memory. Out: the row of an address. Who decides which tables there are is `files`.

use crate::ebpf::arrays::Shared;
use crate::unwind::{Line, Packed, Row, packed};

/// A table, where it lies.
#[derive(Debug)]
pub enum Rows {
    /// In our memory.
    Own(Packed),
    /// In the kernel's.
    Shared(Shared<Line>),
}

impl Rows {
    /// Its lines.
    pub fn lines(&self) -> &[Line] {
        match self {
            Self::Own(table) => table.lines(),
            Self::Shared(lines) => lines,
        }
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        size_of_val(self.lines())
    }

    /// The row that holds at `pc`.
    pub fn find(&self, pc: u32) -> Option<Row> {
        packed::find(self.lines(), pc)
    }
}

impl PartialEq for Rows {
    fn eq(&self, other: &Self) -> bool {
        self.lines() == other.lines()
    }
}

impl Eq for Rows {}
