//! Static analysis of a `declare`: its graph, parameters and exports. One analysis serves all its instances.
//!
//! A `declare` is analysed when it is first instantiated (or when a check analyses everything), in the scope that
//! contains it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::check::graph::{Analysis, Graph, NodeKind, Parameter, SourceBlock};
use crate::check::types::export_kind;
use alluvium_lang::ast::{ExpressionKind, Statement};
use alluvium_lang::decode::Resolve;
use alluvium_lang::diagnostic::nearest;
use alluvium_lang::eval::unquote;
use alluvium_lang::schema::{Arguments, Kind};
use alluvium_lang::{Diagnostic, Diagnostics, codes};

/// The body of a block that instantiates a `declare`.
pub(crate) struct Called {
    /// The arguments given in the block.
    pub(crate) arguments: Arguments,
    /// Errors and warnings about the block.
    pub(crate) diagnostics: Diagnostics,
}

impl Analysis {
    /// Creates the analysis of a `declare` from the graph of its body and the diagnostics about it.
    pub(super) fn new(graph: Graph, diagnostics: Diagnostics) -> Self {
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
        Self {
            graph: Arc::new(graph),
            parameters,
            exports,
            diagnostics,
        }
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
            // The value of `optional` is known only when the module is evaluated.
            ("optional", _) => parameter.optional = true,
            ("comment", ExpressionKind::Literal { text, .. }) => {
                parameter.comment = unquote(text).unwrap_or_default();
            }
            _ => {}
        }
    }
    parameter
}

/// Decodes the body of a block that instantiates a `declare`, against the declared parameters. Without known
/// parameters, the arguments are not checked.
pub(crate) fn decode_call(text: &SourceBlock, analysis: Option<&Analysis>, resolve: &dyn Resolve) -> Called {
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
        if let Some(analysis) = analysis
            && !analysis.parameters.contains_key(name)
        {
            let message = format!("argument \"{name}\" is not defined in the module");
            called.diagnostics.push(
                Diagnostic::error(codes::UNKNOWN_ATTRIBUTE, source, attribute.name.span, message)
                    .hint(hint(name, &analysis.parameters)),
            );
        }
        let value = resolve.resolve(source, &attribute.value, &Kind::Any);
        let value = value.unwrap_or_else(|diagnostic| {
            called.diagnostics.push(diagnostic);
            None
        });
        called
            .arguments
            .attributes
            .insert(name.clone(), value.unwrap_or_default());
    }
    for (name, parameter) in analysis.iter().flat_map(|analysis| &analysis.parameters) {
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
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None if parameters.is_empty() => "the module takes no arguments".to_owned(),
        None => format!("its arguments: {}", names().collect::<Vec<&str>>().join(", ")),
    }
}
