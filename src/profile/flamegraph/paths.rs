//! Call paths that many flame graphs share: a trie of function names that only grows. A query assigns values to some
//! nodes of the trie, and receives the levels of a flame graph, or of the difference of two flame graphs. The query
//! does not build its own tree.
//!
//! Functions are distinguished by name alone, as in Pyroscope. The results are the same as the results of a
//! [`Tree`](super::Tree) by name. Parents have smaller numbers than their children, so a single backward pass computes
//! totals. Values of 0 or less are ignored. This module does not store files, lines and binaries of nodes.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::flamegraph::levels::smallest_kept;
use crate::flamegraph::marked::Marking;
use crate::flamegraph::{DiffGraph, FlameGraph, OTHER, TOTAL};

/// Names and the paths made of them. Node 0 is the root.
pub struct Paths {
    names: Vec<Arc<str>>,
    /// Numbers of the names, by hash. The root's name is not included, because a function may have the same name.
    name_index: HashTable<u32>,
    parents: Vec<u32>,
    node_names: Vec<u32>,
    /// Nodes by parent and name.
    children: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

/// The nodes with a value and all nodes above them, in ascending order, so that the root is first. Each node has one
/// value per side.
struct NonZeroNodes<const SIDES: usize> {
    nodes: Vec<u32>,
    /// For each node, the position of its parent in `nodes`.
    parents: Vec<u32>,
    own: Vec<[i64; SIDES]>,
    totals: Vec<[i64; SIDES]>,
}

/// The nodes that are large enough to show.
struct ShownNodes<const SIDES: usize> {
    nonzero: NonZeroNodes<SIDES>,
    /// The shown children of all nodes, as indices in `nonzero`. The children of one node are adjacent.
    children: Vec<u32>,
    /// For each node of `nonzero`, the end of its children in `children`.
    ends: Vec<u32>,
    /// For each node of `nonzero`, the sum of its children that are too small to show.
    other: Vec<[i64; SIDES]>,
}

/// An entry of a level: the index of a node in [`NonZeroNodes`], or an "other" with its value.
#[derive(Clone, Copy)]
enum LevelEntry<const SIDES: usize> {
    Node(u32),
    Other([i64; SIDES]),
}

impl Default for Paths {
    fn default() -> Self {
        Self {
            names: vec![TOTAL.into()],
            name_index: HashTable::new(),
            parents: vec![0],
            node_names: vec![0],
            children: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }
}

impl Paths {
    /// Returns the number of a name. Stores the name if it is new.
    pub fn name(&mut self, text: &Arc<str>) -> u32 {
        let (names, hasher) = (&mut self.names, &self.hasher);
        let hash = |text: &Arc<str>| hasher.hash_one(text);
        let text_hash = hash(text);
        if let Some(id) = self.name_index.find(text_hash, |id| names[*id as usize] == *text) {
            return *id;
        }
        let id = names.len() as u32;
        names.push(text.clone());
        self.name_index
            .insert_unique(text_hash, id, |id| hash(&names[*id as usize]));
        id
    }

    /// Returns the last node of a path of names, root first. Stores the path if it is new.
    pub fn insert(&mut self, root_first: impl IntoIterator<Item = u32>) -> u32 {
        let (parents, names, hasher) = (&mut self.parents, &mut self.node_names, &self.hasher);
        let mut node = 0;
        for name in root_first {
            let hash = hasher.hash_one((node, name));
            let is_child = |child: &u32| parents[*child as usize] == node && names[*child as usize] == name;
            node = if let Some(child) = self.children.find(hash, is_child) {
                *child
            } else {
                let next = parents.len() as u32;
                parents.push(node);
                names.push(name);
                self.children.insert_unique(hash, next, |child| {
                    hasher.hash_one((parents[*child as usize], names[*child as usize]))
                });
                next
            };
        }
        node
    }

    /// Returns the number of nodes, including the root.
    pub fn count(&self) -> usize {
        self.parents.len()
    }

