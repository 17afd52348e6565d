//! Converts errors of the query engine to Connect errors.
//!
//! No other module maps these errors. `wire::sink_error` converts the errors of sinks, and `wire::connect` writes the
//! response.

use crate::query::QueryError;
use alluvium_wire::connect::{Code, ConnectError};

impl From<QueryError> for ConnectError {
    fn from(error: QueryError) -> Self {
        let message = error.to_string();
        match error {
            // The code `resource_exhausted` would invite a retry, but a retry would exceed the same limit of memory,
            // rows or range.
            QueryError::InvalidArgument(_) | QueryError::Limit(_) => ConnectError::invalid(message),
            QueryError::Timeout(_) => ConnectError::new(Code::DeadlineExceeded, message),
            QueryError::Busy(_) | QueryError::Cancelled => ConnectError::new(Code::Unavailable, message),
            QueryError::Internal(_) => ConnectError::new(Code::Internal, message),
        }
    }
}
