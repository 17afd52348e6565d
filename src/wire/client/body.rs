//! Reads response bodies with a size limit, so that a server that never stops sending cannot exhaust the memory.

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_ENCODING;

use crate::client::error::BodyError;
use alluvium_profile::pprof::{self, GzipError};

/// Reads a body of at most `max_bytes`.
///
/// # Errors
/// Returns a [`BodyError`] when the body is longer or the connection breaks.
pub async fn read_body(response: reqwest::Response, max_bytes: usize) -> Result<Bytes, BodyError> {
    match read(response, max_bytes).await? {
        (body, Extent::Complete) => Ok(body),
        (_, Extent::Beginning) => Err(BodyError::TooLong(max_bytes)),
    }
}

/// Reads a body of at most `max_bytes` and decompresses it when its `Content-Encoding` is gzip; the limit also applies
/// to the decompressed body. Some servers compress responses although the client does not request it, and Go's clients
/// decompress such responses.
///
/// # Errors
/// Returns the errors of [`read_body`], and an error when the body is not compressed as its headers say.
pub async fn read_decoded(response: reqwest::Response, max_bytes: usize) -> Result<Bytes, BodyError> {
    let encoding = response.headers().get(CONTENT_ENCODING);
    let is_gzip = encoding.is_some_and(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"gzip"));
    let body = read_body(response, max_bytes).await?;
    if !is_gzip || body.is_empty() {
        return Ok(body);
    }
    pprof::gunzip(&body, max_bytes).map_err(|error| match error {
        GzipError::TooLarge { limit } => BodyError::TooLong(limit),
        GzipError::Corrupt(reason) => BodyError::Encoding(reason),
    })
}

/// Reads the first `max_bytes` of a body. Returns no bytes when the connection breaks first.
pub async fn read_beginning(response: reqwest::Response, max_bytes: usize) -> Bytes {
    read(response, max_bytes)
        .await
        .map(|(body, _)| body)
        .unwrap_or_default()
}

/// The part of a body that was read.
enum Extent {
    Complete,
    Beginning,
}

async fn read(mut response: reqwest::Response, max_bytes: usize) -> Result<(Bytes, Extent), BodyError> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(lost)? {
        let room = max_bytes - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok((body.freeze(), Extent::Beginning));
        }
    }
    Ok((body.freeze(), Extent::Complete))
}

fn lost(error: reqwest::Error) -> BodyError {
    BodyError::Lost(error.without_url())
}
