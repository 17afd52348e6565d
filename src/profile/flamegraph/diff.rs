//! The difference of two trees as one flame graph, in Pyroscope's encoding.
//!
//! Stacks are matched by name, and also by file if both trees distinguish files. A level is a flat list of groups of
//! seven numbers. A group contains x, total and self of the left side, the same three numbers of the right side, and
//! the index of the name. Each x is the distance from the end of the previous group on the same side.

use hashbrown::HashMap;

use crate::flamegraph::levels::smallest_kept;
use crate::flamegraph::tree::Tree;
use crate::flamegraph::{OTHER, TOTAL};

/// A flame graph of two sides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffGraph {
    /// Names that the nodes refer to by index. Index 0 is "total".
    pub names: Vec<String>,
    /// Groups of seven numbers, one per node.
    pub levels: Vec<Vec<i64>>,
    /// Sum of all values of both sides.
    pub total: i64,
    /// Largest self value of a node on either side.
    pub max_self: i64,
    /// Sum of all values of the left side.
    pub left_ticks: i64,
    /// Sum of all values of the right side.
    pub right_ticks: i64,
    /// Source files, parallel to `names`; empty if unknown.
    pub files: Vec<String>,
    /// Binaries, parallel to `names`; empty if unknown.
    pub mappings: Vec<String>,
}

/// A node of either tree or of both trees.
#[derive(Debug, Clone, Copy, Default)]
struct Pair {
    name: u32,
    total: [i64; 2],
    own: [i64; 2],
}

/// Returns the difference of `left` and `right`. Keeps about `max_nodes` nodes (0: all), those for which the sum of the
/// left and the right total is largest.
pub fn diff(left: &Tree, right: &Tree, max_nodes: usize) -> DiffGraph {
    let merged = Merged::new(left, right);
    let sum = |pair: &Pair| pair.total[0].saturating_add(pair.total[1]);
    let smallest = smallest_kept(merged.pairs.iter().skip(1).map(sum), max_nodes);
    let mut graph = DiffGraph {
        left_ticks: left.total(),
        right_ticks: right.total(),
        total: left.total().saturating_add(right.total()),
        ..DiffGraph::default()
    };
    // Index of a name in the result, assigned on first use.
    let mut shown: HashMap<u32, i64> = HashMap::new();
    let mut level = vec![(0u32, merged.pairs[0], [0i64; 2])];
    while !level.is_empty() {
        let mut next: Vec<(u32, Pair, [i64; 2])> = Vec::new();
        let mut groups = Vec::with_capacity(level.len() * 7);
        let mut ends = [0i64; 2];
        for (index, pair, x) in level {
            let name = *shown.entry(pair.name).or_insert_with(|| {
                let (name, file, mapping) = merged.names[pair.name as usize];
                graph.names.push(name.to_owned());
                graph.files.push(file.to_owned());
                graph.mappings.push(mapping.to_owned());
                graph.names.len() as i64 - 1
            });
            for side in 0..2 {
                groups.extend([x[side].saturating_sub(ends[side]), pair.total[side], pair.own[side]]);
                ends[side] = x[side].saturating_add(pair.total[side]);
                graph.max_self = graph.max_self.max(pair.own[side]);
            }
            groups.push(name);
            let mut child_offsets = [0, 1].map(|side: usize| x[side].saturating_add(pair.own[side]));
            let mut other = Pair {
                name: OTHER_NAME,
                ..Pair::default()
            };
            for &child in merged.children.get(index as usize).map_or(&[][..], Vec::as_slice) {
                let pair = merged.pairs[child as usize];
                let folded = sum(&pair) < smallest;
                if !folded {
                    next.push((child, pair, child_offsets));
                }
                let sums = if folded { &mut other.total } else { &mut child_offsets };
                for (sum, value) in sums.iter_mut().zip(pair.total) {
                    *sum = sum.saturating_add(value);
                }
            }
            other.own = other.total;
            if other.total != [0, 0] {
                next.push((NO_NODE, other, child_offsets));
            }
        }
        graph.levels.push(groups);
        level = next;
    }
    graph
}

/// Index of "other" among the names of [`Merged`]; "total" is 0.
const OTHER_NAME: u32 = 1;
/// Index of a node "other", which stands for folded nodes and has no children.
const NO_NODE: u32 = u32::MAX;

