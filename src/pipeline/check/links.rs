//! Resolves the references of a scope: links between its nodes, and uses of enclosing scopes.
//!
//! In: the nodes of a scope and its environment. Out: links for each node, and diagnostics for names that cannot be
//! resolved.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::check::analyzer::{Analyzer, below_minimum};
use crate::check::env::{Env, ScopeKind};
use crate::check::graph::{
    CONSTANT_NAMES, CONSTANTS, Call, Graph, GraphNode, MODULE_PATH, NodeKind, Outside, SourceBlock, UsedExport,
    UsedNode, prefixes, walk_body,
};
use crate::component::Stability;
use alluvium_lang::ast::Identifier;
use alluvium_lang::diagnostic::nearest;
use alluvium_lang::eval::field;
use alluvium_lang::schema::Kind;
use alluvium_lang::value::{Number, Value};
use alluvium_lang::{Diagnostic, Source, Span, codes, stdlib};

/// The parts of scopes that a node uses. Level 0 is the node's own scope, level 1 the directly enclosing scope.
#[derive(Default)]
pub(super) struct Links {
    uses: Outside,
    namespaces: BTreeSet<(usize, Arc<str>)>,
}

impl Links {
    /// Resolves the names in the text of a node.
    pub(super) fn of_node(
        analyzer: &mut Analyzer<'_>,
        env: &Env<'_>,
        declared: &BTreeMap<String, Arc<SourceBlock>>,
        index: usize,
        node: &GraphNode,
    ) -> Self {
        let mut finder = Finder {
            analyzer,
            env,
            declared,
            links: Self::default(),
        };
        let text = &node.block;
        walk_body(&text.block.body, &mut |names| {
            finder.reference(Some(index), &text.source, names);
        });
        let mut links = finder.links;
        if let NodeKind::Custom(call) = &node.kind {
            add_namespaces(call, &mut links.namespaces);
        }
        links
    }

    /// Adds to the links of node `index` the parts of enclosing scopes that the template of the node uses.
    pub(super) fn add_template(&mut self, index: usize, template: &Graph) {
        let outside = template.namespaces_outside.iter();
        self.namespaces
            .extend(outside.map(|(level, namespace)| (level - 1, namespace.clone())));
        let used = &template.outside;
        let itself = UsedNode { level: 1, node: index };
        let nodes = used.nodes.iter().filter(|used| **used != itself);
        self.uses.nodes.extend(nodes.map(UsedNode::in_enclosing_scope));
        let exports = used.exports.iter().map(|used| UsedExport {
            owner: used.owner.in_enclosing_scope(),
            name: used.name.clone(),
        });
        self.uses.exports.extend(exports);
        self.uses.variables.extend(used.variables.iter().map(|level| level - 1));
    }
}

/// Resolves the names in a block that configures the program. No node refers to such a block.
pub(super) fn check_names(
    analyzer: &mut Analyzer<'_>,
    env: &Env<'_>,
    declared: &BTreeMap<String, Arc<SourceBlock>>,
    text: &SourceBlock,
) {
    let mut finder = Finder {
        analyzer,
        env,
        declared,
        links: Links::default(),
    };
    walk_body(&text.block.body, &mut |names| {
        finder.reference(None, &text.source, names);
    });
}

/// The result of resolving a reference.
enum Target {
    /// A node: the number of scopes outwards, its index there, and the number of path parts in its id.
    Node(usize, usize, usize),
    /// The item of a `foreach` template, and the number of scopes outwards.
    Variable(usize),
    /// A node that was already reported as broken.
    Broken,
    /// A name of the standard library, the constants or the module's folder: its value, and the number of path parts
    /// that lead to it. Constants and the folder have an empty text as a placeholder for their value.
    Library(Value, usize),
    /// No such name is declared.
    Nothing,
}

/// Adds the namespaces of imports that an instance of a declaration needs. Level 0 is the instance's scope.
fn add_namespaces(call: &Call, namespaces: &mut BTreeSet<(usize, Arc<str>)>) {
    if let Some(namespace) = &call.namespace {
        namespaces.insert((call.level, namespace.clone()));
    }
    if let Some(analysis) = call.declare.as_ref().and_then(|declare| declare.analysis()) {
        let outside = analysis.graph.namespaces_outside.iter();
        namespaces.extend(outside.map(|(level, namespace)| (call.level + level - 1, namespace.clone())));
    }
}

