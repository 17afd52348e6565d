//! Types of attributes: conversion of values to Rust types, and the errors for values that do not fit.
//!
//! In: a value that passed the schema and therefore has the right kind. Out: the typed value, or an error. A user may
//! write null for any attribute; null becomes the zero value of the attribute's type.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::argument_error::ArgumentError;
use crate::schema::Kind;
use crate::value::{Number, Value};

/// The type of an attribute.
pub trait FromValue: Sized {
    /// The type in the configuration language.
    const KIND: Kind;
    /// True if the attribute may be omitted although it has no default.
    const IS_OPTIONAL: bool = false;

    /// Converts the value of the attribute `name`. The path of an error is relative to the attribute:
    /// it is empty, or for example `[2]` for an item of a list.
    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError>;
}

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(pub Arc<str>);

impl Secret {
    /// Returns the text without the line breaks at its end. The content of a file usually ends with a line break, which
    /// is not part of the secret. Spaces are part of it.
    pub fn without_line_break(&self) -> &str {
        self.0.trim_end_matches(['\r', '\n'])
    }
}

/// Prints a placeholder instead of the text.
impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("(secret)")
    }
}

/// A string or a secret, as given.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionalSecret(pub Value);

/// A duration of more than zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval(Duration);

/// A whole number of at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Positive(u64);

/// A whole number of at least zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Natural(u64);

/// A number of bytes, written as a number or as a text such as `512MiB` or `1GB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(u64);

/// A string, list or map that is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotEmpty<T>(pub T);

impl Interval {
    /// Returns the duration, which is never zero.
    pub fn get(self) -> Duration {
        self.0
    }
}

impl Positive {
    /// Returns the number, which is at least one. A number that does not fit into `usize` becomes `usize::MAX`.
    pub fn get(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl Natural {
    /// Returns the number, which may be zero.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl ByteSize {
    /// Returns the size as a number of bytes.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// Declares an enum whose variants are the allowed texts of an attribute.
#[macro_export]
macro_rules! choices {
    (
        $(#[doc = $about:literal])*
        $vis:vis enum $name:ident {
            $( $(#[doc = $doc:literal])* $variant:ident = $text:literal ),+ $(,)?
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name {
            $( $(#[doc = $doc])* #[doc = concat!("Written `", $text, "`.")] $variant, )+
        }

        impl $name {
            /// Each choice with its text.
            const ALL: &'static [(&'static str, Self)] = &[ $( ($text, Self::$variant) ),+ ];
        }

        impl $crate::attribute::FromValue for $name {
            const KIND: $crate::schema::Kind = $crate::schema::Kind::String;

            fn from_value(
                name: &str,
                value: &$crate::value::Value,
            ) -> Result<Self, $crate::argument_error::ArgumentError> {
                $crate::attribute::choose(name, value, Self::ALL)
            }
        }
    };
}
pub use choices;

/// Returns the choice whose text is `value`.
pub fn choose<T: Copy>(name: &str, value: &Value, choices: &[(&str, T)]) -> Result<T, ArgumentError> {
    let argument = text(value).unwrap_or_default();
    let entry = choices.iter().find(|(choice, _)| *choice == &*argument);
    entry.map(|(_, chosen)| *chosen).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
        wrong(format!(
            "unknown {name} \"{argument}\": must be one of {}",
            names.join(", ")
        ))
    })
}

/// Returns the text of a string or secret.
pub fn text(value: &Value) -> Option<Arc<str>> {
    match value {
        Value::String(text) | Value::Secret(text) => Some(text.clone()),
        _ => None,
    }
}

/// Creates an error about the attribute as a whole.
pub fn wrong(problem: impl fmt::Display) -> ArgumentError {
    ArgumentError::new("", problem.to_string())
}

impl FromValue for bool {
    const KIND: Kind = Kind::Bool;

    fn from_value(_: &str, value: &Value) -> Result<Self, ArgumentError> {
        Ok(matches!(value, Value::Bool(true)))
    }
}

impl FromValue for i64 {
    const KIND: Kind = Kind::Int;

    fn from_value(_: &str, value: &Value) -> Result<Self, ArgumentError> {
        Ok(match value {
            Value::Number(Number::Int(number)) => *number,
            Value::Number(Number::Uint(number)) => Self::try_from(*number).unwrap_or(Self::MAX),
            Value::Number(Number::Float(number)) => *number as Self,
            _ => 0,
        })
    }
}

impl FromValue for u64 {
    const KIND: Kind = Kind::Uint;

    fn from_value(_: &str, value: &Value) -> Result<Self, ArgumentError> {
        Ok(match value {
            Value::Number(Number::Int(number)) => Self::try_from(*number).unwrap_or_default(),
            Value::Number(Number::Uint(number)) => *number,
            Value::Number(Number::Float(number)) => *number as Self,
            _ => 0,
        })
    }
}

impl FromValue for f64 {
    const KIND: Kind = Kind::Float;

    fn from_value(_: &str, value: &Value) -> Result<Self, ArgumentError> {
        Ok(match value {
            Value::Number(number) => number.as_f64(),
            _ => 0.0,
        })
    }
}

impl FromValue for Positive {
    const KIND: Kind = Kind::Int;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let number = u64::try_from(i64::from_value(name, value)?)
            .ok()
            .filter(|number| *number > 0);
        number
            .map(Self)
            .ok_or_else(|| wrong(format!("{name} must be greater than 0")))
    }
}

impl FromValue for Natural {
    const KIND: Kind = Kind::Int;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let number = u64::try_from(i64::from_value(name, value)?);
        number
            .map(Self)
            .map_err(|_| wrong(format!("{name} must not be negative")))
    }
}

impl FromValue for ByteSize {
    const KIND: Kind = Kind::Any;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let bytes = match value {
            Value::Null => Some(0),
            Value::Number(Number::Int(number)) => u64::try_from(*number).ok(),
            Value::Number(Number::Uint(number)) => Some(*number),
            Value::String(text) => parse_bytes(text),
            _ => None,
        };
        bytes.map(Self).ok_or_else(|| {
            wrong(format!(
                "{name} must be a number of bytes or a text such as \"512MiB\" or \"1GB\""
            ))
        })
    }
}

/// Parses a number of bytes such as `512MiB` or `1GB`.
fn parse_bytes(text: &str) -> Option<u64> {
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

impl FromValue for Arc<str> {
    const KIND: Kind = Kind::String;

    fn from_value(_: &str, value: &Value) -> Result<Self, ArgumentError> {
        Ok(text(value).unwrap_or_default())
    }
}

impl FromValue for PathBuf {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        Arc::<str>::from_value(name, value).map(|path| Self::from(&*path))
    }
}

impl FromValue for Secret {
    const KIND: Kind = Kind::Secret;

    fn from_value(_: &str, value: &Value) -> Result<Self, ArgumentError> {
        Ok(Self(text(value).unwrap_or_default()))
    }
}

impl FromValue for OptionalSecret {
    const KIND: Kind = Kind::OptionalSecret;

    fn from_value(_: &str, value: &Value) -> Result<Self, ArgumentError> {
        Ok(Self(value.clone()))
    }
}

impl FromValue for Duration {
    const KIND: Kind = Kind::Duration;

    fn from_value(_: &str, value: &Value) -> Result<Self, ArgumentError> {
        let parsed = text(value).and_then(|text| alluvium_base::duration::parse(&text).ok());
        Ok(parsed.unwrap_or_default())
    }
}

impl FromValue for Interval {
    const KIND: Kind = Kind::Duration;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let duration = Duration::from_value(name, value)?;
        if duration.is_zero() {
            return Err(wrong(format!("{name} must be greater than 0")));
        }
        Ok(Self(duration))
    }
}

impl FromValue for Value {
    const KIND: Kind = Kind::Any;

