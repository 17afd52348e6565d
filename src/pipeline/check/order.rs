//! Orders nodes for evaluation, leaves first, and reports cycles.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::graph::Graph;
use alluvium_lang::{Diagnostic, Diagnostics, codes};

/// Orders the nodes, leaves first, and reports cycles.
pub(super) fn sort(graph: &mut Graph, diagnostics: &mut Diagnostics) {
    let nodes = &graph.nodes;
    let mut waiting: Vec<usize> = nodes.iter().map(|node| node.references.len()).collect();
    let mut order: Vec<usize> = (0..nodes.len()).filter(|index| waiting[*index] == 0).collect();
    let mut next = 0;
    while let Some(index) = order.get(next).copied() {
        next += 1;
        for dependant in &nodes[index].referenced_by {
            waiting[*dependant] -= 1;
            if waiting[*dependant] == 0 {
                order.push(*dependant);
            }
        }
    }
    let mut left: BTreeSet<usize> = (0..nodes.len()).filter(|index| waiting[*index] > 0).collect();
    graph.rank = vec![0; nodes.len()];
    for (rank, index) in order.iter().enumerate() {
        graph.rank[*index] = rank;
    }
    graph.order = order;
    while let Some(start) = left.first().copied() {
        match circle_through(graph, start) {
            Some(circle) => {
                for index in &circle {
                    left.remove(index);
                }
                report_circle(graph, &circle, diagnostics);
            }
            // The node is not in a cycle, but depends on one.
            None => {
                left.remove(&start);
            }
        }
    }
}

/// Returns a shortest cycle through a node.
fn circle_through(graph: &Graph, start: usize) -> Option<Vec<usize>> {
    let nodes = &graph.nodes;
    let mut came_from: BTreeMap<usize, usize> = BTreeMap::new();
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(index) = queue.pop_front() {
        for target in &nodes[index].references {
            if *target == start {
                let mut circle = vec![index];
                let mut current = index;
                while current != start {
                    current = *came_from.get(&current)?;
                    circle.push(current);
                }
                circle.reverse();
                return Some(circle);
            }
            if !came_from.contains_key(target) {
                came_from.insert(*target, index);
                queue.push_back(*target);
            }
        }
    }
    None
}

fn report_circle(graph: &Graph, circle: &[usize], diagnostics: &mut Diagnostics) {
    let nodes = &graph.nodes;
    let Some(first) = circle.first().and_then(|index| nodes.get(*index)) else {
        return;
    };
    let ids: Vec<&str> = circle
        .iter()
        .filter_map(|index| nodes.get(*index))
        .map(|node| node.id.as_ref())
        .collect();
    let message = format!("cycle detected: {}", ids.join(", "));
    let hint = format!("{} -> {}", ids.join(" -> "), first.id);
    let mut diagnostic =
        Diagnostic::error(codes::CYCLE, &first.block.source, first.block.block.header(), message).hint(hint);
    for node in circle.iter().skip(1).filter_map(|index| nodes.get(*index)) {
        diagnostic = diagnostic.note_at(&node.block.source, node.block.block.header(), "part of the cycle");
    }
    diagnostics.push(diagnostic);
}
