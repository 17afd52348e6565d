//! Trees from short texts, for tests.

use crate::flamegraph::{FrameRef, Tree};

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
