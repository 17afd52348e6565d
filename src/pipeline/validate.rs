//! `validate`: everything that can be said about a configuration without running it.
//!
//! Pure: no component is built, no environment is read. Values that are known (literals, and functions of them) are evaluated and converted;
//! for references the type of the export is compared; a component's own check runs on what is known, block by block where there may be several.

use std::collections::BTreeMap;

use crate::lang::ast::{Expression, ExpressionKind, Identifier};
use crate::lang::convert::{convert, full_kind_name, kind_name};
use crate::lang::decode::{Resolve, decode, locate, wrong_type};
use crate::lang::eval::{NoScope, evaluate, traversal};
use crate::lang::schema::{Arguments, Kind, Schema, TARGETS};
use crate::lang::token::TokenKind;
use crate::lang::value::Value;
use crate::lang::{Diagnostic, Diagnostics, Source, codes, parse, stdlib};
use crate::pipeline::component::{ArgumentError, Definition, Stability};
use crate::pipeline::graph::{
    Analyzer, CONSTANTS, Catalog, Env, Graph, MODULE_PATH, NodeKind, ScopeKind, SourceBlock, walk_names,
};
use crate::pipeline::modules::blocks;
use crate::pipeline::modules::declare::{attribute, decode_call};
use crate::pipeline::{lints, logging, settings};

/// Checks a configuration of several files, each a name and a text. Warnings are among the answers.
pub fn validate(sources: &[(String, String)], definitions: &[&'static Definition], minimum: Stability) -> Diagnostics {
    let texts: Vec<Source> = sources
        .iter()
        .map(|(path, text)| Source::new(path.as_str(), text.as_str()))
        .collect();
    let catalog = Catalog::new(definitions);
    let (graph, mut diagnostics) = analyze(&texts, &catalog, minimum, Extent::Whole);
    // What is wrong comes first: a component that nobody uses may only seem so.
    if !diagnostics.has_errors() {
        diagnostics.extend(lints::unused(sources, &graph));
        diagnostics.sort();
    }
    diagnostics
}

/// What a configuration is analysed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// To be checked: declarations that nobody instantiates are, too.
    Whole,
    /// To be run.
    Run,
    /// To be run, and it came from a server: it may not configure the program.
    RunRemote,
}

/// Parses, builds the graph, checks every block. The graph can be run when there is no error.
pub(crate) fn analyze(
    sources: &[Source],
    catalog: &Catalog,
    minimum: Stability,
    extent: Extent,
) -> (Graph, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let mut files = Vec::new();
    let mut broken = Broken::default();
    for source in sources {
        let (file, found) = parse(source);
        broken.add(&found);
        diagnostics.extend(found);
        files.push(file);
    }
    // Statements that could be read are checked even when others could not, so that one run shows all mistakes.
    let mut analyzer = Analyzer {
        catalog,
        minimum,
        whole: extent == Extent::Whole,
        remote: extent == Extent::RunRemote,
        broken: &broken,
        diagnostics: Diagnostics::new(),
        stack: Vec::new(),
    };
    let graph = analyzer.root(&files);
    let found = analyzer.diagnostics;
    diagnostics.extend(broken.without_echoes(found));
    diagnostics.sort();
    (graph, diagnostics)
}

/// Checks every block of a scope against what it may hold.
pub(crate) fn check_graph(analyzer: &mut Analyzer<'_>, graph: &Graph, env: &Env<'_>) {
    let resolve = Static { graph, env: Some(env) };
    for node in &graph.nodes {
        let text = &node.block;
        let found = match &node.kind {
            NodeKind::Component(definition) | NodeKind::Import(definition) => {
                check_component(definition, text, &resolve)
            }
            NodeKind::Argument => check_body(text, &blocks::ARGUMENT, &resolve),
            NodeKind::Export => check_body(text, &blocks::EXPORT, &resolve),
            NodeKind::Foreach(_) => check_body(text, &blocks::FOREACH, &resolve),
            NodeKind::Custom(call) => match &call.declare {
                // One that is still under analysis instantiates itself, and that was said.
                Some(declare) => match declare.analysis() {
                    Some(known) => decode_call(text, Some(known), &resolve).diagnostics,
                    None => Diagnostics::new(),
                },
                None => decode_call(text, None, &resolve).diagnostics,
            },
        };
        let found = analyzer.broken.without_missing(text, found);
        analyzer.diagnostics.extend(found);
    }
    let client = analyzer.catalog.http_client();
    for (name, text) in &graph.settings {
        let found = settings::check(name, text, client, !analyzer.whole, &resolve);
        let found = analyzer.broken.without_missing(text, found);
        analyzer.diagnostics.extend(found);
    }
    if let Some(text) = graph.settings.get("logging")
        && let Err(refused) = logging::settings(text, &resolve)
    {
        let found = analyzer.broken.without_missing(text, refused);
        analyzer.diagnostics.extend(found);
    }
}

