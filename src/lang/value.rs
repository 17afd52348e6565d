//! Values of the configuration language: the results of expressions, and the data that components exchange.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::fields::SortedFields;

/// A value. A clone is cheap, since clones share everything large.
#[derive(Clone, Default)]
pub enum Value {
    /// The absence of a value: `null`.
    #[default]
    Null,
    /// A boolean: `true` or `false`.
    Bool(bool),
    /// A number of one of Go's three kinds.
    Number(Number),
    /// A string that may be shown.
    String(Arc<str>),
    /// A string that is never shown.
    Secret(Arc<str>),
    /// A list of values of any types.
    Array(Arc<[Value]>),
    /// An object or map, sorted by key so that output is stable.
    Object(Arc<Fields>),
    /// A function of the standard library.
    Function(&'static Function),
    /// An opaque value of the program, such as a receiver.
    Capsule(Capsule),
}

/// The fields of an object or of a body.
pub type Fields = SortedFields<Value>;

/// A number. As in Alloy, it has one of three kinds, and is converted where an attribute requires another kind.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// A whole number that fits `i64`.
    Int(i64),
    /// Unsigned, for values beyond `i64`.
    Uint(u64),
    /// A number with a fraction.
    Float(f64),
}

/// A function of the standard library; compared by its name (in the language, functions are never equal).
#[derive(Clone, Copy)]
pub struct Function {
    /// Full name, such as `string.join`.
    pub name: &'static str,
    /// Evaluates the call. The error has the index of the argument at fault, from 0, and the reason.
    pub call: fn(&[Value]) -> Result<Value, FunctionError>,
}

/// The reason why a call of a function failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct FunctionError {
    /// Index of the argument at fault; `None` for the call as a whole.
    pub argument: Option<usize>,
    /// The problem, in lower case.
    pub message: String,
}

/// An opaque value that components pass to each other, such as a receiver. Clones share the value, and two capsules are
/// equal if they share it.
#[derive(Clone)]
pub struct Capsule(Arc<Content<dyn Any + Send + Sync>>);

/// The kind and the value of a capsule.
struct Content<T: ?Sized> {
    kind: &'static str,
    value: T,
}

impl Capsule {
    /// Wraps `value` (often itself an `Arc<dyn Trait>`).
    pub fn new<T: Any + Send + Sync>(kind: &'static str, value: T) -> Self {
        let content: Arc<Content<T>> = Arc::new(Content { kind, value });
        Self(content)
    }

    /// Returns the name of its kind in schemas ([`crate::schema::Kind::Capsule`]).
    pub fn kind(&self) -> &'static str {
        self.0.kind
    }

    /// Returns the address of the value. Capsules with different values have different addresses.
    pub fn address(&self) -> *const () {
        Arc::as_ptr(&self.0).cast()
    }

    /// Returns the wrapped value if it is a `T`.
    pub fn downcast<T: Any + Send + Sync + Clone>(&self) -> Option<T> {
        self.0.value.downcast_ref::<T>().cloned()
    }
}

impl PartialEq for Capsule {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Value {
    /// Creates a string value with this text.
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Self::String(text.into())
    }

    /// Creates a list value of these items.
    pub fn array(items: impl IntoIterator<Item = Value>) -> Self {
        Self::Array(items.into_iter().collect())
    }

    /// Creates an object value with these fields.
    pub fn object<K: Into<Arc<str>>>(fields: impl IntoIterator<Item = (K, Value)>) -> Self {
        Self::Object(Arc::new(
            fields.into_iter().map(|(key, value)| (key.into(), value)).collect(),
        ))
    }

    /// Returns the name that Alloy's messages use for the kind of the value.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Number(_) => "number",
            Self::String(_) => "string",
            Self::Secret(_) => "secret",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
            Self::Function(_) => "function",
            Self::Capsule(_) => "capsule",
        }
    }
}

/// Deep equality for the engine, which compares exports for changes. Numbers of different kinds are compared by value,
/// functions by name, and capsules by identity.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(left), Self::Bool(right)) => left == right,
            (Self::Number(left), Self::Number(right)) => left == right,
            (Self::String(left), Self::String(right)) | (Self::Secret(left), Self::Secret(right)) => left == right,
            (Self::Array(left), Self::Array(right)) => Arc::ptr_eq(left, right) || left == right,
            (Self::Object(left), Self::Object(right)) => Arc::ptr_eq(left, right) || left == right,
            (Self::Function(left), Self::Function(right)) => left.name == right.name,
            (Self::Capsule(left), Self::Capsule(right)) => left == right,
            _ => false,
        }
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        match (*self, *other) {
            (Self::Int(left), Self::Int(right)) => left == right,
            (Self::Uint(left), Self::Uint(right)) => left == right,
            (Self::Int(int), Self::Uint(uint)) | (Self::Uint(uint), Self::Int(int)) => {
                u64::try_from(int).is_ok_and(|int| int == uint)
            }
            (left, right) => left.as_f64() == right.as_f64(),
        }
    }
}

impl Number {
    /// Returns the value as a float, rounded if it has more than 53 significant bits.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Uint(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

/// Shows a placeholder instead of a secret, the name of a function, and the kind of a capsule.
impl fmt::Debug for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("null"),
            Self::Bool(value) => write!(out, "{value}"),
            Self::Number(value) => write!(out, "{value:?}"),
            Self::String(value) => write!(out, "{value:?}"),
            Self::Secret(_) => out.write_str("(secret)"),
            Self::Array(items) => out.debug_list().entries(items.iter()).finish(),
            Self::Object(fields) => out.debug_map().entries(fields.iter()).finish(),
            Self::Function(function) => write!(out, "function({})", function.name),
            Self::Capsule(capsule) => write!(out, "capsule({})", capsule.kind()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Discoveries hold hundreds of thousands of values.
    #[test]
    fn a_value_has_three_words() {
        assert_eq!(size_of::<Value>(), 3 * size_of::<u64>());
    }
}
