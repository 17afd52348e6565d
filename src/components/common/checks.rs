//! Small checks of arguments that many components make, with one wording.
//!
//! In: an evaluated body. Out: nothing, or the attribute at fault and what would be right. A `path` before a name is for bodies of inner blocks:
//! `client.`, `endpoint[0].`, or empty.

use std::time::Duration;

use url::Url;

use crate::lang::schema::Arguments;
use crate::lang::value::{Number, Value};
use crate::pipeline::component::ArgumentError;

/// An error at `path`.
pub fn error(path: impl Into<String>, message: impl Into<String>) -> ArgumentError {
    ArgumentError {
        path: path.into(),
        message: message.into(),
    }
}

/// A duration that must not be zero or less.
pub fn positive(arguments: &Arguments, path: &str, name: &str) -> Result<(), ArgumentError> {
    // Negative durations read as zero.
    if arguments.duration(name) == Duration::ZERO {
        return Err(error(format!("{path}{name}"), format!("{name} must be greater than 0")));
    }
    Ok(())
}

/// A size: a whole number, or a text such as `512MiB` or `1GB`.
pub fn bytes(arguments: &Arguments, name: &str, default: u64, path: &str) -> Result<u64, ArgumentError> {
    let wrong = || {
        let message = format!("{name} must be a number of bytes or a text such as \"512MiB\" or \"1GB\"");
        error(format!("{path}{name}"), message)
    };
    match arguments.value(name) {
        Value::Null => Ok(default),
        Value::Number(Number::Int(value)) => u64::try_from(*value).map_err(|_| wrong()),
        Value::Number(Number::Uint(value)) => Ok(*value),
        Value::String(text) => parse_bytes(text).ok_or_else(wrong),
        _ => Err(wrong()),
    }
}

/// Bytes of a text such as `512MiB` or `1GB`.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let scale: u64 = match text[digits..].trim() {
        "" | "B" => 1,
        "KB" | "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    Some((number * scale as f64) as u64)
}

/// A string that must be one of a few.
pub fn choice(arguments: &Arguments, path: &str, name: &str, choices: &[&str]) -> Result<(), ArgumentError> {
    let value = arguments.string(name);
    if choices.contains(&value.as_ref()) {
        return Ok(());
    }
    let message = format!("unknown {name} \"{value}\": must be one of {}", choices.join(", "));
    Err(error(format!("{path}{name}"), message))
}

/// A string or a list that must not be empty.
pub fn not_empty(arguments: &Arguments, path: &str, name: &str) -> Result<(), ArgumentError> {
    if is_given(arguments, name) {
        return Ok(());
    }
    Err(error(format!("{path}{name}"), format!("{name} must not be empty")))
}

/// A URL with `http` or `https` and a host.
pub fn http_url(arguments: &Arguments, path: &str, name: &str) -> Result<(), ArgumentError> {
    let text = arguments.string(name);
    let wrong = |problem: &str| Err(error(format!("{path}{name}"), format!("`{text}` {problem}")));
    match Url::parse(&text) {
        Err(problem) => wrong(&format!("is not a URL: {problem}")),
        Ok(url) if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() => {
            wrong("is not an http:// or https:// URL")
        }
        Ok(_) => Ok(()),
    }
}

/// Attributes or blocks of which at most one may be given.
pub fn at_most_one(arguments: &Arguments, path: &str, names: &[&str]) -> Result<(), ArgumentError> {
    let given: Vec<&str> = names.iter().copied().filter(|name| is_given(arguments, name)).collect();
    match given.as_slice() {
        [_, second, ..] => {
            let message = format!("at most one of {} may be given", list(names));
            Err(error(format!("{path}{second}"), message))
        }
        _ => Ok(()),
    }
}

/// Attributes or blocks of which exactly one must be given.
pub fn exactly_one(arguments: &Arguments, path: &str, names: &[&str]) -> Result<(), ArgumentError> {
    let given: Vec<&str> = names.iter().copied().filter(|name| is_given(arguments, name)).collect();
    let message = || format!("exactly one of {} must be given", list(names));
    match given.as_slice() {
        [_] => Ok(()),
        [] => Err(error(path.trim_end_matches('.'), message())),
        [_, second, ..] => Err(error(format!("{path}{second}"), message())),
    }
}

/// True for a block that is there, and for an attribute that is neither null nor empty.
fn is_given(arguments: &Arguments, name: &str) -> bool {
    arguments.block(name).is_some()
        || match arguments.value(name) {
            Value::Null => false,
            Value::String(text) | Value::Secret(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            _ => true,
        }
}

/// `a, b and c`.
fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
