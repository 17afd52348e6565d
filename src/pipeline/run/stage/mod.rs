//! Builds a tree of instances without affecting the running one.
//!
//! Every scope is evaluated from its leaves. Running components are reused with their current arguments (and marked if
//! their new arguments differ). New components are built, and dropped with the tree if the load fails. The module
//! `imports` fetches imports that are new or have new arguments.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::check::blocks::ForeachBody;
use crate::check::declare::decode_call;
use crate::check::graph::{Call, Declare, Foreach, Graph, NodeKind, SourceBlock};
use crate::component::{AnyDefinition, ValidArguments};
use crate::run::engine::Engine;
use crate::run::evaluate::{argument, block_error, export, typed, values};
use crate::run::identity;
use crate::run::instance::{Children, Custom, Entry, Instance, NodeData, Pending, join};
use crate::run::library::{Library, RuntimeEnv};
use crate::run::names::Names;
use crate::run::node::{Metrics, Node};
use crate::run::plan::Running;
use alluvium_lang::body::FromBody as _;
use alluvium_lang::schema::Arguments;
use alluvium_lang::value::Value;
use alluvium_lang::{Diagnostics, codes};

mod imports;

/// Maximum nesting of modules and imports: far above real use, and low enough to stop infinite recursion.
const MAX_DEPTH: usize = 32;

/// The changes of shape that a new tree accepts. The shape of a `foreach` is the set of its items, and the shape of an
/// import is its arguments and texts. If a change is not accepted, the new tree keeps the shape of the tree in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Accept {
    /// Accepts all changes of shape.
    All,
    /// Accepts all except new content of imports with unchanged arguments.
    AllButContent,
    /// Accepts only the new shape of one import or `foreach`, by id.
    Only(Arc<str>),
}

/// Builds one new tree beside the tree in force.
pub(crate) struct Stage<'a> {
    pub(crate) engine: &'a Engine,
    /// The tree that is in force.
    pub(crate) current: &'a Running,
    pub(crate) accept: Accept,
    /// Errors and warnings so far.
    pub(crate) diagnostics: Diagnostics,
    /// Components of the new tree by id.
    pub(crate) nodes: BTreeMap<Arc<str>, Arc<Node>>,
    /// The nodes in `nodes`, leaves first.
    pub(crate) order: Vec<Arc<Node>>,
    /// Imports of the new tree by id.
    pub(crate) libraries: BTreeMap<Arc<str>, Arc<Library>>,
    /// Ids of running components whose arguments differ in the new tree.
    pub(crate) changed: BTreeSet<Arc<str>>,
    /// Ids of existing components that are rebuilt.
    replace: &'a BTreeSet<Arc<str>>,
    /// True to update components during the build, so that later evaluations see their new exports.
    is_eager: bool,
    /// Updated components with their previous arguments.
    pub(crate) updated: Vec<(Arc<Node>, ValidArguments)>,
    /// True if an evaluation failed because it depends on a component that is yet to be updated.
    pub(crate) is_stale: bool,
    /// Imported declarations whose errors have been reported.
    reported: BTreeSet<*const Declare>,
    /// Ids that the new tree should have, even if their evaluation failed.
    desired_ids: BTreeSet<Arc<str>>,
    /// Ids of the modules whose contents have been evaluated.
    reached: BTreeSet<Arc<str>>,
    failed: bool,
    depth: usize,
    /// Number of enclosing `foreach` blocks that hide metrics.
    hidden: usize,
}

/// The parts from which an instance is built.
struct Spec {
    path: Arc<str>,
    graph: Arc<Graph>,
    surroundings: Arc<RuntimeEnv>,
    arguments: Arguments,
    variable: Option<(Arc<str>, Value)>,
    /// The block that instantiates the scope.
    user: Option<Arc<SourceBlock>>,
}

/// A result whose error contains diagnostics. The error is empty if they have been reported already.
type Staged<T> = Result<T, Diagnostics>;

impl<'a> Stage<'a> {
    /// Creates a stage with an empty tree.
    pub(crate) fn new(
        engine: &'a Engine,
        current: &'a Running,
        accept: Accept,
        replace: &'a BTreeSet<Arc<str>>,
    ) -> Self {
        Self {
            engine,
            current,
            accept,
            diagnostics: Diagnostics::new(),
            nodes: BTreeMap::new(),
            order: Vec::new(),
            libraries: BTreeMap::new(),
            changed: BTreeSet::new(),
            replace,
            is_eager: false,
            updated: Vec::new(),
            is_stale: false,
            reported: BTreeSet::new(),
            desired_ids: BTreeSet::new(),
            reached: BTreeSet::new(),
            failed: false,
            depth: 0,
            hidden: 0,
        }
    }

    /// Returns the same stage, which now updates components during the build.
    pub(crate) fn eager(self) -> Self {
        Self { is_eager: true, ..self }
    }

