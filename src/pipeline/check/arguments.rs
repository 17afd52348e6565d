//! Converts bodies to typed values, and argument errors to diagnostics with positions.

use crate::check::graph::SourceBlock;
use alluvium_lang::argument_error::{ArgumentError, ArgumentErrors};
use alluvium_lang::body::FromBody;
use alluvium_lang::decode::{Resolve, decode, locate};
use alluvium_lang::{Diagnostic, Diagnostics, codes};

/// Returns the diagnostic for one error, placed at the attribute or block that its path names.
pub(crate) fn argument_error(text: &SourceBlock, error: &ArgumentError) -> Diagnostic {
    let SourceBlock { source, block } = text;
    let span = locate(&block.body, &error.path, block.header());
    let message = if error.path.is_empty() {
        error.message.clone()
    } else {
        error.to_string()
    };
    Diagnostic::error(codes::BAD_ARGUMENT, source, span, message)
}

/// Returns the diagnostics for all errors of a body.
pub(crate) fn argument_errors(text: &SourceBlock, errors: &ArgumentErrors) -> Diagnostics {
    errors.0.iter().map(|error| argument_error(text, error)).collect()
}

/// Decodes the body of a block to a typed value; `None` if its only problem is a value that is not known yet.
pub(crate) fn decode_known<T: FromBody>(text: &SourceBlock, resolve: &dyn Resolve) -> Result<Option<T>, Diagnostics> {
    let SourceBlock { source, block } = text;
    let decoded = decode(source, block.header(), &block.body, T::SCHEMA, resolve);
    if decoded.diagnostics.has_errors() {
        return Err(decoded.diagnostics);
    }
    match T::from_body(&decoded.arguments) {
        Ok(body) => Ok(Some(body)),
        Err(ArgumentErrors(errors)) if errors.is_empty() => Ok(None),
        Err(errors) => Err(argument_errors(text, &errors)),
    }
}
