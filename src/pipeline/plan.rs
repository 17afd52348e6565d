//! What a load has to do: old nodes against the new graph.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::pipeline::graph::Graph;
use crate::pipeline::node::Node;

/// The running nodes by id.
pub type Nodes = BTreeMap<Arc<str>, Arc<Node>>;

/// Steps that need no values: who comes, who stays, who goes. Whether one that stays is updated depends on its arguments.
pub struct Plan {
    /// Indices of nodes of the new graph that have to be built, leaves first.
    pub start: Vec<usize>,
    /// Running nodes that the new graph does not have, those that refer to others first.
    pub stop: Vec<Arc<Node>>,
}

/// Compares the running nodes, in the order of `old`, with a new graph.
pub fn plan(old: &Graph, running: &Nodes, new: &Graph) -> Plan {
    let start = new
        .order
        .iter()
        .copied()
        .filter(|index| !running.contains_key(&new.nodes[*index].id))
        .collect();
    let stop = old
        .order
        .iter()
        .rev()
        .map(|index| &old.nodes[*index].id)
        .filter(|id| new.find(id).is_none())
        .filter_map(|id| running.get(id).cloned())
        .collect();
    Plan { start, stop }
}
