//! Answers of unary gRPC as HTTP responses: a message with its status behind it, or a status alone.
//!
//! In: encoded messages and codes. Out: responses. Reading of requests is in `wire::grpc`. Protocol:
//! <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>.

use axum::body::Body;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::BodyExt as _;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// Characters of a message that are percent-encoded, beside those that are not ASCII.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

/// Maximum length of an error message in bytes. It is sent as a header, where a byte may take three, and some clients
/// (hyper) accept 16 KiB of headers.
pub(crate) const MESSAGE_BYTES: usize = 2 << 10;

/// Maximum length of a status with details in bytes, before base64. Longer ones are omitted.
const STATUS_BYTES: usize = 6 << 10;

/// A success: `body` is the message with the bytes before it, compressed with gzip if it says so.
pub(crate) fn success(body: Body, compression: Option<&'static str>) -> Response {
    let trailers = HeaderMap::from_iter([(STATUS, HeaderValue::from_static("0"))]);
    let body = body.with_trailers(async move { Some(Ok(trailers)) });
    let mut response = Response::new(Body::new(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    if let Some(name) = compression {
        headers.insert(ENCODING, HeaderValue::from_static(name));
    }
    response
}

/// A failure: no message, the status in the headers. `details` is the encoded `google.rpc.Status`, empty for none.
pub(crate) fn failure(code: i32, message: &str, details: &[u8]) -> Response {
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(STATUS, code.into());
    let message = &message[..message.floor_char_boundary(MESSAGE_BYTES)];
    let message = utf8_percent_encode(message, ENCODED).to_string();
    if !message.is_empty()
        && let Ok(message) = message.try_into()
    {
        headers.insert(MESSAGE, message);
    }
    if !details.is_empty()
        && details.len() <= STATUS_BYTES
        && let Ok(details) = STANDARD_NO_PAD.encode(details).try_into()
    {
        headers.insert(DETAILS, details);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_success_has_its_status_behind_the_message() {
        let response = success("message".into(), Some("gzip"));
        assert_eq!(response.headers()["grpc-encoding"], "gzip");
        assert!(!response.headers().contains_key("grpc-status"));
        let body = response.into_body().collect().await.unwrap();
        assert_eq!(body.trailers().unwrap()["grpc-status"], "0");
        assert_eq!(body.to_bytes(), "message");
    }

    #[test]
    fn a_failure_has_a_short_status_in_its_headers() {
        let response = failure(3, "100 % of \u{e4}\nb", &[1, 2]);
        let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap());
        assert_eq!(header("grpc-status"), Some("3"));
        assert_eq!(header("grpc-message"), Some("100 %25 of %C3%A4%0Ab"));
        assert_eq!(header("grpc-status-details-bin"), Some("AQI"));
        let long = failure(3, &"\u{e4}".repeat(5_000), &[0; STATUS_BYTES + 1]);
        assert!(!long.headers().contains_key("grpc-status-details-bin"));
        assert_eq!(long.headers()["grpc-message"].len(), 3 * MESSAGE_BYTES);
    }
}
