//! The contract between the sender of a queue and the code that makes the requests of a protocol.

use std::time::Duration;

use crate::common::sending::outbox::failure::Failure;
use crate::common::sending::outbox::metrics::EndpointMetrics;
use crate::common::sending::outbox::settings::Settings;
use alluvium_base::BoxFuture;
use alluvium_pipeline::component::live::LiveHandle;
use alluvium_profile::RawProfile;
use alluvium_wire::queue_report::QueueReport;
use alluvium_wire::refusals::Refused;

/// The result of the requests for a batch.
pub(crate) enum Outcome {
    /// The endpoint accepted the whole batch.
    Accepted,
    /// The endpoint refused these profiles and accepted all other profiles.
    Partly(Vec<Refused>, Failure),
    /// The endpoint accepted no profile.
    Failed(Failure),
}

/// Context of a delivery: the live views and metrics to which it reports, and its limits.
#[derive(Clone, Copy)]
pub(crate) struct Sending<'a> {
    /// Live views that show the sent profiles.
    pub live: &'a LiveHandle,
    /// The metrics of the endpoint.
    pub metrics: &'a EndpointMetrics,
    /// Settings of the endpoint.
    pub settings: &'a Settings,
    /// The current state of the endpoint's queue.
    pub report: &'a QueueReport,
    /// Timeout for one request.
    pub timeout: Duration,
}

/// Sends profiles to an endpoint in one protocol, without retries.
pub(crate) trait Deliver: Send + Sync + 'static {
    /// Sends a batch, in as many requests as it needs.
    fn deliver<'a>(&'a self, profiles: &'a [RawProfile], sending: Sending<'a>) -> BoxFuture<'a, Outcome>;
}
