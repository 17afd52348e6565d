//! Bodies of requests, read within limits: of size, of time, and of all bodies together.
//!
//! In: a body. Out: its bytes and a permit that counts them until it is dropped, or 408, 413, 503. CPU-heavy work on bodies goes through
//! [`heavy`], so that it does not hold up other connections.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::server::ServerLimits;
use crate::wire::connect::{Code, ConnectError};

/// Unit of the budget: a semaphore counts in 32 bits at a time.
const UNIT_BYTES: usize = 1024;

/// How much of a body that is too large is read and dropped, so that the client, still sending, gets to read the answer.
const DRAIN_BYTES: usize = 64 << 20;

/// Time for that.
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// Below this many bytes the work on them is done at once: it takes less than the half millisecond that a change of threads is worth.
const HEAVY_FROM_BYTES: usize = 32 << 10;

/// Counts the bytes of all bodies in memory.
#[derive(Debug)]
pub struct BodyBudget {
    units: Arc<Semaphore>,
}

/// A body and its share of the budget.
#[derive(Debug)]
pub struct HeldBody {
    /// The bytes.
    pub bytes: Bytes,
    /// Gives the share back when dropped.
    pub permit: Option<OwnedSemaphorePermit>,
}

impl BodyBudget {
    /// A budget of so many bytes.
    pub fn new(bytes: usize) -> Self {
        let units = (bytes / UNIT_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        Self {
            units: Arc::new(Semaphore::new(units)),
        }
    }

    /// Takes `bytes` from the budget.
    pub fn take(&self, bytes: usize) -> Result<OwnedSemaphorePermit, ConnectError> {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        self.units.clone().try_acquire_many_owned(units).map_err(|_| {
            ConnectError::new(
                Code::Unavailable,
                "the bodies of all requests together are larger than the server may hold, try again",
            )
        })
    }

    /// Reads a body.
    pub async fn read(&self, headers: &HeaderMap, body: Body, limits: &ServerLimits) -> Result<HeldBody, ConnectError> {
        let read = self.read_in_time(headers, body, limits.body_bytes);
        tokio::time::timeout(limits.body_timeout, read)
            .await
            .unwrap_or_else(|_| {
                Err(ConnectError::new(
                    Code::DeadlineExceeded,
                    format!("the body did not come within {} s", limits.body_timeout.as_secs()),
                )
                .with_status(408))
            })
    }

    async fn read_in_time(&self, headers: &HeaderMap, body: Body, max_bytes: usize) -> Result<HeldBody, ConnectError> {
        let announced = headers
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        let mut stream = body.into_data_stream();
        if let Some(announced) = announced
            && announced > max_bytes
        {
            drain(&mut stream).await;
            return Err(too_large(max_bytes));
        }
        let mut permit: Option<OwnedSemaphorePermit> = None;
        let mut counted = 0;
        let mut bytes = BytesMut::with_capacity(announced.unwrap_or(0).min(1 << 20));
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|error| {
                ConnectError::new(Code::Canceled, format!("cannot read the body: {error}")).with_status(408)
            })?;
            let length = bytes.len() + chunk.len();
            if length > max_bytes {
                drop((bytes, permit));
                drain(&mut stream).await;
                return Err(too_large(max_bytes));
            }
            if length > counted {
                // In steps that grow, so that a large body does not take the semaphore's lock for each packet.
                let step = length.max(counted * 2).min(max_bytes.max(length)) - counted;
                let more = self.take(step)?;
                counted += more.num_permits() * UNIT_BYTES;
                match &mut permit {
                    Some(permit) => permit.merge(more),
                    None => permit = Some(more),
                }
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(HeldBody {
            bytes: bytes.freeze(),
            permit,
        })
    }
}

fn too_large(max_bytes: usize) -> ConnectError {
    ConnectError::too_large(format!(
        "request body too large: the limit is {max_bytes} bytes (ingestion_body_limit)"
    ))
}

async fn drain(stream: &mut axum::body::BodyDataStream) {
    let work = async {
        let mut drained = 0;
        while let Some(Ok(chunk)) = stream.next().await {
            drained += chunk.len();
            if drained > DRAIN_BYTES {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIME, work).await;
}

/// Runs CPU work on `bytes` bytes: at once when they are few, else on the threads for blocking work.
pub async fn heavy<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> Result<T, ConnectError> + Send + 'static,
) -> Result<T, ConnectError> {
    if bytes < HEAVY_FROM_BYTES {
        return work();
    }
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(ConnectError::new(
            Code::Internal,
            format!("work on the body failed: {error}"),
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(budget: &BodyBudget, parts: Vec<&'static str>, max: usize) -> Result<HeldBody, ConnectError> {
        let limits = ServerLimits {
            body_bytes: max,
            ..ServerLimits::default()
        };
        let stream = futures::stream::iter(parts.into_iter().map(Ok::<_, std::io::Error>));
        budget.read(&HeaderMap::new(), Body::from_stream(stream), &limits).await
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit() {
        let budget = BodyBudget::new(10_000);
        assert_eq!(read(&budget, vec!["ab", "cd"], 4).await.unwrap().bytes, "abcd");
        assert_eq!(read(&budget, vec!["ab", "cd"], 3).await.unwrap_err().status, 413);
        assert_eq!(budget.units.available_permits(), 9);
    }

    #[tokio::test]
    async fn all_bodies_together_have_a_limit() {
        let budget = BodyBudget::new(2 * UNIT_BYTES);
        let one = read(&budget, vec!["a"], 10).await.unwrap();
        let two = read(&budget, vec!["b"], 10).await.unwrap();
        assert_eq!(read(&budget, vec!["c"], 10).await.unwrap_err().status, 503);
        drop(one);
        assert!(read(&budget, vec!["c"], 10).await.is_ok());
        drop(two);
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_given_up() {
        let budget = BodyBudget::new(10_000);
        let limits = ServerLimits {
            body_timeout: Duration::from_millis(10),
            ..ServerLimits::default()
        };
        let body = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
        let error = budget.read(&HeaderMap::new(), body, &limits).await.unwrap_err();
        assert_eq!(error.status, 408);
    }
}
