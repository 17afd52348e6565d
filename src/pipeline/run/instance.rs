//! A scope that runs: the nodes of a graph with their values. The configuration itself is one, and every module.
//!
//! Instances form a tree that is made anew at each load and whenever its shape changes; the components in it are shared
//! between old and new tree. Values of a tree change only while the controller holds its lock for changes.

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

/// A scope at run time: one of as many as its text is instantiated.
#[derive(Default)]
pub(crate) struct Instance {
    /// Module id: ids of what is around and its own, with `/` between; empty for the configuration itself, a name for
    /// one from elsewhere.
    pub path: Arc<str>,
    /// The graph of the text that it runs.
    pub graph: Arc<Graph>,
    /// What runs for each node. None is missing once the tree is in force.
    pub entries: Vec<Option<Entry>>,
    /// What its user gives it.
    pub arguments: Mutex<Arguments>,
    /// The item, when it is made of the template of a `foreach`: its name and value.
    pub variable: Option<(Arc<str>, Mutex<Value>)>,
    /// Where its declarations and imports are found.
    pub surroundings: Arc<Surroundings>,
    /// Places in the order of evaluation of nodes that have to be looked at, and why.
    pub dirty: Mutex<BTreeMap<usize, Pending>>,
}

/// What has to be done with a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pending {
    /// Something in the modules inside of it has to be evaluated, its own expressions have not.
    #[default]
    Inside,
    /// Its own expressions have to be evaluated, too.
    Evaluation,
}

/// The run-time state of a node of the graph.
pub(crate) struct Entry {
    /// The kind of the node, with what runs for it.
    pub what: What,
    value: Mutex<Value>,
    health: Mutex<Health>,
}

/// What runs for a node, by its kind.
pub(crate) enum What {
    /// A component of its own.
    Component(Arc<Node>),
    /// The source of an import.
    Import(Arc<Node>),
    /// A value given from outside.
    Argument,
    /// A value given to outside.
    Export,
    /// An instance of a `declare`.
    Custom(Box<Custom>),
    /// As many modules as there are items.
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
    /// The arguments of the block: the collection that they are made of, and the others.
    pub values: Mutex<Arguments>,
    /// The module of each item, by the item's id.
    pub list: BTreeMap<Arc<str>, Instance>,
}

impl Entry {
    /// An entry that was evaluated without an error.
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

    /// Changes what others see of it; false when it is the same.
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

    /// True when its last evaluation went well, as far as that is not known to a node.
    pub(crate) fn is_well_evaluated(&self) -> bool {
        self.health.lock().state == HealthState::Healthy
    }

    /// Says how its last evaluation went.
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

    /// What it gives to its user: the values of its exports.
    pub(crate) fn exports(&self) -> Value {
        let exports = self.graph.nodes.iter().enumerate().filter_map(|(index, node)| {
            matches!(node.kind, NodeKind::Export)
                .then(|| Some((Arc::<str>::from(node.label()), self.entry(index)?.value())))?
        });
        Value::object(exports)
    }

    /// Has a node looked at; what is pending already stays so.
    pub(crate) fn mark(&self, index: usize, pending: Pending) {
        if let Some(rank) = self.graph.rank.get(index) {
            let mut dirty = self.dirty.lock();
            let known = dirty.entry(*rank).or_default();
            *known = pending.max(*known);
        }
    }

    /// Has the nodes that refer to a node evaluated.
    pub(crate) fn mark_dependants(&self, index: usize) {
        let node = self.graph.nodes.get(index);
        for dependant in node.iter().flat_map(|node| &node.referenced_by) {
            self.mark(*dependant, Pending::Evaluation);
        }
    }

    /// Has every node evaluated that uses the item of its template or what surrounds that.
    pub(crate) fn mark_users_of_outside(&self) {
        for (index, node) in self.graph.nodes.iter().enumerate() {
            if node.uses_outside {
                self.mark(index, Pending::Evaluation);
            }
        }
    }

    /// The next node to look at, and what is to be done with it, leaves first.
    pub(crate) fn next_dirty(&self) -> Option<(usize, Pending)> {
        let (rank, pending) = self.dirty.lock().pop_first()?;
        Some((*self.graph.order.get(rank)?, pending))
    }

    /// True when nothing has to be looked at.
    pub(crate) fn is_clean(&self) -> bool {
        self.dirty.lock().is_empty()
    }

    /// Every entry here and in the modules inside.
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

    /// The modules right below a node.
    pub(crate) fn modules(&self, index: usize) -> Vec<&Instance> {
        match self.entry(index).map(|entry| &entry.what) {
            Some(What::Custom(module)) => vec![&module.instance],
            Some(What::Foreach(children)) => children.list.values().collect(),
            _ => Vec::new(),
        }
    }

    /// The instance that a whole module id names; asked of the root.
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

    /// The node that a whole id names: the instance it is in, and its index there; asked of the root.
    pub(crate) fn locate(&self, id: &str) -> Option<(&Instance, usize)> {
        self.inner_locate(self.local(id)?)
    }

    fn inner_locate(&self, id: &str) -> Option<(&Instance, usize)> {
        match self.graph.find(id) {
            Some(index) => Some((self, index)),
            None => self.step(id).and_then(|(inner, rest)| inner.inner_locate(rest)),
        }
    }

    /// A whole id as it is in the root: without the root's own.
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

    /// Has the nodes referring to the node of this whole id evaluated, and all modules around it looked at; asked of
    /// the root. False when its exports are those that they know, or there is no such node.
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

/// The id of something in a module.
pub(super) fn join(path: &str, id: &Arc<str>) -> Arc<str> {
    if path.is_empty() {
        id.clone()
    } else {
        format!("{path}/{id}").into()
    }
}
