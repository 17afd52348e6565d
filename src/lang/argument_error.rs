//! Errors in the arguments of a block: the path in the body, the problem, and the accepted values.
//!
//! They are created where a body is converted to a typed value. The caller, which has the text, turns them into
//! diagnostics with positions.

/// An argument's value is not acceptable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ArgumentError {
    /// Path of the attribute or block at fault: `regex`, `rule[2].action`, `endpoint[0].url`; empty for the whole body.
    pub path: String,
    /// The problem and the accepted values, in lower case.
    pub message: String,
}

impl ArgumentError {
    /// An error at `path`, which may be empty.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }

    /// Returns the same error with a path relative to the enclosing body.
    pub(super) fn within(mut self, outer: &str) -> Self {
        let separator = if self.path.is_empty() || self.path.starts_with('[') {
            ""
        } else {
            "."
        };
        self.path = format!("{outer}{separator}{}", self.path);
        self
    }
}

/// All errors of a body. Empty if the known values have no errors but some values are not known yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArgumentErrors(pub Vec<ArgumentError>);

impl From<ArgumentError> for ArgumentErrors {
    fn from(error: ArgumentError) -> Self {
        Self(vec![error])
    }
}

impl ArgumentErrors {
    /// Returns the same errors with paths relative to the enclosing body.
    pub(super) fn within(mut self, outer: &str) -> Self {
        self.0 = self.0.into_iter().map(|error| error.within(outer)).collect();
        self
    }
}
