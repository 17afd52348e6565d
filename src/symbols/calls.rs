//! What an address stands for in the source: a function, and the calls that the compiler put in place of themselves.

use std::sync::Arc;

/// A function at a place of its source.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Call {
    /// Its name, as its source of names has it.
    pub name: Arc<str>,
    /// File of the source; empty when that is not known.
    pub file: Arc<str>,
    /// Line in it; 0 when that is not known.
    pub line: u32,
}

impl Call {
    /// A function of which only the name is known.
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
    /// Address after its last.
    pub end: u64,
    /// The innermost inlined call first, the function itself last.
    pub calls: Vec<Call>,
}
