//! Flame graphs as levels for flame graph widgets: Pyroscope's encoding, plus file, binary and line of each node.
//!
//! A level is a flat list of groups of four numbers: x (as the distance from the end of the previous group), total,
//! self, and index of the name. Children lie to the right of their parent's self value, ordered by name. The children
//! of a node that are too small are merged into one "other" after their siblings.

use std::cmp::Reverse;

use crate::flamegraph::tree::Tree;
use crate::flamegraph::{OTHER, TOTAL};

/// The value in [`FlameGraph::lines`] for a node that represents folded nodes.
pub(crate) const FOLDED: i64 = -1;

/// A flame graph as levels. Level 0 is the single node "total".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlameGraph {
    /// Names that the nodes refer to by index. Index 0 is "total".
    pub names: Vec<String>,
    /// Groups of four numbers, one per node: x delta, total, self, name.
    pub levels: Vec<Vec<i64>>,
    /// Sum of the values of all samples.
    pub total: i64,
    /// Largest self value of a node.
    pub max_self: i64,
    /// Source files, parallel to `names`; empty if unknown.
    pub files: Vec<String>,
    /// Binaries, parallel to `names`; empty if unknown.
    pub mappings: Vec<String>,
    /// For each level one number per node: the line with the largest value in that node, 0 if unknown, [`FOLDED`] for
    /// folded nodes. The name does not identify folded nodes, because a function may also be called "other".
    pub lines: Vec<Vec<i64>>,
}

/// A node of a [`FlameGraph`] with an absolute position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block<'a> {
    /// Name of the function, or `total` or `other`.
    pub name: &'a str,
    /// Index of the name in [`FlameGraph::names`].
    pub name_index: usize,
    /// Path of the source file; may be empty.
    pub file: &'a str,
    /// Path of the binary; may be empty.
    pub mapping: &'a str,
    /// Line in the source file; 0 if unknown.
    pub line: i64,
    /// Distance from the left, in the unit of the values.
    pub x: i64,
    /// Value including all callees.
    pub total: i64,
    /// Value of the node without its callees.
    pub own: i64,
}

impl FlameGraph {
    /// Returns the nodes of level `depth` from left to right. Omits incomplete groups and groups with an invalid index
    /// of a name.
    pub fn blocks(&self, depth: usize) -> impl Iterator<Item = Block<'_>> {
        let level = self.levels.get(depth).map_or(&[][..], Vec::as_slice);
        let lines = self.lines.get(depth).map_or(&[][..], Vec::as_slice);
        let mut end = 0i64;
        let (groups, _) = level.as_chunks::<4>();
        groups
            .iter()
            .enumerate()
            .filter_map(move |(position, &[delta, total, own, name])| {
                let x = end.saturating_add(delta);
                end = x.saturating_add(total);
                let name = usize::try_from(name).ok()?;
                Some(Block {
                    name: self.names.get(name)?,
                    name_index: name,
                    file: self.files.get(name).map_or("", String::as_str),
                    mapping: self.mappings.get(name).map_or("", String::as_str),
                    line: lines.get(position).map_or(0, |line| (*line).max(0)),
                    x,
                    total,
                    own,
                })
            })
    }
}

/// An entry of a level that is being built.
#[derive(Clone, Copy)]
enum LevelEntry {
    Node(u32),
    Other(i64),
}

impl Tree {
    /// Returns the flame graph with about `max_nodes` nodes (0: all). Nodes smaller than the `max_nodes`-th largest
    /// node are folded into an "other" beside their larger siblings. All nodes with the same total as that node are
    /// kept, as in Pyroscope.
    pub fn to_flamegraph(&self, max_nodes: usize) -> FlameGraph {
        let lines = self.lines();
        let smallest = smallest_kept(self.nodes.iter().skip(1).map(|node| node.total), max_nodes);
        let ranks = self.ranks_by_name();
        let mut graph = FlameGraph {
            total: self.total(),
            ..FlameGraph::default()
        };
        let mut names = NameIndices::new(self, &mut graph);
        let mut level = vec![(LevelEntry::Node(0), 0i64)];
        while !level.is_empty() {
            let mut next = Vec::new();
            let mut groups = Vec::with_capacity(level.len() * 4);
            let mut level_lines = Vec::with_capacity(level.len());
            let mut end = 0i64;
            for &(entry, x) in &level {
                let (total, own, name, line) = match entry {
                    LevelEntry::Other(total) => (total, total, names.other(&mut graph), FOLDED),
                    LevelEntry::Node(index) => {
                        let node = &self.nodes[index as usize];
                        let name = names.of_frame(node.frame, self, &mut graph);
                        self.push_children(index, x.saturating_add(node.own), smallest, &ranks, &mut next);
                        (node.total, node.own, name, lines[index as usize])
                    }
                };
                groups.extend([x.saturating_sub(end), total, own, name]);
                level_lines.push(line);
                graph.max_self = graph.max_self.max(own);
                end = x.saturating_add(total);
            }
            graph.levels.push(groups);
            graph.lines.push(level_lines);
            level = next;
        }
        graph
    }

