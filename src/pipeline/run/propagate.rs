//! Propagates changed values through a tree: from a component to the components that refer to it, into modules as
//! arguments, and out of them as exports.
//!
//! Only marked nodes are processed, each after the nodes that it refers to. A node whose value changes marks its
//! dependants. A pass does not apply changes of shape (other items of a `foreach`, other arguments of an import). It
//! reports them, because they need a new tree.

use std::sync::Arc;

use crate::check::blocks::ForeachBody;
use crate::check::declare::decode_call;
use crate::check::graph::SourceBlock;
use crate::component::{AnyDefinition, HealthState, ValidArguments};
use crate::run::engine::Engine;
use crate::run::evaluate::{argument, block_error, export, typed, values};
use crate::run::identity;
use crate::run::instance::{Children, Custom, Entry, Instance, NodeData, Pending};
use crate::run::names::Names;
use crate::run::node::Node;
use alluvium_lang::Diagnostics;
use alluvium_lang::body::FromBody as _;
use alluvium_lang::codes;
use alluvium_lang::value::Value;

/// One pass through a tree of instances.
pub(crate) struct Propagate<'a> {
    engine: &'a Engine,
    /// True in a load, where the pass ends at the first failure.
    strict: bool,
    /// Updated components with their previous arguments.
    pub(crate) updated: Vec<(Arc<Node>, ValidArguments)>,
    /// Ids of imports and `foreach` blocks that need a new tree.
    pub(crate) shape: Vec<Arc<str>>,
    /// Number of evaluated nodes.
    pub(crate) evaluated: usize,
}

impl<'a> Propagate<'a> {
    /// Creates a pass for a load, which ends at the first failure.
    pub(crate) fn of_load(engine: &'a Engine) -> Self {
        Self {
            engine,
            strict: true,
            updated: Vec::new(),
            shape: Vec::new(),
            evaluated: 0,
        }
    }

    /// Creates a pass through the running tree, where failures only change the health of nodes.
    pub(crate) fn of_run(engine: &'a Engine) -> Self {
        Self {
            strict: false,
            ..Self::of_load(engine)
        }
    }

    /// Processes the marked nodes of an instance and its inner modules. If the instance is the template of a `foreach`,
    /// `outer` has the names of the enclosing scope.
    pub(crate) fn process(&mut self, instance: &Instance, outer: Option<&Names<'_>>) -> Result<(), Diagnostics> {
        while let Some((index, pending)) = instance.next_marked() {
            let Some(entry) = instance.entry(index) else { continue };
            self.evaluated += usize::from(pending == Pending::Evaluation);
            match self.entry(instance, index, entry, pending, outer) {
                Ok(changed) => {
                    if pending == Pending::Evaluation && !self.strict {
                        entry.set_evaluation(HealthState::Healthy, "component evaluated");
                    }
                    if changed {
                        instance.mark_dependants(index);
                    }
                }
                Err(errors) if self.strict => return Err(errors),
                Err(errors) => {
                    let id = instance.global_id(index).unwrap_or_default();
                    tracing::error!(component_id = %id, error = %errors, "cannot evaluate the component");
                    entry.set_evaluation(HealthState::Unhealthy, errors.to_string());
                }
            }
        }
        Ok(())
    }

    /// Processes a node; returns true if the value that other nodes read has changed.
    fn entry(
        &mut self,
        instance: &Instance,
        index: usize,
        entry: &Entry,
        pending: Pending,
        outer: Option<&Names<'_>>,
    ) -> Result<bool, Diagnostics> {
        let names = Names::of(instance, &self.engine.common, outer);
        let Some(node) = instance.graph.nodes.get(index) else {
            return Ok(false);
        };
        let text = &node.block;
        match &entry.data {
            NodeData::Component(running) => {
                self.update(running.definition, running, text, &names)?;
                Ok(entry.set_value(running.exports()))
            }
            NodeData::Import(running) => {
                let arguments = self.engine.arguments(running.definition, text, &names, Some(running))?;
                if !running.has_arguments(&arguments) {
                    self.shape.push(running.id.clone());
                }
                Ok(false)
            }
            NodeData::Argument => {
                argument(text, node.label(), instance, &names, None).map(|value| entry.set_value(value))
            }
            NodeData::Export => export(text, &names).map(|value| entry.set_value(value)),
            NodeData::Custom(module) => self.custom(entry, module, text, pending, &names),
            NodeData::Foreach(children) => {
                let id = instance.global_id(index).unwrap_or_default();
                self.foreach(id, children, text, pending, &names).map(|()| false)
            }
        }
    }

    fn update(
        &mut self,
        definition: &dyn AnyDefinition,
        node: &Arc<Node>,
        text: &SourceBlock,
        names: &Names<'_>,
    ) -> Result<(), Diagnostics> {
        let arguments = self.engine.arguments(definition, text, names, Some(node))?;
        if node.has_arguments(&arguments) {
            return Ok(());
        }
        let before = node.arguments();
        node.update(&arguments).map_err(|error| {
            let message = format!("{} refused its new arguments: {error}", node.id);
            block_error(codes::UPDATE_FAILED, text, message)
        })?;
        if self.strict {
            self.updated.push((node.clone(), before));
        }
        Ok(())
    }

    fn custom(
        &mut self,
        entry: &Entry,
        module: &Custom,
        text: &SourceBlock,
        pending: Pending,
        names: &Names<'_>,
    ) -> Result<bool, Diagnostics> {
        let Custom { declare, instance } = module;
        let mut result = Ok(());
        if pending == Pending::Evaluation {
            let called = decode_call(text, declare.analysis(), &names.evaluate());
            result = called.diagnostics.into_result(());
            let mut current = instance.arguments.lock();
            if result.is_ok() && *current != called.arguments {
                *current = called.arguments;
                drop(current);
                for (index, entry) in instance.entries.iter().enumerate() {
                    if matches!(entry.as_ref().map(|entry| &entry.data), Some(NodeData::Argument)) {
                        instance.mark(index, Pending::Evaluation);
                    }
                }
            }
        }
        self.process(instance, None)?;
        let changed = entry.set_value(instance.exports());
        result.map(|()| changed)
    }

    fn foreach(
        &mut self,
        id: Arc<str>,
        children: &Children,
        text: &SourceBlock,
        pending: Pending,
        names: &Names<'_>,
    ) -> Result<(), Diagnostics> {
        if pending == Pending::Evaluation {
            let values = values(text, ForeachBody::SCHEMA, names)?;
            let items = identity::items(&typed(text, &values)?);
            // Keys are unique. If the counts are equal and each item has a child, each child also has an item.
            let has_same_keys =
                items.len() == children.list.len() && items.iter().all(|(key, _)| children.list.contains_key(key));
            if has_same_keys {
                *children.values.lock() = values;
                for (key, item) in items {
                    if let Some(child) = children.list.get(&key) {
                        set_item(child, item);
                    }
                }
            } else {
                self.shape.push(id);
            }
            children.list.values().for_each(Instance::mark_users_of_outside);
        }
        for child in children.list.values() {
            self.process(child, Some(names))?;
        }
        Ok(())
    }
}

fn set_item(child: &Instance, item: Value) {
    if let Some((_, current)) = &child.variable {
        *current.lock() = item;
    }
}