    /// Returns the memory held in bytes, without the texts.
    pub fn bytes(&self) -> usize {
        self.names.capacity() * size_of::<Arc<str>>()
            + (self.parents.capacity() + self.node_names.capacity()) * size_of::<u32>()
            + self.name_index.allocation_size()
            + self.children.allocation_size()
    }

    /// Returns the flame graph of `values`, which are pairs of node and value, with about `max_nodes` nodes (0: all).
    pub fn flamegraph(&self, values: &[(u32, i64)], max_nodes: usize) -> FlameGraph {
        let kept = self.shown_nodes(values.iter().map(|(node, value)| (*node, [*value])), max_nodes);
        let nonzero = &kept.nonzero;
        let mut names = ShownNames::new(self);
        let mut graph = FlameGraph {
            total: nonzero.totals[0][0],
            ..FlameGraph::default()
        };
        let mut level: Vec<(LevelEntry<1>, i64)> = vec![(LevelEntry::Node(0), 0)];
        while !level.is_empty() {
            let mut next = Vec::new();
            let mut groups = Vec::with_capacity(level.len() * 4);
            let mut end = 0i64;
            for &(entry, x) in &level {
                let (total, own, name) = match entry {
                    LevelEntry::Other([total]) => (total, total, names.other()),
                    LevelEntry::Node(index) => {
                        let index = index as usize;
                        let mut x = x.saturating_add(nonzero.own[index][0]);
                        for child in kept.children(index) {
                            next.push((LevelEntry::Node(*child), x));
                            x = x.saturating_add(nonzero.totals[*child as usize][0]);
                        }
                        if kept.other[index] != [0] {
                            next.push((LevelEntry::Other(kept.other[index]), x));
                        }
                        (
                            nonzero.totals[index][0],
                            nonzero.own[index][0],
                            names.index_of(nonzero.nodes[index]),
                        )
                    }
                };
                groups.extend([x - end, total, own, name]);
                graph.max_self = graph.max_self.max(own);
                end = x.saturating_add(total);
            }
            graph.lines.push(vec![0; level.len()]);
            graph.levels.push(groups);
            level = next;
        }
        graph.names = names.shown;
        graph.files = vec![String::new(); graph.names.len()];
        graph.mappings.clone_from(&graph.files);
        graph
    }

    /// Returns the difference of two sides, which are pairs of node and value. If `max_nodes` is not 0, the result has
    /// about `max_nodes` nodes: those for which the sum of the totals of both sides is largest.
    pub fn diff(&self, left: &[(u32, i64)], right: &[(u32, i64)], max_nodes: usize) -> DiffGraph {
        let left = left.iter().map(|(node, value)| (*node, [*value, 0]));
        let right = right.iter().map(|(node, value)| (*node, [0, *value]));
        let kept = self.shown_nodes(left.chain(right), max_nodes);
        let nonzero = &kept.nonzero;
        let [left_ticks, right_ticks] = nonzero.totals[0];
        let mut names = ShownNames::new(self);
        let mut graph = DiffGraph {
            left_ticks,
            right_ticks,
            total: left_ticks.saturating_add(right_ticks),
            ..DiffGraph::default()
        };
        let mut level: Vec<(LevelEntry<2>, [i64; 2])> = vec![(LevelEntry::Node(0), [0; 2])];
        while !level.is_empty() {
            let mut next = Vec::new();
            let mut groups = Vec::with_capacity(level.len() * 7);
            let mut ends = [0i64; 2];
            for &(entry, x) in &level {
                let (total, own, name) = match entry {
                    LevelEntry::Other(total) => (total, total, names.other()),
                    LevelEntry::Node(index) => {
                        let index = index as usize;
                        let mut x = add(x, nonzero.own[index]);
                        for child in kept.children(index) {
                            next.push((LevelEntry::Node(*child), x));
                            x = add(x, nonzero.totals[*child as usize]);
                        }
                        if kept.other[index] != [0; 2] {
                            next.push((LevelEntry::Other(kept.other[index]), x));
                        }
                        (
                            nonzero.totals[index],
                            nonzero.own[index],
                            names.index_of(nonzero.nodes[index]),
                        )
                    }
                };
                for side in 0..2 {
                    groups.extend([x[side] - ends[side], total[side], own[side]]);
                    graph.max_self = graph.max_self.max(own[side]);
                }
                groups.push(name);
                ends = add(x, total);
            }
            graph.levels.push(groups);
            level = next;
        }
        graph.names = names.shown;
        graph.files = vec![String::new(); graph.names.len()];
        graph.mappings.clone_from(&graph.files);
        graph
    }