    fn push_children(&self, parent: u32, mut x: i64, smallest: i64, ranks: &[u32], next: &mut Vec<(LevelEntry, i64)>) {
        let start = next.len();
        let mut other = 0i64;
        for child in self.children(parent) {
            let total = self.nodes[child as usize].total;
            if total < smallest {
                other = other.saturating_add(total);
            } else {
                next.push((LevelEntry::Node(child), 0));
            }
        }
        next[start..].sort_unstable_by_key(|(entry, _)| match entry {
            LevelEntry::Node(child) => ranks[self.nodes[*child as usize].frame as usize],
            LevelEntry::Other(_) => u32::MAX,
        });
        for (entry, entry_x) in &mut next[start..] {
            *entry_x = x;
            if let LevelEntry::Node(child) = entry {
                x = x.saturating_add(self.nodes[*child as usize].total);
            }
        }
        if other != 0 {
            next.push((LevelEntry::Other(other), x));
        }
    }

    /// Returns for each frame its rank among all frames sorted by name, file and binary, so that siblings are sorted
    /// by integers.
    fn ranks_by_name(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.frame_count() as u32).collect();
        order.sort_unstable_by_key(|index| {
            let frame = self.frame(*index);
            (&frame.function, &frame.file, &frame.mapping)
        });
        let mut ranks = vec![0; order.len()];
        for (rank, frame) in order.into_iter().enumerate() {
            ranks[frame as usize] = rank as u32;
        }
        ranks
    }
}

/// Returns the `max_nodes`-th largest of `totals`. Nodes with smaller totals are folded. Returns `i64::MIN` if all
/// nodes are kept.
pub(super) fn smallest_kept(totals: impl Iterator<Item = i64>, max_nodes: usize) -> i64 {
    let mut totals: Vec<Reverse<i64>> = totals.map(Reverse).collect();
    if max_nodes == 0 || totals.len() <= max_nodes {
        return i64::MIN;
    }
    totals.select_nth_unstable(max_nodes - 1).1.0
}

/// Assigns indices to names on first use.
struct NameIndices {
    by_frame: Vec<Option<i64>>,
    other: Option<i64>,
}

impl NameIndices {
    fn new(tree: &Tree, graph: &mut FlameGraph) -> Self {
        let mut by_frame = vec![None; tree.frame_count()];
        by_frame[0] = Some(push_name(graph, TOTAL, "", ""));
        Self { by_frame, other: None }
    }

    fn of_frame(&mut self, frame: u32, tree: &Tree, graph: &mut FlameGraph) -> i64 {
        *self.by_frame[frame as usize].get_or_insert_with(|| {
            let frame = tree.frame(frame);
            push_name(graph, &frame.function, &frame.file, &frame.mapping)
        })
    }

    fn other(&mut self, graph: &mut FlameGraph) -> i64 {
        *self.other.get_or_insert_with(|| push_name(graph, OTHER, "", ""))
    }
}

