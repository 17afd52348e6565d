//! Evaluates single blocks in their scope: bodies of components and of the engine's own blocks.
//!
//! In: a block and its visible names. Out: its arguments, or diagnostics. Nothing runs and no state is kept.

use crate::check::arguments::argument_errors;
use crate::check::blocks::{ArgumentBody, ExportBody};
use crate::check::graph::SourceBlock;
use crate::component::{AnyDefinition, ValidArguments};
use crate::run::engine::Engine;
use crate::run::instance::Instance;
use crate::run::names::Names;
use crate::run::node::Node;
use alluvium_lang::body::FromBody;
use alluvium_lang::decode::decode;
use alluvium_lang::schema::{Arguments, Schema};
use alluvium_lang::value::Value;
use alluvium_lang::{Diagnostic, Diagnostics, codes};

/// Returns the value of an `argument` block inside its module.
pub(crate) fn argument(
    text: &SourceBlock,
    name: &str,
    instance: &Instance,
    names: &Names<'_>,
    user: Option<&SourceBlock>,
) -> Result<Value, Diagnostics> {
    let attribute = instance.arguments.lock().attributes.get(name).cloned();
    let value = if let Some(value) = attribute {
        value
    } else {
        let arguments: ArgumentBody = body(text, names)?;
        if !arguments.optional {
            let message = format!("missing required argument \"{name}\" to module");
            return Err(block_error(codes::MISSING_ATTRIBUTE, user.unwrap_or(text), message).into());
        }
        arguments.default
    };
    Ok(Value::object([("value", value)]))
}

/// Returns the value of an `export` block.
pub(crate) fn export(text: &SourceBlock, names: &Names<'_>) -> Result<Value, Diagnostics> {
    match text.attribute("value") {
        Some(_) => body(text, names).map(|export: ExportBody| export.value),
        None => Ok(Value::Null),
    }
}

/// Evaluates the body of one of the engine's own blocks to a typed value.
pub(crate) fn body<T: FromBody>(text: &SourceBlock, names: &Names<'_>) -> Result<T, Diagnostics> {
    typed(text, &values(text, T::SCHEMA, names)?)
}

/// Converts an evaluated body to its typed value.
pub(crate) fn typed<T: FromBody>(text: &SourceBlock, values: &Arguments) -> Result<T, Diagnostics> {
    T::from_body(values).map_err(|errors| argument_errors(text, &errors))
}

/// Evaluates a body against its schema.
pub(crate) fn values(text: &SourceBlock, schema: &'static Schema, names: &Names<'_>) -> Result<Arguments, Diagnostics> {
    let SourceBlock { source, block } = text;
    let decoded = decode(source, block.header(), &block.body, schema, &names.evaluate());
    decoded.diagnostics.into_result(decoded.arguments)
}

/// Creates an error about a whole block.
pub(crate) fn block_error(code: codes::Code, text: &SourceBlock, message: String) -> Diagnostic {
    Diagnostic::error(code, &text.source, text.block.header(), message)
}

/// Makes each `WILL_NOT_RUN` warning an error, because a run refuses components that cannot be built.
pub(crate) fn refuse_not_built(diagnostics: Diagnostics) -> Diagnostics {
    let refuse = |diagnostic: Diagnostic| match diagnostic.code {
        codes::WILL_NOT_RUN => Diagnostic::error(
            codes::NOT_BUILT,
            &diagnostic.source,
            diagnostic.span,
            diagnostic.message,
        )
        .hint("`validate` accepts it; to run the other blocks, remove this block and all references to it"),
        _ => diagnostic,
    };
    diagnostics.into_iter().map(refuse).collect()
}

impl Engine {
    /// Returns the arguments of a component in the scope of `names`. If they equal the arguments of `running`, the
    /// typed value of `running` is reused.
    pub(crate) fn arguments(
        &self,
        definition: &dyn AnyDefinition,
        text: &SourceBlock,
        names: &Names<'_>,
        running: Option<&Node>,
    ) -> Result<ValidArguments, Diagnostics> {
        let started = std::time::Instant::now();
        let values = values(text, definition.arguments(), names)?;
        let running_arguments = running
            .map(Node::arguments)
            .filter(|arguments| *arguments.values() == values);
        let arguments = match running_arguments {
            Some(arguments) => arguments,
            None => definition
                .validate(values)
                .map_err(|errors| argument_errors(text, &errors))?,
        };
        self.metrics.evaluated(started.elapsed(), || text.block.id());
        Ok(arguments)
    }
}
