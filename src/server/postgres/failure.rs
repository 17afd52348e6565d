//! Errors in the form of PostgreSQL: severity, code and text.
//!
//! In: errors of the query layer and of the protocol. Out: [`Failure`], which becomes an `ErrorResponse`.

use pgwire::error::ErrorInfo;

use crate::query::QueryError;

/// Maximum size of a sent error message in bytes. A message repeats names and values that the client has sent, and they
/// may be long.
const MAX_MESSAGE: usize = 8 << 10;

/// An error with its SQLSTATE code.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message} ({code})")]
pub(super) struct Failure {
    /// True if the error ends the connection.
    pub(super) is_fatal: bool,
    /// PostgreSQL's code, the SQLSTATE.
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl Failure {
    /// Creates an error of a statement.
    pub(super) fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            is_fatal: false,
            code,
            message: message.into(),
        }
    }

    /// Creates an error that ends the connection.
    pub(super) fn fatal(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            is_fatal: true,
            ..Self::error(code, message)
        }
    }

    /// Creates the error of a message that the protocol does not allow.
    pub(super) fn protocol(message: impl Into<String>) -> Self {
        Self::fatal("08P01", message)
    }

    /// Returns the error of a query that a cancel request has stopped.
    pub(super) fn cancelled() -> Self {
        Self::error("57014", "the query was cancelled by a cancel request")
    }

    pub(super) fn info(&self) -> ErrorInfo {
        let severity = if self.is_fatal { "FATAL" } else { "ERROR" };
        let end = self.message.floor_char_boundary(MAX_MESSAGE);
        let message = self.message.get(..end).unwrap_or_default();
        ErrorInfo::new(severity.to_owned(), self.code.to_owned(), message.to_owned())
    }
}

impl From<QueryError> for Failure {
    fn from(error: QueryError) -> Self {
        let message = error.to_string();
        let code = match &error {
            QueryError::InvalidArgument(text) => code_of(text),
            QueryError::Limit(_) => "53400",
            QueryError::Busy(_) => "53000",
            QueryError::Timeout(_) | QueryError::Cancelled => "57014",
            QueryError::Internal(_) => "XX000",
        };
        Self::error(code, message)
    }
}

fn code_of(text: &str) -> &'static str {
    let lower = text.to_lowercase();
    if lower.contains("sql here is read-only") {
        "25006"
    } else if lower.contains("table") && lower.contains("not found") {
        "42P01"
    } else if lower.contains("no field named") {
        "42703"
    } else if lower.contains("invalid function") || lower.contains("function") && lower.contains("not found") {
        "42883"
    } else if lower.contains("sql parser error") || lower.starts_with("cannot parse the query") {
        "42601"
    } else if lower.contains("divide by zero") {
        "22012"
    } else {
        "42000"
    }
}
