//! Blocks to a graph: nodes, the references between them, and the order in which they can be evaluated.
//!
//! Everything that can be said without a value is said here: unknown components, missing labels, duplicate ids, references that lead nowhere, circles.
//! The graph holds no running thing; it can be built for a check as well as for a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::lang::ast::{Block, Expression, ExpressionKind, File, Identifier, Statement};
use crate::lang::diagnostic::nearest;
use crate::lang::eval::traversal;
use crate::lang::schema::Attribute;
use crate::lang::{Diagnostic, Diagnostics, Source, codes, stdlib};
use crate::pipeline::component::{Definition, Stability};
use crate::pipeline::foreign;

/// Configuration blocks of Alloy that are not components.
const CONFIG_BLOCKS: [&str; 13] = [
    "argument",
    "declare",
    "export",
    "foreach",
    "http",
    "import.file",
    "import.git",
    "import.http",
    "import.string",
    "livedebugging",
    "logging",
    "remotecfg",
    "tracing",
];

/// Names that expressions may use besides components and functions.
pub const CONSTANTS: &str = "constants";

/// The components of a configuration and how they refer to each other.
#[derive(Debug, Default)]
pub struct Graph {
    /// The nodes in the order of the text.
    pub nodes: Vec<GraphNode>,
    /// Indices of nodes, leaves (those that refer to nobody) first.
    pub order: Vec<usize>,
    /// The `logging` block.
    pub logging: Option<Arc<SourceBlock>>,
    by_id: BTreeMap<Arc<str>, usize>,
}

/// A component as written.
#[derive(Debug)]
pub struct GraphNode {
    /// `pyroscope.scrape.default`
    pub id: Arc<str>,
    /// Its kind.
    pub definition: &'static Definition,
    /// Its text.
    pub block: Arc<SourceBlock>,
    /// Nodes that it refers to, sorted.
    pub references: Vec<usize>,
    /// Nodes that refer to it, sorted.
    pub referenced_by: Vec<usize>,
    /// Names of the exports used, with the node they belong to.
    pub used_exports: Vec<(usize, Arc<str>)>,
}

/// A block and the text it is from.
#[derive(Debug)]
pub struct SourceBlock {
    /// The text.
    pub source: Source,
    /// The block in it.
    pub block: Block,
}

/// What a name leads to.
pub enum Target<'a> {
    /// A node, and how many parts of the path its id takes.
    Node(usize, usize),
    /// A node that was reported already.
    Broken,
    /// The standard library or the constants.
    Library,
    /// Nothing.
    Nothing(&'a Identifier),
}

