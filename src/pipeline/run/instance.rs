//! A running scope: the nodes of a graph with their values. The configuration itself and every module is one.
//!
//! Instances form a tree that is rebuilt at each load and whenever its shape changes; the old and the new tree share
//! their components. Values of a tree change only while the controller holds its lock for changes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::lang::schema::Arguments;
use crate::lang::value::Value;
use crate::pipeline::check::graph::{Declare, Graph, NodeKind};
use crate::pipeline::component::HealthState;
use crate::pipeline::run::library::Surroundings;
use crate::pipeline::run::node::{Health, Node};

/// A scope at run time: one for each instantiation of its text.
#[derive(Default)]
pub(crate) struct Instance {
    /// Module id: the ids of the enclosing modules and its own, joined by `/`; empty for the configuration itself, a
    /// name for a configuration from elsewhere.
    pub path: Arc<str>,
    /// The graph of the text that it runs.
    pub graph: Arc<Graph>,
    /// The run-time state of each node. All are present once the tree is in force.
    pub entries: Vec<Option<Entry>>,
    /// The arguments from its user.
    pub arguments: Mutex<Arguments>,
    /// The name and value of the item, for the template of a `foreach`.
    pub variable: Option<(Arc<str>, Mutex<Value>)>,
    /// Where declarations and imports are looked up.
    pub surroundings: Arc<Surroundings>,
    /// Nodes that have to be processed, by their place in the order of evaluation, and what to do.
    pub dirty: Mutex<BTreeMap<usize, Pending>>,
}

/// What has to be done for a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pending {
    /// Evaluate parts of its inner modules, but not its own expressions.
    #[default]
    Inside,
    /// Evaluate its own expressions as well.
    Evaluation,
}

/// The run-time state of a node of the graph.
pub(crate) struct Entry {
    /// The kind of the node, with its run-time data.
    pub what: What,
    value: Mutex<Value>,
    health: Mutex<Health>,
}

/// The run-time data of a node, by its kind.
pub(crate) enum What {
    /// A component of the program.
    Component(Arc<Node>),
    /// The source of an import.
    Import(Arc<Node>),
    /// A value from the user of the module.
    Argument,
    /// A value for the user of the module.
    Export,
    /// An instance of a `declare`.
    Custom(Box<Custom>),
    /// A module for each item.
    Foreach(Children),
}

/// An instance of a `declare`.
pub(crate) struct Custom {
    /// The declaration that it is an instance of.
    pub declare: Arc<Declare>,
    /// The scope of the instance.
    pub instance: Instance,
}

/// The modules of a `foreach`.
pub(crate) struct Children {
    /// The evaluated arguments of the block: the collection, and the others.
    pub values: Mutex<Arguments>,
    /// The module of each item, by the item's id.
    pub list: BTreeMap<Arc<str>, Instance>,
}

impl Entry {
    /// The entry of a node whose evaluation succeeded.
    pub(crate) fn new(what: What, value: Value) -> Self {
        Self {
            what,
            value: Mutex::new(value),
            health: Mutex::new(Health::now(HealthState::Healthy, "evaluated")),
        }
    }

    /// The value that references to it see.
    pub(crate) fn value(&self) -> Value {
        self.value.lock().clone()
    }

    /// Sets the value that references see; false when it is unchanged.
    pub(crate) fn set_value(&self, value: Value) -> bool {
        let mut current = self.value.lock();
        let changed = *current != value;
        if changed {
            *current = value;
        }
        changed
    }

    /// Health of its last evaluation.
    pub(crate) fn health(&self) -> Health {
        match &self.what {
            What::Component(node) | What::Import(node) => node.health(),
            _ => self.health.lock().clone(),
        }
    }

    /// True when its last evaluation succeeded. For kinds whose evaluation health is not kept in a node.
    pub(crate) fn is_well_evaluated(&self) -> bool {
        self.health.lock().state == HealthState::Healthy
    }

