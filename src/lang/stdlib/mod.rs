//! The standard library: functions by name, and their deprecated names.
//!
//! Functions are pure except for `sys.env`, which reads the environment of the process. `constants` is not part of this
//! library: its values (host name, version) belong to the program, which passes them in the scope. Strings are UTF-8: a
//! function whose result would be invalid UTF-8 fails.

mod arguments;
mod encoding;
mod format;
mod json_path;
mod lists;

use crate::convert;
use crate::value::{Function, FunctionError, Value};
use alluvium_base::letters;
use arguments::{array, count, fail, text};

/// Functions, sorted by full name; true marks experimental functions.
const FUNCTIONS: &[(Function, bool)] = &[
    (function("array.combine_maps", lists::combine_maps), true),
    (function("array.concat", lists::concat), false),
    (function("array.group_by", lists::group_by), true),
    (function("coalesce", lists::coalesce), false),
    (function("convert.nonsensitive", nonsensitive), false),
    (function("encoding.from_URLbase64", encoding::from_url_base64), false),
    (function("encoding.from_base64", encoding::from_base64), false),
    (function("encoding.from_json", encoding::from_json), false),
    (function("encoding.from_yaml", encoding::from_yaml), false),
    (function("encoding.to_URLbase64", encoding::to_url_base64), false),
    (function("encoding.to_base64", encoding::to_base64), false),
    (function("encoding.to_json", encoding::to_json), false),
    (function("encoding.url_decode", encoding::url_decode), false),
    (function("encoding.url_encode", encoding::url_encode), false),
    (function("file.path_join", path_join), false),
    (function("json_path", json_path::json_path), false),
    (function("string.format", format::format), false),
    (function("string.join", join), false),
    (function("string.replace", replace), false),
    (function("string.split", split), false),
    (function("string.to_lower", to_lower), false),
    (function("string.to_upper", to_upper), false),
    (function("string.trim", trim), false),
    (function("string.trim_prefix", trim_prefix), false),
    (function("string.trim_space", trim_space), false),
    (function("string.trim_suffix", trim_suffix), false),
    (function("sys.env", env), false),
];

/// Deprecated names and their replacements.
const DEPRECATED: &[(&str, &str)] = &[
    ("base64_decode", "encoding.from_base64"),
    ("concat", "array.concat"),
    ("env", "sys.env"),
    ("format", "string.format"),
    ("join", "string.join"),
    ("json_decode", "encoding.from_json"),
    ("nonsensitive", "convert.nonsensitive"),
    ("replace", "string.replace"),
    ("split", "string.split"),
    ("to_lower", "string.to_lower"),
    ("to_upper", "string.to_upper"),
    ("trim", "string.trim"),
    ("trim_prefix", "string.trim_prefix"),
    ("trim_space", "string.trim_space"),
    ("trim_suffix", "string.trim_suffix"),
    ("yaml_decode", "encoding.from_yaml"),
];

const fn function(name: &'static str, call: fn(&[Value]) -> Result<Value, FunctionError>) -> Function {
    Function { name, call }
}

/// Returns the function, or the group of functions, to which the first parts of `path` refer, and the number of these
/// parts.
pub fn lookup(path: &[&str]) -> Option<(Value, usize)> {
    let first = path.first()?;
    if let Some(builtin) = find(first).or_else(|| find(replacement(first)?)) {
        return Some((Value::Function(builtin), 1));
    }
    if let Some(second) = path.get(1)
        && let Some(builtin) = find(&format!("{first}.{second}"))
    {
        return Some((Value::Function(builtin), 2));
    }
    let members: Vec<(&str, Value)> = FUNCTIONS
        .iter()
        .filter_map(|(function, _)| {
            let name = function.name.strip_prefix(first)?.strip_prefix('.')?;
            Some((name, Value::Function(function)))
        })
        .collect();
    (!members.is_empty()).then(|| (Value::object(members), 1))
}

/// Returns the replacement of a deprecated name.
pub fn replacement(name: &str) -> Option<&'static str> {
    DEPRECATED.iter().find(|(old, _)| *old == name).map(|(_, new)| *new)
}

/// True for a function that needs the experimental stability level.
pub fn is_experimental(name: &str) -> bool {
    FUNCTIONS
        .iter()
        .any(|(function, experimental)| *experimental && function.name == name)
}

/// True for a function whose result depends only on its arguments.
pub fn is_pure(name: &str) -> bool {
    name != "sys.env"
}

/// Returns the first parts of all names, for suggestions and for warnings about shadowing.
pub fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS
        .iter()
        .map(|(function, _)| function.name.split('.').next().unwrap_or_default())
        .chain(std::iter::once("constants"))
        .chain(DEPRECATED.iter().map(|(old, _)| *old))
}

fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS
        .iter()
        .find(|(function, _)| function.name == name)
        .map(|(function, _)| function)
}

// === Strings ===

fn map_text(arguments: &[Value], map: impl Fn(&str) -> String) -> Result<Value, FunctionError> {
    count(arguments, 1)?;
    Ok(Value::string(map(&text(arguments, 0)?)))
}

fn to_lower(arguments: &[Value]) -> Result<Value, FunctionError> {
    map_text(arguments, letters::to_lower)
}

fn to_upper(arguments: &[Value]) -> Result<Value, FunctionError> {
    map_text(arguments, letters::to_upper)
}

fn map_two(arguments: &[Value], map: impl Fn(&str, &str) -> String) -> Result<Value, FunctionError> {
    count(arguments, 2)?;
    Ok(Value::string(map(&text(arguments, 0)?, &text(arguments, 1)?)))
}

fn trim_space(arguments: &[Value]) -> Result<Value, FunctionError> {
    map_text(arguments, |text| text.trim().to_owned())
}

fn trim(arguments: &[Value]) -> Result<Value, FunctionError> {
    map_two(arguments, |text, set| {
        text.trim_matches(|letter| set.contains(letter)).to_owned()
    })
}

fn trim_prefix(arguments: &[Value]) -> Result<Value, FunctionError> {
    map_two(arguments, |text, prefix| {
        text.strip_prefix(prefix).unwrap_or(text).to_owned()
    })
}

fn trim_suffix(arguments: &[Value]) -> Result<Value, FunctionError> {
    map_two(arguments, |text, suffix| {
        text.strip_suffix(suffix).unwrap_or(text).to_owned()
    })
}

fn replace(arguments: &[Value]) -> Result<Value, FunctionError> {
    count(arguments, 3)?;
    let (subject, old, new) = (text(arguments, 0)?, text(arguments, 1)?, text(arguments, 2)?);
    Ok(Value::string(subject.replace(&*old, &new)))
}

fn split(arguments: &[Value]) -> Result<Value, FunctionError> {
    count(arguments, 2)?;
    let (subject, separator) = (text(arguments, 0)?, text(arguments, 1)?);
    Ok(if separator.is_empty() {
        Value::array(subject.chars().map(|letter| Value::string(letter.to_string())))
    } else {
        Value::array(subject.split(&*separator).map(Value::string))
    })
}

fn join(arguments: &[Value]) -> Result<Value, FunctionError> {
    count(arguments, 2)?;
    let list = match arguments.first() {
        Some(Value::Null) => &[],
        _ => array(arguments, 0)?,
    };
    let items = (0..list.len())
        .map(|index| text(list, index).map_err(|error| fail(0, error.message)))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Value::string(items.join(&*text(arguments, 1)?)))
}

// === Others ===

fn env(arguments: &[Value]) -> Result<Value, FunctionError> {
    count(arguments, 1)?;
    let name = text(arguments, 0)?;
    let value = std::env::var_os(&*name).unwrap_or_default();
    value
        .into_string()
        .map(Value::string)
        .map_err(|_| fail(0, format!("the environment variable `{name}` is not UTF-8")))
}

fn nonsensitive(arguments: &[Value]) -> Result<Value, FunctionError> {
    count(arguments, 1)?;
    match &arguments[0] {
        Value::Secret(text) | Value::String(text) => Ok(Value::String(text.clone())),
        other => Err(fail(0, format!("expected secret, got {}", convert::value_name(other)))),
    }
}

/// Joins paths with `/` and removes empty, `.` and resolvable `..` parts, like Go's `filepath.Join`.
fn path_join(arguments: &[Value]) -> Result<Value, FunctionError> {
    let parts = (0..arguments.len())
        .map(|index| text(arguments, index))
        .collect::<Result<Vec<_>, _>>()?;
    let joined = parts
        .iter()
        .filter(|part| !part.is_empty())
        .map(AsRef::as_ref)
        .collect::<Vec<&str>>()
        .join("/");
    if joined.is_empty() {
        return Ok(Value::string(""));
    }
    let rooted = joined.starts_with('/');
    let mut kept: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." if kept.last().is_some_and(|last| *last != "..") => {
                kept.pop();
            }
            ".." if rooted => {}
            part => kept.push(part),
        }
    }
    let path = kept.join("/");
    Ok(Value::string(match (rooted, path.is_empty()) {
        (true, _) => format!("/{path}"),
        (false, true) => ".".to_owned(),
        (false, false) => path,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_deprecated_name_has_its_replacement() {
        for (old, new) in DEPRECATED {
            assert!(lookup(&[old]).is_some(), "{old}");
            assert!(find(new).is_some(), "{new}");
        }
        assert!(FUNCTIONS.windows(2).all(|pair| pair[0].0.name < pair[1].0.name));
    }
}
