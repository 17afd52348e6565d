//! Reads bodies of requests. Limits apply to the size of a body, the time to read it, and the memory of all bodies.
//!
//! In: a body. Out: its bytes, which count against the budget until they are dropped, or the error to respond with. If
//! the budget is used up, a request is refused at once, because the sender can wait more easily than this program.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use bytes::Bytes;
use futures::StreamExt as _;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;

use alluvium_admin::drain::drain;
use alluvium_base::bytes::{ByteBudget, HeldBytes};
use alluvium_wire::connect::{Code, Compression, ConnectError};

/// Number of bytes of the budget that an arriving body reserves at a time. A body that is announced but does not arrive
/// reserves at most one such step.
const STEP_BYTES: usize = 256 << 10;

/// Reads the bodies of requests within limits.
pub(crate) struct Intake {
    budget: ByteBudget,
    max_body: usize,
    read_within: Duration,
}

/// A body that counts against the budget.
pub(crate) struct TakenBody {
    /// The `head` that was passed to [`Intake::read`], followed by the bytes of the body.
    pub bytes: Bytes,
    held: Vec<HeldBytes>,
}

impl TakenBody {
    /// Splits the body into its bytes and their reservation, which counts against the budget until it is dropped.
    pub(crate) fn split(self) -> (Bytes, impl Send) {
        (self.bytes, self.held)
    }
}

impl Intake {
    /// Creates an intake for bodies of up to `max_body` bytes, which share a budget. A body that takes longer than
    /// `read_within` is rejected.
    pub(crate) fn new(budget: ByteBudget, max_body: u64, read_within: Duration) -> Self {
        Self {
            budget,
            max_body: usize::try_from(max_body).unwrap_or(usize::MAX),
            read_within,
        }
    }

    /// Reads a body without decompressing it, and puts `head` before it.
    pub(crate) async fn read(&self, headers: &HeaderMap, body: Body, head: Vec<u8>) -> Result<TakenBody, ConnectError> {
        let announced = headers
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse().ok());
        let mut stream = body.into_data_stream();
        let read = if announced.is_some_and(|announced: usize| announced > self.max_body) {
            Err(self.too_large())
        } else {
            let read = tokio::time::timeout(self.read_within, self.collect(&mut stream, head)).await;
            read.unwrap_or_else(|_| {
                let message = format!("the body did not arrive within {} s", self.read_within.as_secs());
                Err(ConnectError::new(Code::DeadlineExceeded, message).with_status(408))
            })
        };
        if read.as_ref().is_err_and(|error| error.status != 408) {
            drain(&mut stream).await;
        }
        read
    }

    /// Decompresses a body within the limits.
    pub(crate) async fn unpack(&self, compression: Compression, body: TakenBody) -> Result<TakenBody, ConnectError> {
        if compression == Compression::Identity {
            return Ok(body);
        }
        // Profiles are already compressed, so decompression seldom makes a push much larger. The budget for the largest
        // body is reserved only if the budget for a small body is not enough.
        let small_limit = body.bytes.len().saturating_mul(4).max(STEP_BYTES).min(self.max_body);
        for limit in [small_limit, self.max_body] {
            let mut held = self.take(limit)?;
            let packed = body.bytes.clone();
            let opened = tokio::task::spawn_blocking(move || compression.open(&packed, limit)).await;
            let opened =
                opened.map_err(|error| ConnectError::new(Code::Internal, format!("decompression failed: {error}")))?;
            if let Some(mut bytes) = opened? {
                bytes.shrink_to_fit();
                held.keep(bytes.len());
                return Ok(TakenBody {
                    bytes: bytes.into(),
                    held: vec![held],
                });
            }
        }
        Err(self.too_large())
    }

    /// Reserves bytes of the budget. If `bytes` is more than the whole budget, reserves the whole budget.
    pub(crate) fn take(&self, bytes: usize) -> Result<HeldBytes, ConnectError> {
        self.budget.try_take(bytes.min(self.budget.total())).ok_or_else(|| {
            let message = format!(
                "request bodies in progress use {} of {} bytes, so {bytes} more are not available: try again later",
                self.budget.total() - self.budget.free(),
                self.budget.total()
            );
            ConnectError::new(Code::Unavailable, message)
        })
    }

    async fn collect(&self, stream: &mut BodyDataStream, head: Vec<u8>) -> Result<TakenBody, ConnectError> {
        let head_length = head.len();
        let (mut bytes, mut held, mut allowed) = (head, Vec::<HeldBytes>::new(), 0);
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|error| {
                ConnectError::new(Code::Canceled, format!("cannot read the body: {error}")).with_status(408)
            })?;
            let length = bytes.len() - head_length + chunk.len();
            if length > self.max_body {
                return Err(self.too_large());
            }
            if length > allowed {
                let step = (length - allowed).max(STEP_BYTES.min(self.max_body));
                held.push(self.take(step)?);
                allowed += step;
            }
            bytes.extend_from_slice(&chunk);
        }
        if let Some(last) = held.last_mut() {
            let unused = allowed - (bytes.len() - head_length);
            last.keep(last.bytes().saturating_sub(unused));
        }
        Ok(TakenBody {
            bytes: bytes.into(),
            held,
        })
    }

    fn too_large(&self) -> ConnectError {
        ConnectError::too_large(format!("the body is too large: the limit is {} bytes", self.max_body))
    }
}
