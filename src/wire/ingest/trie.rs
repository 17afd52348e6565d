//! Pyroscope's older binary format `trie`: folded stacks such as `main;work` in a tree of their common prefixes.
//!
//! The concatenated names of the nodes from the root to a node are the stack that has the node's value. A name may end
//! anywhere, even within the name of a function or within a character.

use crate::ingest::format::Format;
use crate::ingest::nodes::{self, NodeError, Nodes, Walk};
use alluvium_profile::call_tree::Calls;

/// The format of stacks in a trie.
pub(crate) static TRIE: Format = Format {
    names: &["trie"],
    content_type: "binary/octet-stream+trie",
    field: "",
    opens_gzip: false,
    is_like: |_| false,
    memory: nodes::memory::<Trie>,
    read: nodes::read::<Trie>,
};

struct Trie;

/// The stack up to the end of a node.
#[derive(Clone, Copy)]
struct Level<Node> {
    /// Innermost call whose name is complete.
    caller: Node,
    /// Offset of the incomplete name in the text of the stack, and the end of the text.
    name_start: usize,
    end: usize,
}

impl Walk for Trie {
    const NAME: &'static str = "trie";

    fn walk<Taker: Calls>(bytes: &[u8], calls: &mut Taker) -> Result<(), NodeError> {
        let mut text: Vec<u8> = Vec::new();
        let mut open: Vec<Level<Taker::Node>> = Vec::new();
        let mut nodes = Nodes::new(bytes);
        while let Some(node) = nodes.next_node()? {
            open.truncate(node.level);
            let mut level = open.last().copied().unwrap_or_else(|| Level {
                caller: calls.root(),
                name_start: 0,
                end: 0,
            });
            let mut call = |caller: Taker::Node, name: &[u8]| -> Result<Taker::Node, NodeError> {
                if name.is_empty() {
                    return Ok(caller);
                }
                calls
                    .call(caller, node.text(name)?)
                    .map_err(|error| node.too_many(error))
            };
            text.truncate(level.end);
            text.extend_from_slice(node.name);
            for semicolon in memchr::memchr_iter(b';', node.name) {
                let end = level.end + semicolon;
                level.caller = call(level.caller, text.get(level.name_start..end).unwrap_or_default())?;
                level.name_start = end + 1;
            }
            level.end = text.len();
            if node.value > 0 {
                let leaf = call(level.caller, text.get(level.name_start..).unwrap_or_default())?;
                calls.add(leaf, node.value).map_err(|error| node.too_many(error))?;
            }
            open.push(level);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::ingest::read;
    use crate::ingest::testing::{self, Stacks, put_node};

    /// Writes a node `name` above the sorted keys. The first `start` bytes of the keys are already written.
    fn write(bytes: &mut Vec<u8>, name: &[u8], start: usize, keys: &[(&[u8], u64)]) {
        let (own, below) = match keys {
            [(key, value), below @ ..] if key.len() == start => (*value, below),
            below => (0, below),
        };
        let groups: Vec<&[(&[u8], u64)]> = below.chunk_by(|left, right| left.0[start] == right.0[start]).collect();
        put_node(bytes, name, own, groups.len());
        for group in groups {
            let (first, last) = (group[0].0, group[group.len() - 1].0);
            let common = first.iter().zip(last).take_while(|(left, right)| left == right).count();
            write(bytes, &first[start..common], common, group);
        }
    }

    fn bytes_of(stacks: &Stacks) -> Vec<u8> {
        let keys: Vec<(&[u8], u64)> = stacks
            .iter()
            .map(|(key, value)| (key.as_bytes(), *value as u64))
            .collect();
        let mut bytes = Vec::new();
        write(&mut bytes, b"", 0, &keys);
        bytes
    }

    #[test]
    fn names_may_end_within_a_function_and_within_a_character() {
        let stacks: Stacks = [
            ("main;caf\u{e9}", 1),
            ("main;caf\u{ea}", 2),
            ("main;cafe;rest", 4),
            ("main", 8),
        ]
        .map(|(stack, value)| (stack.to_owned(), value))
        .into();
        let bytes = bytes_of(&stacks);
        assert!(
            bytes.windows(2).any(|pair| pair == [1, 0xaa]),
            "a node begins within a character"
        );
        let profiles = read(
            "name=app.inuse_objects",
            "binary/octet-stream+trie",
            bytes.into(),
            1 << 20,
        )
        .unwrap();
        assert_eq!(testing::sums(&profiles), stacks);
    }

    #[test]
    fn a_trie_without_values_is_no_profile_and_half_a_character_is_an_error() {
        for idle in [&[0, 0, 0][..], &[0, 7, 0], &[1, b';', 7, 0]] {
            let profiles = read("name=app&format=trie", "", idle.to_vec().into(), 1 << 20).unwrap();
            assert_eq!(profiles.len(), 0);
        }
        let error = read("name=app&format=trie", "", vec![1, 0xc3, 7, 0].into(), 1 << 20).unwrap_err();
        assert_eq!(
            error.message,
            "cannot read the profile as a trie: byte 0: a name is not UTF-8"
        );
        assert_eq!(error.status, 400);
    }

    #[test]
    fn long_prefixes_and_many_stacks_are_counted_before_they_are_built() {
        // Each node has a value and adds one byte: names of 1, 2, ... 6,000 bytes.
        let mut deep = Vec::new();
        (1..=6000).for_each(|left| put_node(&mut deep, b"a", 1, usize::from(left < 6000)));
        let error = read("name=app&format=trie", "", deep.into(), 1 << 20).unwrap_err();
        assert_eq!(
            (error.status, error.message.as_str()),
            (413, "the profile has more than 16777216 bytes of names")
        );
        let mut deep = Vec::new();
        (1..=6000).for_each(|left| put_node(&mut deep, b"a;", 1, usize::from(left < 6000)));
        let error = read("name=app&format=trie", "", deep.into(), 1 << 20).unwrap_err();
        assert_eq!(error.message, "the profile has more than 4194304 frames in its stacks");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(stacks in testing::stacks()) {
            let profiles = read("name=app.inuse_objects&format=trie", "", bytes_of(&stacks).into(), 1 << 20).unwrap();
            prop_assert_eq!(testing::sums(&profiles), stacks);
        }

        #[test]
        fn changed_bytes_are_a_profile_or_an_error(stacks in testing::stacks(), changes in testing::changes()) {
            testing::survives("name=app&format=trie", testing::changed(bytes_of(&stacks), &changes));
        }
    }
}
