//! The functions `encoding.*`, which read and write JSON, YAML, base64 and URL escapes.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

use super::arguments::{count, fail, text};
use super::lists;
use crate::convert::{format_number, value_name};
use crate::value::{FunctionError, Number, Value};

/// Characters that Go's `url.QueryEscape` escapes: all except letters, digits, `-`, `_`, `.` and `~`.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Parses JSON. All numbers become floats, as in Go.
pub(super) fn from_json(arguments: &[Value]) -> Result<Value, FunctionError> {
    count(arguments, 1)?;
    let value = parse_json(&text(arguments, 0)?)?;
    Ok(from_serde(&value, &|number| {
        Number::Float(number.as_f64().unwrap_or(f64::NAN))
    }))
}

pub(crate) fn parse_json(text: &str) -> Result<serde_json::Value, FunctionError> {
    serde_json::from_str(text).map_err(|error| fail(0, format!("not valid JSON: {error}")))
}

pub(crate) fn from_yaml(arguments: &[Value]) -> Result<Value, FunctionError> {
    count(arguments, 1)?;
    let document = text(arguments, 0)?;
    if document.trim().is_empty() {
        return Ok(Value::Null);
    }
    // As in the Go library that Alloy uses: `yes` is a string, `010` is octal.
    let options = serde_saphyr::options! {
        strict_booleans: true,
        legacy_octal_numbers: true,
    };
    let value: serde_json::Value = serde_saphyr::from_str_with_options(&document, options).map_err(|error| {
        // Only the first line of the message is used; the other lines are an excerpt.
        let error = error.to_string();
        let line = error.lines().next().unwrap_or_default();
        fail(0, format!("not valid YAML: {}", line.trim_start_matches("error: ")))
    })?;
    Ok(from_serde(&value, &lists::whole_or_float))
}

/// Converts a JSON value to a value of the language.
pub(crate) fn from_serde(value: &serde_json::Value, number: &dyn Fn(&serde_json::Number) -> Number) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(value) => Value::Number(number(value)),
        serde_json::Value::String(text) => Value::string(text.as_str()),
        serde_json::Value::Array(items) => Value::array(items.iter().map(|item| from_serde(item, number))),
        serde_json::Value::Object(fields) => Value::object(
            fields
                .iter()
                .map(|(key, value)| (key.as_str(), from_serde(value, number))),
        ),
    }
}

/// Encodes an object as JSON; fails for other values. Keys are sorted; `<`, `>` and `&` are escaped as by Go's encoder.
pub(super) fn to_json(arguments: &[Value]) -> Result<Value, FunctionError> {
    count(arguments, 1)?;
    if !matches!(arguments[0], Value::Object(_)) {
        return Err(fail(0, format!("expected object, got {}", value_name(&arguments[0]))));
    }
    let mut json = String::new();
    write_json(&arguments[0], &mut json)?;
    // A value that contains a secret encodes to a secret.
    Ok(if holds_secret(&arguments[0]) {
        Value::Secret(json.into())
    } else {
        Value::string(json)
    })
}

pub(crate) fn holds_secret(value: &Value) -> bool {
    match value {
        Value::Secret(_) => true,
        Value::Array(items) => items.iter().any(holds_secret),
        Value::Object(fields) => fields.values().any(holds_secret),
        _ => false,
    }
}

fn write_json(value: &Value, out: &mut String) -> Result<(), FunctionError> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(Number::Float(value)) if !value.is_finite() => {
            return Err(fail(0, format!("{value} has no JSON form")));
        }
        Value::Number(Number::Float(value)) if *value != 0.0 && !(1e-6..1e21).contains(&value.abs()) => {
            // Write an exponent with its sign, as Go's encoder does.
            let digits = format!("{value:e}");
            let sign = if digits.contains("e-") { "e" } else { "e+" };
            out.push_str(&digits.replacen('e', sign, 1));
        }
        Value::Number(number) => out.push_str(&format_number(*number)),
        Value::String(text) | Value::Secret(text) => write_json_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(item, out)?;
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (index, (key, item)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json_string(key, out);
                out.push(':');
                write_json(item, out)?;
            }
            out.push('}');
        }
        Value::Function(_) | Value::Capsule(_) => {
            return Err(fail(0, format!("a {} has no JSON form", value_name(value))));
        }
    }
    Ok(())
}

fn write_json_string(text: &str, out: &mut String) {
    for letter in serde_json::Value::from(text).to_string().chars() {
        match letter {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
}

pub(crate) fn from_base64(arguments: &[Value]) -> Result<Value, FunctionError> {
    decode_base64(arguments, &STANDARD)
}

pub(crate) fn from_url_base64(arguments: &[Value]) -> Result<Value, FunctionError> {
    decode_base64(arguments, &URL_SAFE)
}

fn decode_base64(arguments: &[Value], engine: &impl Engine) -> Result<Value, FunctionError> {
    count(arguments, 1)?;
    // Go ignores line ends.
    let encoded = text(arguments, 0)?.replace(['\r', '\n'], "");
    let bytes = engine
        .decode(encoded)
        .map_err(|error| fail(0, format!("not valid base64: {error}")))?;
    String::from_utf8(bytes)
        .map(Value::string)
        .map_err(|_| fail(0, "the decoded bytes are not UTF-8"))
}

pub(crate) fn to_base64(arguments: &[Value]) -> Result<Value, FunctionError> {
    count(arguments, 1)?;
    Ok(Value::string(STANDARD.encode(text(arguments, 0)?.as_bytes())))
}

pub(crate) fn to_url_base64(arguments: &[Value]) -> Result<Value, FunctionError> {
    count(arguments, 1)?;
    Ok(Value::string(URL_SAFE.encode(text(arguments, 0)?.as_bytes())))
}

pub(crate) fn url_encode(arguments: &[Value]) -> Result<Value, FunctionError> {
    count(arguments, 1)?;
    let escaped = percent_encoding::utf8_percent_encode(&text(arguments, 0)?, QUERY).to_string();
    Ok(Value::string(escaped.replace("%20", "+")))
}

pub(crate) fn url_decode(arguments: &[Value]) -> Result<Value, FunctionError> {
    count(arguments, 1)?;
    let escaped = text(arguments, 0)?;
    let broken = escaped.split('%').skip(1).find(|part| {
        !part
            .get(..2)
            .is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
    });
    if let Some(part) = broken {
        let shown: String = part.chars().take(2).collect();
        return Err(fail(0, format!("invalid URL escape `%{shown}`")));
    }
    let spaced = escaped.replace('+', " ");
    percent_encoding::percent_decode_str(&spaced)
        .decode_utf8()
        .map(Value::string)
        .map_err(|_| fail(0, "the decoded bytes are not UTF-8"))
}
