//! Responses of unary gRPC as HTTP responses: a message followed by its status, or a status alone. Also adapts
//! responses to HTTP/1.1 and to gRPC-Web.
//!
//! In: encoded messages and codes. Out: responses. `wire::grpc` reads the requests. Protocol:
//! <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>.

use std::convert::Infallible;

use axum::body::Body;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::header::{CONTENT_TYPE, TE, TRAILER};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Version};
use http_body_util::BodyExt as _;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use tonic_web::GrpcWebLayer;
use tower::{Layer as _, ServiceExt as _, service_fn};

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// ASCII characters of a message that are percent-encoded. Characters that are not ASCII are always encoded.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

/// Maximum length of an error message in bytes. The message is sent as a header, where percent-encoding may triple its
/// length, and some clients (hyper) accept only 16 KiB of headers.
pub const MESSAGE_BYTES: usize = 2 << 10;

/// Maximum length in bytes of a status with details, before base64. Longer details are omitted.
const STATUS_BYTES: usize = 6 << 10;

/// Builds a successful response. `body` is the message with gRPC's length prefix, compressed if `compression` names an
/// encoding.
pub fn success(body: Body, compression: Option<&'static str>) -> Response {
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

/// Builds a failed response: the body is empty, and the headers contain the status with the error message. `details` is
/// the encoded `google.rpc.Status`, or empty.
pub fn failure(code: i32, message: &str, details: &[u8]) -> Response {
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

/// Returns true when the client can read trailers: over HTTP/2, or over HTTP/1.1 with `TE: trailers`.
pub fn takes_trailers<B>(request: &Request<B>) -> bool {
    let values = request.headers().get_all(TE).iter();
    let mut tokens = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    match request.version() {
        Version::HTTP_2 => true,
        Version::HTTP_11 => tokens.any(|token| token.trim().eq_ignore_ascii_case("trailers")),
        _ => false,
    }
}

/// Adapts a successful response to HTTP/1.1: a header announces the trailers, and the body has no stated length.
pub fn announced(response: Response) -> Response {
    // A body with mapped frames does not state its length, so hyper sends it in chunks.
    let mut response = response.map(|body| Body::new(body.map_frame(|frame| frame)));
    let status = HeaderValue::from_static("grpc-status");
    response.headers_mut().insert(TRAILER, status);
    response
}

/// Handles a gRPC-Web call with `answer`, a handler of gRPC calls. The trailers become part of the body, and the whole
/// body is base64 if the client requests it.
pub async fn web<Work>(request: Request<Body>, answer: impl Fn(Request<Body>) -> Work) -> Response
where
    Work: Future<Output = Response>,
{
    let service = service_fn(|request: Request<tonic::body::Body>| async {
        Ok::<_, Infallible>(answer(request.map(Body::new)).await)
    });
    let Ok(response) = GrpcWebLayer::new().layer(service).oneshot(request).await;
    // The trailers are part of the body here, but the length that tonic-web reports does not include them, and hyper
    // would cut them off. A stream has no such length.
    response.map(|body| Body::from_stream(body.into_data_stream()))
}

#[cfg(test)]
mod tests {
    use axum::body::HttpBody as _;

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
        let long_failure = failure(3, &"\u{e4}".repeat(5_000), &[0; STATUS_BYTES + 1]);
        assert!(!long_failure.headers().contains_key("grpc-status-details-bin"));
        assert_eq!(long_failure.headers()["grpc-message"].len(), 3 * MESSAGE_BYTES);
    }

    #[tokio::test]
    async fn over_http_1_a_status_is_announced_and_the_message_has_no_length() {
        let response = announced(success("message".into(), None));
        assert_eq!(response.headers()["trailer"], "grpc-status");
        assert_eq!(response.body().size_hint().exact(), None);
        let body = response.into_body().collect().await.unwrap();
        assert_eq!(body.trailers().unwrap()["grpc-status"], "0");
        assert_eq!(body.to_bytes(), "message");
    }

    #[test]
    fn who_cannot_read_trailers_is_told() {
        for (version, te, takes) in [
            (Version::HTTP_2, None, true),
            (Version::HTTP_11, Some("gzip, Trailers"), true),
            (Version::HTTP_11, Some("gzip"), false),
            (Version::HTTP_11, None, false),
            (Version::HTTP_10, Some("trailers"), false),
        ] {
            let mut request = Request::new(());
            *request.version_mut() = version;
            if let Some(te) = te {
                request.headers_mut().insert(TE, HeaderValue::from_static(te));
            }
            assert_eq!(takes_trailers(&request), takes, "{version:?} {te:?}");
        }
    }
}
