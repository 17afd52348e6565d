//! The head: profiles in memory, which queries can read immediately. The head stores them as columns per series and
//! profile type, with their stacks and series.
//!
//! In: prepared profiles, applied by one thread at a time. Out: record batches for queries ([`scan`]) and sorted
//! batches for the flush ([`sorted`]). Each head holds one generation of profiles: it is filled, frozen, flushed and
//! dropped. Applying a sample costs one lookup of its stack and no allocation beyond the growth of columns. Readers
//! copy some rows at a time under the lock of a partition and build batches without the lock.

pub(in crate::store) mod batch;
mod frames;
mod generation;
mod identity;
mod intern;
mod known;
mod partition;
pub(in crate::store) mod repeats;
pub(crate) mod rows;
pub(crate) mod scan;
pub(crate) mod sorted;
mod walk;

pub(crate) use frames::{Frame, Frames};
pub(crate) use generation::{Head, HeadView};
pub(crate) use intern::{SharedTexts, TextId, Texts};
pub(crate) use known::KnownStacks;

#[cfg(test)]
mod scan_tests;
#[cfg(test)]
mod tests;
