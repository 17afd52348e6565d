//! Syntax checks of Kubernetes selectors, which need no server.
//!
//! In: the text of a label or field selector. Out: nothing, or an error. The grammar is the same as in the API server.
//! Keys of field selectors differ by kind of object and are not checked.

use std::sync::Arc;

use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{FromValue, wrong};
use alluvium_lang::schema::Kind;
use alluvium_lang::value::Value;

/// The reason why a text is not a selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum SelectorError {
    #[error("there is an empty requirement before or after a comma")]
    EmptyRequirement,
    /// The parentheses do not match.
    #[error("{0}")]
    Parentheses(&'static str),
    /// The words before a list are neither `KEY in` nor `KEY notin`.
    #[error("\"{0}\": a list must follow `KEY in` or `KEY notin`")]
    List(String),
    #[error("\"{0}\": nothing may follow the list")]
    AfterList(String),
    #[error("\"{0}\" is not a whole number")]
    Number(String),
    #[error(
        "\"{0}\" is not a label key: it must have 1 to 63 letters, digits, `-`, `_` and `.`, and must begin and end \
         with a letter or digit; a DNS name and `/` may precede it"
    )]
    Key(String),
    #[error(
        "\"{0}\" is not a label value: it may have up to 63 letters, digits, `-`, `_` and `.`, and must begin and \
         end with a letter or digit"
    )]
    Value(String),
    #[error("\"{0}\" has no field before its operator")]
    NoField(String),
    #[error("\"{0}\" has no operator: a field selector consists of FIELD=VALUE and FIELD!=VALUE, separated by commas")]
    NoOperator(String),
}

/// A label selector with valid syntax: `app=shop,tier in (a, b),!canary,size>3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LabelSelector(pub(crate) Arc<str>);

/// A field selector with valid syntax: `spec.nodeName=node-1,status.phase!=Running`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldSelector(pub(crate) Arc<str>);

impl FromValue for LabelSelector {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let text = Arc::<str>::from_value(name, value)?;
        check_label(&text).map_err(wrong)?;
        Ok(Self(text))
    }
}

impl FromValue for FieldSelector {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let text = Arc::<str>::from_value(name, value)?;
        check_field(&text).map_err(wrong)?;
        Ok(Self(text))
    }
}

fn check_label(text: &str) -> Result<(), SelectorError> {
    if text.trim().is_empty() {
        return Ok(());
    }
    requirements(text)?
        .into_iter()
        .try_for_each(|requirement| label_requirement(requirement.trim()))
}

fn check_field(text: &str) -> Result<(), SelectorError> {
    if text.trim().is_empty() {
        return Ok(());
    }
    for requirement in text.split(',') {
        let parts = ["!=", "==", "="]
            .iter()
            .find_map(|operator| requirement.split_once(operator));
        match parts {
            Some((key, _)) if !key.trim().is_empty() => {}
            Some(_) => return Err(SelectorError::NoField(requirement.to_owned())),
            None => return Err(SelectorError::NoOperator(requirement.to_owned())),
        }
    }
    Ok(())
}

/// Splits a selector at the commas outside parentheses.
fn requirements(text: &str) -> Result<Vec<&str>, SelectorError> {
    let parentheses_error = |problem| Err(SelectorError::Parentheses(problem));
    let (mut parts, mut start, mut inside) = (Vec::new(), 0, false);
    for (index, letter) in text.char_indices() {
        match letter {
            '(' if inside => return parentheses_error("there is a `(` inside parentheses"),
            '(' => inside = true,
            ')' if !inside => return parentheses_error("there is a `)` without its `(`"),
            ')' => inside = false,
            ',' if !inside => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    if inside {
        return parentheses_error("there is a `(` without its `)`");
    }
    parts.push(&text[start..]);
    Ok(parts)
}

fn label_requirement(text: &str) -> Result<(), SelectorError> {
    if text.is_empty() {
        return Err(SelectorError::EmptyRequirement);
    }
    if let Some(key) = text.strip_prefix('!') {
        return check_key(key.trim());
    }
    if let Some((head, list)) = text.split_once('(') {
        let words: Vec<&str> = head.split_whitespace().collect();
        let [key, "in" | "notin"] = words.as_slice() else {
            return Err(SelectorError::List(text.to_owned()));
        };
        check_key(key)?;
        let Some(list) = list.strip_suffix(')') else {
            return Err(SelectorError::AfterList(text.to_owned()));
        };
        return list.split(',').try_for_each(|value| check_value(value.trim()));
    }
    for operator in ["!=", "==", "=", ">", "<"] {
        if let Some((key, value)) = text.split_once(operator) {
            check_key(key.trim())?;
            let value = value.trim();
            return match operator {
                ">" | "<" if value.parse::<i64>().is_err() => Err(SelectorError::Number(value.to_owned())),
                _ => check_value(value),
            };
        }
    }
    check_key(text)
}

/// Checks `[prefix/]name`, where the prefix is a DNS name.
fn check_key(key: &str) -> Result<(), SelectorError> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let is_dns = |prefix: &str| {
        prefix.len() <= 253
            && prefix.split('.').all(|part| {
                let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
                !part.is_empty() && part.chars().all(plain) && !part.starts_with('-') && !part.ends_with('-')
            })
    };
    if !name.is_empty() && is_name(name) && prefix.is_none_or(is_dns) {
        return Ok(());
    }
    Err(SelectorError::Key(key.to_owned()))
}

fn check_value(value: &str) -> Result<(), SelectorError> {
    if value.is_empty() || is_name(value) {
        return Ok(());
    }
    Err(SelectorError::Value(value.to_owned()))
}

fn is_name(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric();
    text.len() <= 63
        && text
            .chars()
            .all(|letter| plain(letter) || matches!(letter, '-' | '_' | '.'))
        && text.starts_with(plain)
        && text.ends_with(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_judged_as_the_api_server_does() {
        for selector in [
            "",
            "app=shop",
            "app == shop, tier!=back",
            "tier in (a, b),!canary",
            "tier notin (a),example.com/size>3,zone",
            "app=",
        ] {
            assert_eq!(check_label(selector), Ok(()), "{selector}");
        }
        for (selector, message) in [
            ("app=shop,", "before or after a comma"),
            ("tier in (a", "without its `)`"),
            ("tier in a)", "without its `(`"),
            ("tier within (a)", "a list must follow"),
            ("-app=shop", "is not a label key"),
            ("Example.Com/app=shop", "is not a label key"),
            ("app=a b", "is not a label value"),
            ("size>many", "not a whole number"),
        ] {
            let error = check_label(selector).unwrap_err().to_string();
            assert!(error.contains(message), "{selector}: {error}");
        }
        assert_eq!(check_field("spec.nodeName=node-1,status.phase!=Running"), Ok(()));
        let refused = |text: &str| check_field(text).unwrap_err().to_string();
        assert!(refused("metadata.name").contains("no operator"));
        assert!(refused("=x").contains("no field"));
    }
}
