//! Bodies of answers that a client may take its time to read: they count against a budget, and are given back at the
//! time limit of a query.
//!
//! In: the bytes. Out: a body, or 503 when the answers that nobody has read yet are too many. Small ones are not
//! counted: a connection has buffers of that size in any case.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::{StreamExt, stream};

use crate::base::bytes::{ByteBudget, HeldBytes};
use crate::query::{Deadline, QueryError, until};
use crate::wire::connect::{Code, ConnectError};

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
