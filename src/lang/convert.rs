//! Converts values to the types that a schema requires, by Alloy's rules.
//!
//! Strings and numbers convert to each other, bools to no other type; secrets never become strings. Null converts to
//! every type: a null attribute counts as not set, and a null element of a list or map becomes the zero value of the
//! element type. Targets differ: a bool label becomes a string, and neither a target nor a label may be null.

use std::sync::Arc;

use crate::schema::{Kind, TARGETS};
use crate::value::{Fields, Number, Value};
use alluvium_base::duration;

/// The error of a value that does not fit a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversionError {
    /// The location in the value: element indices and object keys, outermost first.
    pub path: Vec<Step>,
    /// The problem, in lower case.
    pub message: String,
}

/// A step into a list or an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// An element of a list, by its index from 0.
    Index(usize),
    /// A field of an object, by name.
    Key(Arc<str>),
}

/// Converts `value` to `kind`.
pub fn convert(value: &Value, kind: &Kind) -> Result<Value, ConversionError> {
    if matches!(value, Value::Null) {
        return Ok(Value::Null);
    }
    if *kind == TARGETS {
        return list(value, kind, target);
    }
    match kind {
        Kind::Any => Ok(value.clone()),
        Kind::Bool => match value {
            Value::Bool(_) => Ok(value.clone()),
            _ => Err(mismatch(value, kind)),
        },
        Kind::Int | Kind::Uint | Kind::Float => number(value, kind),
        Kind::String => string(value).map(Value::String),
        Kind::Secret => match value {
            Value::String(text) | Value::Secret(text) => Ok(Value::Secret(text.clone())),
            _ => Err(mismatch(value, kind)),
        },
        Kind::OptionalSecret => match value {
            Value::Secret(_) => Ok(value.clone()),
            _ => string(value).map(Value::String),
        },
        Kind::Duration => {
            let Value::String(text) = value else {
                return Err(mismatch(value, kind));
            };
            match duration::parse(text) {
                Ok(_) => Ok(value.clone()),
                Err(error) => Err(plain(error.to_string())),
            }
        }
        Kind::List(inner) => list(value, kind, |item| element(item, inner)),
        Kind::Map(inner) => map(value, kind, |item| element(item, inner)),
        Kind::Capsule(name) => match value {
            Value::Capsule(capsule) if capsule.kind() == *name => Ok(value.clone()),
            _ => Err(mismatch(value, kind)),
        },
    }
}

/// Returns the name of a type for messages.
pub fn kind_name(kind: &Kind) -> String {
    match kind {
        Kind::Bool => "bool",
        Kind::Int | Kind::Uint | Kind::Float => "number",
        Kind::String | Kind::OptionalSecret | Kind::Duration => "string",
        Kind::Secret => "secret",
        Kind::List(_) => "array",
        Kind::Map(_) => "object",
        Kind::Any => "any",
        Kind::Capsule(name) => return format!("capsule(\"{name}\")"),
    }
    .to_owned()
}

/// Returns the name of a type with its element type: `list(map(string))`.
pub fn full_kind_name(kind: &Kind) -> String {
    match kind {
        Kind::List(inner) => format!("list({})", full_kind_name(inner)),
        Kind::Map(inner) => format!("map({})", full_kind_name(inner)),
        other => kind_name(other),
    }
}

/// Returns the name of a value's type for messages.
pub fn value_name(value: &Value) -> String {
    match value {
        Value::Capsule(capsule) => format!("capsule(\"{}\")", capsule.kind()),
        other => other.kind_name().to_owned(),
    }
}

/// Formats a number in the shortest decimal form without an exponent.
pub fn format_number(number: Number) -> String {
    match number {
        Number::Int(value) => value.to_string(),
        Number::Uint(value) => value.to_string(),
        Number::Float(value) => value.to_string(),
    }
}

/// Returns the text of a string, or of a number in decimal. Fails for secrets.
pub fn string(value: &Value) -> Result<Arc<str>, ConversionError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(format_number(*number).into()),
        Value::Secret(_) => Err(plain("secrets may not be converted into strings")),
        _ => Err(mismatch(value, &Kind::String)),
    }
}

fn plain(message: impl Into<String>) -> ConversionError {
    ConversionError {
        path: Vec::new(),
        message: message.into(),
    }
}

fn mismatch(value: &Value, kind: &Kind) -> ConversionError {
    plain(format!("expected {}, got {}", kind_name(kind), value_name(value)))
}

fn at_step(step: Step) -> impl FnOnce(ConversionError) -> ConversionError {
    move |mut error| {
        error.path.insert(0, step);
        error
    }
}

/// Converts an element: like [`convert`], but null becomes the zero value.
fn element(value: &Value, kind: &Kind) -> Result<Value, ConversionError> {
    if !matches!(value, Value::Null) {
        return convert(value, kind);
    }
    Ok(match kind {
        Kind::Bool => Value::Bool(false),
        Kind::Int | Kind::Uint => Value::Number(Number::Int(0)),
        Kind::Float => Value::Number(Number::Float(0.0)),
        Kind::String | Kind::OptionalSecret => Value::string(""),
        Kind::Secret => Value::Secret("".into()),
        Kind::Duration => Value::string("0s"),
        Kind::List(_) => Value::array([]),
        Kind::Map(_) => Value::object::<Arc<str>>([]),
        Kind::Any | Kind::Capsule(_) => Value::Null,
    })
}

