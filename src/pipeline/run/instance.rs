//! A running scope: the nodes of a graph with their values. The configuration itself and every module is an instance.
//!
//! Instances form a tree. The tree is rebuilt at each load and whenever its shape changes, for example the items of a
//! `foreach`. The old and the new tree share the components that stay. The values of a tree change only while the
//! controller holds its lock for changes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::check::graph::{Declare, Graph, NodeKind};
use crate::component::HealthState;
use crate::run::library::RuntimeEnv;
use crate::run::node::{Health, Node};
use alluvium_lang::schema::Arguments;
use alluvium_lang::value::Value;

/// A scope at run time. Each instantiation of a module is a separate instance.
#[derive(Default)]
pub(crate) struct Instance {
    /// Module id: the ids of the enclosing modules and its own, joined by `/`. Empty for the program's own
    /// configuration, a name for a remote one.
    pub path: Arc<str>,
    /// The graph of the scope.
    pub graph: Arc<Graph>,
    /// The run-time state of each node. All are present once the tree is in force.
    pub entries: Vec<Option<Entry>>,
    /// The arguments that the user of the module sets.
    pub arguments: Mutex<Arguments>,
    /// Name and value of the item, in the template of a `foreach`.
    pub variable: Option<(Arc<str>, Mutex<Value>)>,
    /// The scope's source of declarations and imports.
    pub surroundings: Arc<RuntimeEnv>,
    /// Nodes that must be processed, by their place in the order of evaluation, and the work for each.
    pub dirty: Mutex<BTreeMap<usize, Pending>>,
}

/// The work that is pending for a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pending {
    /// Evaluate parts of the node's inner modules, but not the node's own expressions.
    #[default]
    Inside,
    /// Evaluate the node's own expressions and the inner modules.
    Evaluation,
}

/// The run-time state of a node of the graph.
pub(crate) struct Entry {
    /// The kind of the node, with its run-time data.
    pub data: NodeData,
    value: Mutex<Value>,
    health: Mutex<Health>,
}

/// The run-time data of a node, by its kind.
pub(crate) enum NodeData {
    /// A component of the program.
    Component(Arc<Node>),
    /// The source of an import.
    Import(Arc<Node>),
    /// A value that the user of the module sets.
    Argument,
    /// A value that the user of the module reads.
    Export,
    /// An instance of a `declare`.
    Custom(Box<Custom>),
    /// A module for each item of a collection.
    Foreach(Children),
}

/// An instance of a `declare`.
pub(crate) struct Custom {
    /// The declaration that is instantiated.
    pub declare: Arc<Declare>,
    /// The scope of the instance.
    pub instance: Instance,
}

/// The modules of a `foreach`.
pub(crate) struct Children {
    /// The evaluated arguments of the block, including the collection.
    pub values: Mutex<Arguments>,
    /// The module of each item, by the item's id.
    pub list: BTreeMap<Arc<str>, Instance>,
}

impl Entry {
    /// Creates the entry of a node whose evaluation succeeded.
    pub(crate) fn new(data: NodeData, value: Value) -> Self {
        Self {
            data,
            value: Mutex::new(value),
            health: Mutex::new(Health::now(HealthState::Healthy, "evaluated")),
        }
    }

    /// Returns the value that references to the node see.
    pub(crate) fn value(&self) -> Value {
        self.value.lock().clone()
    }

    /// Sets the value that references see; returns false if it is unchanged.
    pub(crate) fn set_value(&self, value: Value) -> bool {
        let mut current = self.value.lock();
        let changed = *current != value;
        if changed {
            *current = value;
        }
        changed
    }

    /// Returns the health of the node.
    pub(crate) fn health(&self) -> Health {
        match &self.data {
            NodeData::Component(node) | NodeData::Import(node) => node.health(),
            _ => self.health.lock().clone(),
        }
    }

    /// True if the last evaluation succeeded. Valid for kinds whose evaluation health is not stored in a [`Node`].
    pub(crate) fn is_well_evaluated(&self) -> bool {
        self.health.lock().state == HealthState::Healthy
    }

    /// Sets the health of the last evaluation.
    pub(crate) fn set_evaluation(&self, state: HealthState, message: impl Into<Cow<'static, str>>) {
        match &self.data {
            NodeData::Component(node) | NodeData::Import(node) => node.set_evaluation(state, message),
            _ => {
                let mut health = self.health.lock();
                if health.state != state || state != HealthState::Healthy {
                    *health = Health::now(state, message);
                }
            }
        }
    }
}

impl Instance {
    /// Returns the run-time state of a node of the graph.
    pub(crate) fn entry(&self, index: usize) -> Option<&Entry> {
        self.entries.get(index)?.as_ref()
    }

    /// Returns the full id of a node, which is unique in the tree.
    pub(crate) fn global_id(&self, index: usize) -> Option<Arc<str>> {
        Some(join(&self.path, &self.graph.nodes.get(index)?.id))
    }

    /// Returns the values of the module's exports, for its user.
    pub(crate) fn exports(&self) -> Value {
        let exports = self.graph.nodes.iter().enumerate().filter_map(|(index, node)| {
            matches!(node.kind, NodeKind::Export)
                .then(|| Some((Arc::<str>::from(node.label()), self.entry(index)?.value())))?
        });
        Value::object(exports)
    }

