//! Flame graphs in the format TREE of `querier.v1`: a sequence of nodes without levels, which Pyroscope's clients can
//! merge.
//!
//! In: the levels of a flame graph. Out: its nodes, each parent before its children and the last child first. A node
//! consists of the length of its name, the name, its own value and the number of its children. All numbers are varints.
//! The first node is the root and has no name. An empty graph has no bytes.

use std::ops::Range;

use prost::encoding::encode_varint;

use alluvium_profile::flamegraph::{Block, FlameGraph};

/// A node of a level, with references to its children.
struct Node<'a> {
    name: &'a str,
    own: i64,
    /// Interval of the node on the horizontal axis.
    span: Range<i64>,
    /// Indices of the node's children in the level below.
    pub children: Range<usize>,
}

/// Encodes a flame graph in the format TREE.
pub fn tree_bytes(graph: &FlameGraph) -> Vec<u8> {
    let levels = levels(graph);
    let mut bytes = Vec::new();
    let mut next: Vec<(usize, usize)> = match levels.first() {
        Some(level) => (0..level.len()).map(|index| (0, index)).collect(),
        None => Vec::new(),
    };
    while let Some((depth, index)) = next.pop() {
        let Some(node) = levels.get(depth).and_then(|level| level.get(index)) else {
            continue;
        };
        let name = if depth == 0 { "" } else { node.name };
        encode_varint(name.len() as u64, &mut bytes);
        bytes.extend_from_slice(name.as_bytes());
        encode_varint(node.own as u64, &mut bytes);
        encode_varint(node.children.len() as u64, &mut bytes);
        next.extend(node.children.clone().map(|child| (depth + 1, child)));
    }
    bytes
}

/// Returns the nodes of each level from left to right, with their children in the level below.
fn levels(graph: &FlameGraph) -> Vec<Vec<Node<'_>>> {
    let mut levels: Vec<Vec<Node<'_>>> = (0..graph.levels.len())
        .map(|depth| {
            let node = |block: Block<'_>| Node {
                name: graph.names.get(block.name_index).map_or("", String::as_str),
                own: block.own,
                span: block.x..block.x.saturating_add(block.total),
                children: 0..0,
            };
            graph.blocks(depth).map(node).collect()
        })
        .collect();
    for depth in 1..levels.len() {
        let (above, below) = levels.split_at_mut(depth);
        let (Some(parents), Some(children)) = (above.last_mut(), below.first()) else {
            continue;
        };
        let mut end = 0;
        for parent in parents {
            let start = end;
            end += children
                .iter()
                .skip(start)
                .take_while(|child| child.span.start < parent.span.end)
                .count();
            parent.children = start..end;
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use alluvium_profile::flamegraph::Tree;
    use alluvium_testing::tree;

    /// Formats each node as `name own children`, with a separate decoder.
    fn shown(mut bytes: &[u8]) -> Vec<String> {
        let mut nodes = Vec::new();
        while !bytes.is_empty() {
            let length = prost::encoding::decode_varint(&mut bytes).unwrap() as usize;
            let (name, rest) = bytes.split_at(length);
            bytes = rest;
            let own = prost::encoding::decode_varint(&mut bytes).unwrap();
            let children = prost::encoding::decode_varint(&mut bytes).unwrap();
            nodes.push(format!("{} {own} {children}", std::str::from_utf8(name).unwrap()));
        }
        nodes
    }

    #[test]
    fn parents_come_before_their_children_and_the_last_child_comes_first() {
        let stacks = [("main;a;work", 3), ("main;b", 4), ("main", 1), ("other_main", 300)];
        let graph = tree(&stacks).to_flamegraph(0);
        assert_eq!(
            shown(&tree_bytes(&graph)),
            [" 0 2", "other_main 300 0", "main 1 2", "b 4 0", "a 0 1", "work 3 0"]
        );
    }

    #[test]
    fn what_is_folded_is_one_node() {
        let graph = tree(&[("main;large", 90), ("main;small", 2), ("main;tiny", 1)]).to_flamegraph(2);
        assert_eq!(
            shown(&tree_bytes(&graph)),
            [" 0 1", "main 0 2", "other 3 0", "large 90 0"]
        );
    }

    #[test]
    fn an_empty_graph_is_a_root_without_children_or_nothing() {
        assert_eq!(shown(&tree_bytes(&Tree::by_name().to_flamegraph(0))), [" 0 0"]);
        assert_eq!(tree_bytes(&FlameGraph::default()), Vec::<u8>::new());
    }
}
