//! Settings of an endpoint, for any protocol.

use std::sync::Arc;
use std::time::Duration;

use crate::common::sending::outbox::arguments::QueueArguments;

/// Timeouts, retries and limits of one endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// URL of the endpoint as written in the configuration, for metrics and messages.
    pub endpoint: Arc<str>,
    /// Timeout for one request.
    pub timeout: Duration,
    /// Wait before the first retry. The wait doubles with every failure.
    pub min_backoff: Duration,
    /// Longest wait before a retry.
    pub max_backoff: Duration,
    /// Number of failed attempts after which a profile is dropped, if the endpoint accepts other profiles of the same
    /// batch. 0 means never.
    pub max_retries: u64,
    /// True if a request that was refused with HTTP status 429 is retried.
    pub retries_429: bool,
    /// Limits of the queue and of its batches.
    pub queue: QueueArguments,
}