fn push_name(graph: &mut FlameGraph, name: &str, file: &str, mapping: &str) -> i64 {
    graph.names.push(name.to_owned());
    graph.files.push(file.to_owned());
    graph.mappings.push(mapping.to_owned());
    graph.names.len() as i64 - 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::flamegraph::FrameRef;
    use crate::flamegraph::testing::tree;

    #[test]
    fn levels_are_encoded_as_pyroscope_does() {
        let tree = tree(&[("func1", 10), ("func1;func2", 10), ("a;b", 3), ("a;c", 2)]);
        let graph = tree.to_flamegraph(0);
        assert_eq!(graph.names, ["total", "a", "func1", "b", "c", "func2"]);
        assert_eq!(
            graph.levels,
            [
                vec![0, 25, 0, 0],
                vec![0, 5, 0, 1, 0, 20, 10, 2],
                // func2 starts to the right of func1's own 10.
                vec![0, 3, 3, 3, 0, 2, 2, 4, 10, 10, 10, 5],
            ]
        );
        assert_eq!((graph.total, graph.max_self), (25, 10));
        assert_eq!(graph.blocks(2).map(|block| block.x).collect::<Vec<_>>(), [0, 3, 15]);
    }

    #[test]
    fn values_of_any_size_and_sign_have_places() {
        let (min, max) = (i64::MIN + 2, i64::MAX);
        let stacks = [("a", min), ("a;k", 1), ("b", max), ("c", max), ("d;k", 1)];
        let graph = tree(&stacks).to_flamegraph(0);
        assert_eq!(graph.levels[2], [min, 1, 1, 5, max, 1, 1, 5]);
        let nothing = tree(&[]);
        let graph = crate::flamegraph::diff(&tree(&stacks), &nothing, 0);
        assert_eq!(graph.levels.len(), 3);
    }

    #[test]
    fn small_nodes_are_folded_beside_their_siblings() {
        let tree = tree(&[("a;big", 90), ("a;small1", 4), ("a;small2;deep", 3), ("b", 2)]);
        let graph = tree.to_flamegraph(2);
        assert_eq!(graph.names, ["total", "a", "other", "big"]);
        assert_eq!(
            graph.levels,
            [
                vec![0, 99, 0, 0],
                vec![0, 97, 0, 1, 0, 2, 2, 2],
                vec![0, 90, 90, 3, 0, 7, 7, 2],
            ]
        );
    }

    #[test]
    fn what_was_folded_is_told_from_a_function_called_other() {
        let graph = tree(&[("other", 90), ("b", 2), ("c", 3)]).to_flamegraph(1);
        assert_eq!(graph.names, ["total", "other", "other"]);
        assert_eq!(graph.lines, [vec![0], vec![0, FOLDED]]);
        assert!(graph.blocks(1).all(|block| block.line == 0));
    }

    #[test]
    fn an_empty_tree_is_a_total_of_nothing() {
        let graph = Tree::by_file().to_flamegraph(10);
        assert_eq!((graph.names.len(), graph.levels, graph.total), (1, vec![vec![0; 4]], 0));
    }

    #[test]
    fn a_stack_of_a_hundred_thousand_frames_is_no_problem() {
        let mut tree = Tree::by_name();
        let frame = FrameRef {
            function: "recursive",
            ..FrameRef::default()
        };
        tree.insert(std::iter::repeat_n(frame, 100_000), 1);
        assert_eq!(tree.to_flamegraph(0).levels.len(), 100_001);
        assert_eq!(tree.to_flamegraph(100).total, 1);
    }

    #[test]
    fn functions_of_one_name_are_told_apart_by_file_when_asked() {
        let frame = |file, line| FrameRef {
            function: "init",
            file,
            line,
            mapping: "bin",
        };
        for (mut tree, names) in [(Tree::by_file(), 3), (Tree::by_name(), 2)] {
            tree.insert([frame("a.go", 1)], 1);
            tree.insert([frame("a.go", 7)], 3);
            tree.insert([frame("b.go", 2)], 1);
            let graph = tree.to_flamegraph(0);
            assert_eq!(graph.names.len(), names);
            assert_eq!(graph.lines[1][0], 7);
            assert_eq!((graph.files[1].as_str(), graph.mappings[1].as_str()), ("a.go", "bin"));
        }
    }

    #[test]
    fn a_program_that_moved_keeps_its_functions_and_those_without_a_file_are_told_apart_by_binary() {
        for (file, names) in [("a.go", 2), ("", 3)] {
            let frame = |mapping| FrameRef {
                function: "init",
                file,
                line: 1,
                mapping,
            };
            let mut tree = Tree::by_file();
            tree.insert([frame("/releases/1/app")], 1);
            tree.insert([frame("/releases/2/app")], 1);
            assert_eq!(tree.to_flamegraph(0).names.len(), names);
        }
    }

    #[test]
    fn every_stack_of_a_tree_can_be_visited() {
        let tree = tree(&[("a;b", 3), ("a", 2), ("", 1)]);
        let mut stacks = Vec::new();
        tree.for_each_stack(|stack, value| {
            stacks.push((
                stack.iter().map(|frame| frame.function.to_owned()).collect::<Vec<_>>(),
                value,
            ));
        });
        stacks.sort();
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(stacks, [(names(&[]), 1), (names(&["a"]), 2), (names(&["a", "b"]), 3)]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_children_fit_in_their_parents(
            stacks in prop::collection::vec((prop::collection::vec("[a-d]", 0..6), 1i64..100), 0..40),
            max_nodes in 0usize..30
        ) {
            let stacks: Vec<(String, i64)> =
                stacks.into_iter().map(|(names, value)| (names.join(";"), value)).collect();
            let borrowed: Vec<(&str, i64)> = stacks.iter().map(|(stack, value)| (stack.as_str(), *value)).collect();
            let graph = tree(&borrowed).to_flamegraph(max_nodes);
            let sum: i64 = stacks.iter().map(|(_, value)| value).sum();
            prop_assert_eq!(graph.total, sum);
            let own: i64 = (0..graph.levels.len()).flat_map(|depth| graph.blocks(depth)).map(|block| block.own).sum();
            prop_assert_eq!(own, sum);
            for depth in 1..graph.levels.len() {
                let parents: Vec<Block<'_>> = graph.blocks(depth - 1).collect();
                for block in graph.blocks(depth) {
                    let holds = |parent: &Block<'_>| {
                        parent.x + parent.own <= block.x && block.x + block.total <= parent.x + parent.total
                    };
                    prop_assert!(parents.iter().any(holds));
                }
            }
        }
    }
}
