//! `json_path(json, path)`: the values that a JSONPath selects, in document order.
//!
//! Supports `$`, `.name`, `.*`, `..name`, `..*`, `['name']`, `[0]`, `[-1]`, `[*]`, slices `[1:3]`, unions `[0,2]` and
//! filters `[?(@.name == 'x')]`; [`parse`] lists the operators of filters. Scripts `[(...)]` are an error, as in Alloy.

mod parse;
mod path;
mod path_error;
mod select;

use super::arguments::{count, fail, text};
use super::{encoding, lists};
use crate::value::{FunctionError, Value};
use parse::parse;
use select::apply;

pub(crate) fn json_path(arguments: &[Value]) -> Result<Value, FunctionError> {
    count(arguments, 2)?;
    let (document, path) = (text(arguments, 0)?, text(arguments, 1)?);
    // As in Alloy, an empty document or an empty path selects nothing.
    if document.trim().is_empty() || path.is_empty() {
        return Ok(Value::array([]));
    }
    let document = encoding::parse_json(&document)?;
    let steps = parse(&path).map_err(|error| fail(1, error.to_string()))?;
    Ok(Value::array(
        apply(&document, &document, &steps)
            .into_iter()
            .map(|value| encoding::from_serde(value, &lists::whole_or_float)),
    ))
}
