//! Errors in the arguments of a block: the path in the body, the problem, and the accepted values.
//!
//! The conversion of a body to a typed value creates these errors. The caller of the conversion has the text and turns
//! the errors into diagnostics with positions.

/// An error about the value of an argument, or about a whole body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ArgumentError {
    /// Path of the attribute or block at fault: `regex`, `rule[2].action`, `endpoint[0].url`; empty for the whole body.
    pub path: String,
    /// The problem and the accepted values, in lower case.
    pub message: String,
}

impl ArgumentError {
    /// Creates an error at `path`, which may be empty.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }

    /// Returns the same error with a path relative to the enclosing body.
    pub(super) fn in_body(mut self, outer: &str) -> Self {
        let separator = if self.path.is_empty() || self.path.starts_with('[') {
            ""
        } else {
            "."
        };
        self.path = format!("{outer}{separator}{}", self.path);
        self
    }
}

/// All errors of a body. The list is empty if the conversion failed only because some values are not known yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArgumentErrors(pub Vec<ArgumentError>);

impl From<ArgumentError> for ArgumentErrors {
    fn from(error: ArgumentError) -> Self {
        Self(vec![error])
    }
}

impl ArgumentErrors {
    /// Returns the same errors with paths relative to the enclosing body.
    pub(super) fn in_body(mut self, outer: &str) -> Self {
        self.0 = self.0.into_iter().map(|error| error.in_body(outer)).collect();
        self
    }
}
