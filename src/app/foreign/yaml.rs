//! Reads YAML as Go's `yaml.v2` does for string fields. A scalar keeps its text, and the type of its field determines
//! the meaning of the text. So a password `0123456` keeps its zero, and a user `no` is not a boolean.
//!
//! In: YAML. Out: values in which every scalar is a string, except an empty scalar (`~`, `null`, nothing), which is
//! null. [`truth`], [`integer`] and [`number`] convert the texts for fields that are not strings.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

/// Spellings of booleans in YAML 1.1.
const TRUE: [&str; 11] = ["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"];
const FALSE: [&str; 11] = [
    "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF",
];

/// Parses a text that has one document.
pub(super) fn document(yaml: &str) -> Result<Value, serde_saphyr::Error> {
    let read: Spanned<Node> = serde_saphyr::from_str_with_options(yaml, options())?;
    Ok(value(read, yaml))
}

/// Parses any number of documents.
pub(super) fn documents(yaml: &str) -> Result<Vec<Value>, serde_saphyr::Error> {
    let read: Vec<Spanned<Node>> = serde_saphyr::from_multiple_with_options(yaml, options())?;
    Ok(read.into_iter().map(|node| value(node, yaml)).collect())
}

/// Returns the options of the parser. With them, the parser accepts `.inf`, which remains a text here.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::PassThrough,
    }
}

/// Parses a boolean in the spellings of YAML 1.1.
pub(super) fn truth(text: &str) -> Option<bool> {
    if TRUE.contains(&text) {
        return Some(true);
    }
    FALSE.contains(&text).then_some(false)
}

/// Parses a whole number: decimal, `0x1F`, `0o17`, `0b11`, or octal with a leading zero.
pub(super) fn integer(text: &str) -> Option<i64> {
    let text = text.replace('_', "");
    let (digits, is_negative) = match text.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (text.strip_prefix('+').unwrap_or(&text), false),
    };
    let prefixes = [("0x", 16), ("0X", 16), ("0o", 8), ("0O", 8), ("0b", 2), ("0B", 2)];
    let prefixed = prefixes
        .iter()
        .find_map(|(prefix, base)| Some((digits.strip_prefix(prefix)?, *base)));
    let (digits, base) = match (prefixed, digits.strip_prefix('0')) {
        (Some(prefixed), _) => prefixed,
        (None, Some(octal)) if !octal.is_empty() => (octal, 8),
        _ => (digits, 10),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let number = i128::from_str_radix(digits, base).ok()?;
    i64::try_from(if is_negative { -number } else { number }).ok()
}

/// Parses a whole or floating-point number.
pub(super) fn number(text: &str) -> Option<f64> {
    if let Some(integer) = integer(text) {
        return Some(integer as f64);
    }
    // Rust also parses `inf` and `nan`, which are texts in YAML.
    let is_number = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | 'e' | 'E' | '+' | '-' | '_');
    let has_digit = text.contains(|letter: char| letter.is_ascii_digit());
    if !has_digit || !text.chars().all(is_number) {
        return None;
    }
    text.replace('_', "").parse().ok()
}

/// A part of a document. Text scalars keep their text.
enum Node {
    Null,
    /// A scalar that `serde_saphyr` parses as a number or boolean.
    Typed,
    Text(String),
    List(Vec<Spanned<Node>>),
    Fields(Vec<(String, Spanned<Node>)>),
}

