//! Errors of calls to a web API: an invalid or failed request, an unusable response, or a list that is too long.

use std::str::Utf8Error;
use std::time::Duration;

use http::StatusCode;
use http::header::InvalidHeaderValue;

use alluvium_wire::client::{BodyError, ClientError, SendError, error_chain};

/// The reason why a web API returned no usable result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// The request is invalid and was not sent.
    #[error("cannot build the request: {}", error_chain(.0))]
    Build(#[source] reqwest::Error),
    /// A value of the configuration or a credential cannot be sent as a header.
    #[error("{subject} contains characters that are not allowed in an HTTP header")]
    Header {
        subject: &'static str,
        source: InvalidHeaderValue,
    },
    /// The request failed, or the server refused it.
    #[error("request to {url} failed: {source}")]
    Request {
        /// URL of the request without secrets.
        url: String,
        source: RequestError,
    },
    /// The response cannot be parsed.
    #[error("{url} answered with {source}")]
    Response {
        /// URL of the request without secrets.
        url: String,
        source: ResponseError,
    },
    /// The response has no list at this path.
    #[error("the response has no list {0}")]
    NoList(String),
    /// A list has more items than allowed.
    #[error("a list has more than {0} items")]
    TooManyItems(usize),
    /// A list has more pages than allowed.
    #[error("a list has more than {0} pages")]
    TooManyPages(usize),
}

/// The reason why a request received no response with a success status.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The credentials of the client could not be obtained.
    #[error(transparent)]
    Credentials(ClientError),
    /// The server could not be reached, the connection broke, or a redirect could not be followed. The error does not
    /// contain the URL.
    #[error(transparent)]
    Send(SendError),
    /// The body of the response could not be read.
    #[error(transparent)]
    Body(BodyError),
    /// There was no complete response within the timeout.
    #[error("no response within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The server refused the request without a reason.
    #[error("the server answered {0}")]
    Status(StatusCode),
    /// The server refused the request.
    #[error("the server answered {status}: {reason}")]
    Refused {
        /// Status of the response.
        status: StatusCode,
        /// The reason in the body of the response, possibly shortened.
        reason: String,
    },
}

/// The reason why a response with a success status cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResponseError {
    /// The body is invalid JSON, or not the expected value. The error contains line and column.
    #[error("invalid JSON: {0}")]
    Json(#[source] serde_json::Error),
    /// The body is invalid XML, or not the expected value.
    #[error("invalid XML: {0}")]
    Xml(#[source] quick_xml::DeError),
    /// The body should be XML, but is not UTF-8.
    #[error("XML that is not UTF-8")]
    Encoding(#[source] Utf8Error),
}
