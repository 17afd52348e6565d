//! Bodies of responses. A client may read a response slowly. So the bytes of all responses count against a budget, and
//! if a response has several pieces, its unread bytes are dropped after the query timeout.
//!
//! In: the size of a message before it is written, and then its bytes. Out: a body, or status 503 if too many bytes of
//! responses wait to be written or are unread. For responses in one piece, the listener counts the unread bytes
//! (`admin::connections`).

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::HeaderValue;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY};

use crate::query::{Deadline, QueryError, run_until};
use crate::server::bodies::workers::MAX_INLINE_BYTES;
use alluvium_base::bytes::{ByteBudget, HeldBytes};
use alluvium_base::encoding::gzip;
use alluvium_base::pressure::MemoryPart;
use alluvium_wire::connect::{Code, ConnectError};

/// Size of one piece of a body. A slow client may hold one piece beyond the time limit.
const PIECE_BYTES: usize = 64 << 10;

/// The budget of all responses that are being sent.
pub(crate) struct ResponseBudget(ByteBudget);

impl ResponseBudget {
    /// Creates a budget of this size in bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(ByteBudget::new(bytes))
    }

    /// Returns the budget itself, to which the listener charges the unread bytes of small responses.
    pub(in crate::server) fn budget(&self) -> ByteBudget {
        self.0.clone()
    }

    /// Returns the memory that all responses together hold.
    pub(in crate::server) fn memory(&self) -> MemoryPart {
        MemoryPart {
            name: "answers",
            used: self.0.used() as u64,
            limit: self.0.total() as u64,
        }
    }

    /// Takes the memory for a message of about `bytes` bytes and for its encoded form. The charge starts before the
    /// message waits for a thread, because the query has already released its own memory. A message of at most
    /// [`MAX_INLINE_BYTES`] is encoded at once and not charged here.
    pub(in crate::server) fn begin(&self, bytes: usize) -> Result<Option<HeldBytes>, ConnectError> {
        if bytes <= MAX_INLINE_BYTES {
            return Ok(None);
        }
        // An estimate above the budget is reduced to the whole budget, because the compressed response may be smaller.
        let reserved_bytes = bytes.saturating_mul(2).min(self.0.total());
        self.take(reserved_bytes).map(Some)
    }

    fn take(&self, bytes: usize) -> Result<HeldBytes, ConnectError> {
        self.0.try_take(bytes).ok_or_else(|| {
            ConnectError::new(
                Code::Unavailable,
                "the responses that are being written, or that clients have not read yet, exceed the memory for \
                    responses, try again",
            )
        })
    }
}

/// An encoded response that is ready to be sent.
pub(crate) struct EncodedResponse {
    pub bytes: Bytes,
    /// True if the bytes are gzip.
    pub is_compressed: bool,
    held: Option<HeldBytes>,
}

impl EncodedResponse {
    /// Creates a response without compression.
    pub(crate) fn plain(bytes: Bytes) -> Self {
        Self {
            bytes,
            is_compressed: false,
            held: None,
        }
    }

    /// Returns the response with the memory that was reserved for it.
    pub(in crate::server) fn with_charge(self, held: Option<HeldBytes>) -> Self {
        Self { held, ..self }
    }

    /// Creates a response for a client that accepts gzip. The response is compressed if it is large enough.
    pub(crate) fn packed(bytes: Bytes) -> Self {
        match gzip(&bytes) {
            Some(bytes) => Self {
                bytes,
                is_compressed: true,
                held: None,
            },
            None => Self::plain(bytes),
        }
    }
}

/// Returns a successful response with one body. A response of at most [`PIECE_BYTES`] is sent in one piece without a
/// time limit. A larger response is sent in pieces: after `time`, the unread bytes are dropped, and the body ends with
/// an error.
pub(crate) fn respond(
    answers: &ResponseBudget,
    time: Duration,
    content_type: &'static str,
    written: EncodedResponse,
) -> Result<Response, ConnectError> {
    let (length, is_compressed) = (written.bytes.len(), written.is_compressed);
    let mut response = Response::new(sending(answers, time, &[], written)?);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CONTENT_LENGTH, length.into());
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if is_compressed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}

/// Returns a body that consists of `start` and the response. A large response is sent in pieces, as by [`respond`]:
/// after `time`, the unread bytes are dropped, and the body ends with an error.
pub(crate) fn sending(
    answers: &ResponseBudget,
    time: Duration,
    start: &[u8],
    written: EncodedResponse,
) -> Result<Body, ConnectError> {
    let EncodedResponse { bytes: rest, held, .. } = written;
    if rest.len() <= PIECE_BYTES {
        let body = if start.is_empty() {
            rest
        } else {
            [start, &rest].concat().into()
        };
        return Ok(body.into());
    }
    let length = rest.len();
    let held = match held {
        Some(mut held) if held.bytes() >= length => {
            held.keep(length);
            held
        }
        less => {
            drop(less);
            answers.take(length)?
        }
    };
    let first = Bytes::copy_from_slice(start);
    let pieces = (0..length).step_by(PIECE_BYTES).map(move |start| {
        // The closure must use `held`, so that it captures the charge and keeps it while pieces remain.
        let _held = &held;
        let end = length.min(start + PIECE_BYTES);
        // Copies the piece, because a slice would keep the whole body alive while it is sent.
        Bytes::copy_from_slice(&rest[start..end])
    });
    let pieces = (!first.is_empty()).then_some(first).into_iter().chain(pieces);
    let pieces = stream::iter(pieces.map(Ok::<_, QueryError>)).boxed();
    Ok(Body::from_stream(run_until(Deadline::after(time), pieces)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1 << 10;

    #[tokio::test]
    async fn an_answer_counts_before_it_is_written_and_with_its_length_afterwards() {
        let answers = ResponseBudget::new(1000 * KIB);
        assert!(answers.begin(MAX_INLINE_BYTES).unwrap().is_none());
        let held = answers.begin(300 * KIB).unwrap();
        assert_eq!(answers.0.used(), 600 * KIB);
        let refused = answers.begin(300 * KIB).unwrap_err();
        assert_eq!((refused.status, refused.code), (503, Code::Unavailable));
        let time = Duration::from_mins(1);
        let written = EncodedResponse::plain(vec![1; 100 * KIB].into()).with_charge(held);
        let body = sending(&answers, time, &[], written).unwrap();
        assert_eq!(answers.0.used(), 100 * KIB);
        // The response is larger than its estimate, so the body takes its real length.
        let held = answers.begin(100 * KIB).unwrap();
        let written = EncodedResponse::plain(vec![1; 500 * KIB].into()).with_charge(held);
        let other = sending(&answers, time, &[], written).unwrap();
        assert_eq!(answers.0.used(), 600 * KIB);
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        assert_eq!(bytes.len(), 100 * KIB);
        let bytes = axum::body::to_bytes(other, usize::MAX).await.unwrap();
        assert_eq!(bytes.len(), 500 * KIB);
        while answers.0.used() > 0 {
            tokio::task::yield_now().await;
        }
        // If the estimate exceeds the budget, `begin` takes the whole budget, because the real response may fit.
        assert_eq!(
            answers.begin(5000 * KIB).unwrap().map(|held| held.bytes()),
            Some(1000 * KIB)
        );
    }
}
