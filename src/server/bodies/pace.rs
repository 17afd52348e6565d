//! The rate at which the body of a request arrives. A slow body is refused if other requests wait for its memory.
//!
//! In: the stream of a body, and the share of the budget to which the body is charged. Out: the chunks of the body, or
//! status 503 if the body is slow and other requests wait for the share. Without this rule, a few clients could
//! announce a body and not send it. They would hold a share of the budget until the body timeout, and all other
//! requests would wait. The more memory a body holds, the faster it must arrive.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use tokio::time::Instant;

use crate::server::bodies::budget::Share;
use alluvium_wire::connect::{Code, ConnectError};

/// Minimum number of bytes that must arrive within [`Pace::time`]. Below this number, a body is slow.
const MIN_PERIOD_BYTES: usize = 16 << 10;

/// Number of periods of [`Pace::time`] within which a body must fill the memory that it holds, if other requests wait
/// for this memory. Together these periods are shorter than the timeout of the waiting requests.
const MAX_PERIODS: usize = 8;

/// Measures the rate at which a body arrives.
pub(super) struct Pace {
    time: Duration,
    /// Bytes that must arrive in each period.
    min_bytes: usize,
    /// Start of the current period.
    start: Instant,
    bytes: usize,
}

impl Pace {
    /// Starts to measure a body in periods of `time`. The body holds memory for `room` bytes.
    pub(in crate::server) fn begin(time: Duration, room: usize) -> Self {
        Self {
            time,
            min_bytes: MIN_PERIOD_BYTES.max(room / MAX_PERIODS),
            start: Instant::now(),
            bytes: 0,
        }
    }

    /// Returns the next chunk, or `None` at the end. Returns an error if the body is slow and other requests wait for
    /// its share.
    pub(in crate::server) async fn next(
        &mut self,
        stream: &mut (impl Stream<Item = Result<Bytes, axum::Error>> + Unpin),
        share: &Share,
    ) -> Result<Option<Bytes>, ConnectError> {
        loop {
            if let Ok(chunk) = tokio::time::timeout_at(self.start + self.time, stream.next()).await {
                let chunk = chunk.transpose().map_err(body_error)?;
                self.bytes += chunk.as_ref().map_or(0, Bytes::len);
                return Ok(chunk);
            }
            if self.bytes < self.min_bytes && share.has_waiters() {
                let message = "the body arrived slowly, and other requests waited for its memory, try again";
                return Err(ConnectError::new(Code::Unavailable, message));
            }
            (self.start, self.bytes) = (Instant::now(), 0);
        }
    }
}

/// Returns the error of a body that cannot be read. If a chunk is malformed, the request is invalid.
/// Otherwise the client has disconnected.
pub(super) fn body_error(error: axum::Error) -> ConnectError {
    if is_malformed(&error) {
        return ConnectError::invalid(format!("cannot read the body: {error}"));
    }
    ConnectError::new(Code::Canceled, format!("cannot read the body: {error}")).with_status(408)
}

fn is_malformed(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |&error| error.source())
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(|error| matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::InvalidData))
}
