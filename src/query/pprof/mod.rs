//! Merged stacks as pprof profiles, also for profile-guided optimization by Go's compiler.
//!
//! In: sums by stack with their frames. Out: the bytes of one profile.

pub(in crate::query) mod export;
mod file_mappings;
mod labelled;
mod nodes;
mod pgo;