/// Both trees in one arena. Parents come before their children, and children are sorted by name.
struct Merged<'a> {
    names: Vec<(&'a str, &'a str, &'a str)>,
    pairs: Vec<Pair>,
    children: Vec<Vec<u32>>,
}

impl<'a> Merged<'a> {
    fn new(left: &'a Tree, right: &'a Tree) -> Self {
        let mut merged = Self {
            names: vec![(TOTAL, "", ""), (OTHER, "", "")],
            pairs: vec![Pair::default()],
            children: vec![Vec::new()],
        };
        let by_file = left.is_by_file() && right.is_by_file();
        let mut name_ids: HashMap<(&str, &str, &str), u32> = HashMap::new();
        let mut nodes: HashMap<(u32, u32), u32> = HashMap::new();
        for (side, tree) in [left, right].into_iter().enumerate() {
            let names: Vec<u32> = (0..tree.frame_count() as u32)
                .map(|index| {
                    let frame = tree.frame(index);
                    let full: (&str, &str, &str) = (&frame.function, &frame.file, &frame.mapping);
                    let key = match full {
                        (function, ..) if !by_file => (function, "", ""),
                        // As in a tree, the binary is compared only if there is no file.
                        (function, file, _) if !file.is_empty() => (function, file, ""),
                        full => full,
                    };
                    *name_ids.entry(key).or_insert_with(|| {
                        merged.names.push(full);
                        merged.names.len() as u32 - 1
                    })
                })
                .collect();
            // Parents come before their children, so the parent's index is already known.
            let mut node_indices: Vec<u32> = Vec::with_capacity(tree.nodes.len());
            for node in &tree.nodes {
                let node_index = match node_indices.get(node.parent as usize) {
                    None => 0,
                    Some(&parent) => {
                        let name = names[node.frame as usize];
                        let new = merged.pairs.len() as u32;
                        let node_index = *nodes.entry((parent, name)).or_insert(new);
                        if node_index == new {
                            merged.pairs.push(Pair {
                                name,
                                ..Pair::default()
                            });
                            merged.children.push(Vec::new());
                            merged.children[parent as usize].push(new);
                        }
                        node_index
                    }
                };
                node_indices.push(node_index);
                let pair = &mut merged.pairs[node_index as usize];
                pair.total[side] = pair.total[side].saturating_add(node.total);
                pair.own[side] = pair.own[side].saturating_add(node.own);
            }
        }
        let (pairs, names) = (&merged.pairs, &merged.names);
        for children in &mut merged.children {
            children.sort_unstable_by_key(|child| names[pairs[*child as usize].name as usize]);
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flamegraph::testing::tree;

    #[test]
    fn both_sides_stand_in_one_graph() {
        let left = tree(&[("main;old", 5), ("main", 1)]);
        let right = tree(&[("main;new", 7), ("main;old", 2)]);
        let graph = diff(&left, &right, 0);
        assert_eq!(graph.names, ["total", "main", "new", "old"]);
        assert_eq!(
            graph.levels,
            [
                vec![0, 6, 0, 0, 9, 0, 0],
                vec![0, 6, 1, 0, 9, 0, 1],
                vec![1, 0, 0, 0, 7, 7, 2, 0, 5, 5, 0, 2, 2, 3],
            ]
        );
        assert_eq!(
            (graph.left_ticks, graph.right_ticks, graph.total, graph.max_self),
            (6, 9, 15, 7)
        );
    }

    #[test]
    fn small_nodes_are_folded_by_the_sum_of_both_sides() {
        let left = tree(&[("main;a", 50), ("main;b", 1)]);
        let right = tree(&[("main;a", 50), ("main;c", 2)]);
        let graph = diff(&left, &right, 2);
        assert_eq!(graph.names, ["total", "main", "a", "other"]);
        assert_eq!(graph.levels[2], [0, 50, 50, 0, 50, 50, 2, 0, 1, 1, 0, 2, 2, 3]);
    }

    #[test]
    fn two_empty_trees_differ_in_nothing() {
        let graph = diff(&Tree::by_file(), &Tree::by_file(), 10);
        assert_eq!(graph.levels, [vec![0; 7]]);
    }
}
