//! Reads bodies of answers with a size limit, so that a server that never stops sending cannot exhaust the memory.

use std::fmt;

use bytes::{Bytes, BytesMut};

use crate::wire::client::error::error_chain;

/// Why a body could not be read completely.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// The connection broke; the error is without its URL, which may hold secrets.
    #[error("{}", error_chain(.0))]
    Lost(#[source] reqwest::Error),
    /// The body is longer than this many bytes.
    #[error("the answer is longer than {}", size(*.0))]
    TooLong(usize),
}

/// Reads a body of at most `max_bytes`.
///
/// # Errors
/// [`BodyError`] when it is longer, or when the connection broke.
pub(crate) async fn read_body(response: reqwest::Response, max_bytes: usize) -> Result<Bytes, BodyError> {
    match read(response, max_bytes).await? {
        (body, Extent::Whole) => Ok(body),
        (_, Extent::Beginning) => Err(BodyError::TooLong(max_bytes)),
    }
}

/// Reads the first `max_bytes` of a body; empty when the connection breaks before.
pub(crate) async fn read_beginning(response: reqwest::Response, max_bytes: usize) -> Bytes {
    read(response, max_bytes)
        .await
        .map(|(body, _)| body)
        .unwrap_or_default()
}

/// How much of a body was read.
enum Extent {
    Whole,
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
    Ok((body.freeze(), Extent::Whole))
}

fn lost(error: reqwest::Error) -> BodyError {
    BodyError::Lost(error.without_url())
}

/// A size limit for messages: in MiB where it is a whole number of them.
fn size(bytes: usize) -> impl fmt::Display {
    const MIB: usize = 1 << 20;
    fmt::from_fn(move |text| match bytes % MIB {
        0 => write!(text, "{} MiB", bytes / MIB),
        _ => write!(text, "{bytes} bytes"),
    })
}