impl Graph {
    /// Builds the graph of some files, taken as one.
    pub fn build(files: &[File], definitions: &[&'static Definition], minimum: Stability) -> (Self, Diagnostics) {
        let mut builder = Builder {
            definitions,
            minimum,
            graph: Graph::default(),
            declared: BTreeMap::new(),
            diagnostics: Diagnostics::new(),
        };
        for file in files {
            for statement in &file.body {
                builder.statement(&file.source, statement);
            }
        }
        builder.connect();
        builder.sort();
        (builder.graph, builder.diagnostics)
    }

    /// The index of a node.
    pub fn find(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// The node that the shortest prefix of `path` names, and how many parts that takes.
    pub fn resolve(&self, path: &[&str]) -> Option<(usize, usize)> {
        prefixes(path).find_map(|(id, length)| Some((self.find(&id)?, length)))
    }

    /// The export at the head of `rest`, of a node.
    pub fn export(&self, node: usize, name: &str) -> Option<&'static Attribute> {
        let definition = self.nodes.get(node)?.definition;
        definition.exports.iter().find(|export| export.name == name)
    }
}

/// The prefixes of a path that can be ids, shortest first.
pub fn prefixes<'a>(path: &'a [&'a str]) -> impl Iterator<Item = (String, usize)> + 'a {
    (2..=path.len()).map(|length| (path[..length].join("."), length))
}

/// Every chain of names in an expression, and every expression below, depth first.
pub fn walk_names(expression: &Expression, visit: &mut dyn FnMut(&[Identifier])) {
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
pub fn walk_body(body: &[Statement], visit: &mut dyn FnMut(&[Identifier])) {
    for statement in body {
        match statement {
            Statement::Attribute(attribute) => walk_names(&attribute.value, visit),
            Statement::Block(block) => walk_body(&block.body, visit),
        }
    }
}

struct Builder<'a> {
    definitions: &'a [&'static Definition],
    minimum: Stability,
    graph: Graph,
    /// Where each id stands first, good or bad.
    declared: BTreeMap<String, Arc<SourceBlock>>,
    diagnostics: Diagnostics,
}

impl Builder<'_> {
    fn statement(&mut self, source: &Source, statement: &Statement) {
        let block = match statement {
            Statement::Block(block) => block,
            Statement::Attribute(attribute) => {
                let message = format!("unrecognized attribute name \"{}\"", attribute.name.name);
                self.diagnostics.push(
                    Diagnostic::error(codes::TOP_LEVEL_ATTRIBUTE, source, attribute.name.span, message)
                        .hint("only blocks are allowed outside of blocks"),
                );
                return;
            }
        };
        let id = block.id();
        let text = Arc::new(SourceBlock {
            source: source.clone(),
            block: block.clone(),
        });
        if let Some(first) = self.declared.get(&id) {
            let (line, column) = first.source.position(first.block.name.span.start);
            let message = format!("block {id} already declared at {}:{line}:{column}", first.source.path());
            let hint = block
                .label
                .is_some()
                .then(|| "give one of them another label".to_owned());
            self.diagnostics.push(
                Diagnostic::error(codes::ALREADY_DECLARED, source, block.header(), message)
                    .note_at(&first.source, first.block.header(), "first declared here")
                    .maybe_hint(hint),
            );
            return;
        }
        self.declared.insert(id.clone(), text.clone());
        if CONFIG_BLOCKS.contains(&&*block.name.name) {
            self.config_block(text);
            return;
        }
        if let Some(definition) = self.definition(source, block) {
            let id: Arc<str> = id.into();
            self.graph.by_id.insert(id.clone(), self.graph.nodes.len());
            self.graph.nodes.push(GraphNode {
                id,
                definition,
                block: text,
                references: Vec::new(),
                referenced_by: Vec::new(),
                used_exports: Vec::new(),
            });
        }
    }

    fn config_block(&mut self, text: Arc<SourceBlock>) {
        let name = &text.block.name;
        if &*name.name != "logging" {
            let message = format!("the `{}` block is not supported by this version", name.name);
            self.diagnostics.push(
                Diagnostic::error(codes::UNSUPPORTED_BLOCK, &text.source, text.block.header(), message)
                    .hint("remove the block; of Alloy's configuration blocks `logging` is supported"),
            );
            return;
        }
        if let Some(label) = &text.block.label {
            let message = "block \"logging\" does not support specifying labels";
            self.diagnostics.push(Diagnostic::error(
                codes::LABEL_REFUSED,
                &text.source,
                label.span,
                message,
            ));
        }
        self.graph.logging = Some(text);
    }

