//! The memory budget of requests: received bodies, decompressed bodies, and decoded messages.
//!
//! In: a number of bytes, and the stage that needs them. Out: [`HeldBytes`], charged to the budget until they are
//! dropped, or status 503 after a wait. The budget counts memory, not the length on the wire: half a megabyte of gzip
//! may become 64 MiB, and an empty message that is encoded in two bytes takes 72 bytes of memory.
//!
//! No request waits forever, and small requests do not wait long, for these reasons:
//!
//! - A request passes the stages in order: received, decompressed, decoded. While it holds bytes of a stage, it never
//!   waits for the same share of that stage or for an earlier stage. A request at the last stage waits for nothing and
//!   finally releases its bytes. So the last stage always makes progress, and therefore also the stages before it.
//! - A request takes all bytes that it needs in one step, before the work. A body of unknown length first takes the
//!   maximum request size of the smallest share, then the maximum request size of the next share, and finally the
//!   maximum size of a body. It waits for larger shares only, so two requests never each hold one half and wait for the
//!   other half.
//! - Each stage has separate shares for small and for large requests, so waiting large requests do not block small
//!   ones. Within a share, requests are served in order of arrival (tokio's semaphore is fair).
//! - A body that arrives slowly holds its bytes only until another request waits for that share
//!   ([`Share::has_waiters`]). Then `body` refuses the slow body and releases its bytes.
//! - A wait ends after a timeout with status 503 and `Retry-After`. The timeout is longer at earlier stages, so that
//!   the requests ahead are served or refused before it ends.

use std::time::Duration;

use crate::server::bodies::limits::ServerLimits;
use alluvium_base::bytes::{ByteBudget, HeldBytes};
use alluvium_base::pressure::MemoryPart;
use alluvium_base::waiters::Waiters;
use alluvium_wire::connect::{Code, ConnectError};

/// The size of one share of a stage.
#[derive(Clone, Copy)]
struct Part {
    /// Size of the share, in units of 1/[`PARTS`] of the whole budget.
    parts: usize,
    /// The number of requests of maximum size that fit into the share.
    requests: usize,
}

/// Shares of the stage for received bodies. The first share is for bodies of a few KiB. Even many clients that send
/// such a body slowly do not fill the first share.
const ARRIVING: &[Part] = &[part(1, 128), part(3, 16), part(8, 1)];
const UNPACKED: &[Part] = &[part(4, 16), part(8, 1)];
const DECODED: &[Part] = &[part(2, 16), part(6, 1)];
const PARTS: usize = 32;

const fn part(parts: usize, requests: usize) -> Part {
    Part { parts, requests }
}

/// The memory budget of a server.
#[derive(Debug)]
pub(super) struct Budget {
    /// Bodies as received over the wire.
    pub arriving: Stage,
    /// Bodies after decompression.
    pub unpacked: Stage,
    /// Messages and profiles decoded from bodies.
    pub decoded: Stage,
}

impl Budget {
    /// Creates the budget for these limits. If the last share of a stage is smaller than the largest allowed body, the
    /// share is enlarged to that size.
    pub(in crate::server) fn new(limits: &ServerLimits) -> Self {
        let (all, wait) = (limits.memory_bytes, limits.memory_wait);
        Self {
            arriving: Stage::new(all, ARRIVING, limits.body_bytes, wait * 3),
            unpacked: Stage::new(all, UNPACKED, limits.unpacked_body_bytes, wait * 2),
            decoded: Stage::new(all, DECODED, 0, wait),
        }
    }

    /// Returns the memory that all requests together hold.
    pub(in crate::server) fn memory(&self) -> MemoryPart {
        let stages = [&self.arriving, &self.unpacked, &self.decoded];
        MemoryPart {
            name: "bodies",
            used: stages.map(Stage::used_bytes).iter().sum::<usize>() as u64,
            limit: stages.map(Stage::total_bytes).iter().sum::<usize>() as u64,
        }
    }
}

/// The budget of one stage, with shares for requests of different sizes.
#[derive(Debug)]
pub(crate) struct Stage {
    /// The shares, sorted by the size of their requests. There is at least one share.
    shares: Vec<Share>,
}

/// A part of a stage's budget, for requests up to a size.
#[derive(Debug)]
pub(crate) struct Share {
    budget: ByteBudget,
    /// The maximum number of bytes of one request. The last share also accepts larger requests.
    request_bytes: usize,
    /// The requests that wait for bytes.
    waiters: Waiters,
    wait: Duration,
}

