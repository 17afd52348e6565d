//! The contract between the sender of a queue and what makes the requests of a protocol.

use std::time::Duration;

use crate::base::BoxFuture;
use crate::components::common::sending::outbox::failure::Failure;
use crate::components::common::sending::outbox::metrics::EndpointMetrics;
use crate::components::common::sending::outbox::settings::Settings;
use crate::pipeline::component::live::LiveHandle;
use crate::profile::RawProfile;
use crate::wire::queue_report::QueueReport;
use crate::wire::refusals::Refused;

/// How the requests with a batch ended.
pub(crate) enum Outcome {
    /// The endpoint took the whole batch.
    Taken,
    /// The endpoint names the profiles that it refused; it took the others.
    Partly(Vec<Refused>, Failure),
    /// The endpoint took no profile.
    Failed(Failure),
}

/// What a delivery tells and keeps to.
#[derive(Clone, Copy)]
pub(crate) struct Sending<'a> {
    /// Live views of what is sent.
    pub live: &'a LiveHandle,
    /// The metrics of the endpoint.
    pub metrics: &'a EndpointMetrics,
    /// How the endpoint is sent to.
    pub settings: &'a Settings,
    /// The queue of the endpoint at this moment.
    pub report: &'a QueueReport,
    /// Longest time of a request.
    pub timeout: Duration,
}

/// Sends profiles to an endpoint by its protocol, without trying again.
pub(crate) trait Deliver: Send + Sync + 'static {
    /// Sends a batch, in as many requests as it needs.
    fn deliver<'a>(&'a self, profiles: &'a [RawProfile], sending: Sending<'a>) -> BoxFuture<'a, Outcome>;
}