    fn definition(&mut self, source: &Source, block: &Block) -> Option<&'static Definition> {
        let name = &block.name;
        let found = self
            .definitions
            .iter()
            .find(|definition| definition.name == &*name.name);
        let Some(definition) = found.copied() else {
            self.diagnostics.push(self.no_such_component(source, name));
            return None;
        };
        if block.label.is_none() {
            let message = format!("component \"{}\" must have a label", name.name);
            self.diagnostics.push(
                Diagnostic::error(codes::COMPONENT_LABEL, source, name.span, message)
                    .hint(format!("write `{} \"default\" {{ ... }}`", name.name)),
            );
            return None;
        }
        if definition.stability < self.minimum {
            self.diagnostics.push(below_minimum(
                source,
                name,
                &format!("component \"{}\"", name.name),
                definition.stability,
                self.minimum,
            ));
        }
        if definition.build.is_none() {
            self.diagnostics.push(
                Diagnostic::warning(codes::WILL_NOT_RUN, source, name.span, definition.not_built())
                    .hint("the configuration is checked, and `run` refuses it"),
            );
        }
        Some(definition)
    }

    fn no_such_component(&self, source: &Source, name: &Identifier) -> Diagnostic {
        if foreign::is_foreign(&name.name) {
            let message = format!(
                "component \"{}\" is one of Alloy's that Alluvium does not have",
                name.name
            );
            return Diagnostic::error(codes::FOREIGN_COMPONENT, source, name.span, message)
                .hint("Alluvium collects profiles only: leave the block to an Alloy that runs beside it");
        }
        let own = self.definitions.iter().map(|definition| definition.name);
        let others = foreign::NAMES.iter().copied();
        let near = nearest(&name.name, own.chain(CONFIG_BLOCKS).chain(others));
        let message = format!("cannot find the definition of component name \"{}\"", name.name);
        Diagnostic::error(codes::UNKNOWN_COMPONENT, source, name.span, message)
            .maybe_hint(near.map(|name| format!("did you mean `{name}`?")))
    }

    /// Finds the references of every node.
    fn connect(&mut self) {
        for index in 0..self.graph.nodes.len() {
            let text = self.graph.nodes[index].block.clone();
            let mut references = BTreeSet::new();
            let mut used = BTreeSet::new();
            walk_body(&text.block.body, &mut |names| {
                self.reference(index, &text.source, names, &mut references, &mut used);
            });
            for target in &references {
                self.graph.nodes[*target].referenced_by.push(index);
            }
            let node = &mut self.graph.nodes[index];
            node.references = references.into_iter().collect();
            node.used_exports = used.into_iter().collect();
        }
        if let Some(text) = self.graph.logging.clone() {
            walk_body(&text.block.body, &mut |names| {
                if let Target::Nothing(_) | Target::Node(..) = self.target(&text.source, names) {
                    self.unknown(&text.source, names);
                }
            });
        }
    }

    fn target<'n>(&mut self, source: &Source, names: &'n [Identifier]) -> Target<'n> {
        let path: Vec<&str> = names.iter().map(|name| name.name.as_ref()).collect();
        if let Some((node, length)) = self.graph.resolve(&path) {
            return Target::Node(node, length);
        }
        if prefixes(&path).any(|(id, _)| self.declared.contains_key(&id)) {
            return Target::Broken;
        }
        let Some(first) = names.first() else {
            return Target::Library;
        };
        if let Some((value, _)) = stdlib::lookup(&path) {
            if let crate::lang::value::Value::Function(function) = value {
                self.check_function(source, first, function.name);
            }
            return Target::Library;
        }
        if &*first.name == CONSTANTS {
            return Target::Library;
        }
        Target::Nothing(first)
    }

    fn check_function(&mut self, source: &Source, first: &Identifier, name: &str) {
        if let Some(new) = stdlib::replacement(&first.name) {
            let message = format!("function `{}` has a new name", first.name);
            self.diagnostics.push(
                Diagnostic::warning(codes::DEPRECATED_FUNCTION, source, first.span, message)
                    .hint(format!("write `{new}`")),
            );
        }
        if stdlib::is_experimental(name) && self.minimum > Stability::Experimental {
            self.diagnostics.push(below_minimum(
                source,
                first,
                &format!("function \"{name}\""),
                Stability::Experimental,
                self.minimum,
            ));
        }
    }

    fn reference(
        &mut self,
        index: usize,
        source: &Source,
        names: &[Identifier],
        references: &mut BTreeSet<usize>,
        used: &mut BTreeSet<(usize, Arc<str>)>,
    ) {
        match self.target(source, names) {
            Target::Node(node, _) if node == index => {
                let span = span_of(names);
                let message = "a component cannot refer to itself";
                self.diagnostics
                    .push(Diagnostic::error(codes::SELF_REFERENCE, source, span, message));
            }
            Target::Node(node, length) => {
                references.insert(node);
                let Some(export) = names.get(length) else { return };
                if self.graph.export(node, &export.name).is_some() {
                    used.insert((node, export.name.clone()));
                    return;
                }
                let exports = self.graph.nodes[node].definition.exports;
                let near = nearest(&export.name, exports.iter().map(|export| export.name));
                let hint = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if exports.is_empty() => format!("{} has no exports", self.graph.nodes[node].id),
                    None => {
                        let all: Vec<&str> = exports.iter().map(|export| export.name).collect();
                        format!("its exports: {}", all.join(", "))
                    }
                };
                let message = format!("{} has no export \"{}\"", self.graph.nodes[node].id, export.name);
                self.diagnostics
                    .push(Diagnostic::error(codes::UNKNOWN_EXPORT, source, export.span, message).hint(hint));
            }
            Target::Nothing(_) => self.unknown(source, names),
            Target::Broken | Target::Library => {}
        }
    }

    fn unknown(&mut self, source: &Source, names: &[Identifier]) {
        let path: Vec<&str> = names.iter().map(|name| name.name.as_ref()).collect();
        let whole = path.join(".");
        let diagnostic = if let [only] = path.as_slice() {
            let near = nearest(only, stdlib::names()).map(|near| format!("did you mean `{near}`?"));
            let hint = near.unwrap_or_else(|| format!("put text in quotes: \"{only}\""));
            let message = format!("identifier \"{only}\" does not exist");
            Diagnostic::error(codes::UNKNOWN_IDENTIFIER, source, span_of(names), message).hint(hint)
        } else {
            let ids = self.graph.nodes.iter().flat_map(|node| {
                let exports = node.definition.exports.iter();
                exports.map(move |export| format!("{}.{}", node.id, export.name))
            });
            let ids: Vec<String> = ids.collect();
            let near = nearest(&whole, ids.iter().map(String::as_str));
            let message = format!("component \"{whole}\" does not exist or is out of scope");
            Diagnostic::error(codes::UNKNOWN_REFERENCE, source, span_of(names), message)
                .maybe_hint(near.map(|near| format!("did you mean `{near}`?")))
        };
        self.diagnostics.push(diagnostic);
    }

    /// Orders the nodes, leaves first, and reports the circles that have no order.
    fn sort(&mut self) {
        let nodes = &self.graph.nodes;
        let mut waiting: Vec<usize> = nodes.iter().map(|node| node.references.len()).collect();
        let mut order: Vec<usize> = (0..nodes.len()).filter(|index| waiting[*index] == 0).collect();
        let mut next = 0;
        while let Some(index) = order.get(next).copied() {
            next += 1;
            for dependant in &nodes[index].referenced_by {
                waiting[*dependant] -= 1;
                if waiting[*dependant] == 0 {
                    order.push(*dependant);
                }
            }
        }
        let mut left: BTreeSet<usize> = (0..nodes.len()).filter(|index| waiting[*index] > 0).collect();
        self.graph.order = order;
        while let Some(start) = left.first().copied() {
            match self.circle_through(start) {
                Some(circle) => {
                    for index in &circle {
                        left.remove(index);
                    }
                    self.report_circle(&circle);
                }
                // It only depends on a circle.
                None => {
                    left.remove(&start);
                }
            }
        }
    }

    /// A shortest way from a node back to itself.
    fn circle_through(&self, start: usize) -> Option<Vec<usize>> {
        let nodes = &self.graph.nodes;
        let mut came_from: BTreeMap<usize, usize> = BTreeMap::new();
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(index) = queue.pop_front() {
            for target in &nodes[index].references {
                if *target == start {
                    let mut circle = vec![index];
                    let mut current = index;
                    while current != start {
                        current = *came_from.get(&current)?;
                        circle.push(current);
                    }
                    circle.reverse();
                    return Some(circle);
                }
                if !came_from.contains_key(target) {
                    came_from.insert(*target, index);
                    queue.push_back(*target);
                }
            }
        }
        None
    }

    fn report_circle(&mut self, circle: &[usize]) {
        let nodes = &self.graph.nodes;
        let Some(first) = circle.first().and_then(|index| nodes.get(*index)) else {
            return;
        };
        let ids: Vec<&str> = circle
            .iter()
            .filter_map(|index| nodes.get(*index))
            .map(|node| node.id.as_ref())
            .collect();
        let message = format!("cycle detected: {}", ids.join(", "));
        let hint = format!("{} -> {}", ids.join(" -> "), first.id);
        let mut found =
            Diagnostic::error(codes::CYCLE, &first.block.source, first.block.block.header(), message).hint(hint);
        for node in circle.iter().skip(1).filter_map(|index| nodes.get(*index)) {
            found = found.note_at(&node.block.source, node.block.block.header(), "in the circle");
        }
        self.diagnostics.push(found);
    }
}

fn span_of(names: &[Identifier]) -> crate::lang::Span {
    match (names.first(), names.last()) {
        (Some(first), Some(last)) => first.span.to(last.span),
        _ => crate::lang::Span::default(),
    }
}

fn below_minimum(source: &Source, name: &Identifier, what: &str, level: Stability, minimum: Stability) -> Diagnostic {
    let message = format!(
        "{what} is at stability level \"{}\", which is below the minimum allowed stability level \"{}\"",
        stability_name(level),
        stability_name(minimum),
    );
    Diagnostic::error(codes::STABILITY, source, name.span, message)
        .hint(format!("use `--stability.level {}`", stability_name(level)))
}

/// A level as the flag writes it.
pub fn stability_name(level: Stability) -> &'static str {
    match level {
        Stability::Experimental => "experimental",
        Stability::PublicPreview => "public-preview",
        Stability::GenerallyAvailable => "generally-available",
    }
}