    /// Builds the tree of a configuration. The tree is usable if the diagnostics have no errors.
    pub(crate) fn root(&mut self, graph: Arc<Graph>, module_path: Arc<str>) -> Instance {
        let spec = Spec {
            path: self.engine.module.clone(),
            graph,
            surroundings: RuntimeEnv::new(None, module_path),
            arguments: Arguments::default(),
            variable: None,
            user: None,
        };
        self.instance(spec, None)
    }

    /// True for ids that the new tree should have. All ids inside a module that was not evaluated count as desired.
    pub(crate) fn is_desired(&self, id: &str) -> bool {
        let unknown = |outer: &str| {
            let mut inside = self.reached.range::<str, _>((Bound::Included(outer), Bound::Unbounded));
            let reached = inside.next().is_some_and(|path| {
                let rest = path.strip_prefix(outer);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            });
            self.desired_ids.contains(outer) && !reached
        };
        self.desired_ids.contains(id) || id.match_indices('/').any(|(offset, _)| unknown(&id[..offset]))
    }

    fn instance(&mut self, spec: Spec, outer: Option<&Names<'_>>) -> Instance {
        let mut instance = Instance {
            path: spec.path,
            entries: spec.graph.nodes.iter().map(|_| None).collect(),
            graph: spec.graph,
            arguments: Mutex::new(spec.arguments),
            variable: spec.variable.map(|(name, value)| (name, Mutex::new(value))),
            surroundings: spec.surroundings,
            dirty: Mutex::default(),
        };
        self.reached.insert(instance.path.clone());
        let graph = instance.graph.clone();
        for index in graph.order.iter().copied() {
            self.desired_ids.extend(instance.global_id(index));
            let references = &graph.nodes[index].references;
            // A node that depends on a failed node cannot be evaluated. The static checks have already checked it.
            if references.iter().any(|reference| instance.entry(*reference).is_none()) {
                self.failed = true;
                continue;
            }
            match self.entry(&instance, index, spec.user.as_deref(), outer) {
                Ok(entry) => {
                    if let Some(slot) = instance.entries.get_mut(index) {
                        *slot = Some(entry);
                    }
                    if instance.modules(index).iter().any(|inner| !inner.is_clean()) {
                        instance.mark(index, Pending::Inside);
                    }
                }
                Err(errors) => {
                    // Failed builds do not count, and neither do empty errors after another failure: they can have
                    // other causes than a stale value.
                    let evaluated = errors.iter().any(|errors| errors.code != codes::BUILD_FAILED);
                    let inside = errors.is_empty() && !self.failed;
                    self.is_stale |= (evaluated || inside) && self.depends_on_changed(&instance, index);
                    self.diagnostics.extend(errors);
                    self.failed = true;
                }
            }
        }
        instance
    }

    /// True if a node refers, directly or through other nodes of its scope, to a component that is to be updated.
    fn depends_on_changed(&self, instance: &Instance, index: usize) -> bool {
        let nodes = &instance.graph.nodes;
        let mut visited = BTreeSet::new();
        let mut queue = vec![index];
        while let Some(index) = queue.pop() {
            let Some(node) = nodes.get(index).filter(|_| visited.insert(index)) else {
                continue;
            };
            if self.changed.contains(&join(&instance.path, &node.id)) {
                return true;
            }
            queue.extend(&node.references);
        }
        false
    }

    fn entry(
        &mut self,
        instance: &Instance,
        index: usize,
        user: Option<&SourceBlock>,
        outer: Option<&Names<'_>>,
    ) -> Staged<Entry> {
        let node = &instance.graph.nodes[index];
        let names = Names::of(instance, &self.engine.common, outer);
        match &node.kind {
            NodeKind::Component(definition) => {
                let id = join(&instance.path, &node.id);
                let running = self.current.nodes.get(&id).filter(|_| !self.replace.contains(&id));
                let running_node = running.map(AsRef::as_ref);
                let arguments = self.engine.arguments(*definition, &node.block, &names, running_node)?;
                let running = match running {
                    Some(running) => {
                        if !running.has_arguments(&arguments) {
                            self.changed.insert(id);
                            if self.is_eager {
                                self.update(running, &arguments, &node.block)?;
                            } else {
                                instance.mark(index, Pending::Evaluation);
                            }
                        }
                        running.clone()
                    }
                    None => self.build(id, &instance.path, *definition, arguments, &node.block)?,
                };
                self.take(&running);
                let value = running.exports();
                Ok(Entry::new(NodeData::Component(running), value))
            }
            NodeKind::Import(definition) => {
                let id = join(&instance.path, &node.id);
                let (running, library) = self.import(id, &instance.path, *definition, &node.block, &names)?;
                let namespace = node.label().into();
                instance.surroundings.libraries.lock().insert(namespace, library);
                Ok(Entry::new(NodeData::Import(running), Value::Null))
            }
            NodeKind::Argument => argument(&node.block, node.label(), instance, &names, user)
                .map(|value| Entry::new(NodeData::Argument, value)),
            NodeKind::Export => export(&node.block, &names).map(|value| Entry::new(NodeData::Export, value)),
            NodeKind::Custom(call) => self.custom(instance, index, call, &names),
            NodeKind::Foreach(foreach) => self.foreach(instance, index, foreach, &names),
        }
    }

