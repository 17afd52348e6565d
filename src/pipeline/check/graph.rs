//! A configuration as data: the nodes of each scope, the references between them, and an order of evaluation.
//!
//! Every scope (the configuration itself, the body of a `declare`, the template of a `foreach`) has its own graph. The
//! graph is built once, even if the scope is instantiated several times. A graph contains no running component; checks
//! and runs use the same graphs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use crate::component::AnyDefinition;
use alluvium_lang::ast::{Block, Expression, ExpressionKind, Identifier, Statement};
use alluvium_lang::eval::traversal;
use alluvium_lang::schema::Kind;
use alluvium_lang::{Diagnostics, Source};

/// Name of the object with the program's constants.
pub(crate) const CONSTANTS: &str = "constants";
/// The fields of `constants`.
pub(crate) const CONSTANT_NAMES: [&str; 4] = ["arch", "hostname", "os", "version"];
/// Name of a constant whose value depends on the text that uses it: the folder of that text.
pub(crate) const MODULE_PATH: &str = "module_path";

/// The nodes of one scope, and their references to each other.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// The nodes in the order of the text.
    pub nodes: Vec<GraphNode>,
    /// Indices of nodes in order of evaluation: leaves (nodes without references) first.
    pub order: Vec<usize>,
    /// Position of each node in `order`, by node index.
    pub rank: Vec<usize>,
    /// Blocks that configure the program (`logging`, `http`, ...) by name; in the root only.
    pub settings: BTreeMap<&'static str, Arc<SourceBlock>>,
    /// Nodes of imports, by label (the namespace).
    pub imports: BTreeMap<Arc<str>, usize>,
    /// Imports of enclosing scopes that this scope uses, each as the number of scopes outwards and the namespace.
    pub namespaces_outside: BTreeSet<(usize, Arc<str>)>,
    /// For a template, the nodes and items of enclosing scopes that the template uses.
    pub(super) outside: Outside,
    by_id: HashMap<Arc<str>, usize>,
}

/// A block of the text. When the configuration runs, the block has a value or a running component.
#[derive(Debug)]
pub(crate) struct GraphNode {
    /// Id in its scope, such as `pyroscope.scrape.default`.
    pub id: Arc<str>,
    /// The kind of the block, with the data of that kind.
    pub kind: NodeKind,
    /// The block with its source. For a `foreach`, the block does not contain the template.
    pub block: Arc<SourceBlock>,
    /// Nodes of this scope that the node refers to, sorted.
    pub references: Vec<usize>,
    /// Nodes of this scope that refer to the node, sorted.
    pub referenced_by: Vec<usize>,
    /// Names of the exports that the node uses, with the node that exports them.
    pub used_exports: Vec<(usize, Arc<str>)>,
    /// True if the node refers to something outside of this scope that can change: the item of a `foreach`, or a node
    /// of a scope that encloses the template.
    pub uses_outside: bool,
}

/// The kind of a node, with the data of that kind.
#[derive(Debug)]
pub(crate) enum NodeKind {
    /// A component of the program.
    Component(&'static dyn AnyDefinition),
    /// A block that imports declarations: a component that exports the imported texts.
    Import(&'static dyn AnyDefinition),
    /// A value that the user of a module passes to it.
    Argument,
    /// A value that a module returns to its user.
    Export,
    /// An instance of a `declare`.
    Custom(Call),
    /// A template, instantiated for each item of a collection.
    Foreach(Foreach),
}

/// The `declare` that a block instantiates.
#[derive(Debug)]
pub(crate) struct Call {
    /// Label of the import that contains the `declare`.
    pub namespace: Option<Arc<str>>,
    /// Label of the `declare`.
    pub name: Arc<str>,
    /// Number of scopes between the block and the `declare` or the import.
    pub level: usize,
    /// The declaration; `None` if it is imported, because an imported declaration is known only at run time.
    pub declare: Option<Arc<Declare>>,
}

/// The parts of a `foreach` that are known without values.
#[derive(Debug)]
pub(crate) struct Foreach {
    /// Name of the item in the template.
    pub variable: Arc<str>,
    /// The graph of the template.
    pub template: Arc<Graph>,
}

/// A `declare` block, analysed at most once.
#[derive(Debug)]
pub(crate) struct Declare {
    /// The label of the block, which is the name of the declaration.
    pub name: Arc<str>,
    /// The `declare` block, with its text.
    pub block: Arc<SourceBlock>,
    analysis: OnceLock<Analysis>,
}

/// Static analysis of a `declare`.
#[derive(Debug)]
pub(crate) struct Analysis {
    /// The graph built from the body of the `declare`.
    pub graph: Arc<Graph>,
    /// The parameters by name.
    pub parameters: BTreeMap<Arc<str>, Parameter>,
    /// The types of the exports by name.
    pub exports: BTreeMap<Arc<str>, Kind>,
    /// Errors and warnings about the `declare` and the declarations that it instantiates.
    pub diagnostics: Diagnostics,
}

/// An `argument` of a `declare`.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    /// True if the argument may be omitted, or if only a run can determine whether it may be omitted.
    pub optional: bool,
    /// Description of the argument.
    pub comment: String,
}

/// A block, and the text that contains it.
#[derive(Debug)]
pub(crate) struct SourceBlock {
    /// The text that contains the block.
    pub source: Source,
    /// The block as it was parsed.
    pub block: Block,
}

/// Parts of enclosing scopes that a template uses. Level 1 is the directly enclosing scope.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    pub(super) nodes: BTreeSet<UsedNode>,
    pub(super) exports: BTreeSet<UsedExport>,
    /// Levels of enclosing templates whose item is used.
    pub(super) variables: BTreeSet<usize>,
}

