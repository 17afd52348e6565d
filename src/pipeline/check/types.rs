//! Checks the types of expressions before any component runs, when references have no values yet.
//!
//! Constant expressions (literals, and functions of literals) are evaluated, and their values are converted to the
//! expected type. For a reference, the type of the export is compared with the expected type.

use crate::check::env::{Env, ScopeKind};
use crate::check::graph::{CONSTANTS, Graph, MODULE_PATH, walk_names};
use alluvium_lang::ast::{Expression, ExpressionKind, Identifier};
use alluvium_lang::convert::{convert, full_kind_name, kind_name};
use alluvium_lang::decode::{Resolve, wrong_type};
use alluvium_lang::eval::{NoScope, evaluate, traversal};
use alluvium_lang::schema::{Kind, TARGETS};
use alluvium_lang::token::TokenKind;
use alluvium_lang::value::Value;
use alluvium_lang::{Diagnostic, Source, codes, stdlib};

/// Returns the type of the value of an `export` block, as far as it is known.
pub(super) fn export_kind(graph: &Graph, node: usize) -> Kind {
    let value = graph.nodes.get(node).and_then(|node| node.block.attribute("value"));
    let resolve = Static { graph, env: None };
    value.and_then(|value| resolve.kind_of(value)).unwrap_or(Kind::Any)
}

/// Resolves references to types instead of values.
pub(super) struct Static<'a> {
    pub(super) graph: &'a Graph,
    /// The environment of the graph's scope, which leads to the enclosing scopes; `None` to use only the graph.
    pub(super) env: Option<&'a Env<'a>>,
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
        // Targets and receivers are never known here. An empty list replaces them, so that other arguments are checked.
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
                Some(actual) if !fits(&actual, kind) => {
                    let (mut expected, mut actual_name) = (kind_name(kind), kind_name(&actual));
                    if expected == actual_name {
                        (expected, actual_name) = (full_kind_name(kind), full_kind_name(&actual));
                    }
                    let message = format!("expected {expected}, got {actual_name}");
                    Err(Diagnostic::error(codes::WRONG_TYPE, source, expression.span, message))
                }
                _ => Ok(()),
            },
        }
    }

    /// Checks a target, whose labels may have any scalar type.
    fn check_target(&self, source: &Source, expression: &Expression) -> Result<(), Diagnostic> {
        let ExpressionKind::Object(fields) = &expression.kind else {
            return self.check(source, expression, &Kind::Map(&Kind::String));
        };
        fields.iter().try_for_each(|field| {
            let flag = if self.is_constant(&field.value) {
                matches!(evaluate(source, &field.value, &NoScope), Ok(Value::Bool(_)))
            } else {
                self.kind_of(&field.value) == Some(Kind::Bool)
            };
            if flag {
                return Ok(());
            }
            self.check(source, &field.value, &Kind::String)
        })
    }

    fn kind_of_names(&self, names: &[Identifier]) -> Option<Kind> {
        let path: Vec<&str> = names.iter().map(|name| name.name.as_ref()).collect();
        let local_target = self.graph.resolve(&path).map(|target| (self.graph, target));
        let (graph, (node, length)) = local_target.or_else(|| self.outside(&path))?;
        let Some(export) = path.get(length) else {
            return Some(Kind::Map(&Kind::Any));
        };
        let kind = graph.export(node, export)?;
        path[length + 1..].iter().try_fold(kind, |kind, _| inner_of(&kind))
    }

    /// Finds the node outside of a template that a path refers to.
    fn outside(&self, path: &[&str]) -> Option<(&Graph, (usize, usize))> {
        let mut env = self.env?;
        loop {
            let hidden = env.variable.as_deref() == path.first().copied();
            if env.kind != ScopeKind::Template || hidden {
                return None;
            }
            env = env.parent?;
            let graph = env.graph?;
            if let Some(target) = graph.resolve(path) {
                return Some((graph, target));
            }
        }
    }

    /// True if the value depends only on the text.
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

    /// True if a local name hides a name of the standard library.
    fn is_shadowed(&self, path: &[&str]) -> bool {
        let mut variables = self.env.iter().flat_map(|env| env.outward());
        self.graph.resolve(path).is_some() || variables.any(|(_, env)| env.variable.as_deref() == path.first().copied())
    }

    /// Returns the type of an expression, as far as it is known.
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

/// Returns the element type of a list or a map.
fn inner_of(kind: &Kind) -> Option<Kind> {
    match kind {
        Kind::List(inner) | Kind::Map(inner) => Some(**inner),
        _ => None,
    }
}

/// Returns true if some value of type `from` converts to `to`.
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