    fn from_value(_: &str, value: &Value) -> Result<Self, ArgumentError> {
        Ok(value.clone())
    }
}

/// `None` if the attribute is absent, null or an empty text.
impl<T: FromValue> FromValue for Option<T> {
    const KIND: Kind = T::KIND;
    const IS_OPTIONAL: bool = true;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        match value {
            Value::Null => Ok(None),
            Value::String(text) | Value::Secret(text) if text.is_empty() => Ok(None),
            value => T::from_value(name, value).map(Some),
        }
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    const KIND: Kind = Kind::List(&T::KIND);

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let Value::Array(items) = value else {
            return Ok(Self::new());
        };
        let read = |(index, item)| {
            T::from_value(name, item).map_err(|error| ArgumentError {
                path: format!("[{index}]{}", error.path),
                ..error
            })
        };
        items.iter().enumerate().map(read).collect()
    }
}

impl<T: FromValue> FromValue for BTreeMap<Arc<str>, T> {
    const KIND: Kind = Kind::Map(&T::KIND);

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let Value::Object(fields) = value else {
            return Ok(Self::new());
        };
        let read = |(key, item): (&Arc<str>, &Value)| Ok((key.clone(), T::from_value(name, item)?));
        fields.iter().map(read).collect()
    }
}

impl<T: FromValue> FromValue for NotEmpty<T> {
    const KIND: Kind = T::KIND;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let is_empty = match value {
            Value::Null => true,
            Value::String(text) | Value::Secret(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        if is_empty {
            return Err(wrong(format!("{name} must not be empty")));
        }
        T::from_value(name, value).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_or_texts() {
        let size = |value: Value| ByteSize::from_value("max_bytes", &value).map(ByteSize::get);
        for (text, bytes) in [("1GiB", 1 << 30), ("1.5 MB", 1_500_000), ("2097152", 2 << 20)] {
            assert_eq!(size(Value::string(text)), Ok(bytes), "{text}");
        }
        assert_eq!(size(Value::Number(Number::Int(4 << 20))), Ok(4 << 20));
        for text in ["", "MiB", "1x", "-1"] {
            let message = size(Value::string(text)).unwrap_err().message;
            assert!(message.contains("must be a number of bytes"), "{text}: {message}");
        }
    }

    #[test]
    fn numbers_below_the_least_are_refused_by_name() {
        let number = |number| Value::Number(Number::Int(number));
        assert_eq!(Positive::from_value("n", &number(1)).map(Positive::get), Ok(1));
        let zero = Positive::from_value("n", &number(0)).unwrap_err();
        assert_eq!(zero.message, "n must be greater than 0");
        let negative = Natural::from_value("n", &number(-1)).unwrap_err();
        assert_eq!(negative.message, "n must not be negative");
    }

    #[test]
    fn items_of_lists_are_refused_at_their_place() {
        let list = Value::array([Value::string("a"), Value::string("")]);
        let error = Vec::<NotEmpty<Arc<str>>>::from_value("names", &list).unwrap_err();
        assert_eq!(
            (error.path.as_str(), error.message.as_str()),
            ("[1]", "names must not be empty")
        );
    }

    #[test]
    fn a_secret_does_not_show_itself() {
        let secret = Secret::from_value("token", &Value::Secret("hush".into())).unwrap();
        assert_eq!(format!("{secret:?}"), "(secret)");
    }
}