    fn update(&mut self, node: &Arc<Node>, arguments: &ValidArguments, text: &SourceBlock) -> Staged<()> {
        let before = node.arguments();
        node.update(arguments).map_err(|error| {
            let message = format!("{} refused its new arguments: {error}", node.id);
            block_error(codes::UPDATE_FAILED, text, message)
        })?;
        self.updated.push((node.clone(), before));
        Ok(())
    }

    fn build(
        &mut self,
        id: Arc<str>,
        module: &str,
        definition: &'static dyn AnyDefinition,
        arguments: ValidArguments,
        text: &SourceBlock,
    ) -> Staged<Arc<Node>> {
        // The load has failed already, and a build may open files and sockets.
        if self.failed {
            return Err(Diagnostics::new());
        }
        let metrics = if self.hidden > 0 {
            Metrics::Hidden
        } else {
            Metrics::Shown
        };
        let built = Node::build(id.clone(), module, metrics, definition, arguments, &self.engine.context);
        built.map(Arc::new).map_err(|error| {
            let message = format!("{id} could not be built: {error}");
            block_error(codes::BUILD_FAILED, text, message).into()
        })
    }

    fn take(&mut self, node: &Arc<Node>) {
        self.nodes.insert(node.id.clone(), node.clone());
        self.order.push(node.clone());
    }

    /// True if a change of shape of this import or `foreach` must not be applied.
    fn is_frozen(&self, id: &str) -> bool {
        match &self.accept {
            Accept::All | Accept::AllButContent => false,
            Accept::Only(accepted) => **accepted != *id,
        }
    }

    fn custom(&mut self, instance: &Instance, index: usize, call: &Call, names: &Names<'_>) -> Staged<Entry> {
        let node = &instance.graph.nodes[index];
        let text = &node.block;
        if self.depth >= MAX_DEPTH {
            return Err(too_deep(text));
        }
        let (declare, surroundings) = self.declaration(&instance.surroundings, call, text)?;
        let Some(analysis) = declare.analysis() else {
            return Err(Diagnostics::new());
        };
        let called = decode_call(text, Some(analysis), &names.evaluate());
        called.diagnostics.into_result(())?;
        let spec = Spec {
            path: join(&instance.path, &node.id),
            graph: analysis.graph.clone(),
            surroundings: RuntimeEnv::new(Some(surroundings.clone()), surroundings.module_path.clone()),
            arguments: called.arguments,
            variable: None,
            user: Some(text.clone()),
        };
        let inner = self.inner(spec, None)?;
        let value = inner.exports();
        let module = Custom {
            declare,
            instance: inner,
        };
        Ok(Entry::new(NodeData::Custom(Box::new(module)), value))
    }

    /// Builds an inner instance. The error is empty, since problems inside have been reported already.
    fn inner(&mut self, spec: Spec, outer: Option<&Names<'_>>) -> Staged<Instance> {
        self.depth += 1;
        let inner = self.instance(spec, outer);
        self.depth -= 1;
        if inner.entries.iter().all(Option::is_some) {
            Ok(inner)
        } else {
            Err(Diagnostics::new())
        }
    }

    fn foreach(&mut self, instance: &Instance, index: usize, foreach: &Foreach, names: &Names<'_>) -> Staged<Entry> {
        let node = &instance.graph.nodes[index];
        if self.depth >= MAX_DEPTH {
            return Err(too_deep(&node.block));
        }
        let id = join(&instance.path, &node.id);
        let frozen = self.is_frozen(&id).then(|| self.current.children(&id)).flatten();
        let values = match frozen {
            Some(children) => children.values.lock().clone(),
            None => values(&node.block, ForeachBody::SCHEMA, names)?,
        };
        let body: ForeachBody = typed(&node.block, &values)?;
        let module_path = instance.surroundings.module_path.clone();
        let hidden = usize::from(!body.enable_metrics);
        self.hidden += hidden;
        let mut list = Vec::new();
        for (key, item) in identity::items(&body) {
            let spec = Spec {
                path: join(&id, &key),
                graph: foreach.template.clone(),
                surroundings: RuntimeEnv::new(Some(instance.surroundings.clone()), module_path.clone()),
                arguments: Arguments::default(),
                variable: Some((foreach.variable.clone(), item)),
                user: None,
            };
            list.push((key, self.inner(spec, Some(names))));
        }
        self.hidden -= hidden;
        let list = list.into_iter().map(|(key, inner)| Ok((key, inner?)));
        let children = Children {
            list: list.collect::<Staged<_>>()?,
            values: Mutex::new(values),
        };
        Ok(Entry::new(NodeData::Foreach(children), Value::object::<Arc<str>>([])))
    }
}

fn too_deep(text: &SourceBlock) -> Diagnostics {
    let message = format!("modules are nested more than {MAX_DEPTH} levels deep");
    block_error(codes::MODULE_RECURSION, text, message)
        .hint("does a module instantiate or import itself?")
        .into()
}
