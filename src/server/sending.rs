//! Bodies of answers that a client may take its time to read: they count against a budget, and are given back at the
//! time limit of a query.
//!
//! In: the bytes. Out: a body, or 503 when the answers that nobody has read yet are too many. Small ones are not
//! counted: a connection has buffers of that size in any case.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::HeaderValue;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY};

use crate::base::bytes::{ByteBudget, HeldBytes};
use crate::query::{Deadline, QueryError, until};
use crate::wire::connect::{Code, ConnectError, gzip};

/// Bytes that are sent at a time, and that a slow client may hold for longer than the time limit.
const PIECE_BYTES: usize = 64 << 10;

/// The budget of all answers on their way.
pub(crate) struct Answers(ByteBudget);

impl Answers {
    /// A budget of so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(ByteBudget::new(bytes))
    }

    fn take(&self, bytes: usize) -> Result<HeldBytes, ConnectError> {
        self.0.try_take(bytes).ok_or_else(|| {
            ConnectError::new(
                Code::Unavailable,
                "the answers that clients have not read yet are larger than the server may hold, try again",
            )
        })
    }
}

/// An answer as it goes out.
pub(crate) struct Written {
    pub bytes: Bytes,
    /// True when the bytes are gzip.
    pub is_compressed: bool,
}

impl Written {
    /// An answer that is sent as it is.
    pub(crate) fn plain(bytes: Bytes) -> Self {
        Self {
            bytes,
            is_compressed: false,
        }
    }

    /// An answer for a caller that takes gzip, compressed if that is worth it.
    pub(crate) fn packed(bytes: Bytes) -> Self {
        match gzip(&bytes) {
            Some(bytes) => Self {
                bytes,
                is_compressed: true,
            },
            None => Self::plain(bytes),
        }
    }
}

/// A successful answer of one piece. What a client has not read at the end of `time` is given up.
pub(crate) fn respond(
    answers: &Answers,
    time: Duration,
    content_type: &'static str,
    written: Written,
) -> Result<Response, ConnectError> {
    let length = written.bytes.len();
    let mut response = Response::new(sending(answers, time, &[], written.bytes)?);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CONTENT_LENGTH, length.into());
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if written.is_compressed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}

/// A body of `start` and `rest`. What a client has not read at the end of `time` is given up.
pub(crate) fn sending(answers: &Answers, time: Duration, start: &[u8], rest: Bytes) -> Result<Body, ConnectError> {
    if rest.len() <= PIECE_BYTES {
        let whole = if start.is_empty() {
            rest
        } else {
            [start, &rest].concat().into()
        };
        return Ok(whole.into());
    }
    let held = answers.take(rest.len())?;
    let length = rest.len();
    let first = Bytes::copy_from_slice(start);
    let pieces = (0..length).step_by(PIECE_BYTES).map(move |start| {
        // Held as long as there are pieces to come: a closure takes along only what it names.
        let _held = &held;
        let end = length.min(start + PIECE_BYTES);
        // A copy: a slice would keep all of the body as long as it is on its way.
        Bytes::copy_from_slice(&rest[start..end])
    });
    let pieces = (!first.is_empty()).then_some(first).into_iter().chain(pieces);
    let pieces = stream::iter(pieces.map(Ok::<_, QueryError>)).boxed();
    Ok(Body::from_stream(until(Deadline::after(time), pieces)))
}
