//! Reads and decodes request bodies, within limits on size, time, and the memory of all requests together.
//!
//! In: a body. Out: its decompressed bytes, or the message decoded from them; or status 408, 413 or 503. A [`Charge`]
//! counts the memory until it is dropped. `budget` divides the memory into shares, and `workers` provides the threads.

use std::time::Duration;

use axum::body::Body;
use bytes::{Buf as _, Bytes, BytesMut};
use futures::{Stream, StreamExt, stream};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;

use crate::server::bodies::budget::Budget;
use crate::server::bodies::limits::{BodyLimit, ServerLimits};
use crate::server::bodies::pace;
use crate::server::bodies::pace::Pace;
use crate::server::bodies::workers::{MAX_INLINE_BYTES, Workers};
use alluvium_admin::drain::drain;
use alluvium_base::bytes::HeldBytes;
use alluvium_base::pressure::{MemoryPart, MemoryPressure};
use alluvium_wire::connect::{Code, Compression, ConnectError};
use alluvium_wire::grpc::{PREFIX_BYTES, Prefix};
use alluvium_wire::service::Charged;

/// Reads and decodes the bodies of requests.
#[derive(Debug)]
pub(crate) struct Intake {
    budget: Budget,
    /// Memory pressure of the process. While memory is short, the intake accepts no new body.
    pressure: MemoryPressure,
    workers: Workers,
    body_timeout: Duration,
    slow_body_time: Duration,
}

/// The memory charged for a request, released on drop.
#[derive(Debug, Default)]
pub(crate) struct Charge(Vec<HeldBytes>);

/// A body that was read completely.
#[derive(Debug)]
pub(crate) struct ReceivedBody {
    pub bytes: Bytes,
    /// The memory charged for the bytes.
    pub charge: Charge,
}

impl Intake {
    /// Returns the memory that all requests together hold.
    pub(in crate::server) fn memory(&self) -> MemoryPart {
        self.budget.memory()
    }

    /// Creates an intake with these limits. It decompresses and decodes on `workers`.
    pub(crate) fn new(limits: &ServerLimits, pressure: MemoryPressure, workers: Workers) -> Self {
        Self {
            budget: Budget::new(limits),
            pressure,
            workers,
            body_timeout: limits.body_timeout,
            slow_body_time: limits.slow_body_time,
        }
    }

    /// Reads a body and decompresses it. A body that is gzip is decompressed even if no header names the compression.
    pub(crate) async fn read(
        &self,
        headers: &HeaderMap,
        body: Body,
        limit: BodyLimit,
    ) -> Result<ReceivedBody, ConnectError> {
        self.read_upload(headers, body, limit, |_| true).await
    }

    /// Like [`Intake::read`], for a body whose own format may be gzip. `is_packed` returns true if the gzip is around
    /// the format instead. The function is called only if no header names a compression.
    pub(crate) async fn read_upload(
        &self,
        headers: &HeaderMap,
        body: Body,
        limit: BodyLimit,
        is_packed: impl FnOnce(&[u8]) -> bool,
    ) -> Result<ReceivedBody, ConnectError> {
        let named = Compression::read(headers)?;
        let body = self.receive(headers, body, limit.bytes).await?;
        let compression = named.or_packed(&body.bytes, is_packed);
        self.unpack(compression, body, limit.unpacked_bytes).await
    }

    /// Decompresses an upload that was received earlier, as [`Intake::read_upload`] decompresses a body without
    /// `Content-Encoding`.
    pub(crate) async fn unpack_upload(
        &self,
        upload: ReceivedBody,
        limit: BodyLimit,
        is_packed: impl FnOnce(&[u8]) -> bool,
    ) -> Result<ReceivedBody, ConnectError> {
        let compression = Compression::Identity.or_packed(&upload.bytes, is_packed);
        self.unpack(compression, upload, limit.unpacked_bytes).await
    }

