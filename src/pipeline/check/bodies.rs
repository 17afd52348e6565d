//! Checks the bodies of the blocks of a scope against their schemas.
//!
//! A component also validates its arguments as far as they are known. Arguments that have no effect cause warnings.

use crate::check::analyzer::Analyzer;
use crate::check::arguments::argument_errors;
use crate::check::declare::decode_call;
use crate::check::env::Env;
use crate::check::graph::{Graph, NodeKind, SourceBlock};
use crate::check::types::Static;
use crate::check::{blocks, settings};
use crate::component::AnyDefinition;
use alluvium_lang::Diagnostics;
use alluvium_lang::body::FromBody as _;
use alluvium_lang::decode::{Resolve, decode};
use alluvium_lang::no_effect::ignored_arguments;
use alluvium_lang::schema::Schema;

/// Checks the body of every block of a scope.
pub(super) fn check_bodies(analyzer: &mut Analyzer<'_>, graph: &Graph, env: &Env<'_>) {
    let resolve = Static { graph, env: Some(env) };
    for node in &graph.nodes {
        let text = &node.block;
        let diagnostics = match &node.kind {
            NodeKind::Component(definition) | NodeKind::Import(definition) => {
                check_component(*definition, text, &resolve)
            }
            NodeKind::Argument => check_body(text, blocks::ArgumentBody::SCHEMA, &resolve),
            NodeKind::Export => check_body(text, blocks::ExportBody::SCHEMA, &resolve),
            NodeKind::Foreach(_) => check_body(text, blocks::ForeachBody::SCHEMA, &resolve),
            NodeKind::Custom(call) => match &call.declare {
                Some(declare) => match declare.analysis() {
                    Some(analysis) => decode_call(text, Some(analysis), &resolve).diagnostics,
                    // The declaration is still under analysis, so it instantiates itself, an error already reported.
                    None => Diagnostics::new(),
                },
                None => decode_call(text, None, &resolve).diagnostics,
            },
        };
        let diagnostics = analyzer.broken.without_missing(text, diagnostics);
        analyzer.diagnostics.extend(diagnostics);
    }
    let client = analyzer.catalog.http_client();
    for (name, text) in &graph.settings {
        let diagnostics = settings::check(name, text, client, &resolve);
        let diagnostics = analyzer.broken.without_missing(text, diagnostics);
        analyzer.diagnostics.extend(diagnostics);
    }
}

fn check_component(definition: &dyn AnyDefinition, text: &SourceBlock, resolve: &dyn Resolve) -> Diagnostics {
    let SourceBlock { source, block } = text;
    let decoded = decode(source, block.header(), &block.body, definition.arguments(), resolve);
    let mut diagnostics = decoded.diagnostics;
    if !diagnostics.has_errors()
        && let Err(errors) = definition.validate(decoded.arguments)
    {
        diagnostics.extend(argument_errors(text, &errors));
    }
    diagnostics.extend(ignored_arguments(source, &block.body, definition.arguments()));
    diagnostics
}

fn check_body(text: &SourceBlock, schema: &'static Schema, resolve: &dyn Resolve) -> Diagnostics {
    let SourceBlock { source, block } = text;
    let mut diagnostics = decode(source, block.header(), &block.body, schema, resolve).diagnostics;
    diagnostics.extend(ignored_arguments(source, &block.body, schema));
    diagnostics
}
