//! What a configuration says, as data: the nodes of each scope, the references between them, and the order in which
//! they can be evaluated.
//!
//! Every scope (the configuration itself, the body of a `declare`, the template of a `foreach`) is a graph of its own,
//! made once however often it is instantiated. A graph holds no running thing; it is the same for a check and for a
//! run.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use crate::lang::ast::{Block, Expression, ExpressionKind, Identifier, Statement};
use crate::lang::eval::traversal;
use crate::lang::schema::Kind;
use crate::lang::{Diagnostics, Source};
use crate::pipeline::component::AnyDefinition;

/// Constants of the program that expressions may use.
pub(crate) const CONSTANTS: &str = "constants";
/// What there is of `constants`.
pub(crate) const CONSTANT_NAMES: [&str; 4] = ["arch", "hostname", "os", "version"];
/// The folder of the text that an expression stands in.
pub(crate) const MODULE_PATH: &str = "module_path";

/// The nodes of one scope and how they refer to each other.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// The nodes in the order of the text.
    pub nodes: Vec<GraphNode>,
    /// Indices of nodes, leaves (those that refer to nobody) first.
    pub order: Vec<usize>,
    /// Place in `order` of each node.
    pub rank: Vec<usize>,
    /// Blocks that configure the program (`logging`, `http`, ...) by name; in the root only.
    pub settings: BTreeMap<&'static str, Arc<SourceBlock>>,
    /// Nodes of imports by their labels, the namespaces.
    pub imports: BTreeMap<Arc<str>, usize>,
    /// Namespaces of imports that are used here and stand further out: how many scopes, and the name.
    pub namespaces_outside: BTreeSet<(usize, Arc<str>)>,
    /// What is used of the scopes around, when this is a template.
    pub(super) outside: Outside,
    by_id: HashMap<Arc<str>, usize>,
}

/// A block that has a value or runs, as written.
#[derive(Debug)]
pub(crate) struct GraphNode {
    /// Id in its scope: `pyroscope.scrape.default`
    pub id: Arc<str>,
    /// Its kind, and what comes with that kind.
    pub kind: NodeKind,
    /// Its text; of a `foreach` without its template.
    pub block: Arc<SourceBlock>,
    /// Nodes of this scope that it refers to, sorted.
    pub references: Vec<usize>,
    /// Nodes of this scope that refer to it, sorted.
    pub referenced_by: Vec<usize>,
    /// Names of the exports used, with the node they belong to.
    pub used_exports: Vec<(usize, Arc<str>)>,
    /// True when it refers to something that is not a node of this scope and may change: the item of a `foreach`, or
    /// what surrounds its template.
    pub uses_outside: bool,
}

/// The kind of a node, with what it refers to.
#[derive(Debug)]
pub(crate) enum NodeKind {
    /// A component of the program.
    Component(&'static dyn AnyDefinition),
    /// A block that brings declarations from elsewhere; a component too, with the content as its export.
    Import(&'static dyn AnyDefinition),
    /// What the user of a module gives it.
    Argument,
    /// What a module gives its user.
    Export,
    /// An instance of a `declare`.
    Custom(Call),
    /// A template, instantiated for each item of a collection.
    Foreach(Foreach),
}

/// Which `declare` a block instantiates.
#[derive(Debug)]
pub(crate) struct Call {
    /// Label of the import that it comes from.
    pub namespace: Option<Arc<str>>,
    /// Label of the `declare`.
    pub name: Arc<str>,
    /// How many scopes out the `declare` or the import stands.
    pub level: usize,
    /// The declaration; none when it is imported and known only at run time.
    pub declare: Option<Arc<Declare>>,
}

/// The parts of a `foreach` that need no value.
#[derive(Debug)]
pub(crate) struct Foreach {
    /// Name of the item in the template.
    pub variable: Arc<str>,
    /// The graph of the template.
    pub template: Arc<Graph>,
}

/// A declaration: a `declare` block.
#[derive(Debug)]
pub(crate) struct Declare {
    /// The label of the block, its name.
    pub name: Arc<str>,
    /// The `declare` block, with its text.
    pub block: Arc<SourceBlock>,
    analysis: OnceLock<Analysis>,
}

/// What is known of a `declare` without values.
#[derive(Debug)]
pub(crate) struct Analysis {
    /// The graph that its body makes.
    pub graph: Arc<Graph>,
    /// What it takes, by name.
    pub parameters: BTreeMap<Arc<str>, Parameter>,
    /// The types of what it gives, by name.
    pub exports: BTreeMap<Arc<str>, Kind>,
    /// What is wrong with it and with what it instantiates.
    pub diagnostics: Diagnostics,
}

/// An `argument` of a `declare`.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    /// True when it can be left out, or when only the run tells.
    pub optional: bool,
    /// What the argument is for.
    pub comment: String,
}

/// A block and the text it is from.
#[derive(Debug)]
pub(crate) struct SourceBlock {
    /// The text that the block stands in.
    pub source: Source,
    /// The block as it was parsed.
    pub block: Block,
}

/// What a template uses of the scopes around it; levels count outwards from 1.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    pub(super) nodes: BTreeSet<UsedNode>,
    pub(super) exports: BTreeSet<UsedExport>,
    /// Levels of templates further out whose item is used.
    pub(super) variables: BTreeSet<usize>,
}

/// A node by its scope and its place in that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UsedNode {
    /// How many scopes further out it stands.
    pub(super) level: usize,
    /// Index in the graph of that scope.
    pub(super) node: usize,
}

