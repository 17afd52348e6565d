//! How an endpoint is sent to, whatever the protocol.

use std::sync::Arc;
use std::time::Duration;

use crate::components::common::sending::outbox::arguments::QueueArguments;

/// How an endpoint is sent to.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The endpoint as written in the configuration, for metrics and messages.
    pub endpoint: Arc<str>,
    /// Longest time that one request may take.
    pub timeout: Duration,
    /// First wait before a request is sent again; it doubles with every failure.
    pub min_backoff: Duration,
    /// Longest wait before a request is sent again.
    pub max_backoff: Duration,
    /// Failed attempts after which a profile that alone fails is given up; 0 means never.
    pub max_retries: u64,
    /// Whether what was refused for its rate is sent again.
    pub retries_429: bool,
    /// Bounds of the queue and of batches.
    pub queue: QueueArguments,
}
