//! Identities that are hashes of contents, so that writers need not coordinate.
//!
//! The hashes are unsigned 64-bit numbers. Tables have no unsigned numbers, so the same bits are stored as signed
//! numbers. Memory also holds signed numbers, so the order is the same in memory and in the tables.

/// Identity of a series: the hash of its labels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct SeriesId(pub i64);

/// Identity of a stack: the hash of its frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct StackId(pub i64);

/// An identity that table columns hold as a number.
pub trait Id: Copy + Ord + std::hash::Hash + std::fmt::Debug + Send + Sync + 'static {
    /// Creates the identity with these bits.
    fn from_bits(bits: i64) -> Self;

    /// Returns the number that columns hold.
    fn bits(self) -> i64;
}

impl Id for SeriesId {
    fn from_bits(bits: i64) -> Self {
        Self(bits)
    }

    fn bits(self) -> i64 {
        self.0
    }
}

impl Id for StackId {
    fn from_bits(bits: i64) -> Self {
        Self(bits)
    }

    fn bits(self) -> i64 {
        self.0
    }
}
