//! The block `queue` of components that send profiles: limits of a queue and of its batches.

use std::time::Duration;

use crate::common::sending::outbox::queue::Limits;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{ByteSize, Interval, Positive};
use alluvium_lang::body::arguments;

/// Smallest accepted limit of a queue, in bytes. A smaller queue can be too small for a single profile.
const MIN_QUEUE_BYTES: u64 = 1 << 20;
/// Maximum size of a queue in bytes if `max_bytes` is null.
const DEFAULT_QUEUE_BYTES: u64 = 512 << 20;
/// Maximum size of a batch in bytes if `batch_max_bytes` is null.
const DEFAULT_BATCH_BYTES: u64 = 1 << 20;

arguments! {
    /// The body of `queue { }`.
    pub(crate) struct QueueArguments {
        /// Maximum total size of the profiles in one request. A single profile that is larger is sent alone.
        batch_max_bytes: Option<ByteSize> = "1MiB",
        /// Maximum number of profiles in one request.
        batch_max_profiles: Positive = 256,
        /// Maximum time that a profile waits for further profiles, so that one request can contain them all.
        batch_wait: Duration = "200ms",
        /// Maximum age of queued profiles. Older profiles are dropped and counted.
        max_age: Interval = "24h",
        /// Maximum size of the queue, as a number of bytes or a text such as "512MiB". If the queue is larger, the
        /// oldest profiles are dropped and counted.
        max_bytes: Option<ByteSize> = "512MiB",
    }
    check QueueArguments::check;
}

impl QueueArguments {
    /// Returns the limits of the queue in size and age.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            max_bytes: self.max_bytes.map_or(DEFAULT_QUEUE_BYTES, ByteSize::get),
            max_age: self.max_age.get(),
        }
    }

    /// Returns the maximum number of bytes of profiles in one request.
    pub(crate) fn batch_bytes(&self) -> u64 {
        self.batch_max_bytes.map_or(DEFAULT_BATCH_BYTES, ByteSize::get)
    }

    fn check(&self) -> Result<(), ArgumentError> {
        if self.limits().max_bytes < MIN_QUEUE_BYTES {
            return Err(ArgumentError::new("max_bytes", "max_bytes must be at least 1MiB"));
        }
        Ok(())
    }
}
