//! The places of a report (such as functions) and the calls between them, with their values. Small places and calls are
//! omitted.
//!
//! In: samples. Out: [`Graph`]. A place is counted once per stack, and so is a call, as in `go tool pprof`. If small
//! places are dropped, calls connect the places around them.

use hashbrown::{HashMap, HashSet};

use crate::pprof::Profile;
use crate::report::row_source::RowSources;

/// The samples of a report.
pub(super) struct Samples<'a> {
    pub profile: Profile<'a>,
    /// Index of the sample type.
    pub value: usize,
    pub sources: RowSources<'a>,
}

/// Limits on the rows and calls of a report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trim {
    /// Maximum number of rows that are shown; `None` for all.
    pub node_count: Option<usize>,
    /// Minimum share of the total for a row, from 0 to 1.
    pub node_fraction: f64,
    /// Minimum share of the total for a call, from 0 to 1.
    pub edge_fraction: f64,
}

impl Trim {
    /// No limits: the report shows all rows and calls.
    pub const NONE: Self = Self {
        node_count: None,
        node_fraction: 0.0,
        edge_fraction: 0.0,
    };

    /// The limits of `go tool pprof -top`.
    pub const TOP: Self = Self {
        node_count: None,
        node_fraction: 0.005,
        edge_fraction: 0.001,
    };

    /// The limits of `go tool pprof -tree`.
    pub const TREE: Self = Self {
        node_count: Some(80),
        ..Self::TOP
    };
}

/// The value that determines the order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The value of the place itself.
    Flat,
    /// The value of all stacks that contain the place.
    Cum,
}

/// The values of a place in all samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Node {
    pub flat: i64,
    pub cum: i64,
}

/// Calls from one place to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edge {
    pub caller: u32,
    pub callee: u32,
    pub weight: i64,
    /// True if all of these calls were inlined.
    pub is_inlined: bool,
}

/// The values of all places, and the calls between them.
pub(super) struct Graph {
    /// Values by the index of the place.
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    /// The places that have a value, in the order of the report.
    pub order: Vec<u32>,
}

/// A graph, and the number of rows that were dropped from it.
pub(super) struct TrimmedGraph {
    pub graph: Graph,
    /// Number of rows before their number was limited.
    pub candidates: usize,
    /// Number of rows that were dropped as too small.
    pub dropped: usize,
}

impl Graph {
    /// Creates the graph of all samples, with only the places for which `kept` is true (`None` for all places).
    pub(super) fn new(samples: &Samples<'_>, kept: Option<&[bool]>) -> Self {
        let count = samples.sources.all.len();
        let mut nodes = vec![Node::default(); count];
        let mut edges: Vec<Edge> = Vec::new();
        let mut known: HashMap<(u32, u32), usize> = HashMap::new();
        // For each place, the last sample that contained the place, counted from 1.
        let mut last_samples = vec![0usize; count];
        let mut seen_edges: HashSet<(u32, u32)> = HashSet::new();
        for sample in 0..samples.profile.sample_count() {
            let value = samples.profile.values_of(sample).get(samples.value).copied();
            let Some(value) = value.filter(|value| *value != 0) else {
                continue;
            };
            seen_edges.clear();
            let mut caller = None;
            let mut is_over_dropped = false;
            for location in samples.profile.stack(sample).iter().rev() {
                let source_ids = samples.sources.of_location(*location);
                for (depth, &source_id) in source_ids.iter().enumerate().rev() {
                    let index = source_id as usize;
                    if kept.is_some_and(|kept| !kept[index]) {
                        is_over_dropped = true;
                        continue;
                    }
                    if last_samples[index] != sample + 1 {
                        last_samples[index] = sample + 1;
                        nodes[index].cum = nodes[index].cum.saturating_add(value);
                    }
                    if let Some(caller) = caller.filter(|caller| *caller != source_id)
                        && seen_edges.insert((caller, source_id))
                    {
                        let is_inlined = depth + 1 != source_ids.len();
                        let edge = *known.entry((caller, source_id)).or_insert_with(|| {
                            edges.push(Edge {
                                caller,
                                callee: source_id,
                                weight: 0,
                                is_inlined: true,
                            });
                            edges.len() - 1
                        });
                        edges[edge].weight = edges[edge].weight.saturating_add(value);
                        edges[edge].is_inlined &= is_inlined;
                    }
                    caller = Some(source_id);
                    is_over_dropped = false;
                }
            }
            if let Some(leaf) = caller.filter(|_| !is_over_dropped) {
                let node = &mut nodes[leaf as usize];
                node.flat = node.flat.saturating_add(value);
            }
        }
        let has_value = |source_id: &u32| nodes[*source_id as usize] != Node::default();
        let order = (0..count as u32).filter(has_value).collect();
        Self { nodes, edges, order }
    }

