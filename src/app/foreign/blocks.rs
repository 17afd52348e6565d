//! Converts a YAML mapping to the body of a block. The schema of the block determines whether a key becomes an
//! attribute or an inner block.
//!
//! Alloy's components use Prometheus' key names; the few that differ are in [`RENAMED`].

use serde_json::{Map, Value};

use crate::app::foreign::findings::Findings;
use crate::app::foreign::text::{Writer, expression};
use crate::app::foreign::yaml::{integer, number, truth};
use alluvium_lang::literal::quote;
use alluvium_lang::schema::{Attribute, Block, Kind, Schema};

/// Keys that have another name in Alloy: the enclosing block, the key in the YAML, and the name in Alloy.
const RENAMED: [(&str, &str, &str); 7] = [
    ("tls_config", "ca", "ca_pem"),
    ("tls_config", "cert", "cert_pem"),
    ("tls_config", "key", "key_pem"),
    ("discovery.docker", "filters", "filter"),
    ("discovery.dockerswarm", "filters", "filter"),
    ("discovery.ec2", "filters", "filter"),
    ("discovery.lightsail", "filters", "filter"),
];

/// Writes the contents of `mapping`, which is at `path` in the YAML, as the body of the block `name` with this schema.
pub(super) fn body(
    name: &str,
    schema: &Schema,
    (path, mapping): (&str, &Map<String, Value>),
    out: &mut Writer,
    findings: &mut Findings,
) {
    let renamed = |key: &str| {
        let row = RENAMED.iter().find(|(block, from, _)| (*block, *from) == (name, key));
        row.map_or(key.to_owned(), |(.., to)| (*to).to_owned())
    };
    // Attributes are written before blocks.
    for (key, value) in mapping {
        let own = renamed(key);
        // A key without a value keeps the default.
        let attribute = schema
            .attributes
            .iter()
            .find(|attribute| attribute.name == own && !value.is_null());
        if let Some(attribute) = attribute {
            match attribute_value(attribute, value) {
                Ok(text) => out.attribute(&own, &text),
                Err(message) => findings.problem(&format!("{path}.{key}"), message),
            }
        }
    }
    for (key, value) in mapping {
        let (own, path) = (renamed(key), format!("{path}.{key}"));
        if schema.attributes.iter().any(|attribute| attribute.name == own) {
            continue;
        }
        match schema.blocks.iter().find(|block| block.name == own) {
            Some(block) => inner(block, (&path, value), out, findings),
            None => findings.problem(&path, format_args!("`{name}` has no such argument")),
        }
    }
}

/// Writes an inner block, or one block for each item of a list.
fn inner(block: &Block, (path, value): (&str, &Value), out: &mut Writer, findings: &mut Findings) {
    let mut one = |path: &str, value: &Value| match value {
        Value::Object(mapping) => {
            out.open(block.name, None);
            body(block.name, block.schema, (path, mapping), out, findings);
            out.close();
        }
        Value::Null => {}
        _ => findings.problem(path, "must be a mapping"),
    };
    match value {
        Value::Array(items) if block.many => {
            for (index, item) in items.iter().enumerate() {
                one(&format!("{path}[{index}]"), item);
            }
        }
        value => one(path, value),
    }
}

/// The reason why the value of a field cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ValueError {
    #[error("{value} is not a {kind}")]
    Kind {
        /// The value, written as JSON.
        value: String,
        /// The kind that the field expects.
        kind: &'static str,
    },
    #[error("`{0}` is not a duration")]
    Duration(String),
    /// A header has other settings than its values.
    #[error("only `values` of the header `{0}` can be converted")]
    Header(String),
    #[error("cannot be given in YAML")]
    Capsule,
}

/// Converts the value of an attribute to an expression.
fn attribute_value(attribute: &Attribute, value: &Value) -> Result<String, ValueError> {
    match (attribute.name, value) {
        // Prometheus keeps the list of values in a nested key.
        ("http_headers", Value::Object(headers)) => {
            let mut lists = Map::new();
            for (name, header) in headers {
                let Some(values) = header
                    .get("values")
                    .filter(|_| header.as_object().is_some_and(|one| one.len() == 1))
                else {
                    return Err(ValueError::Header(name.clone()));
                };
                lists.insert(name.clone(), values.clone());
            }
            Ok(expression(&Value::Object(lists)))
        }
        _ => of_kind(attribute.kind, value),
    }
}

