//! The values of single blocks: bodies of components and of the engine's own blocks, in the scope that they stand in.
//!
//! In: a block and the names it sees. Out: its arguments, or what is wrong with them. Nothing runs and nothing is
//! remembered.

use crate::lang::decode::decode;
use crate::lang::schema::{Arguments, Schema};
use crate::lang::value::Value;
use crate::lang::{Diagnostic, Diagnostics, codes};
use crate::pipeline::check::arguments::check_arguments;
use crate::pipeline::check::blocks;
use crate::pipeline::check::graph::SourceBlock;
use crate::pipeline::component::Definition;
use crate::pipeline::run::engine::Engine;
use crate::pipeline::run::instance::Instance;
use crate::pipeline::run::names::Names;

/// The value of an `argument` block as the module sees it.
pub(crate) fn argument(
    text: &SourceBlock,
    name: &str,
    instance: &Instance,
    names: &Names<'_>,
    user: Option<&SourceBlock>,
) -> Result<Value, Diagnostics> {
    let given = instance.arguments.lock().attributes.get(name).cloned();
    let value = match given {
        Some(value) => value,
        None => {
            let arguments = body(text, &blocks::ARGUMENT, names)?;
            if !arguments.bool("optional") {
                let message = format!("missing required argument \"{name}\" to module");
                return Err(block_error(codes::MISSING_ATTRIBUTE, user.unwrap_or(text), message).into());
            }
            arguments.value("default").clone()
        }
    };
    Ok(Value::object([("value", value)]))
}

/// The value of an `export` block.
pub(crate) fn export(text: &SourceBlock, names: &Names<'_>) -> Result<Value, Diagnostics> {
    match text.attribute("value") {
        Some(_) => Ok(body(text, &blocks::EXPORT, names)?.value("value").clone()),
        None => Ok(Value::Null),
    }
}

/// The body of a block of the engine's own.
pub(crate) fn body(text: &SourceBlock, schema: &'static Schema, names: &Names<'_>) -> Result<Arguments, Diagnostics> {
    let SourceBlock { source, block } = text;
    let decoded = decode(source, block.header(), &block.body, schema, &names.evaluate());
    decoded.diagnostics.into_result(decoded.arguments)
}

/// An error about a whole block.
pub(crate) fn block_error(code: codes::Code, text: &SourceBlock, message: String) -> Diagnostic {
    Diagnostic::error(code, &text.source, text.block.header(), message)
}

impl Engine {
    /// The arguments of a component in the scope of `names`, checked.
    pub(crate) fn arguments(
        &self,
        definition: &Definition,
        text: &SourceBlock,
        names: &Names<'_>,
    ) -> Result<Arguments, Diagnostics> {
        let started = std::time::Instant::now();
        let arguments = body(text, definition.arguments, names)?;
        check_arguments(definition, text, &arguments)?;
        self.metrics.evaluated(started.elapsed(), || text.block.id());
        Ok(arguments)
    }

    /// What a check only warns of, a run refuses: a component that cannot be built.
    pub(crate) fn refuse_not_built(&self, diagnostics: Diagnostics) -> Diagnostics {
        let refuse = |found: Diagnostic| match found.code {
            codes::WILL_NOT_RUN => Diagnostic::error(codes::NOT_BUILT, &found.source, found.span, found.message)
                .hint("`validate` checks it already; to run the rest, remove the block and what refers to it"),
            _ => found,
        };
        diagnostics.into_iter().map(refuse).collect()
    }
}
