//! The tree in force, and the difference between old and new nodes of a load.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::component::HealthState;
use crate::run::instance::{Children, Instance, NodeData};
use crate::run::library::{self, Library};
use crate::run::node::{Health, Node};

/// The running nodes by id.
pub(crate) type Nodes = BTreeMap<Arc<str>, Arc<Node>>;

/// The tree in force, with its components by id.
#[derive(Default)]
pub(crate) struct Running {
    /// The instance of the configuration itself, which contains the modules.
    pub(crate) root: Instance,
    /// Components and imports, including those in modules.
    pub(crate) nodes: Nodes,
    /// The nodes in `nodes`, leaves first: a node comes after the nodes that it refers to.
    pub(crate) order: Vec<Arc<Node>>,
    /// Imports of all scopes, by id.
    pub(crate) libraries: BTreeMap<Arc<str>, Arc<Library>>,
}

/// The nodes to start and to stop. A node that stays is updated if its arguments differ.
pub(super) struct Plan {
    /// New nodes, leaves first.
    pub start: Vec<Arc<Node>>,
    /// Running nodes that are not in the new tree; a node comes before the nodes that it refers to.
    pub stop: Vec<Arc<Node>>,
}

impl Running {
    /// True for an import whose new content was refused, so that an older content is in force.
    pub(crate) fn has_refused_content(&self, node: &Node) -> bool {
        let library = self.libraries.get(&node.id);
        library.is_some_and(|library| library::content(&node.exports()) != library.content)
    }

    /// True if every evaluation succeeded and the content of every import is in force.
    pub(crate) fn is_well_evaluated(&self) -> bool {
        let mut well = self
            .nodes
            .values()
            .all(|node| !node.evaluation_failed() && !self.has_refused_content(node));
        self.root.walk(&mut |_, _, entry| well &= entry.is_well_evaluated());
        well
    }

    /// Returns the ids of nodes that are unhealthy or have exited.
    pub(crate) fn unhealthy(&self) -> Vec<String> {
        let sick = |health: Health| health.state > HealthState::Unknown;
        let nodes = self.nodes.values().filter(|node| sick(node.health()));
        let mut ids: BTreeSet<String> = nodes.map(|node| node.id.to_string()).collect();
        self.root.walk(&mut |instance, index, entry| {
            if sick(entry.health()) {
                ids.extend(instance.global_id(index).map(|id| id.to_string()));
            }
        });
        ids.into_iter().collect()
    }

    /// Sets the health of the last evaluation of a node.
    pub(crate) fn set_evaluation(&self, id: &str, state: HealthState, message: String) {
        if let Some(node) = self.nodes.get(id) {
            node.set_evaluation(state, message);
        } else if let Some((instance, index)) = self.root.locate(id)
            && let Some(entry) = instance.entry(index)
        {
            entry.set_evaluation(state, message);
        }
    }

    /// Returns the modules of a `foreach`, by its id.
    pub(crate) fn children(&self, id: &str) -> Option<&Children> {
        let (instance, index) = self.root.locate(id)?;
        match &instance.entry(index)?.data {
            NodeData::Foreach(children) => Some(children),
            _ => None,
        }
    }
}

/// Compares the running tree with the new one.
pub(crate) fn plan(old: &Running, new: &Running) -> Plan {
    let is_missing =
        |nodes: &Nodes, node: &Arc<Node>| !nodes.get(&node.id).is_some_and(|other| Arc::ptr_eq(other, node));
    let start = new.order.iter().filter(|node| is_missing(&old.nodes, node));
    let stop = old.order.iter().rev().filter(|node| is_missing(&new.nodes, node));
    Plan {
        start: start.cloned().collect(),
        stop: stop.cloned().collect(),
    }
}
