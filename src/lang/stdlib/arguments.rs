//! Converts arguments of functions to the expected types, or reports why they do not fit.

use std::sync::Arc;

use crate::convert;
use crate::value::{FunctionError, Value};

/// Creates an error about one argument.
pub(super) fn fail(argument: usize, message: impl Into<String>) -> FunctionError {
    FunctionError {
        argument: Some(argument),
        message: message.into(),
    }
}

/// Fails unless there are exactly `expected` arguments.
pub(super) fn count(arguments: &[Value], expected: usize) -> Result<(), FunctionError> {
    if arguments.len() == expected {
        return Ok(());
    }
    Err(FunctionError {
        argument: None,
        message: format!("expected {expected} args, got {}", arguments.len()),
    })
}

/// Returns the string argument at `index`; null is the empty string, like Go's zero value.
pub(super) fn text(arguments: &[Value], index: usize) -> Result<Arc<str>, FunctionError> {
    if let Some(Value::Null) = arguments.get(index) {
        return Ok("".into());
    }
    convert::string(arguments.get(index).unwrap_or(&Value::Null)).map_err(|error| fail(index, error.message))
}

/// Returns the argument at `index`, which must be a list.
pub(super) fn array(arguments: &[Value], index: usize) -> Result<&[Value], FunctionError> {
    match arguments.get(index) {
        Some(Value::Array(items)) => Ok(items),
        other => Err(fail(
            index,
            format!(
                "expected array, got {}",
                convert::value_name(other.unwrap_or(&Value::Null))
            ),
        )),
    }
}
