//! Produces the output of the case groups `expr` and `conv`. In `expr`, each input line is an expression to evaluate.
//! In `conv`, each input line is a conversion of a value to a type.
//!
//! Besides the standard library, the scope has `secret` (the secret `hush`), `capsule` (of the kind `test.Thing`),
//! `receiver` (a profile receiver) and `nothing` (null).

use alluvium_lang::convert::{Step, convert};
use alluvium_lang::eval::{Scope, evaluate};
use alluvium_lang::schema::{Kind, RECEIVER, RECEIVERS, TARGETS};
use alluvium_lang::value::{Capsule, Number, Value};
use alluvium_lang::{Diagnostics, Source, parse_expression};

use super::short;

struct Names;

impl Scope for Names {
    fn lookup(&self, path: &[&str]) -> Option<(Value, usize)> {
        let value = match *path.first()? {
            "secret" => Value::Secret("hush".into()),
            "capsule" => Value::Capsule(Capsule::new("test.Thing", ())),
            "receiver" => Value::Capsule(Capsule::new(RECEIVER, ())),
            "nothing" => Value::Null,
            _ => return None,
        };
        Some((value, 1))
    }
}

/// Returns the value of an expression, or its error.
pub(super) fn answer(line: &str) -> String {
    match value(line) {
        Ok(value) => show(&value),
        Err(diagnostics) => short(&diagnostics),
    }
}

/// Evaluates `TYPE <- EXPRESSION`: returns the converted value, or the error.
pub(super) fn conversion(line: &str) -> String {
    let (kind, expression) = line.split_once(" <- ").expect("TYPE <- EXPRESSION");
    let kind = match kind {
        "targets" => TARGETS,
        "receivers" => RECEIVERS,
        kind => parse_kind(kind),
    };
    let value = match value(expression) {
        Ok(value) => value,
        Err(diagnostics) => return short(&diagnostics),
    };
    match convert(&value, &kind) {
        Ok(value) => show(&value),
        Err(error) => {
            let path: String = error
                .path
                .iter()
                .map(|step| match step {
                    Step::Index(index) => format!("[{index}]"),
                    Step::Key(key) => format!("[{key:?}]"),
                })
                .collect();
            format!(
                "error: {path}{}{}",
                if path.is_empty() { "" } else { ": " },
                error.message
            )
        }
    }
}

fn value(line: &str) -> Result<Value, Diagnostics> {
    let source = Source::new("e", line);
    let (expression, diagnostics) = parse_expression(&source);
    diagnostics.into_result(())?;
    evaluate(&source, &expression, &Names).map_err(Diagnostics::from)
}

fn parse_kind(text: &str) -> Kind {
    let inner = |text: &str| -> &'static Kind { Box::leak(Box::new(parse_kind(text))) };
    match text {
        "bool" => Kind::Bool,
        "int" => Kind::Int,
        "uint" => Kind::Uint,
        "float" => Kind::Float,
        "string" => Kind::String,
        "secret" => Kind::Secret,
        "optional_secret" => Kind::OptionalSecret,
        "duration" => Kind::Duration,
        "any" => Kind::Any,
        "thing" => Kind::Capsule("test.Thing"),
        _ => {
            let (outer, rest) = text.split_once('(').expect("a type");
            let rest = rest.strip_suffix(')').expect("a type");
            match outer {
                "list" => Kind::List(inner(rest)),
                _ => Kind::Map(inner(rest)),
            }
        }
    }
}

/// Formats a value. The form of a number shows its kind: `1` is signed, `1u` unsigned, and `1.0` floating point.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::Number(Number::Int(value)) => value.to_string(),
        Value::Number(Number::Uint(value)) => format!("{value}u"),
        Value::Number(Number::Float(value)) => format!("{value:?}"),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(show).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(key, value)| format!("{key} = {}", show(value)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => format!("{other:?}"),
    }
}