    /// Sets the health of the last evaluation.
    pub(crate) fn set_evaluation(&self, state: HealthState, message: impl Into<Cow<'static, str>>) {
        match &self.what {
            What::Component(node) | What::Import(node) => node.set_evaluation(state, message),
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
    /// The run-time state of a node of the graph.
    pub(crate) fn entry(&self, index: usize) -> Option<&Entry> {
        self.entries.get(index)?.as_ref()
    }

    /// The id of a node among all nodes.
    pub(crate) fn global_id(&self, index: usize) -> Option<Arc<str>> {
        Some(join(&self.path, &self.graph.nodes.get(index)?.id))
    }

    /// The values of its exports, for its user.
    pub(crate) fn exports(&self) -> Value {
        let exports = self.graph.nodes.iter().enumerate().filter_map(|(index, node)| {
            matches!(node.kind, NodeKind::Export)
                .then(|| Some((Arc::<str>::from(node.label()), self.entry(index)?.value())))?
        });
        Value::object(exports)
    }

    /// Marks a node to be processed; a node already marked stays so.
    pub(crate) fn mark(&self, index: usize, pending: Pending) {
        if let Some(rank) = self.graph.rank.get(index) {
            let mut dirty = self.dirty.lock();
            let known = dirty.entry(*rank).or_default();
            *known = pending.max(*known);
        }
    }

    /// Marks the nodes that refer to a node for evaluation.
    pub(crate) fn mark_dependants(&self, index: usize) {
        let node = self.graph.nodes.get(index);
        for dependant in node.iter().flat_map(|node| &node.referenced_by) {
            self.mark(*dependant, Pending::Evaluation);
        }
    }

    /// Marks every node that uses the item of its template or the scopes around it for evaluation.
    pub(crate) fn mark_users_of_outside(&self) {
        for (index, node) in self.graph.nodes.iter().enumerate() {
            if node.uses_outside {
                self.mark(index, Pending::Evaluation);
            }
        }
    }

    /// The next marked node, leaves first, and what to do for it.
    pub(crate) fn next_dirty(&self) -> Option<(usize, Pending)> {
        let (rank, pending) = self.dirty.lock().pop_first()?;
        Some((*self.graph.order.get(rank)?, pending))
    }

    /// True when no node is marked.
    pub(crate) fn is_clean(&self) -> bool {
        self.dirty.lock().is_empty()
    }

    /// Visits every entry here and in the inner modules.
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

    /// The modules directly below a node.
    pub(crate) fn modules(&self, index: usize) -> Vec<&Instance> {
        match self.entry(index).map(|entry| &entry.what) {
            Some(What::Custom(module)) => vec![&module.instance],
            Some(What::Foreach(children)) => children.list.values().collect(),
            _ => Vec::new(),
        }
    }

    /// The instance with a full module id; call it on the root.
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

    /// The node with a full id: its instance, and its index there; call it on the root.
    pub(crate) fn locate(&self, id: &str) -> Option<(&Instance, usize)> {
        self.inner_locate(self.local(id)?)
    }

    fn inner_locate(&self, id: &str) -> Option<(&Instance, usize)> {
        match self.graph.find(id) {
            Some(index) => Some((self, index)),
            None => self.step(id).and_then(|(inner, rest)| inner.inner_locate(rest)),
        }
    }

    /// A full id without the id of the root.
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

    /// The module that the first part of a path names, and the rest of the path.
    fn step<'p>(&self, path: &'p str) -> Option<(&Instance, &'p str)> {
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        match &self.entry(self.graph.find(first)?)?.what {
            What::Custom(module) => Some((&module.instance, rest)),
            What::Foreach(children) => {
                let (key, rest) = rest.split_once('/').unwrap_or((rest, ""));
                Some((children.list.get(key)?, rest))
            }
            _ => None,
        }
    }

    /// Marks the nodes that refer to the node with this full id for evaluation, and all modules around it; call it on
    /// the root. False when its exports are unchanged, or there is no such node.
    pub(crate) fn mark_changed(&self, id: &str) -> bool {
        self.local(id).is_some_and(|id| self.inner_mark_changed(id))
    }

    fn inner_mark_changed(&self, id: &str) -> bool {
        if let Some(index) = self.graph.find(id) {
            let changed = match self.entry(index) {
                Some(entry) => match &entry.what {
                    What::Component(node) => entry.set_value(node.exports()),
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

/// The full id of something in a module.
pub(super) fn join(path: &str, id: &Arc<str>) -> Arc<str> {
    if path.is_empty() {
        id.clone()
    } else {
        format!("{path}/{id}").into()
    }
}