fn check_component(definition: &Definition, text: &SourceBlock, resolve: &dyn Resolve) -> Diagnostics {
    let SourceBlock { source, block } = text;
    let decoded = decode(source, block.header(), &block.body, definition.arguments, resolve);
    let mut found = decoded.diagnostics;
    if !found.has_errors() {
        for diagnostic in all_mistakes(definition, text, &decoded.arguments) {
            let at = diagnostic.span;
            // With unknown values only what is said of an inner block without any can be believed (a bad regular expression in a rule, say), and of a text by itself.
            let is_believed = decoded.complete
                || lints::known_block(&block.body, at, &decoded.unknown)
                || lints::cites_text(&block.body, at, &diagnostic.message);
            if is_believed {
                found.push(diagnostic);
            }
        }
    }
    found
}

fn check_body(text: &SourceBlock, schema: &'static Schema, resolve: &dyn Resolve) -> Diagnostics {
    let SourceBlock { source, block } = text;
    decode(source, block.header(), &block.body, schema, resolve).diagnostics
}

/// The type of what an `export` block gives, as far as it can be told.
pub(crate) fn export_kind(graph: &Graph, node: usize) -> Kind {
    let body = graph.nodes.get(node).map(|node| node.block.block.body.as_slice());
    let value = attribute(body.unwrap_or_default(), "value");
    let resolve = Static { graph, env: None };
    value.and_then(|value| resolve.kind_of(value)).unwrap_or(Kind::Any)
}

/// Where the syntax is broken. What is said about a place that could not be read is its echo.
#[derive(Default)]
pub(crate) struct Broken {
    places: Vec<(Source, usize)>,
}

impl Broken {
    fn add(&mut self, diagnostics: &Diagnostics) {
        let places = diagnostics.iter();
        self.places
            .extend(places.map(|found| (found.source.clone(), found.span.start)));
    }

    /// Something is missing from a block of which a part could not be read: nobody knows.
    pub(crate) fn without_missing(&self, text: &SourceBlock, diagnostics: Diagnostics) -> Diagnostics {
        let span = text.block.span();
        let unread = self
            .places
            .iter()
            .any(|(source, place)| *source == text.source && span.start <= *place && *place < span.end);
        // A block that is never closed swallows those after it.
        let unclosed = self
            .places
            .iter()
            .any(|(source, place)| *source == text.source && *place == span.start);
        let echo = |found: &Diagnostic| match found.code {
            codes::MISSING_ATTRIBUTE | codes::MISSING_BLOCK => unread,
            codes::UNKNOWN_BLOCK => unclosed,
            _ => false,
        };
        diagnostics.into_iter().filter(|found| !echo(found)).collect()
    }

    fn without_echoes(&self, diagnostics: Diagnostics) -> Diagnostics {
        let echo = |found: &Diagnostic| {
            self.places
                .iter()
                .any(|(source, place)| *source == found.source && source.line(*place) == source.line(found.span.start))
        };
        diagnostics.into_iter().filter(|found| !echo(found)).collect()
    }
}

/// The refusal of a component's own check, at the place it names.
pub(crate) fn argument_error(text: &SourceBlock, error: &ArgumentError) -> Diagnostic {
    let SourceBlock { source, block } = text;
    let span = locate(&block.body, &error.path, block.header());
    let message = if error.path.is_empty() {
        error.message.clone()
    } else {
        format!("{}: {}", error.path, error.message)
    };
    Diagnostic::error(codes::BAD_ARGUMENT, source, span, message)
}

/// Runs a component's own check.
pub(crate) fn check_arguments(
    definition: &Definition,
    text: &SourceBlock,
    arguments: &Arguments,
) -> Result<(), Diagnostic> {
    (definition.validate)(arguments).map_err(|error| argument_error(text, &error))
}

