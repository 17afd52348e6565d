//! Converts errors of lower layers to Connect errors and HTTP responses.
//!
//! In: errors of the query engine and the codecs. Out: a status, `{"code", "message", "details"}`, and `Retry-After` if
//! a retry may succeed. No other module maps these errors. `wire::sink_error` converts the errors of sinks.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};

use crate::query::QueryError;
use crate::wire::connect::{Code, ConnectError};

/// Value of `Retry-After`: seconds until a client may retry.
const RETRY_AFTER_SECONDS: &str = "1";

impl From<QueryError> for ConnectError {
    fn from(error: QueryError) -> Self {
        let message = error.to_string();
        match error {
            // A retry would exceed the same limit of memory, rows or range, so the code is not `resource_exhausted`.
            QueryError::InvalidArgument(_) | QueryError::Limit(_) => ConnectError::invalid(message),
            QueryError::Timeout(_) => ConnectError::new(Code::DeadlineExceeded, message),
            QueryError::Busy(_) | QueryError::Cancelled => ConnectError::new(Code::Unavailable, message),
            QueryError::Internal(_) => ConnectError::new(Code::Internal, message),
        }
    }
}

/// Logs a failed request: as a warning if the server failed, otherwise at debug level.
pub(super) fn log(error: &ConnectError) {
    if error.status >= 500 {
        tracing::warn!(status = error.status, error = %error, "request failed");
    } else {
        tracing::debug!(status = error.status, error = %error, "request refused");
    }
}

impl IntoResponse for ConnectError {
    fn into_response(self) -> Response {
        log(&self);
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, self.to_json()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if matches!(self.code, Code::Unavailable | Code::ResourceExhausted) {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
        }
        response
    }
}
