//! Ids for the items of a `foreach`. The id of an item stays the same when other items of the collection change.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::check::blocks::ForeachBody;
use alluvium_lang::value::{Number, Value};

/// Returns the items of a collection with their ids, in order. Each id ends in a number, which distinguishes items
/// that would otherwise have the same id. For strings, numbers and bools the ids are the same as in Alloy.
pub(super) fn items(foreach: &ForeachBody) -> Vec<(Arc<str>, Value)> {
    let field = &foreach.id;
    let of_string = if foreach.hash_string_id { hash } else { plain };
    let mut counts: HashMap<String, usize> = HashMap::new();
    let id = |item: &Value| {
        let id = match item {
            Value::Object(fields) if !field.is_empty() => fields.get(field),
            _ => None,
        };
        let fingerprint = fingerprint(id.unwrap_or(item), of_string);
        let count = counts.entry(fingerprint.clone()).or_default();
        *count += 1;
        format!("foreach_{fingerprint}_{count}").into()
    };
    let ids: Vec<Arc<str>> = foreach.collection.iter().map(id).collect();
    ids.into_iter().zip(foreach.collection.iter().cloned()).collect()
}

/// Returns the part of an id that equal values share. `of_string` computes this part for a string.
fn fingerprint(value: &Value, of_string: fn(&str) -> String) -> String {
    match value {
        Value::String(text) => of_string(text),
        Value::Bool(value) => value.to_string(),
        Value::Number(Number::Float(value)) => plain(&format!("{value:.6}")),
        Value::Number(Number::Int(value)) => plain(&value.to_string()),
        Value::Number(Number::Uint(value)) => plain(&value.to_string()),
        other => {
            let mut text = String::new();
            canonical(other, &mut text);
            hash(&text)
        }
    }
}

/// Replaces every character that cannot be a part of an id by `_`.
fn plain(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_alphanumeric() { letter } else { '_' })
        .collect()
}

fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Writes a text that is equal only for equal values. The text may contain secrets, so the caller only hashes it.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => _ = write!(out, "{text:?}"),
        Value::Secret(text) => _ = write!(out, "secret{text:?}"),
        Value::Array(items) => {
            out.push('[');
            for item in items.iter() {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (key, value) in fields.iter() {
                let _ = write!(out, "{key:?}:");
                canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
        // Equal numbers have the same text, whatever their type.
        Value::Number(number) => out.push_str(&alluvium_lang::convert::format_number(*number)),
        Value::Capsule(capsule) => _ = write!(out, "{}@{:p}", capsule.kind(), capsule.address()),
        other => _ = write!(out, "{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alluvium_lang::body::FromBody as _;
    use alluvium_lang::decode;

    fn ids(items_given: &[Value], settings: &[(&str, Value)]) -> Vec<String> {
        let mut body = decode::defaults(ForeachBody::SCHEMA).unwrap();
        let collection = Value::array(items_given.iter().cloned());
        body.attributes.insert("collection".into(), collection);
        for (name, value) in settings {
            body.attributes.insert((*name).into(), value.clone());
        }
        let foreach = ForeachBody::from_body(&body).unwrap();
        items(&foreach).into_iter().map(|(id, _)| id.to_string()).collect()
    }

    #[test]
    fn plain_items_are_readable_and_repetitions_are_counted() {
        let int = |value| Value::Number(Number::Int(value));
        assert_eq!(
            ids(&[int(1), int(1), Value::string("a b"), Value::Bool(true), int(-1)], &[]),
            [
                "foreach_1_1",
                "foreach_1_2",
                "foreach_a_b_1",
                "foreach_true_1",
                "foreach__1_1"
            ]
        );
        assert_eq!(ids(&[Value::Number(Number::Float(2.5))], &[]), ["foreach_2_500000_1"]);
    }

    #[test]
    fn strings_are_hashed_on_request() {
        let hashed = ids(&[Value::string("a")], &[("hash_string_id", Value::Bool(true))]);
        // sha256("a")
        assert_eq!(
            hashed,
            ["foreach_ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb_1"]
        );
    }

    #[test]
    fn a_field_can_be_the_identity() {
        let item =
            |name: &str, port: &str| Value::object([("name", Value::string(name)), ("port", Value::string(port))]);
        let by_name = [("id", Value::string("name"))];
        assert_eq!(ids(&[item("x", "1")], &by_name), ids(&[item("x", "2")], &by_name));
        assert_ne!(ids(&[item("x", "1")], &[]), ids(&[item("x", "2")], &[]));
        // An item without the field is identified by its whole value.
        assert_ne!(
            ids(&[item("x", "1")], &[("id", Value::string("missing"))]),
            ids(&[item("x", "2")], &[("id", Value::string("missing"))])
        );
    }
}
