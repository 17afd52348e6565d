//! The source location of an address: a function, and the calls that the compiler inlined into it.

use std::sync::Arc;

/// A function and a position in its source.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Call {
    /// Name of the function, as in the source.
    pub name: Arc<str>,
    /// Source file; empty if unknown.
    pub file: Arc<str>,
    /// Line in the file; 0 if unknown.
    pub line: u32,
}

impl Call {
    /// Creates a call of a function with only a name.
    pub fn named(name: Arc<str>) -> Self {
        Self {
            name,
            file: Arc::from(""),
            line: 0,
        }
    }

    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.name.len() + self.file.len()
    }
}

/// The calls at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// First address of the function.
    pub start: u64,
    /// End address of the function (exclusive).
    pub end: u64,
    /// The calls, the innermost inlined call first, the function itself last.
    pub calls: Vec<Call>,
}