    /// Creates the sorted graph of the samples without small places and calls.
    pub(super) fn trimmed(samples: &Samples<'_>, order: Order, trim: Trim) -> TrimmedGraph {
        let mut graph = Self::new(samples, None);
        let total = graph.flat();
        let cutoff = |fraction: f64| ((total as f64 * fraction) as i64).saturating_abs();
        let (node_cutoff, edge_cutoff) = (cutoff(trim.node_fraction), cutoff(trim.edge_fraction));
        let mut dropped = 0;
        if node_cutoff > 0 {
            let before = graph.order.len();
            let kept = graph.keep_largest(|node| node.cum.saturating_abs() >= node_cutoff, usize::MAX);
            dropped = before - kept.iter().filter(|kept| **kept).count();
            if dropped > 0 {
                graph = Self::new(samples, Some(&kept));
            }
        }
        let candidates = graph.order.len();
        graph.sort(samples, order);
        if let Some(count) = trim.node_count.filter(|count| *count < candidates) {
            let kept = graph.keep_largest(|_| true, count);
            graph = Self::new(samples, Some(&kept));
            graph.sort(samples, order);
        }
        graph.drop_edges(edge_cutoff);
        TrimmedGraph {
            graph,
            candidates,
            dropped,
        }
    }

    /// Returns the sum of the flat values of the places in `order`.
    pub(super) fn flat(&self) -> i64 {
        let flat = self.order.iter().map(|source_id| self.nodes[*source_id as usize].flat);
        flat.fold(0, i64::saturating_add)
    }

    /// Returns for each place whether it is among the first `count` places for which `is_kept` returns true.
    fn keep_largest(&self, is_kept: impl Fn(&Node) -> bool, count: usize) -> Vec<bool> {
        let mut kept = vec![false; self.nodes.len()];
        let indices = self.order.iter().map(|source_id| *source_id as usize);
        for index in indices.filter(|index| is_kept(&self.nodes[*index])).take(count) {
            kept[index] = true;
        }
        kept
    }

    /// Drops calls with a value below `cutoff`, unless the called place has no value.
    fn drop_edges(&mut self, cutoff: i64) {
        let Self { nodes, edges, .. } = self;
        edges.retain(|edge| {
            let is_shown = nodes[edge.callee as usize] != Node::default();
            !is_shown || edge.weight.saturating_abs() >= cutoff
        });
    }

    fn sort(&mut self, samples: &Samples<'_>, criterion: Order) {
        let mut order = std::mem::take(&mut self.order);
        order.sort_by_cached_key(|source_id| {
            let (node, source) = (
                &self.nodes[*source_id as usize],
                &samples.sources.all[*source_id as usize],
            );
            let (first, second) = match criterion {
                Order::Flat => (node.flat, node.cum),
                Order::Cum => (node.cum, node.flat),
            };
            let [first, second] = [first, second].map(|value| std::cmp::Reverse(value.unsigned_abs()));
            (first, source.printed(), second, source.all())
        });
        self.order = order;
    }
}
