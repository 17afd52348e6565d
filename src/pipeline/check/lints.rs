//! Lints: warnings about components, declarations, imports and arguments that are never used.
//!
//! In: the texts and the graph of a configuration without errors. Only a check reports lints; a run does not. Lints do
//! not judge style.

use std::collections::BTreeSet;

use crate::check::graph::{Graph, NodeKind};
use crate::component::AnyDefinition;
use alluvium_lang::ast::{Block, Expression, ExpressionKind, Statement};
use alluvium_lang::eval::traversal;
use alluvium_lang::schema::Kind;
use alluvium_lang::{Diagnostic, Diagnostics, Source, codes, parse};

/// Reports everything unused in a configuration without errors.
pub(crate) fn unused(sources: &[(String, String)], graph: &Graph) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    components(graph, &mut diagnostics);
    // Without components, the texts are a library: other configurations use the declarations and imports.
    if graph.nodes.iter().all(|node| matches!(node.kind, NodeKind::Import(_))) {
        return diagnostics;
    }
    let files: Vec<_> = sources
        .iter()
        .map(|(path, text)| parse(&Source::new(path.as_str(), text.as_str())).0)
        .collect();
    let mut heads = BTreeSet::new();
    for file in &files {
        block_heads(&file.body, &mut heads);
    }
    for file in &files {
        declarations(&file.source, &file.body, &heads, &mut diagnostics);
    }
    diagnostics
}

/// Reports components that only serve others but have no users. A component that is used only by reported components
/// is reported too.
fn components(graph: &Graph, diagnostics: &mut Diagnostics) {
    let mut users: Vec<usize> = graph.nodes.iter().map(|node| node.referenced_by.len()).collect();
    let mut waiting: Vec<usize> = (0..graph.nodes.len()).filter(|index| users[*index] == 0).collect();
    while let Some(index) = waiting.pop() {
        let Some(node) = graph.nodes.get(index) else { continue };
        let NodeKind::Component(definition) = node.kind else {
            continue;
        };
        if !serves_others(definition) {
            continue;
        }
        let message = if node.referenced_by.is_empty() {
            format!("{} is never used", node.id)
        } else {
            format!("{} is used only by components that are never used", node.id)
        };
        let names: Vec<String> = definition
            .exports()
            .iter()
            .map(|export| format!("{}.{}", node.id, export.name))
            .collect();
        let header = node.block.block.header();
        diagnostics.push(
            Diagnostic::warning(codes::UNUSED_COMPONENT, &node.block.source, header, message)
                .hint(format!("refer to {}, or remove the block", names.join(" or "))),
        );
        for used in &node.references {
            users[*used] = users[*used].saturating_sub(1);
            if users[*used] == 0 {
                waiting.push(*used);
            }
        }
    }
}

/// True for a component whose only effect is its exports: it forwards nothing, or only the data that it receives.
fn serves_others(definition: &dyn AnyDefinition) -> bool {
    let is_capsule = |kind: &Kind| matches!(kind, Kind::Capsule(_));
    let forwards = definition.arguments().attributes.iter().any(|attribute| {
        is_capsule(&attribute.kind) || matches!(attribute.kind, Kind::List(inner) if is_capsule(inner))
    }) || definition.arguments().blocks.iter().any(|block| block.name == "output");
    !definition.exports().is_empty()
        && (!forwards || definition.exports().iter().all(|export| is_capsule(&export.kind)))
}

/// Collects the first parts of all block names, since each can be the label of a declaration or an import.
fn block_heads<'a>(body: &'a [Statement], heads: &mut BTreeSet<&'a str>) {
    for statement in body {
        if let Statement::Block(block) = statement {
            heads.insert(block.name.name.split('.').next().unwrap_or_default());
            block_heads(&block.body, heads);
        }
    }
}

fn declarations(source: &Source, body: &[Statement], heads: &BTreeSet<&str>, diagnostics: &mut Diagnostics) {
    for statement in body {
        let Statement::Block(block) = statement else { continue };
        let Some(label) = &block.label else { continue };
        let name = &*block.name.name;
        let declares = name == "declare";
        if (declares || name.starts_with("import.")) && !heads.contains(&*label.name) {
            let message = if declares {
                format!("the declaration \"{}\" is never used", label.name)
            } else {
                format!("the import \"{}\" is never used", label.name)
            };
            diagnostics.push(Diagnostic::warning(
                codes::UNUSED_DECLARATION,
                source,
                block.header(),
                message,
            ));
        }
        if declares {
            arguments(source, block, diagnostics);
            declarations(source, &block.body, heads, diagnostics);
        }
    }
}

fn arguments(source: &Source, declare: &Block, diagnostics: &mut Diagnostics) {
    let mut read = BTreeSet::new();
    arguments_read(&declare.body, &mut read);
    for statement in &declare.body {
        let Statement::Block(block) = statement else { continue };
        let Some(label) = &block.label else { continue };
        if &*block.name.name == "argument" && !read.contains(&*label.name) {
            let message = format!("the argument \"{}\" is never read", label.name);
            diagnostics.push(
                Diagnostic::warning(codes::UNUSED_DECLARATION, source, block.header(), message).hint(format!(
                    "read it as `argument.{}.value`, or remove the block",
                    label.name
                )),
            );
        }
    }
}

/// Collects the labels of the arguments that a body reads; skips nested declarations.
fn arguments_read(body: &[Statement], read: &mut BTreeSet<String>) {
    for statement in body {
        match statement {
            Statement::Attribute(attribute) => in_expression(&attribute.value, read),
            Statement::Block(block) if &*block.name.name == "declare" => {}
            Statement::Block(block) => arguments_read(&block.body, read),
        }
    }
}

fn in_expression(expression: &Expression, read: &mut BTreeSet<String>) {
    let names = traversal(expression);
    if let [first, label, ..] = names.as_slice()
        && &*first.name == "argument"
    {
        read.insert(label.name.to_string());
    }
    match &expression.kind {
        ExpressionKind::Literal { .. } | ExpressionKind::Identifier(_) => {}
        ExpressionKind::Array(items) => items.iter().for_each(|item| in_expression(item, read)),
        ExpressionKind::Object(fields) => fields.iter().for_each(|field| in_expression(&field.value, read)),
        ExpressionKind::Access { value, .. } | ExpressionKind::Unary { value, .. } => in_expression(value, read),
        ExpressionKind::Index { value, index, .. } => {
            in_expression(value, read);
            in_expression(index, read);
        }
        ExpressionKind::Call { callee, arguments, .. } => {
            in_expression(callee, read);
            arguments.iter().for_each(|argument| in_expression(argument, read));
        }
        ExpressionKind::Binary { left, right, .. } => {
            in_expression(left, read);
            in_expression(right, read);
        }
        ExpressionKind::Paren(inner) => in_expression(inner, read),
    }
}