impl Stage {
    fn new(all: usize, parts: &[Part], largest: usize, wait: Duration) -> Self {
        let share = |(index, part): (usize, &Part)| {
            let is_last = index + 1 == parts.len();
            let bytes = (all / PARTS * part.parts).max(if is_last { largest } else { 0 });
            Share {
                budget: ByteBudget::new(bytes),
                request_bytes: bytes / part.requests,
                waiters: Waiters::default(),
                wait,
            }
        };
        Self {
            shares: parts.iter().enumerate().map(share).collect(),
        }
    }

    /// Returns the share for a request of this size.
    pub(super) fn share(&self, bytes: usize) -> &Share {
        let last = self.shares.len() - 1;
        let fits = |share: &Share| bytes <= share.request_bytes;
        &self.shares[self.shares[..last].iter().position(fits).unwrap_or(last)]
    }

    /// Returns the maximum number of bytes of a request of the smallest share.
    pub(crate) fn small_bytes(&self) -> usize {
        self.shares[0].request_bytes
    }

    /// Takes bytes, after the requests that already wait for the same share. A request for more than the whole share
    /// waits until the whole share is free.
    pub(in crate::server) async fn take(&self, bytes: usize) -> Result<HeldBytes, ConnectError> {
        self.share(bytes).take(bytes).await
    }

    /// Returns the number of bytes that are taken.
    fn used_bytes(&self) -> usize {
        self.shares.iter().map(|share| share.budget.used()).sum()
    }

    fn total_bytes(&self) -> usize {
        self.shares.iter().map(|share| share.budget.total()).sum()
    }

    #[cfg(test)]
    pub(crate) fn free_bytes(&self) -> usize {
        self.total_bytes() - self.used_bytes()
    }
}

impl Share {
    /// Returns the maximum number of bytes of a request of this share.
    pub(super) fn request_bytes(&self) -> usize {
        self.request_bytes
    }

    /// Returns true while a request waits for bytes of this share.
    pub(super) fn has_waiters(&self) -> bool {
        self.waiters.is_any()
    }

    async fn take(&self, bytes: usize) -> Result<HeldBytes, ConnectError> {
        let waiting = self.waiters.begin();
        let result = tokio::time::timeout(self.wait, self.budget.take(bytes)).await;
        drop(waiting);
        result.map_err(|_| {
            ConnectError::new(
                Code::Unavailable,
                format!(
                    "the requests in progress hold all the memory that they may use: {bytes} more bytes did not become \
                        free within {} ms, try again",
                    self.wait.as_millis()
                ),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a budget of 32 KiB for small requests of up to 2 KiB, and 64 KiB for large ones.
    fn stage(wait: Duration) -> Stage {
        Stage::new(256 << 10, UNPACKED, 0, wait)
    }

    #[tokio::test]
    async fn what_is_not_to_be_had_in_time_is_refused_and_comes_back_when_dropped() {
        let stage = stage(Duration::from_millis(1));
        let held = stage.take(64 << 10).await.unwrap();
        let error = stage.take(3 << 10).await.unwrap_err();
        assert_eq!((error.status, error.code), (503, Code::Unavailable));
        assert!(error.message.contains("3072 more bytes"), "{error}");
        drop(held);
        assert!(stage.take(3 << 10).await.is_ok());
        assert_eq!(stage.free_bytes(), 96 << 10);
    }

    #[tokio::test]
    async fn small_requests_have_a_share_that_large_ones_cannot_take() {
        let stage = stage(Duration::from_millis(1));
        let _large = stage.take(64 << 10).await.unwrap();
        let small: Vec<_> = futures::future::join_all((0..16).map(|_| stage.take(2 << 10))).await;
        assert!(small.iter().all(Result::is_ok));
        assert!(stage.take(1).await.is_err());
    }

    #[tokio::test]
    async fn who_waits_is_served_in_turn_and_what_is_not_needed_is_given_back() {
        let stage = stage(Duration::from_mins(1));
        let mut first = stage.take(usize::MAX).await.unwrap();
        let mut second = std::pin::pin!(stage.take(40 << 10));
        let mut third = std::pin::pin!(stage.take(3 << 10));
        assert!(futures::poll!(&mut second).is_pending());
        // There is room for the third request, but the second one is ahead of it.
        first.keep(50 << 10);
        assert!(futures::poll!(&mut third).is_pending());
        assert!(futures::poll!(&mut second).is_pending());
        first.keep(4 << 10);
        assert!(second.await.is_ok());
        assert!(third.await.is_ok());
    }

    #[test]
    fn a_share_holds_the_largest_request_that_the_limits_allow() {
        let limits = ServerLimits {
            body_bytes: 512 << 20,
            ..ServerLimits::default()
        };
        assert_eq!(Budget::new(&limits).arriving.share(512 << 20).budget.total(), 512 << 20);
        let parts = [ARRIVING, UNPACKED, DECODED].concat();
        assert_eq!(parts.iter().map(|part| part.parts).sum::<usize>(), PARTS);
    }
}