    /// Marks a node to be processed. A node that is marked already keeps the larger amount of work.
    pub(crate) fn mark(&self, index: usize, pending: Pending) {
        if let Some(rank) = self.graph.rank.get(index) {
            let mut dirty = self.dirty.lock();
            let work = dirty.entry(*rank).or_default();
            *work = pending.max(*work);
        }
    }

    /// Marks for evaluation the nodes that refer to the node `index`.
    pub(crate) fn mark_dependants(&self, index: usize) {
        let node = self.graph.nodes.get(index);
        for dependant in node.iter().flat_map(|node| &node.referenced_by) {
            self.mark(*dependant, Pending::Evaluation);
        }
    }

    /// Marks for evaluation every node that uses the item of its template or an enclosing scope.
    pub(crate) fn mark_users_of_outside(&self) {
        for (index, node) in self.graph.nodes.iter().enumerate() {
            if node.uses_outside {
                self.mark(index, Pending::Evaluation);
            }
        }
    }

    /// Removes and returns the next marked node, leaves first, and its work.
    pub(crate) fn next_marked(&self) -> Option<(usize, Pending)> {
        let (rank, pending) = self.dirty.lock().pop_first()?;
        Some((*self.graph.order.get(rank)?, pending))
    }

    /// True if no node is marked.
    pub(crate) fn is_clean(&self) -> bool {
        self.dirty.lock().is_empty()
    }

    /// Visits every entry of this instance and its inner modules.
    pub(crate) fn walk(&self, visit: &mut dyn FnMut(&Instance, usize, &Entry)) {
        for index in 0..self.entries.len() {
            if let Some(entry) = self.entry(index) {
                visit(self, index, entry);
            }
            for inner in self.modules(index) {
                inner.walk(visit);
            }
        }
    }

    /// Returns the modules directly below a node.
    pub(crate) fn modules(&self, index: usize) -> Vec<&Instance> {
        match self.entry(index).map(|entry| &entry.data) {
            Some(NodeData::Custom(module)) => vec![&module.instance],
            Some(NodeData::Foreach(children)) => children.list.values().collect(),
            _ => Vec::new(),
        }
    }

    /// Finds the instance with a full module id; to be called on the root.
    pub(crate) fn module(&self, path: &str) -> Option<&Instance> {
        self.inner_module(self.local(path)?)
    }

    fn inner_module(&self, path: &str) -> Option<&Instance> {
        if path.is_empty() {
            Some(self)
        } else {
            self.step(path).and_then(|(inner, rest)| inner.inner_module(rest))
        }
    }

    /// Finds the node with a full id: its instance, and its index there; to be called on the root.
    pub(crate) fn locate(&self, id: &str) -> Option<(&Instance, usize)> {
        self.inner_locate(self.local(id)?)
    }

    fn inner_locate(&self, id: &str) -> Option<(&Instance, usize)> {
        match self.graph.find(id) {
            Some(index) => Some((self, index)),
            None => self.step(id).and_then(|(inner, rest)| inner.inner_locate(rest)),
        }
    }

    /// Strips the id of the root from a full id.
    fn local<'p>(&self, id: &'p str) -> Option<&'p str> {
        if self.path.is_empty() {
            return Some(id);
        }
        let rest = id.strip_prefix(&*self.path)?;
        if rest.is_empty() {
            Some(rest)
        } else {
            rest.strip_prefix('/')
        }
    }

    /// Finds the module to which the first part of a path refers, and returns the rest of the path.
    fn step<'p>(&self, path: &'p str) -> Option<(&Instance, &'p str)> {
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        match &self.entry(self.graph.find(first)?)?.data {
            NodeData::Custom(module) => Some((&module.instance, rest)),
            NodeData::Foreach(children) => {
                let (key, rest) = rest.split_once('/').unwrap_or((rest, ""));
                Some((children.list.get(key)?, rest))
            }
            _ => None,
        }
    }

    /// Marks for evaluation the nodes that refer to the node with this full id, and marks all enclosing modules; to be
    /// called on the root. Returns false if the exports are unchanged, or there is no such node.
    pub(crate) fn mark_changed(&self, id: &str) -> bool {
        self.local(id).is_some_and(|id| self.inner_mark_changed(id))
    }

    fn inner_mark_changed(&self, id: &str) -> bool {
        if let Some(index) = self.graph.find(id) {
            let changed = match self.entry(index) {
                Some(entry) => match &entry.data {
                    NodeData::Component(node) => entry.set_value(node.exports()),
                    _ => false,
                },
                None => false,
            };
            if changed {
                self.mark_dependants(index);
            }
            return changed;
        }
        let Some((inner, rest)) = self.step(id) else {
            return false;
        };
        let changed = inner.inner_mark_changed(rest);
        if changed {
            let first = id.split('/').next().and_then(|first| self.graph.find(first));
            first.into_iter().for_each(|index| self.mark(index, Pending::Inside));
        }
        changed
    }
}

/// Joins the id of a module and an id in the module to a full id.
pub(super) fn join(path: &str, id: &Arc<str>) -> Arc<str> {
    if path.is_empty() {
        id.clone()
    } else {
        format!("{path}/{id}").into()
    }
}