    fn shown_nodes<const SIDES: usize>(
        &self,
        values: impl Iterator<Item = (u32, [i64; SIDES])>,
        max_nodes: usize,
    ) -> ShownNodes<SIDES> {
        let nonzero = self.nonzero_nodes(values);
        let size = |totals: &[i64; SIDES]| totals.iter().fold(0i64, |sum, value| sum.saturating_add(*value));
        let smallest = smallest_kept(nonzero.totals.iter().skip(1).map(size), max_nodes);
        let mut other = vec![[0i64; SIDES]; nonzero.nodes.len()];
        let mut ends = vec![0u32; nonzero.nodes.len()];
        for (index, totals) in nonzero.totals.iter().enumerate().skip(1) {
            let parent = nonzero.parents[index] as usize;
            if size(totals) < smallest {
                other[parent] = add(other[parent], *totals);
            } else {
                ends[parent] += 1;
            }
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += std::mem::replace(end, sum);
        }
        // `ends` contains the starts here. They become the ends while the children are filled in.
        let mut children = vec![0u32; sum as usize];
        for (index, totals) in nonzero.totals.iter().enumerate().skip(1) {
            if size(totals) >= smallest {
                let end = &mut ends[nonzero.parents[index] as usize];
                children[*end as usize] = index as u32;
                *end += 1;
            }
        }
        let mut start = 0;
        for end in &ends {
            let siblings = &mut children[start..*end as usize];
            siblings.sort_unstable_by_key(|index| self.name_of(nonzero.nodes[*index as usize]));
            start = *end as usize;
        }
        ShownNodes {
            nonzero,
            children,
            ends,
            other,
        }
    }

    /// Returns the nodes with a value above 0 and all nodes above them, with their sums.
    fn nonzero_nodes<const SIDES: usize>(
        &self,
        values: impl Iterator<Item = (u32, [i64; SIDES])>,
    ) -> NonZeroNodes<SIDES> {
        let values: Vec<(u32, [i64; SIDES])> = values
            .filter(|(_, sides)| sides.iter().any(|value| *value > 0))
            .map(|(node, sides)| (node, sides.map(|value| value.max(0))))
            .collect();
        let mut marking = Marking::new(self.parents.len());
        marking.mark(0);
        for (node, _) in &values {
            let mut node = *node;
            while marking.mark(node) {
                node = self.parents[node as usize];
            }
        }
        let marked = marking.counted();
        let mut nodes = Vec::with_capacity(marked.len());
        nodes.extend(marked.numbers());
        let rank = |node: u32| marked.rank(node);
        let parents: Vec<u32> = nodes.iter().map(|node| rank(self.parents[*node as usize])).collect();
        let mut own = vec![[0i64; SIDES]; nodes.len()];
        for (node, sides) in &values {
            let index = rank(*node) as usize;
            own[index] = add(own[index], *sides);
        }
        let mut totals = own.clone();
        for index in (1..nodes.len()).rev() {
            let parent = parents[index] as usize;
            totals[parent] = add(totals[parent], totals[index]);
        }
        NonZeroNodes {
            nodes,
            parents,
            own,
            totals,
        }
    }