    /// Builds a value from a body, or from a value that was built from the body. `weigh` computes the maximum memory
    /// that the value needs, or returns an error. `make` builds the value. `work_bytes` is the maximum number of bytes
    /// that `weigh` or `make` processes.
    pub(crate) async fn make<Source: Send + 'static, Weighed: Send + 'static, Made: Send + 'static>(
        &self,
        (source, charge): (Source, Charge),
        work_bytes: usize,
        weigh: impl FnOnce(Source) -> Result<(Weighed, usize), ConnectError> + Send + 'static,
        make: impl FnOnce(Weighed) -> Result<Made, ConnectError> + Send + 'static,
    ) -> Result<(Made, Charge), ConnectError> {
        let weighed = self.workers.run(work_bytes, move || Ok((weigh(source)?, charge)));
        let ((weighed, weight), mut charge) = weighed.await?;
        charge.0.push(self.budget.decoded.take(weight).await?);
        let made = self.workers.run(work_bytes, move || Ok((make(weighed)?, charge)));
        made.await
    }

    /// Reads the one message of a gRPC call and decompresses it. The length precedes the message, so the budget is
    /// charged exactly that many bytes.
    pub(crate) async fn read_message(
        &self,
        compression: Compression,
        body: Body,
        limit: BodyLimit,
    ) -> Result<ReceivedBody, ConnectError> {
        let (body, is_compressed) = self.with_timeout(self.receive_message(body, limit.bytes)).await?;
        let compression = match compression {
            _ if !is_compressed => Compression::Identity,
            Compression::Identity => {
                let message = "the message is compressed, but the header grpc-encoding names no compression";
                return Err(ConnectError::invalid(message));
            }
            named => named,
        };
        self.unpack(compression, body, limit.unpacked_bytes).await
    }

    async fn receive(&self, headers: &HeaderMap, body: Body, max_bytes: usize) -> Result<ReceivedBody, ConnectError> {
        let announced = headers
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        let mut stream = body.into_data_stream();
        if announced.is_some_and(|announced| announced > max_bytes) {
            drain(&mut stream).await;
            return Err(too_large(max_bytes));
        }
        let expected = announced.unwrap_or_else(|| self.budget.arriving.small_bytes().min(max_bytes));
        let held = self.begin(&mut stream, expected).await?;
        self.with_timeout(self.collect(stream, held, expected, max_bytes)).await
    }

    /// Reads the one message of a gRPC body. The returned flag is true if the message is compressed.
    async fn receive_message(&self, body: Body, max_bytes: usize) -> Result<(ReceivedBody, bool), ConnectError> {
        let mut stream = body.into_data_stream();
        let mut start = BytesMut::new();
        while start.len() < PREFIX_BYTES {
            let chunk = stream.next().await.transpose().map_err(pace::body_error)?;
            start.extend_from_slice(&chunk.ok_or_else(|| truncated_body(start.len(), PREFIX_BYTES))?);
        }
        let mut prefix = [0; PREFIX_BYTES];
        start.split_to(PREFIX_BYTES).copy_to_slice(&mut prefix);
        let prefix = Prefix::read(prefix)?;
        let length = prefix.length as usize;
        if length > max_bytes {
            drain(&mut stream).await;
            return Err(too_large(max_bytes));
        }
        let held = self.begin(&mut stream, length).await?;
        let stream = stream::iter([Ok(start.freeze())]).chain(stream);
        let body = self.collect(stream, held, length, length).await;
        let body = body.map_err(|error| match error.status {
            413 => ConnectError::invalid(format!("the body is longer than its one message of {length} bytes")),
            _ => error,
        })?;
        if body.bytes.len() < length {
            return Err(truncated_body(body.bytes.len(), length));
        }
        Ok((body, prefix.is_compressed))
    }

    /// Charges the budget for a body of `bytes` bytes. If the memory is not available, this function drains the body,
    /// so that the client reads the refusal and does not see a broken connection.
    async fn begin(
        &self,
        stream: &mut (impl Stream<Item = Result<Bytes, axum::Error>> + Unpin),
        bytes: usize,
    ) -> Result<HeldBytes, ConnectError> {
        let held = match self.may_begin() {
            Ok(()) => self.budget.arriving.take(bytes).await,
            Err(error) => Err(error),
        };
        if held.is_err() {
            drain(stream).await;
        }
        held
    }

    /// Refuses a body while the memory of the process is close to its limit.
    fn may_begin(&self) -> Result<(), ConnectError> {
        if !self.pressure.is_short() {
            return Ok(());
        }
        let message = "the memory of the server is nearly at its limit (--memory-limit), try again";
        Err(ConnectError::new(Code::Unavailable, message))
    }

    /// Runs a future that reads a body, with the timeout for bodies.
    async fn with_timeout<T>(&self, read: impl Future<Output = Result<T, ConnectError>>) -> Result<T, ConnectError> {
        tokio::time::timeout(self.body_timeout, read).await.unwrap_or_else(|_| {
            Err(ConnectError::new(
                Code::DeadlineExceeded,
                format!("the body did not arrive within {} s", self.body_timeout.as_secs()),
            )
            .with_status(408))
        })
    }

    /// Reads a stream into memory. `expected` bytes of the memory are already charged.
    async fn collect(
        &self,
        mut stream: impl Stream<Item = Result<Bytes, axum::Error>> + Unpin,
        held: HeldBytes,
        expected: usize,
        max_bytes: usize,
    ) -> Result<ReceivedBody, ConnectError> {
        let mut body = PartialBody {
            // Capacity without written bytes takes no physical memory.
            bytes: Vec::with_capacity(expected),
            held,
            room: expected,
        };
        match self.fill(&mut body, &mut stream, max_bytes).await {
            Ok(()) => Ok(ReceivedBody::new(body.bytes, Charge(vec![body.held]))),
            Err(error) => {
                drop(body);
                if error.status != 408 {
                    drain(&mut stream).await;
                }
                Err(error)
            }
        }
    }

    async fn fill(
        &self,
        body: &mut PartialBody,
        stream: &mut (impl Stream<Item = Result<Bytes, axum::Error>> + Unpin),
        max_bytes: usize,
    ) -> Result<(), ConnectError> {
        let stage = &self.budget.arriving;
        let mut pace = Pace::begin(self.slow_body_time, body.room);
        while let Some(chunk) = pace.next(stream, stage.share(body.room)).await? {
            let length = body.bytes.len() + chunk.len();
            if length > max_bytes {
                return Err(too_large(max_bytes));
            }
            if length > body.room {
                // The length of the body is unknown, and the body is larger than the charged memory.
                let room = stage.share(length).request_bytes().min(max_bytes);
                body.held = stage.take(room).await?;
                body.room = room;
                body.bytes.reserve_exact(room - body.bytes.len());
                pace = Pace::begin(self.slow_body_time, body.room);
            }
            body.bytes.extend_from_slice(&chunk);
        }
        Ok(())
    }

    async fn unpack(
        &self,
        compression: Compression,
        mut body: ReceivedBody,
        max_bytes: usize,
    ) -> Result<ReceivedBody, ConnectError> {
        let stage = &self.budget.unpacked;
        let length = body.bytes.len();
        if compression == Compression::Identity {
            return Ok(body);
        }
        if length <= MAX_INLINE_BYTES / 2
            && let Some(bytes) = compression.open(&body.bytes, MAX_INLINE_BYTES.min(max_bytes))?
        {
            let charge = Charge(vec![stage.take(bytes.len()).await?]);
            return Ok(ReceivedBody::new(bytes, charge));
        }
        // Most bodies are small after decompression, so a small limit is tried first.
        let small = stage.small_bytes().min(max_bytes);
        let mut max = if length < small { small } else { max_bytes };
        loop {
            let held = stage.take(max).await?;
            let work = move || {
                let opened = compression.open(&body.bytes, max)?;
                Ok((opened.map(|bytes| ReceivedBody::new(bytes, Charge(vec![held]))), body))
            };
            let (opened, packed) = self.workers.run(max.max(MAX_INLINE_BYTES + 1), work).await?;
            if let Some(opened) = opened {
                return Ok(opened);
            }
            if max == max_bytes {
                return Err(ConnectError::too_large(format!(
                    "the {} body is larger than {max_bytes} bytes when decompressed",
                    compression.name()
                )));
            }
            (body, max) = (packed, max_bytes);
        }
    }
}

/// A body that is being read.
struct PartialBody {
    bytes: Vec<u8>,
    /// The memory charged for `room` bytes.
    held: HeldBytes,
    /// The length that `bytes` may reach before more memory is charged.
    room: usize,
}

impl Charged for Charge {
    fn keep(&mut self, bytes: usize) {
        if let Some(made) = self.0.last_mut() {
            made.keep(bytes);
        }
    }
}

impl Charge {
    /// Releases the memory that the last call of [`Intake::make`] charged.
    pub(crate) fn release_last(&mut self) {
        self.0.pop();
    }
}

impl ReceivedBody {
    /// Creates a body, and reduces its charge to its actual length.
    fn new(mut bytes: Vec<u8>, mut charge: Charge) -> Self {
        bytes.shrink_to_fit();
        charge.0.iter_mut().for_each(|held| held.keep(bytes.len()));
        Self {
            bytes: bytes.into(),
            charge,
        }
    }
}

fn too_large(max_bytes: usize) -> ConnectError {
    ConnectError::too_large(format!("request body too large: the limit is {max_bytes} bytes"))
}

fn truncated_body(length: usize, expected: usize) -> ConnectError {
    ConnectError::invalid(format!("the message ended after {length} of {expected} bytes"))
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
