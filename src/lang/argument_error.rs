//! What is wrong with the arguments of a block: where in the body, and what would be right.
//!
//! Made where a typed value is made of a body; turned into a diagnostic with a place in the text by who has the text.

/// An argument's value is not acceptable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ArgumentError {
    /// Path of the attribute or block at fault: `regex`, `rule[2].action`, `endpoint[0].url`; empty for the whole body.
    pub path: String,
    /// What is wrong and what would be right, lower case.
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

    /// The same error as the body around sees it.
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

/// All that is wrong with a body. Empty when nothing is, as far as its values are known, and some are not known yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArgumentErrors(pub Vec<ArgumentError>);

impl From<ArgumentError> for ArgumentErrors {
    fn from(error: ArgumentError) -> Self {
        Self(vec![error])
    }
}

impl ArgumentErrors {
    /// The same errors as the body around sees them.
    pub(super) fn within(mut self, outer: &str) -> Self {
        self.0 = self.0.into_iter().map(|error| error.within(outer)).collect();
        self
    }
}