fn of_kind(kind: Kind, value: &Value) -> Result<String, ValueError> {
    let kind_error = |kind: &'static str| {
        Err(ValueError::Kind {
            value: value.to_string(),
            kind,
        })
    };
    match (kind, value) {
        (Kind::Any, _) => Ok(expression(value)),
        (Kind::Bool, Value::String(text)) => truth(text).map_or_else(|| kind_error("boolean"), |is| Ok(is.to_string())),
        (Kind::Int, Value::String(text)) => {
            integer(text).map_or_else(|| kind_error("number"), |number| Ok(number.to_string()))
        }
        (Kind::Uint, Value::String(text)) => match integer(text) {
            Some(number @ 0..) => Ok(number.to_string()),
            _ => kind_error("number"),
        },
        (Kind::Float, Value::String(text)) => {
            number(text).map_or_else(|| kind_error("number"), |number| Ok(number.to_string()))
        }
        (Kind::String | Kind::Secret | Kind::OptionalSecret, Value::String(text)) => Ok(quote(text)),
        // An item or a field without a value is an empty string.
        (Kind::String | Kind::Secret | Kind::OptionalSecret, Value::Null) => Ok(quote("")),
        (Kind::String | Kind::Secret | Kind::OptionalSecret, _) => kind_error("string"),
        (Kind::Duration, Value::String(text)) => duration(text).map(|text| quote(&text)),
        (Kind::List(kind), Value::Array(items)) => {
            let items: Result<Vec<String>, ValueError> = items.iter().map(|item| of_kind(*kind, item)).collect();
            Ok(format!("[{}]", items?.join(", ")))
        }
        (Kind::Map(kind), Value::Object(fields)) => {
            let field = |(name, value): (&String, &Value)| Ok(format!("{} = {}", quote(name), of_kind(*kind, value)?));
            let fields: Result<Vec<String>, ValueError> = fields.iter().map(field).collect();
            Ok(format!("{{{}}}", fields?.join(", ")))
        }
        (Kind::Bool, _) => kind_error("boolean"),
        (Kind::Int | Kind::Uint | Kind::Float, _) => kind_error("number"),
        (Kind::Duration, _) => kind_error("duration"),
        (Kind::List(_), _) => kind_error("list"),
        (Kind::Map(_), _) => kind_error("mapping"),
        (Kind::Capsule(_), _) => Err(ValueError::Capsule),
    }
}

/// Converts a Prometheus duration to a Go duration, which has no unit above the hour: `1d12h` becomes `36h`.
pub(super) fn duration(text: &str) -> Result<String, ValueError> {
    let duration_error = || ValueError::Duration(text.to_owned());
    let (mut out, mut hours, mut rest) = (String::new(), 0_u64, text);
    if matches!(text, "" | "0") {
        return if text.is_empty() {
            Err(duration_error())
        } else {
            Ok("0s".to_owned())
        };
    }
    while !rest.is_empty() {
        let digits = rest
            .find(|letter: char| !letter.is_ascii_digit())
            .ok_or_else(duration_error)?;
        let (number, tail) = rest.split_at(digits);
        let number: u64 = number.parse().map_err(|_| duration_error())?;
        let unit = ["ms", "s", "m", "h", "d", "w", "y"].into_iter().find(|unit| {
            tail.strip_prefix(*unit)
                .is_some_and(|after| after.is_empty() || after.starts_with(|letter: char| letter.is_ascii_digit()))
        });
        let unit = unit.ok_or_else(duration_error)?;
        let in_hours = match unit {
            "y" => 365 * 24,
            "w" => 7 * 24,
            "d" => 24,
            "h" => 1,
            _ => 0,
        };
        if in_hours == 0 {
            out.push_str(&format!("{number}{unit}"));
        } else {
            let added_hours = number.checked_mul(in_hours).ok_or_else(duration_error)?;
            hours = hours.checked_add(added_hours).ok_or_else(duration_error)?;
        }
        rest = &tail[unit.len()..];
    }
    Ok(match (hours, out.is_empty()) {
        (0, false) => out,
        (hours, _) => format!("{hours}h{out}"),
    })
}

/// Converts a Prometheus duration to whole milliseconds.
pub(super) fn milliseconds(text: &str) -> Option<u64> {
    let text = duration(text).ok()?;
    alluvium_base::duration::parse(&text)
        .ok()
        .and_then(|parsed| u64::try_from(parsed.as_millis()).ok())
}
