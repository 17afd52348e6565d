//! Decoded rows that queries share: samples, totals, labels and stacks, in bounded caches.
//!
//! In: files of a snapshot. Out: values in memory without Arrow. [`context`] holds the caches together with the tenants
//! and the snapshot of one query.

pub(in crate::query) mod block_cache;
pub(in crate::query) mod blocks;
pub(in crate::query) mod context;
pub(in crate::query) mod labels;
pub(in crate::query) mod stack_table;
pub(in crate::query) mod stacks;
pub(in crate::query) mod totals;
