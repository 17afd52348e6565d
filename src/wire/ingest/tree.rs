//! Pyroscope's older binary format `tree`. Each node is a frame below its caller, with its own value.
//!
//! The root has no name. A node without a name is not a frame; its children belong to the nearest named node above.

use crate::ingest::format::Format;
use crate::ingest::nodes::{self, NodeError, Nodes, Walk};
use alluvium_profile::call_tree::Calls;

/// The format of call trees.
pub(crate) static TREE: Format = Format {
    names: &["tree"],
    content_type: "binary/octet-stream+tree",
    field: "",
    opens_gzip: false,
    is_like: |_| false,
    memory: nodes::memory::<Tree>,
    read: nodes::read::<Tree>,
};

struct Tree;

impl Walk for Tree {
    const NAME: &'static str = "tree";

    fn walk<Taker: Calls>(bytes: &[u8], calls: &mut Taker) -> Result<(), NodeError> {
        // For each level, the call of the last node that was read.
        let mut open: Vec<Taker::Node> = Vec::new();
        let mut nodes = Nodes::new(bytes);
        while let Some(node) = nodes.next_node()? {
            open.truncate(node.level);
            let caller = open.last().copied().unwrap_or_else(|| calls.root());
            let name = node.text(node.name)?;
            let callee = if name.is_empty() {
                caller
            } else {
                calls.call(caller, name).map_err(|error| node.too_many(error))?
            };
            if node.value > 0 {
                calls.add(callee, node.value).map_err(|error| node.too_many(error))?;
            }
            open.push(callee);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use crate::ingest::read;
    use crate::ingest::testing::{self, Stacks, put_node};

    /// Children by name, and the branch's own value.
    #[derive(Default)]
    struct Branch {
        value: u64,
        children: BTreeMap<String, Branch>,
    }

    fn write(bytes: &mut Vec<u8>, name: &str, branch: &Branch) {
        put_node(bytes, name.as_bytes(), branch.value, branch.children.len());
        // The last child comes first, as in Pyroscope.
        for (name, child) in branch.children.iter().rev() {
            write(bytes, name, child);
        }
    }

    fn bytes_of(stacks: &Stacks) -> Vec<u8> {
        let mut root = Branch::default();
        for (stack, value) in stacks {
            let leaf = stack.split(';').fold(&mut root, |branch, name| {
                branch.children.entry(name.to_owned()).or_default()
            });
            leaf.value += *value as u64;
        }
        let mut bytes = Vec::new();
        write(&mut bytes, "", &root);
        bytes
    }

    #[test]
    fn a_semicolon_belongs_to_the_name_of_a_frame_and_an_empty_name_is_none() {
        let mut bytes = Vec::new();
        for (name, value, children) in [
            ("", 9, 1),
            ("put(Ljava/lang/String;)V", 1, 1),
            ("", 2, 1),
            ("leaf", 4, 0),
        ] {
            put_node(&mut bytes, name.as_bytes(), value, children);
        }
        let profiles = read("name=app.inuse_objects&format=tree", "", bytes.into(), 1 << 20).unwrap();
        let samples = testing::listed(&profiles[0]);
        let name = "put(Ljava/lang/String;)V";
        assert_eq!(
            samples,
            [
                (vec![name.to_owned()], 3),
                (vec![name.to_owned(), "leaf".to_owned()], 4)
            ]
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(stacks in testing::stacks()) {
            let profiles = read("name=app.inuse_objects&format=tree", "", bytes_of(&stacks).into(), 1 << 20).unwrap();
            prop_assert_eq!(testing::sums(&profiles), stacks);
        }

        #[test]
        fn changed_bytes_are_a_profile_or_an_error(stacks in testing::stacks(), changes in testing::changes()) {
            testing::survives("name=app&format=tree", testing::changed(bytes_of(&stacks), &changes));
        }
    }
}
