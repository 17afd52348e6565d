//! Converts a Connect error to an HTTP response: a status, `{"code", "message", "details"}`, and `Retry-After` if the
//! server is unavailable or a limit is reached. The conversion also logs the error.

use axum_core::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};

use super::{Code, ConnectError};

/// Value of `Retry-After`: seconds until a client may retry.
const RETRY_AFTER_SECONDS: &str = "1";

/// Logs a failed request: as a warning if the server failed, otherwise at debug level.
pub fn log(error: &ConnectError) {
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
