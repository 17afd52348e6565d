//! Memory, caches and settings that all queries of an engine share.
//!
//! In: limits of the configuration. Out: a DataFusion runtime with a bounded memory pool ([`runtime`]), and readers
//! that verify every byte ([`verified`]).

pub(in crate::query) mod allowance;
pub(in crate::query) mod cache;
mod memory;
pub(in crate::query) mod runtime;
pub(in crate::query) mod verified;