/// A node, identified by its scope and its index there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UsedNode {
    /// Number of scopes outwards to the scope of the node.
    pub(super) level: usize,
    /// Index in the graph of that scope.
    pub(super) node: usize,
}

impl UsedNode {
    /// Returns the same node as seen from the enclosing scope.
    pub(super) fn in_enclosing_scope(&self) -> Self {
        Self {
            level: self.level - 1,
            node: self.node,
        }
    }
}

/// An export of a node, by its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UsedExport {
    pub(super) owner: UsedNode,
    pub(super) name: Arc<str>,
}

impl Graph {
    /// Returns the index of the node with this id.
    pub(crate) fn find(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// Finds the node whose id is the shortest prefix of `path`. Returns its index and the number of parts in that
    /// prefix.
    pub(crate) fn resolve(&self, path: &[&str]) -> Option<(usize, usize)> {
        prefixes(path).find_map(|(id, length)| Some((self.find(&id)?, length)))
    }

    /// Returns the type of an export of a node; `None` if the node has no such export.
    pub(crate) fn export(&self, node: usize, name: &str) -> Option<Kind> {
        match &self.nodes.get(node)?.kind {
            NodeKind::Component(definition) => {
                let export = definition.exports().iter().find(|export| export.name == name)?;
                Some(export.kind)
            }
            NodeKind::Argument => (name == "value").then_some(Kind::Any),
            NodeKind::Custom(call) => match &call.declare {
                Some(declare) => declare
                    .analysis()
                    .and_then(|analysis| analysis.exports.get(name).copied()),
                None => Some(Kind::Any),
            },
            NodeKind::Import(_) | NodeKind::Export | NodeKind::Foreach(_) => None,
        }
    }

    /// Returns the names of the exports of a node; `None` if they are known only at run time.
    pub(crate) fn exports(&self, node: usize) -> Option<Vec<&str>> {
        Some(match &self.nodes.get(node)?.kind {
            NodeKind::Component(definition) => definition.exports().iter().map(|export| export.name).collect(),
            NodeKind::Argument => vec!["value"],
            NodeKind::Custom(call) => {
                let analysis = call.declare.as_ref()?.analysis()?;
                analysis.exports.keys().map(AsRef::as_ref).collect()
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
    /// Creates a `declare` that has not been analysed.
    pub(crate) fn new(name: Arc<str>, block: Arc<SourceBlock>) -> Self {
        Self {
            name,
            block,
            analysis: OnceLock::new(),
        }
    }

    /// Returns the analysis; `None` before the `declare` has been analysed.
    pub(crate) fn analysis(&self) -> Option<&Analysis> {
        self.analysis.get()
    }

    /// Stores the analysis. Only the first call has an effect.
    pub(super) fn set_analysis(&self, analysis: Analysis) {
        let _ = self.analysis.set(analysis);
    }
}

impl SourceBlock {
    /// Returns the expression of an attribute of the block.
    pub(crate) fn attribute(&self, name: &str) -> Option<&Expression> {
        self.block.body.iter().find_map(|statement| match statement {
            Statement::Attribute(attribute) if &*attribute.name.name == name => Some(&attribute.value),
            _ => None,
        })
    }
}

impl GraphNode {
    /// Returns the label; empty if there is none.
    pub(crate) fn label(&self) -> &str {
        self.block.block.label.as_ref().map_or("", |label| &label.name)
    }
}

/// Iterates over the prefixes of a path that can be ids, shortest first.
pub(crate) fn prefixes<'a>(path: &'a [&'a str]) -> impl Iterator<Item = (String, usize)> + 'a {
    (2..=path.len()).map(|length| (path[..length].join("."), length))
}

/// Visits every chain of names in an expression and its operands, depth first.
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

/// Visits every chain of names in a body.
pub(crate) fn walk_body(body: &[Statement], visit: &mut dyn FnMut(&[Identifier])) {
    for statement in body {
        match statement {
            Statement::Attribute(attribute) => walk_names(&attribute.value, visit),
            Statement::Block(block) => walk_body(&block.body, visit),
        }
    }
}
