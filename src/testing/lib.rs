//! Helpers that the tests and benchmarks of several crates share: synthetic profiles, ELF files, and servers of other
//! protocols. The program does not contain this crate.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a helper that fails ends its test"
)]

use alluvium_profile::flamegraph::{FrameRef, Tree};
use alluvium_profile::tenant::TenantId;
// `synthetic` and `fleet` refer to these imports as `crate::...`, because the tests of `profile` include the file of
// `synthetic` too.
use alluvium_profile::{Labels, labels, pprof};

pub mod elf;
pub mod fleet;
pub mod http;
pub mod synthetic;
pub mod zookeeper;

/// Creates a tenant id. Panics if the text is not a valid id.
pub fn tenant_id(id: &str) -> TenantId {
    id.parse().expect("a tenant id")
}

/// Creates a tree of stacks such as `main;work`, root first, each with its value. The empty text is a stack without
/// frames.
pub fn tree(stacks: &[(&str, i64)]) -> Tree {
    let mut tree = Tree::by_name();
    for (stack, value) in stacks {
        let frame = |function| FrameRef {
            function,
            ..FrameRef::default()
        };
        let frames = stack.rsplit(';').filter(|name| !name.is_empty());
        tree.insert(frames.map(frame), *value);
    }
    tree
}
