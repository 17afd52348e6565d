//! A `declare` as text: its graph, what it takes and what it gives. One for all its instances.
//!
//! It is analysed when it is first instantiated (or when everything is to be checked), in the scope that it stands in.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::lang::ast::{Expression, ExpressionKind, Statement};
use crate::lang::decode::Resolve;
use crate::lang::diagnostic::nearest;
use crate::lang::eval::unquote;
use crate::lang::schema::{Arguments, Kind};
use crate::lang::{Diagnostic, Diagnostics, codes};
use crate::pipeline::graph::{Graph, NodeKind, SourceBlock};
use crate::pipeline::validate::export_kind;

/// A `declare`.
#[derive(Debug)]
pub struct Declare {
    /// Its label.
    pub name: Arc<str>,
    /// Its text.
    pub block: Arc<SourceBlock>,
    analysis: OnceLock<Analysis>,
}

/// What is known of a `declare` without values.
#[derive(Debug)]
pub struct Analysis {
    /// Its body.
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
pub struct Parameter {
    /// True when it can be left out, or when only the run tells.
    pub optional: bool,
    /// What it is for.
    pub comment: String,
}

/// The body of a block that instantiates a `declare`.
pub(crate) struct Called {
    /// The values given.
    pub(crate) arguments: Arguments,
    /// What is wrong.
    pub(crate) diagnostics: Diagnostics,
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
    pub fn analysis(&self) -> Option<&Analysis> {
        self.analysis.get()
    }

    pub(crate) fn set_analysis(&self, graph: Graph, diagnostics: Diagnostics) {
        let mut parameters = BTreeMap::new();
        let mut exports = BTreeMap::new();
        for (index, node) in graph.nodes.iter().enumerate() {
            match node.kind {
                NodeKind::Argument => {
                    parameters.insert(node.label().into(), parameter(&node.block.block.body));
                }
                NodeKind::Export => {
                    exports.insert(node.label().into(), export_kind(&graph, index));
                }
                _ => {}
            }
        }
        // Only the first analysis counts; there is no second.
        let _ = self.analysis.set(Analysis {
            graph: Arc::new(graph),
            parameters,
            exports,
            diagnostics,
        });
    }
}

fn parameter(body: &[Statement]) -> Parameter {
    let mut parameter = Parameter {
        optional: false,
        comment: String::new(),
    };
    for statement in body {
        let Statement::Attribute(attribute) = statement else {
            continue;
        };
        match (&*attribute.name.name, &attribute.value.kind) {
            ("optional", ExpressionKind::Literal { text, .. }) => parameter.optional = &**text == "true",
            // What it comes out as is seen when the module is evaluated.
            ("optional", _) => parameter.optional = true,
            ("comment", ExpressionKind::Literal { text, .. }) => {
                parameter.comment = unquote(text).unwrap_or_default();
            }
            _ => {}
        }
    }
    parameter
}

/// Reads the body of a block that instantiates a `declare`, against what that takes; unchecked where that is not known.
pub(crate) fn decode_call(text: &SourceBlock, known: Option<&Analysis>, resolve: &dyn Resolve) -> Called {
    let SourceBlock { source, block } = text;
    let mut called = Called {
        arguments: Arguments::default(),
        diagnostics: Diagnostics::new(),
    };
    for statement in &block.body {
        let attribute = match statement {
            Statement::Attribute(attribute) => attribute,
            Statement::Block(inner) => {
                let message = format!("unrecognized block name \"{}\"", inner.name.name);
                called.diagnostics.push(
                    Diagnostic::error(codes::UNKNOWN_BLOCK, source, inner.header(), message)
                        .hint("a custom component takes attributes only"),
                );
                continue;
            }
        };
        let name = &attribute.name.name;
        if called.arguments.attributes.contains_key(name) {
            let message = format!("attribute \"{name}\" may only be provided once");
            called.diagnostics.push(Diagnostic::error(
                codes::DUPLICATE_ATTRIBUTE,
                source,
                attribute.span(),
                message,
            ));
            continue;
        }
        if let Some(known) = known
            && !known.parameters.contains_key(name)
        {
            let message = format!("argument \"{name}\" is not defined in the module");
            called.diagnostics.push(
                Diagnostic::error(codes::UNKNOWN_ATTRIBUTE, source, attribute.name.span, message)
                    .hint(hint(name, &known.parameters)),
            );
        }
        let value = resolve.resolve(source, &attribute.value, &Kind::Any);
        let value = value.unwrap_or_else(|found| {
            called.diagnostics.push(found);
            None
        });
        called
            .arguments
            .attributes
            .insert(name.clone(), value.unwrap_or_default());
    }
    for (name, parameter) in known.iter().flat_map(|known| &known.parameters) {
        if parameter.optional || called.arguments.attributes.contains_key(name) {
            continue;
        }
        let message = format!("missing required argument \"{name}\" to module");
        let hint = match parameter.comment.as_str() {
            "" => format!("add `{name} = ...`"),
            comment => format!("add `{name} = ...`: {comment}"),
        };
        called
            .diagnostics
            .push(Diagnostic::error(codes::MISSING_ATTRIBUTE, source, block.header(), message).hint(hint));
    }
    called
}

fn hint(name: &str, parameters: &BTreeMap<Arc<str>, Parameter>) -> String {
    let names = || parameters.keys().map(AsRef::as_ref);
    match nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if parameters.is_empty() => "the module takes no arguments".to_owned(),
        None => format!("its arguments: {}", names().collect::<Vec<&str>>().join(", ")),
    }
}

/// The expression of an attribute of a body.
pub(crate) fn attribute<'b>(body: &'b [Statement], name: &str) -> Option<&'b Expression> {
    body.iter().find_map(|statement| match statement {
        Statement::Attribute(attribute) if &*attribute.name.name == name => Some(&attribute.value),
        _ => None,
    })
}