/// What a component's own check says of its arguments, and of each block of several by itself: the check stops at the first mistake, a person wants to see all.
fn all_mistakes(definition: &Definition, text: &SourceBlock, arguments: &Arguments) -> Vec<Diagnostic> {
    let Err(first) = (definition.validate)(arguments) else {
        return Vec::new();
    };
    let mut mistakes = vec![first];
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, block) in arguments.blocks.iter().enumerate() {
        let index = counts.entry(&block.name).or_default();
        let own = format!("{}[{index}]", block.name);
        *index += 1;
        let several = definition
            .arguments
            .blocks
            .iter()
            .any(|known| known.many && known.name == &*block.name);
        if !several {
            continue;
        }
        let others = arguments.blocks.iter().enumerate();
        let alone = Arguments {
            attributes: arguments.attributes.clone(),
            blocks: others
                .filter(|(other, others)| *other == place || others.name != block.name)
                .map(|(_, block)| block.clone())
                .collect(),
        };
        // What is said of the rest, that without the others, says nothing.
        if let Err(error) = (definition.validate)(&alone)
            && let Some(rest) = error.path.strip_prefix(&format!("{}[0]", block.name))
        {
            let path = format!("{own}{rest}");
            if !mistakes.iter().any(|known| known.path == path) {
                mistakes.push(ArgumentError { path, ..error });
            }
        }
    }
    mistakes.iter().map(|error| argument_error(text, error)).collect()
}

/// Knows the types of references, not their values.
struct Static<'a> {
    graph: &'a Graph,
    /// What surrounds the graph; its own scope first.
    env: Option<&'a Env<'a>>,
}

impl Resolve for Static<'_> {
    fn resolve(&self, source: &Source, expression: &Expression, kind: &Kind) -> Result<Option<Value>, Diagnostic> {
        if self.is_constant(expression) {
            let value = evaluate(source, expression, &NoScope)?;
            return convert(&value, kind)
                .map(Some)
                .map_err(|error| wrong_type(source, expression, &error));
        }
        self.check(source, expression, kind)?;
        // What targets and receivers there will be says nothing about the other arguments: those are checked all the same.
        let list = matches!(kind, Kind::List(Kind::Capsule(_))) || *kind == TARGETS;
        Ok(list.then(|| Value::array([])))
    }
}