/// Stores the links in the graph.
pub(super) fn apply(graph: &mut Graph, all: Vec<Links>, mut templates: HashMap<usize, Graph>) {
    for (index, links) in all.into_iter().enumerate() {
        let Links { uses, namespaces } = links;
        let mut references: BTreeSet<usize> = BTreeSet::new();
        for (level, namespace) in namespaces {
            if level > 0 {
                graph.namespaces_outside.insert((level, namespace));
            } else if let Some(import) = graph.imports.get(&namespace) {
                references.insert(*import);
            }
        }
        let own_nodes = uses.nodes.iter().filter(|used| used.level == 0);
        references.extend(own_nodes.map(|used| used.node));
        let used_exports = uses.exports.iter().filter(|used| used.owner.level == 0);
        let used_exports = used_exports.map(|used| (used.owner.node, used.name.clone())).collect();
        let uses_outside = !uses.variables.is_empty() || uses.nodes.iter().any(|used| used.level > 0);
        for target in &references {
            graph.nodes[*target].referenced_by.push(index);
        }
        let outer = &mut graph.outside;
        outer.nodes.extend(uses.nodes.into_iter().filter(|used| used.level > 0));
        outer
            .exports
            .extend(uses.exports.into_iter().filter(|used| used.owner.level > 0));
        outer
            .variables
            .extend(uses.variables.into_iter().filter(|level| *level > 0));
        let node = &mut graph.nodes[index];
        node.references = references.into_iter().collect();
        node.used_exports = used_exports;
        node.uses_outside = uses_outside;
        if let (NodeKind::Foreach(foreach), Some(template)) = (&mut node.kind, templates.remove(&index)) {
            foreach.template = Arc::new(template);
        }
    }
}

struct Finder<'f, 'a, 'e> {
    analyzer: &'f mut Analyzer<'a>,
    env: &'e Env<'e>,
    declared: &'f BTreeMap<String, Arc<SourceBlock>>,
    links: Links,
}

