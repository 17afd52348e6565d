//! Helpers that the tests and benchmarks of several crates share: synthetic profiles, ELF files, and servers of other
//! protocols. The program does not contain this crate.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a helper that fails ends its test"
)]

use alluvium_profile::tenant::TenantId;
// `synthetic`, `fleet` and `tree` refer to these imports as `crate::...`, because the tests of `profile` include the
// files of `synthetic` and `tree` too.
use alluvium_profile::{Labels, flamegraph, labels, pprof};

pub mod elf;
pub mod fleet;
pub mod http;
pub mod synthetic;
mod tree;
pub mod zookeeper;

pub use tree::tree;

/// Creates a tenant id. Panics if the text is not a valid id.
pub fn tenant_id(id: &str) -> TenantId {
    id.parse().expect("a tenant id")
}
