//! Is an answer a profile? Judged by its bytes; the content type only helps to say what it is instead.

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;

use crate::wire::client::error_chain;

/// Largest answer, 64 MiB: gzip-compressed profiles of the largest heaps are below it, and it bounds memory against a
/// wrong path.
pub const MAX_BODY_BYTES: usize = 64 << 20;
/// How much of a wrong answer a message shows.
const EXCERPT_BYTES: usize = 120;

/// A scrape gave no profile.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ResponseError {
    /// The connection failed, or there was none.
    #[error("cannot reach the target: {0}")]
    Transport(String),
    /// No whole answer came within the deadline.
    #[error("the target did not answer within {0}")]
    Timeout(String),
    /// The answer has another status than 200.
    #[error("the target answered with HTTP status {0}{1}")]
    Status(String, String),
    /// The body is larger than a profile may be.
    #[error("the profile is larger than {MAX_BODY_BYTES} bytes")]
    TooLarge,
    /// The body holds no bytes at all.
    #[error("the target answered with an empty body")]
    Empty,
    /// The body holds something else than a profile.
    #[error("the answer is not a pprof profile but {0}")]
    NotAProfile(String),
}

/// Reads an answer and checks it.
pub async fn read(mut response: reqwest::Response) -> Result<Bytes, ResponseError> {
    let status = response.status();
    let content_type = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    let mut body = BytesMut::with_capacity(response.content_length().unwrap_or(0).min(1 << 20) as usize);
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > MAX_BODY_BYTES => return Err(ResponseError::TooLarge),
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) => return Err(ResponseError::Transport(error_chain(&error))),
        }
    }
    let body = body.freeze();
    if !status.is_success() {
        let excerpt = match excerpt(&body) {
            text if text.is_empty() => text,
            text => format!(": {text}"),
        };
        return Err(ResponseError::Status(status.to_string(), excerpt));
    }
    check(&body, &content_type)?;
    Ok(body)
}

/// Checks the bytes of a successful answer.
pub fn check(body: &[u8], content_type: &str) -> Result<(), ResponseError> {
    if body.is_empty() {
        return Err(ResponseError::Empty);
    }
    if body.starts_with(&[0x1f, 0x8b]) {
        return Ok(());
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
            "HTML; does the path lead to a page? it starts with `{}`",
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

/// True when the first byte can be the key of a field of a pprof message: numbers 1 to 15, varint or length-delimited.
fn is_protobuf_start(body: &[u8]) -> bool {
    body.first().is_some_and(|key| {
        let (field, wire_type) = (key >> 3, key & 7);
        (1..=15).contains(&field) && matches!(wire_type, 0 | 2)
    })
}

fn excerpt(body: &[u8]) -> String {
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
        check(body, content_type).map_or_else(|error| error.to_string(), |()| "ok".to_owned())
    }

    #[test]
    fn profiles_pass_whatever_their_content_type() {
        for content_type in ["application/octet-stream", "application/x-gzip", "", "text/plain"] {
            assert_eq!(message(&[0x1f, 0x8b, 8], content_type), "ok");
        }
        assert_eq!(message(&[0x0a, 4, 8, 1], "application/octet-stream"), "ok");
    }

    #[test]
    fn other_answers_are_called_what_they_are() {
        assert!(message(b" <html>hello", "text/html").contains("HTML"));
        assert!(message(b"{\"error\": 1}", "application/octet-stream").contains("JSON: `{\"error\": 1}`"));
        assert!(message(b"goroutine profile: total 5", "text/plain; charset=utf-8").contains("parameter debug"));
        assert!(message(&[0xff, 0xfe], "application/octet-stream").contains("neither gzip nor protobuf"));
        assert!(message(b"", "application/octet-stream").contains("empty body"));
    }
}
