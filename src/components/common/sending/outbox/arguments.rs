//! The block `queue` of components that send: bounds of a queue and of its batches.

use std::time::Duration;

use crate::components::common::sending::outbox::queue::Limits;
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::{ByteSize, Interval, Positive};
use crate::lang::body::arguments;

/// Smallest queue that is accepted, in bytes: below it a single profile may not fit.
const MIN_QUEUE_BYTES: u64 = 1 << 20;
/// Bytes that may wait when `max_bytes` is null.
const DEFAULT_QUEUE_BYTES: u64 = 512 << 20;
/// Bytes of a batch when `batch_max_bytes` is null.
const DEFAULT_BATCH_BYTES: u64 = 1 << 20;

arguments! {
    /// The body of `queue { }`.
    pub(crate) struct QueueArguments {
        /// Bytes of profiles in one request; a larger profile goes alone.
        batch_max_bytes: Option<ByteSize> = "1MiB",
        /// Profiles in one request.
        batch_max_profiles: Positive = 256,
        /// How long a profile may wait for others to share its request.
        batch_wait: Duration = "200ms",
        /// Profiles that wait longer are dropped and counted.
        max_age: Interval = "24h",
        /// Bytes that may wait; beyond them the oldest profiles are dropped and counted. A number or a text such as
        /// "512MiB".
        max_bytes: Option<ByteSize> = "512MiB",
    }
    check QueueArguments::check;
}

impl QueueArguments {
    /// The bounds of the queue in size and age.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            max_bytes: self.max_bytes.map_or(DEFAULT_QUEUE_BYTES, ByteSize::get),
            max_age: self.max_age.get(),
        }
    }

    /// Bytes of profiles in one request.
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