impl UsedNode {
    /// The same node as a scope names it that is one further out.
    pub(super) fn seen_from_around(&self) -> Self {
        Self {
            level: self.level - 1,
            node: self.node,
        }
    }
}

/// An export of a node, by its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UsedExport {
    pub(super) of: UsedNode,
    pub(super) name: Arc<str>,
}

impl Graph {
    /// The index of the node with this id.
    pub(crate) fn find(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// The node that the shortest prefix of `path` names, and how many parts that takes.
    pub(crate) fn resolve(&self, path: &[&str]) -> Option<(usize, usize)> {
        prefixes(path).find_map(|(id, length)| Some((self.find(&id)?, length)))
    }

    /// The type of an export of a node; `None` when it has no such export.
    pub(crate) fn export(&self, node: usize, name: &str) -> Option<Kind> {
        match &self.nodes.get(node)?.kind {
            NodeKind::Component(definition) => {
                let export = definition.exports().iter().find(|export| export.name == name)?;
                Some(export.kind)
            }
            NodeKind::Argument => (name == "value").then_some(Kind::Any),
            NodeKind::Custom(call) => match &call.declare {
                Some(declare) => declare.analysis().and_then(|known| known.exports.get(name).copied()),
                None => Some(Kind::Any),
            },
            NodeKind::Import(_) | NodeKind::Export | NodeKind::Foreach(_) => None,
        }
    }

    /// Names of the exports of a node; `None` when only the run tells.
    pub(crate) fn exports(&self, node: usize) -> Option<Vec<&str>> {
        Some(match &self.nodes.get(node)?.kind {
            NodeKind::Component(definition) => definition.exports().iter().map(|export| export.name).collect(),
            NodeKind::Argument => vec!["value"],
            NodeKind::Custom(call) => {
                let known = call.declare.as_ref()?.analysis()?;
                known.exports.keys().map(AsRef::as_ref).collect()
            }
            NodeKind::Import(_) | NodeKind::Export | NodeKind::Foreach(_) => Vec::new(),
        })
    }

    pub(super) fn push(&mut self, id: Arc<str>, kind: NodeKind, block: Arc<SourceBlock>) {
        self.by_id.insert(id.clone(), self.nodes.len());
        self.nodes.push(GraphNode {
            id,
            kind,
            block,
            references: Vec::new(),
            referenced_by: Vec::new(),
            used_exports: Vec::new(),
            uses_outside: false,
        });
    }
}

impl Declare {
    /// A `declare` that was not analysed yet.
    pub(crate) fn new(name: Arc<str>, block: Arc<SourceBlock>) -> Self {
        Self {
            name,
            block,
            analysis: OnceLock::new(),
        }
    }

    /// What is known of it; none before it was analysed.
    pub(crate) fn analysis(&self) -> Option<&Analysis> {
        self.analysis.get()
    }

    /// Keeps what is known of it. Only the first analysis counts; there is no second.
    pub(super) fn set_analysis(&self, analysis: Analysis) {
        let _ = self.analysis.set(analysis);
    }
}

impl SourceBlock {
    /// The expression of an attribute of the block.
    pub(crate) fn attribute(&self, name: &str) -> Option<&Expression> {
        self.block.body.iter().find_map(|statement| match statement {
            Statement::Attribute(attribute) if &*attribute.name.name == name => Some(&attribute.value),
            _ => None,
        })
    }
}

impl GraphNode {
    /// Its label; empty when it has none.
    pub(crate) fn label(&self) -> &str {
        self.block.block.label.as_ref().map_or("", |label| &label.name)
    }
}

/// The prefixes of a path that can be ids, shortest first.
pub(crate) fn prefixes<'a>(path: &'a [&'a str]) -> impl Iterator<Item = (String, usize)> + 'a {
    (2..=path.len()).map(|length| (path[..length].join("."), length))
}

/// Every chain of names in an expression, and every expression below, depth first.
pub(crate) fn walk_names(expression: &Expression, visit: &mut dyn FnMut(&[Identifier])) {
    let names = traversal(expression);
    if !names.is_empty() {
        visit(&names);
        return;
    }
    match &expression.kind {
        ExpressionKind::Literal { .. } | ExpressionKind::Identifier(_) => {}
        ExpressionKind::Array(items) => items.iter().for_each(|item| walk_names(item, visit)),
        ExpressionKind::Object(fields) => fields.iter().for_each(|field| walk_names(&field.value, visit)),
        ExpressionKind::Access { value, .. } | ExpressionKind::Unary { value, .. } => walk_names(value, visit),
        ExpressionKind::Index { value, index, .. } => {
            walk_names(value, visit);
            walk_names(index, visit);
        }
        ExpressionKind::Call { callee, arguments, .. } => {
            walk_names(callee, visit);
            arguments.iter().for_each(|argument| walk_names(argument, visit));
        }
        ExpressionKind::Binary { left, right, .. } => {
            walk_names(left, visit);
            walk_names(right, visit);
        }
        ExpressionKind::Paren(inner) => walk_names(inner, visit),
    }
}

/// Every chain of names in a body.
pub(crate) fn walk_body(body: &[Statement], visit: &mut dyn FnMut(&[Identifier])) {
    for statement in body {
        match statement {
            Statement::Attribute(attribute) => walk_names(&attribute.value, visit),
            Statement::Block(block) => walk_body(&block.body, visit),
        }
    }
}
