//! Parts of JSON responses, by path (`/network/0/address`, RFC 6901).

use serde_json::Value;

use crate::common::http::api_error::ApiError;

/// Returns the text at a path; `None` if it is missing or empty.
pub(crate) fn text<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    value.pointer(path)?.as_str().filter(|text| !text.is_empty())
}

/// Returns the list at a path; empty if there is none.
pub(crate) fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    value.pointer(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the texts of the list at a path.
pub(crate) fn texts<'a>(value: &'a Value, path: &str) -> Vec<&'a str> {
    list(value, path).iter().filter_map(Value::as_str).collect()
}

/// Returns the names and values of the object at a path. Values that are not text are skipped.
pub(crate) fn pairs<'a>(value: &'a Value, path: &str) -> Vec<(&'a String, &'a str)> {
    let fields = value.pointer(path).and_then(Value::as_object);
    let fields = fields.into_iter().flatten();
    fields
        .filter_map(|(name, value)| Some((name, value.as_str()?)))
        .collect()
}

/// Removes the list at a path from a response and returns the list. Fails if there is no list.
pub(crate) fn take_list(answer: &mut Value, path: &str) -> Result<Vec<Value>, ApiError> {
    match answer.pointer_mut(path).map(Value::take) {
        Some(Value::Array(items)) => Ok(items),
        _ => Err(ApiError::NoList(path.to_owned())),
    }
}