    fn name_of(&self, node: u32) -> &str {
        &self.names[self.node_names[node as usize] as usize]
    }
}

impl<const SIDES: usize> ShownNodes<SIDES> {
    /// Returns the indices of the shown children of the node with an index, ordered by name.
    fn children(&self, index: usize) -> &[u32] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.children[start..self.ends[index] as usize]
    }
}

/// Assigns indices to names on first use.
struct ShownNames<'a> {
    paths: &'a Paths,
    /// For each name, its index in `shown` plus one.
    indices: Vec<u32>,
    other: Option<i64>,
    shown: Vec<String>,
}

impl<'a> ShownNames<'a> {
    fn new(paths: &'a Paths) -> Self {
        Self {
            paths,
            indices: vec![0; paths.names.len()],
            other: None,
            shown: Vec::new(),
        }
    }

    fn index_of(&mut self, node: u32) -> i64 {
        let name = self.paths.node_names[node as usize] as usize;
        if self.indices[name] == 0 {
            self.shown.push(self.paths.names[name].as_ref().to_owned());
            self.indices[name] = self.shown.len() as u32;
        }
        i64::from(self.indices[name]) - 1
    }

    fn other(&mut self) -> i64 {
        *self.other.get_or_insert_with(|| {
            self.shown.push(OTHER.to_owned());
            self.shown.len() as i64 - 1
        })
    }
}

fn add<const SIDES: usize>(mut left: [i64; SIDES], right: [i64; SIDES]) -> [i64; SIDES] {
    for (left, right) in left.iter_mut().zip(right) {
        *left = left.saturating_add(right);
    }
    left
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::flamegraph::{FrameRef, Tree, diff};

    fn tree(stacks: &[(String, i64)]) -> Tree {
        let mut tree = Tree::by_name();
        for (stack, value) in stacks {
            let frame = |function| FrameRef {
                function,
                ..FrameRef::default()
            };
            let names = stack.rsplit(';').filter(|name| !name.is_empty());
            tree.insert(names.map(frame), *value);
        }
        tree
    }

    fn leaves(paths: &mut Paths, stacks: &[(String, i64)]) -> Vec<(u32, i64)> {
        stacks
            .iter()
            .map(|(stack, value)| {
                let names: Vec<u32> = stack
                    .split(';')
                    .filter(|name| !name.is_empty())
                    .map(|name| paths.name(&Arc::from(name)))
                    .collect();
                (paths.insert(names), *value)
            })
            .collect()
    }

    fn stacks() -> impl Strategy<Value = Vec<(String, i64)>> {
        let stack = prop::collection::vec("[a-d]|total|other", 0..6).prop_map(|names| names.join(";"));
        prop::collection::vec((stack, 0i64..100), 0..40)
    }

    proptest! {
        #[test]
        fn answers_are_those_of_a_tree_made_for_the_question(
            before in stacks(), left in stacks(), right in stacks(), max_nodes in 0usize..30, unrelated in 0usize..400
        ) {
            let mut paths = Paths::default();
            // Paths of other queries must not appear.
            leaves(&mut paths, &before);
            let unrelated_stacks: Vec<(String, i64)> = (0..unrelated).map(|index| (format!("x{index};y"), 1)).collect();
            leaves(&mut paths, &unrelated_stacks);
            let (of_left, of_right) = (leaves(&mut paths, &left), leaves(&mut paths, &right));
            let mut expected = tree(&left).to_flamegraph(max_nodes);
            expected.lines.iter_mut().for_each(|line| line.fill(0));
            prop_assert_eq!(paths.flamegraph(&of_left, max_nodes), expected);
            let expected = diff(&tree(&left), &tree(&right), max_nodes);
            prop_assert_eq!(paths.diff(&of_left, &of_right, max_nodes), expected);
        }
    }

    #[test]
    fn a_path_of_a_hundred_thousand_frames_is_no_problem() {
        let mut paths = Paths::default();
        let name = paths.name(&Arc::from("recursive"));
        let leaf = paths.insert(std::iter::repeat_n(name, 100_000));
        assert_eq!(paths.flamegraph(&[(leaf, 1)], 0).levels.len(), 100_001);
    }
}
