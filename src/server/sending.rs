//! Bodies of answers that clients may read slowly: they count against a budget, and are released at the time limit of a
//! query.
//!
//! In: the bytes. Out: a body, or 503 when too many bytes of answers are unread. Small answers are not counted, since a
//! connection has buffers of that size in any case.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::HeaderValue;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY};

use crate::base::bytes::{ByteBudget, HeldBytes};
use crate::base::pressure::MemoryPart;
use crate::query::{Deadline, QueryError, until};
use crate::wire::connect::{Code, ConnectError, gzip};

/// Size of a piece that is sent at once. A slow client may hold one piece beyond the time limit.
const PIECE_BYTES: usize = 64 << 10;

/// The budget of all answers that are being sent.
pub(crate) struct Answers(ByteBudget);

impl Answers {
    /// A budget with this size in bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(ByteBudget::new(bytes))
    }

    /// What all answers together hold.
    pub(super) fn memory(&self) -> MemoryPart {
        MemoryPart {
            name: "answers",
            used: self.0.used() as u64,
            limit: self.0.total() as u64,
        }
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

/// An encoded answer that is ready to be sent.
pub(crate) struct Written {
    pub bytes: Bytes,
    /// True when the bytes are gzip.
    pub is_compressed: bool,
}

impl Written {
    /// An answer without compression.
    pub(crate) fn plain(bytes: Bytes) -> Self {
        Self {
            bytes,
            is_compressed: false,
        }
    }

    /// An answer for a client that accepts gzip, compressed if it is large enough.
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

/// A successful answer with one body. After `time` the unread rest is dropped and the body ends with an error.
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

/// A body of `start` and `rest`. After `time` the unread rest is dropped and the body ends with an error.
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
        // Keeps the charge while pieces remain: a closure captures only variables that it uses.
        let _held = &held;
        let end = length.min(start + PIECE_BYTES);
        // A copy, since a slice would keep the whole body alive while it is sent.
        Bytes::copy_from_slice(&rest[start..end])
    });
    let pieces = (!first.is_empty()).then_some(first).into_iter().chain(pieces);
    let pieces = stream::iter(pieces.map(Ok::<_, QueryError>)).boxed();
    Ok(Body::from_stream(until(Deadline::after(time), pieces)))
}