fn list(
    value: &Value,
    kind: &Kind,
    convert_item: impl Fn(&Value) -> Result<Value, ConversionError>,
) -> Result<Value, ConversionError> {
    let Value::Array(items) = value else {
        return Err(mismatch(value, kind));
    };
    let converted = items
        .iter()
        .enumerate()
        .map(|(index, item)| convert_item(item).map_err(at_step(Step::Index(index))))
        .collect::<Result<Vec<Value>, _>>()?;
    // An unchanged value is returned as the same allocation, so that all holders share it.
    if items
        .iter()
        .zip(&converted)
        .all(|(before, after)| is_shared(before, after))
    {
        return Ok(value.clone());
    }
    Ok(Value::Array(converted.into()))
}

fn map(
    value: &Value,
    kind: &Kind,
    convert_item: impl Fn(&Value) -> Result<Value, ConversionError>,
) -> Result<Value, ConversionError> {
    let Value::Object(fields) = value else {
        return Err(mismatch(value, kind));
    };
    let converted = fields
        .iter()
        .map(|(key, item)| {
            convert_item(item)
                .map(|item| (key.clone(), item))
                .map_err(at_step(Step::Key(key.clone())))
        })
        .collect::<Result<Fields, _>>()?;
    if fields
        .values()
        .zip(converted.values())
        .all(|(before, after)| is_shared(before, after))
    {
        return Ok(value.clone());
    }
    Ok(Value::Object(Arc::new(converted)))
}

/// True if a conversion returned its input unchanged. Numbers always count as changed.
fn is_shared(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::String(before), Value::String(after)) | (Value::Secret(before), Value::Secret(after)) => {
            Arc::ptr_eq(before, after)
        }
        (Value::Array(before), Value::Array(after)) => Arc::ptr_eq(before, after),
        (Value::Object(before), Value::Object(after)) => Arc::ptr_eq(before, after),
        (Value::Capsule(before), Value::Capsule(after)) => before == after,
        (Value::Null, Value::Null) => true,
        (Value::Bool(before), Value::Bool(after)) => before == after,
        _ => false,
    }
}

/// Converts a target: label values of any scalar type become text; secrets and null are refused.
fn target(value: &Value) -> Result<Value, ConversionError> {
    // Targets from another component already have string values, so nothing is copied.
    if let Value::Object(fields) = value
        && fields.values().all(|field| matches!(field, Value::String(_)))
    {
        return Ok(value.clone());
    }
    map(value, &Kind::Map(&Kind::String), |field| match field {
        Value::Bool(value) => Ok(Value::string(value.to_string())),
        Value::Null => Err(plain("expected string, got null")),
        other => string(other).map(Value::String),
    })
}

fn number(value: &Value, kind: &Kind) -> Result<Value, ConversionError> {
    let number = match value {
        Value::Number(number) => *number,
        Value::String(text) => parse_number(text)?,
        _ => return Err(mismatch(value, kind)),
    };
    // Narrowing silently truncates, as in Alloy.
    Ok(Value::Number(match (kind, number) {
        (Kind::Int, Number::Uint(value)) => Number::Int(value.cast_signed()),
        (Kind::Int, Number::Float(value)) => Number::Int(value as i64),
        (Kind::Uint, Number::Int(value)) => Number::Uint(value.cast_unsigned()),
        (Kind::Uint, Number::Float(value)) => Number::Uint(value as u64),
        (Kind::Float, number) => Number::Float(number.as_f64()),
        (_, number) => number,
    }))
}

fn parse_number(text: &str) -> Result<Number, ConversionError> {
    let parsed = if text.starts_with('-') {
        text.parse().ok().map(Number::Int)
    } else if text.contains(['.', 'e', 'E']) {
        text.parse().ok().map(Number::Float)
    } else if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok().map(Number::Uint)
    } else {
        None
    };
    parsed.ok_or_else(|| plain(format!("`{text}` is not a number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_numbers_convert_into_each_other() {
        let number = |value| Value::Number(Number::Int(value));
        assert_eq!(convert(&number(15), &Kind::String), Ok(Value::string("15")));
        assert_eq!(convert(&Value::string("15"), &Kind::Int), Ok(number(15)));
        assert_eq!(
            convert(&Value::Number(Number::Float(0.1)), &Kind::String),
            Ok(Value::string("0.1"))
        );
        for text in ["", "x", "-1.5", "1_000"] {
            assert!(convert(&Value::string(text), &Kind::Float).is_err(), "{text}");
        }
        assert!(convert(&Value::Bool(true), &Kind::String).is_err());
        assert!(convert(&Value::Secret("x".into()), &Kind::String).is_err());
        assert!(convert(&Value::string("soon"), &Kind::Duration).is_err());
    }

    #[test]
    fn targets_take_plain_values_of_every_type() {
        let value = Value::array([Value::object([
            ("a", Value::Number(Number::Int(1))),
            ("b", Value::Bool(true)),
        ])]);
        let expected = Value::array([Value::object([("a", Value::string("1")), ("b", Value::string("true"))])]);
        assert_eq!(convert(&value, &TARGETS), Ok(expected));
        let error = convert(
            &Value::array([Value::object([("a", Value::Secret("x".into()))])]),
            &TARGETS,
        )
        .unwrap_err();
        assert_eq!(error.path, [Step::Index(0), Step::Key("a".into())]);
    }
}