impl Finder<'_, '_, '_> {
    fn push(&mut self, diagnostic: Diagnostic) {
        self.analyzer.diagnostics.push(diagnostic);
    }

    /// Resolves a chain of names in the text of node `from`.
    fn reference(&mut self, from: Option<usize>, source: &Source, names: &[Identifier]) {
        match self.target(source, names) {
            Target::Node(0, node, _) if Some(node) == from => {
                let message = "a component cannot refer to itself";
                self.push(Diagnostic::error(
                    codes::SELF_REFERENCE,
                    source,
                    span_of(names),
                    message,
                ));
            }
            Target::Node(level, node, length) => {
                self.shadowing(source, names);
                let used = UsedNode { level, node };
                self.links.uses.nodes.insert(used);
                if let Some((export, rest)) = names.get(length..).and_then(<[Identifier]>::split_first) {
                    self.export(source, used, export, rest);
                }
            }
            Target::Variable(level) => {
                self.shadowing(source, names);
                self.links.uses.variables.insert(level);
            }
            Target::Nothing => self.unknown(source, names),
            Target::Library(value, length) => self.fields(source, value, names.get(length..).unwrap_or_default()),
            Target::Broken => {}
        }
    }

    /// Warns about a component that hides a name of the standard library.
    fn shadowing(&mut self, source: &Source, names: &[Identifier]) {
        let hidden = |first: &&Identifier| stdlib::names().any(|name| name == &*first.name);
        if let Some(first) = names.first().filter(hidden) {
            let message = format!("`{}` hides a name of the standard library", first.name);
            let warning = Diagnostic::warning(codes::SHADOWED_LIBRARY, source, first.span, message);
            self.push(warning.hint("give it another name"));
        }
    }

    /// Checks the fields that are selected from a value of known type.
    fn fields(&mut self, source: &Source, mut value: Value, names: &[Identifier]) {
        for name in names {
            match field(source, &value, name) {
                Ok(inner) => value = inner,
                Err(diagnostic) => return self.push(diagnostic),
            }
        }
    }

    /// Checks an export of a node, and the fields that are selected from it.
    fn export(&mut self, source: &Source, owner: UsedNode, export: &Identifier, rest: &[Identifier]) {
        let node = owner.node;
        let Some(graph) = self.env.ancestor(owner.level).and_then(|env| env.graph) else {
            return;
        };
        if let Some(kind) = graph.export(node, &export.name) {
            let name = export.name.clone();
            self.links.uses.exports.insert(UsedExport { owner, name });
            if let Some(value) = without_fields(&kind) {
                self.fields(source, value, rest);
            }
            return;
        }
        let Some(exports) = graph.exports(node) else { return };
        let id = &graph.nodes[node].id;
        let hint = match nearest(&export.name, exports.iter().copied()) {
            Some(candidate) => format!("did you mean `{candidate}`?"),
            None if exports.is_empty() => format!("{id} has no exports"),
            None => format!("its exports: {}", exports.join(", ")),
        };
        let message = format!("{id} has no export \"{}\"", export.name);
        let diagnostic = Diagnostic::error(codes::UNKNOWN_EXPORT, source, export.span, message).hint(hint);
        self.push(diagnostic);
    }

    fn target(&mut self, source: &Source, names: &[Identifier]) -> Target {
        let path: Vec<&str> = names.iter().map(|name| name.name.as_ref()).collect();
        let Some(first) = names.first() else {
            return Target::Library(Value::Null, 0);
        };
        for (level, env) in self.env.outward() {
            if let Some((node, length)) = env.graph.and_then(|graph| graph.resolve(&path)) {
                return Target::Node(level, node, length);
            }
            if level == 0 && prefixes(&path).any(|(id, _)| self.declared.contains_key(&id)) {
                return Target::Broken;
            }
            if env.variable.as_ref() == Some(&first.name) {
                return Target::Variable(level);
            }
            if env.kind != ScopeKind::Template {
                break;
            }
        }
        if let Some((value, length)) = stdlib::lookup(&path) {
            if let Value::Function(function) = value {
                self.check_function(source, first, function.name);
            }
            return Target::Library(value, length);
        }
        match &*first.name {
            CONSTANTS => {
                let names = CONSTANT_NAMES.map(|name| (name, Value::string("")));
                Target::Library(Value::object(names), 1)
            }
            MODULE_PATH => Target::Library(Value::string(""), 1),
            _ => Target::Nothing,
        }
    }

    fn check_function(&mut self, source: &Source, first: &Identifier, name: &str) {
        if let Some(new) = stdlib::replacement(&first.name) {
            let message = format!("function `{}` has a new name", first.name);
            self.push(
                Diagnostic::warning(codes::DEPRECATED_FUNCTION, source, first.span, message)
                    .hint(format!("write `{new}`")),
            );
        }
        if stdlib::is_experimental(name) && self.analyzer.minimum > Stability::Experimental {
            let subject = format!("function \"{name}\"");
            let level = Stability::Experimental;
            self.push(below_minimum(source, first, &subject, level, self.analyzer.minimum));
        }
    }

    fn unknown(&mut self, source: &Source, names: &[Identifier]) {
        let path: Vec<&str> = names.iter().map(|name| name.name.as_ref()).collect();
        let dotted_path = path.join(".");
        let diagnostic = if let [identifier] = path.as_slice() {
            let variables = self.env.outward().filter_map(|(_, env)| env.variable.clone());
            let variables: Vec<Arc<str>> = variables.collect();
            let mut candidates: Vec<&str> = stdlib::names().collect();
            candidates.extend(variables.iter().map(|name| &**name));
            let candidate = nearest(identifier, candidates);
            let suggestion = candidate.map(|candidate| format!("did you mean `{candidate}`?"));
            let hint = suggestion.unwrap_or_else(|| format!("put text in quotes: \"{identifier}\""));
            let message = format!("identifier \"{identifier}\" does not exist");
            Diagnostic::error(codes::UNKNOWN_IDENTIFIER, source, span_of(names), message).hint(hint)
        } else {
            let ids = self.visible();
            let candidate = nearest(&dotted_path, ids.iter().map(String::as_str));
            let message = format!("component \"{dotted_path}\" does not exist or is out of scope");
            Diagnostic::error(codes::UNKNOWN_REFERENCE, source, span_of(names), message)
                .maybe_hint(candidate.map(|candidate| format!("did you mean `{candidate}`?")))
        };
        self.push(diagnostic);
    }

    /// Returns all visible names, for suggestions.
    fn visible(&self) -> Vec<String> {
        let mut ids = Vec::new();
        for (_, env) in self.env.outward() {
            for (index, node) in env.graph.iter().flat_map(|graph| graph.nodes.iter().enumerate()) {
                let exports = env.graph.and_then(|graph| graph.exports(index)).unwrap_or_default();
                ids.extend(exports.into_iter().map(|export| format!("{}.{export}", node.id)));
            }
            if env.kind != ScopeKind::Template {
                break;
            }
        }
        ids
    }
}

/// Returns an arbitrary value of a type whose values have no fields, so that [`field`] reports an access to a field.
/// Returns `None` for other types.
fn without_fields(kind: &Kind) -> Option<Value> {
    match kind {
        Kind::Bool => Some(Value::Bool(false)),
        Kind::Int | Kind::Uint | Kind::Float => Some(Value::Number(Number::Int(0))),
        Kind::String | Kind::OptionalSecret | Kind::Duration => Some(Value::string("")),
        Kind::Secret => Some(Value::Secret("".into())),
        Kind::List(_) => Some(Value::array([])),
        Kind::Map(_) | Kind::Any | Kind::Capsule(_) => None,
    }
}

fn span_of(names: &[Identifier]) -> Span {
    match (names.first(), names.last()) {
        (Some(first), Some(last)) => first.span.to(last.span),
        _ => Span::default(),
    }
}