/// Converts a node. The text of a number or a boolean is read from the source again.
fn value(node: Spanned<Node>, source: &str) -> Value {
    match node.value {
        Node::Null => Value::Null,
        Node::Text(text) => Value::String(text),
        Node::Typed => {
            let span = node.defined.span();
            let byte_range = span.byte_offset().zip(span.byte_len());
            let text = byte_range.and_then(|(start, length)| {
                let (start, length) = (usize::try_from(start).ok()?, usize::try_from(length).ok()?);
                source.get(start..start.checked_add(length)?)
            });
            Value::String(text.unwrap_or_default().trim().to_owned())
        }
        Node::List(items) => items.into_iter().map(|item| value(item, source)).collect(),
        Node::Fields(fields) => {
            let fields = fields.into_iter().map(|(name, node)| (name, value(node, source)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyNode)
    }
}

struct AnyNode;

impl<'de> Visitor<'de> for AnyNode {
    type Value = Node;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("YAML")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Typed)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Typed)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Typed)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Node, E> {
        Ok(Node::Typed)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Node, E> {
        Ok(Node::Typed)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Typed)
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Node, E> {
        Ok(Node::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Node, A::Error> {
        let mut read = Vec::new();
        while let Some(field) = fields.next_entry()? {
            read.push(field);
        }
        Ok(Node::Fields(read))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Scalars, and the text that Go's `yaml.v2` puts into a field of type `string`.
    pub(in crate::app::foreign) const SCALARS: &[(&str, &str)] = &[
        ("0123456", "0123456"),
        ("no", "no"),
        ("1.10", "1.10"),
        ("y", "y"),
        ("n", "n"),
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("NO", "NO"),
        ("Yes", "Yes"),
        ("TRUE", "TRUE"),
        ("false", "false"),
        ("null", ""),
        ("~", ""),
        ("Null", ""),
        ("NULL", ""),
        ("1e3", "1e3"),
        ("0x1F", "0x1F"),
        ("0o17", "0o17"),
        ("0b101", "0b101"),
        ("010", "010"),
        ("08", "08"),
        ("0010", "0010"),
        ("12345678901234567890123", "12345678901234567890123"),
        (".inf", ".inf"),
        ("-.inf", "-.inf"),
        (".nan", ".nan"),
        ("+.5", "+.5"),
        ("1_000", "1_000"),
        ("1.", "1."),
        (".5", ".5"),
        ("-0", "-0"),
        ("+1", "+1"),
        ("0", "0"),
        ("-1", "-1"),
        ("1e400", "1e400"),
        ("0x", "0x"),
        ("0xg", "0xg"),
        ("12e03", "12e03"),
        ("685230.15", "685230.15"),
        ("190:20:30", "190:20:30"),
        ("1:20", "1:20"),
        ("2001-12-14", "2001-12-14"),
        ("2001-12-14T21:59:43.10Z", "2001-12-14T21:59:43.10Z"),
        ("=", "="),
        ("true1", "true1"),
        ("nope", "nope"),
        ("1.2.3", "1.2.3"),
        ("v1.0", "v1.0"),
        ("--", "--"),
        ("a:b", "a:b"),
        ("http://x:80/", "http://x:80/"),
        ("\"0123\"", "0123"),
        ("'0123'", "0123"),
        ("\"no\"", "no"),
        ("'null'", "null"),
        ("\"~\"", "~"),
        ("\"\"", ""),
        ("''", ""),
        ("!!str 12", "12"),
        ("!!str null", "null"),
        ("!!str no", "no"),
        ("1.0", "1.0"),
        ("007", "007"),
        ("0.10", "0.10"),
        ("1E5", "1E5"),
        ("-1_0.5", "-1_0.5"),
        ("0xDEADBEEF", "0xDEADBEEF"),
        ("\"a\\tb\"", "a\tb"),
        ("'it''s'", "it's"),
        ("a b", "a b"),
        ("\"\\u00e9\"", "\u{e9}"),
        ("\u{e9}", "\u{e9}"),
        ("Infinity", "Infinity"),
        ("NaN", "NaN"),
        ("inf", "inf"),
        ("+", "+"),
        ("-1e-3", "-1e-3"),
        ("9223372036854775808", "9223372036854775808"),
        ("-9223372036854775809", "-9223372036854775809"),
        ("18446744073709551616", "18446744073709551616"),
    ];

    #[test]
    fn texts_of_other_types_are_read_as_in_yaml() {
        for (text, expected) in [
            ("12", Some(12)),
            ("-1_000", Some(-1000)),
            ("0x1F", Some(31)),
            ("010", Some(8)),
            ("0o17", Some(15)),
            ("0b11", Some(3)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("08", None),
            ("0x-1", None),
            ("1.0", None),
            ("", None),
            ("0", Some(0)),
        ] {
            assert_eq!(integer(text), expected, "{text}");
        }
        assert_eq!((truth("On"), truth("n"), truth("1")), (Some(true), Some(false), None));
        assert_eq!(
            (number("1.5e3"), number("0x10"), number("inf"), number("-")),
            (Some(1500.0), Some(16.0), None, None)
        );
    }
}
