//! How fast the body of a request arrives: one that is slow gives way when others wait for its memory.
//!
//! In: the stream of a body, and the share of the budget that it holds. Out: its chunks, or 503 for a slow body whose
//! share is wanted. Without this a few clients that announce a body and do not send it would hold a share of the budget
//! until the time limit for bodies, and all others would wait. How fast is slow depends on how much memory is held.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use tokio::time::Instant;

use crate::server::bodies::budget::Share;
use crate::wire::connect::{Code, ConnectError};

/// A body of which fewer bytes arrived within [`Pace::time`] is slow.
const SLOW_BYTES: usize = 16 << 10;

/// So many times [`Pace::time`] a body may take to fill its room while others wait for it. That is less than others
/// wait.
const MOST_TIMES: usize = 8;

/// How fast a body arrives.
pub(super) struct Pace {
    time: Duration,
    /// Bytes that must arrive in each time.
    least: usize,
    /// When the bytes were counted from.
    since: Instant,
    bytes: usize,
}

impl Pace {
    /// Of a body that begins to arrive now, counted over `time`, and for which memory for `room` bytes is held.
    pub(in crate::server) fn begin(time: Duration, room: usize) -> Self {
        Self {
            time,
            least: SLOW_BYTES.max(room / MOST_TIMES),
            since: Instant::now(),
            bytes: 0,
        }
    }

    /// The next chunk; `None` at the end. Gives the body up when it is slow and its memory is wanted.
    pub(in crate::server) async fn next(
        &mut self,
        stream: &mut (impl Stream<Item = Result<Bytes, axum::Error>> + Unpin),
        share: &Share,
    ) -> Result<Option<Bytes>, ConnectError> {
        loop {
            if let Ok(chunk) = tokio::time::timeout_at(self.since + self.time, stream.next()).await {
                let chunk = chunk.transpose().map_err(broken)?;
                self.bytes += chunk.as_ref().map_or(0, Bytes::len);
                return Ok(chunk);
            }
            if self.bytes < self.least && share.is_wanted() {
                let message = "the body came slowly, and other requests waited for its memory, try again";
                return Err(ConnectError::new(Code::Unavailable, message));
            }
            (self.since, self.bytes) = (Instant::now(), 0);
        }
    }
}

/// What is answered when a body cannot be read: chunks of a wrong form are invalid, else the client has gone.
pub(super) fn broken(error: axum::Error) -> ConnectError {
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