impl Static<'_> {
    fn check(&self, source: &Source, expression: &Expression, kind: &Kind) -> Result<(), Diagnostic> {
        match (&expression.kind, kind) {
            _ if self.is_constant(expression) => self.resolve(source, expression, kind).map(|_| ()),
            (ExpressionKind::Paren(inner), _) => self.check(source, inner, kind),
            (ExpressionKind::Array(items), _) if *kind == TARGETS => {
                items.iter().try_for_each(|item| self.check_target(source, item))
            }
            (ExpressionKind::Array(items), Kind::List(inner)) => {
                items.iter().try_for_each(|item| self.check(source, item, inner))
            }
            (ExpressionKind::Object(fields), Kind::Map(inner)) => fields
                .iter()
                .try_for_each(|field| self.check(source, &field.value, inner)),
            // The parts of a concatenation are lists of the same type.
            (ExpressionKind::Call { callee, arguments, .. }, Kind::List(_)) if is_concat(callee) => arguments
                .iter()
                .try_for_each(|argument| self.check(source, argument, kind)),
            _ => match self.kind_of(expression) {
                Some(found) if !fits(&found, kind) => {
                    let (mut wanted, mut got) = (kind_name(kind), kind_name(&found));
                    if wanted == got {
                        (wanted, got) = (full_kind_name(kind), full_kind_name(&found));
                    }
                    let message = format!("expected {wanted}, got {got}");
                    Err(Diagnostic::error(codes::WRONG_TYPE, source, expression.span, message))
                }
                _ => Ok(()),
            },
        }
    }

    /// A target: labels may be of any plain type.
    fn check_target(&self, source: &Source, expression: &Expression) -> Result<(), Diagnostic> {
        let ExpressionKind::Object(fields) = &expression.kind else {
            return self.check(source, expression, &Kind::Map(&Kind::String));
        };
        fields.iter().try_for_each(|field| {
            let flag = match self.is_constant(&field.value) {
                true => matches!(evaluate(source, &field.value, &NoScope), Ok(Value::Bool(_))),
                false => self.kind_of(&field.value) == Some(Kind::Bool),
            };
            if flag {
                return Ok(());
            }
            self.check(source, &field.value, &Kind::String)
        })
    }

    fn kind_of_names(&self, names: &[Identifier]) -> Option<Kind> {
        let path: Vec<&str> = names.iter().map(|name| name.name.as_ref()).collect();
        let own = self.graph.resolve(&path).map(|found| (self.graph, found));
        let (graph, (node, length)) = own.or_else(|| self.outside(&path))?;
        let Some(export) = path.get(length) else {
            return Some(Kind::Map(&Kind::Any));
        };
        let kind = graph.export(node, export)?;
        path[length + 1..].iter().try_fold(kind, |kind, _| inner_of(&kind))
    }

    /// The node around a template that a path leads to.
    fn outside(&self, path: &[&str]) -> Option<(&Graph, (usize, usize))> {
        let mut env = self.env?;
        loop {
            let hidden = env.variable.as_deref() == path.first().copied();
            if env.kind != ScopeKind::Template || hidden {
                return None;
            }
            env = env.parent?;
            let graph = env.graph?;
            if let Some(found) = graph.resolve(path) {
                return Some((graph, found));
            }
        }
    }

    /// True when the value depends on nothing but the text.
    fn is_constant(&self, expression: &Expression) -> bool {
        let mut constant = true;
        walk_names(expression, &mut |names| {
            let path: Vec<&str> = names.iter().map(|name| name.name.as_ref()).collect();
            let pure = match stdlib::lookup(&path) {
                Some((Value::Function(function), _)) => stdlib::is_pure(function.name),
                Some(_) => true,
                None => false,
            };
            constant &= pure && !matches!(path.first(), Some(&(CONSTANTS | MODULE_PATH))) && !self.is_shadowed(&path);
        });
        constant
    }

    /// True when a name of the standard library means something else here.
    fn is_shadowed(&self, path: &[&str]) -> bool {
        let mut variables = self.env.iter().flat_map(|env| env.outward());
        self.graph.resolve(path).is_some() || variables.any(|(_, env)| env.variable.as_deref() == path.first().copied())
    }

    /// The type of an expression as far as it can be told.
    fn kind_of(&self, expression: &Expression) -> Option<Kind> {
        let names = traversal(expression);
        if !names.is_empty() {
            return self.kind_of_names(&names);
        }
        match &expression.kind {
            ExpressionKind::Array(_) => Some(Kind::List(&Kind::Any)),
            ExpressionKind::Object(_) => Some(Kind::Map(&Kind::Any)),
            ExpressionKind::Paren(inner) => self.kind_of(inner),
            ExpressionKind::Access { value, .. } | ExpressionKind::Index { value, .. } => {
                inner_of(&self.kind_of(value)?)
            }
            ExpressionKind::Unary { operator, .. } => Some(match operator {
                TokenKind::Not => Kind::Bool,
                _ => Kind::Float,
            }),
            ExpressionKind::Binary { operator, .. } => match operator {
                TokenKind::Add => None,
                TokenKind::Subtract
                | TokenKind::Multiply
                | TokenKind::Divide
                | TokenKind::Modulo
                | TokenKind::Power => Some(Kind::Float),
                _ => Some(Kind::Bool),
            },
            _ => None,
        }
    }
}

/// The type of what is inside of a list or a map.
fn inner_of(kind: &Kind) -> Option<Kind> {
    match kind {
        Kind::List(inner) | Kind::Map(inner) => Some(**inner),
        _ => None,
    }
}

/// True when a value of type `from` may convert to `to`.
fn fits(from: &Kind, to: &Kind) -> bool {
    let number = |kind: &Kind| matches!(kind, Kind::Int | Kind::Uint | Kind::Float);
    match (from, to) {
        (Kind::Any, _) | (_, Kind::Any) => true,
        (Kind::List(from), Kind::List(to)) | (Kind::Map(from), Kind::Map(to)) => fits(from, to),
        (Kind::Capsule(from), Kind::Capsule(to)) => from == to,
        (Kind::Secret, to) => matches!(to, Kind::Secret | Kind::OptionalSecret),
        (Kind::String | Kind::OptionalSecret | Kind::Duration, to) => {
            number(to) || matches!(to, Kind::String | Kind::OptionalSecret | Kind::Duration | Kind::Secret)
        }
        (from, to) if number(from) => number(to) || matches!(to, Kind::String | Kind::OptionalSecret),
        (from, to) => from == to,
    }
}

fn is_concat(callee: &Expression) -> bool {
    let names = traversal(callee);
    let path: Vec<&str> = names.iter().map(|name| name.name.as_ref()).collect();
    matches!(stdlib::lookup(&path), Some((Value::Function(function), _)) if function.name == "array.concat")
}
