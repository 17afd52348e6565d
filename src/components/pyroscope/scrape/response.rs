//! Decides whether a response is a profile.
//!
//! A body in gzip or in a textual format of Go is accepted, whatever the content type and the path are. Any other body
//! is rejected if its bytes, the content type or the path indicate HTML, JSON, text or another output of Go. Otherwise
//! the body must begin like protobuf.

use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;

use alluvium_profile::legacy;
use alluvium_wire::client::{BodyError, SendError, read_body};

/// Maximum number of bytes of a wrong response that an error message shows.
const EXCERPT_BYTES: usize = 120;

/// The reason why a scrape returned no profile.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResponseError {
    /// The connection failed or could not be opened, or a redirect could not be followed.
    #[error("cannot reach the target: {0}")]
    Send(#[source] SendError),
    /// The body could not be read completely.
    #[error("cannot reach the target: {0}")]
    Body(#[source] BodyError),
    /// The response was not complete within the timeout.
    #[error("the target did not respond within {0}")]
    Timeout(String),
    /// The response has a status other than 2xx.
    #[error("the target responded with HTTP status {0}{1}")]
    Status(String, String),
    /// The body exceeds the size limit.
    #[error("the profile is larger than the {0} bytes of max_profile_bytes")]
    TooLarge(usize),
    /// The profile exceeds the limit of samples.
    #[error("the profile has {0} samples, but the limit of max_profile_samples is {1}")]
    TooMany(u64, u64),
    /// The body contains no bytes.
    #[error("the target responded with an empty body")]
    Empty,
    /// The body is something other than a profile.
    #[error("the response is not a pprof profile but {0}")]
    NotAProfile(String),
}

/// Reads and checks the response for `path`. The body may have at most `max_bytes`.
pub(super) async fn read(response: reqwest::Response, path: &str, max_bytes: usize) -> Result<Bytes, ResponseError> {
    let status = response.status();
    let content_type = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    let body = read_body(response, max_bytes).await.map_err(|error| match error {
        BodyError::TooLong(max_bytes) => ResponseError::TooLarge(max_bytes),
        lost @ (BodyError::Lost(_) | BodyError::Encoding(_)) => ResponseError::Body(lost),
    })?;
    check_status(status, &body)?;
    check(&body, path, &content_type)?;
    Ok(body)
}

/// Refuses a response with a status other than 2xx. The error contains the beginning of the body.
pub(super) fn check_status(status: StatusCode, body: &[u8]) -> Result<(), ResponseError> {
    if status.is_success() {
        return Ok(());
    }
    let excerpt = match excerpt(body) {
        text if text.is_empty() => text,
        text => format!(": {text}"),
    };
    Err(ResponseError::Status(status.to_string(), excerpt))
}

/// Checks the bytes of a successful response.
pub(super) fn check(body: &[u8], path: &str, content_type: &str) -> Result<(), ResponseError> {
    if body.is_empty() {
        return Err(ResponseError::Empty);
    }
    if body.starts_with(&[0x1f, 0x8b]) || legacy::is_like(body) {
        return Ok(());
    }
    if let Some(description) = of_go(body, path) {
        return Err(ResponseError::NotAProfile(description.to_owned()));
    }
    let start = body.trim_ascii_start();
    let kind = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    if start.starts_with(b"<") || kind == "text/html" {
        return Err(ResponseError::NotAProfile(format!(
            "HTML; does the path belong to a web page? it starts with `{}`",
            excerpt(body)
        )));
    }
    if start.starts_with(b"{") || start.starts_with(b"[") || kind == "application/json" {
        return Err(ResponseError::NotAProfile(format!("JSON: `{}`", excerpt(body))));
    }
    if kind.starts_with("text/") {
        return Err(ResponseError::NotAProfile(format!(
            "text (content type {kind}); is the parameter debug set? it starts with `{}`",
            excerpt(body)
        )));
    }
    if !is_protobuf_start(body) {
        return Err(ResponseError::NotAProfile(format!(
            "of another format (content type `{content_type}`), neither gzip nor protobuf; it starts with `{}`",
            excerpt(body)
        )));
    }
    Ok(())
}

/// Describes a response that contains an output of Go's `net/http/pprof` other than a profile. Recognizes the output by
/// its first bytes, or else by the path.
fn of_go(body: &[u8], path: &str) -> Option<&'static str> {
    if body.starts_with(b"go 1.") {
        return Some("an execution trace of Go, which cannot become a profile; open it with `go tool trace`");
    }
    if body.starts_with(b"goroutine ") {
        return Some("a textual goroutine dump (debug=2); remove the parameter debug to get a profile");
    }
    match path.rsplit('/').next() {
        Some("cmdline") => Some("the command line of the program, which the path `cmdline` returns"),
        Some("symbol") => Some("the names of addresses, which the path `symbol` returns to tools"),
        _ => None,
    }
}

/// Returns true if the first byte can be the key of a field of a pprof message: numbers 1 to 15, varint or
/// length-delimited.
fn is_protobuf_start(body: &[u8]) -> bool {
    body.first().is_some_and(|key| {
        let (field, wire_type) = (key >> 3, key & 7);
        (1..=15).contains(&field) && matches!(wire_type, 0 | 2)
    })
}

/// Returns the first words of a body, for an error.
pub(super) fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(EXCERPT_BYTES)]);
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .filter(|character| !character.is_control())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(body: &[u8], content_type: &str) -> String {
        message_of("/debug/pprof/heap", body, content_type)
    }

    fn message_of(path: &str, body: &[u8], content_type: &str) -> String {
        check(body, path, content_type).map_or_else(|error| error.to_string(), |()| "ok".to_owned())
    }

    #[test]
    fn profiles_pass_whatever_their_content_type() {
        for content_type in ["application/octet-stream", "application/x-gzip", "", "text/plain"] {
            assert_eq!(message(&[0x1f, 0x8b, 8], content_type), "ok");
        }
        assert_eq!(message(&[0x0a, 4, 8, 1], "application/octet-stream"), "ok");
        assert_eq!(
            message(b"goroutine profile: total 5\n", "text/plain; charset=utf-8"),
            "ok"
        );
    }

    #[test]
    fn other_answers_are_called_what_they_are() {
        assert!(message(b" <html>hello", "text/html").contains("HTML"));
        assert!(message(b"{\"error\": 1}", "application/octet-stream").contains("JSON: `{\"error\": 1}`"));
        assert!(message(b"some words", "text/plain; charset=utf-8").contains("parameter debug"));
        assert!(message(b"goroutine 1 [running]:\nmain.main()", "text/plain").contains("debug=2"));
        assert!(message_of("/debug/pprof/cmdline", b"/bin/shop\0-v", "text/plain").contains("the command line"));
        assert!(message_of("/x/symbol", b"num_symbols: 1\n", "text/plain").contains("names of addresses"));
        assert!(message(&[0xff, 0xfe], "application/octet-stream").contains("neither gzip nor protobuf"));
        assert!(message(b"", "application/octet-stream").contains("empty body"));
        assert!(message(b"go 1.22 trace\0\0\0", "application/octet-stream").contains("an execution trace of Go"));
    }
}
