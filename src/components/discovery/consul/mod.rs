//! `discovery.consul`: discovers the services of a Consul catalog.
//!
//! In: the responses to blocking queries, one for the names of the services and one for each service. Out: a target for
//! each instance, soon after the instance changes. If a service cannot be queried, its last targets stay.

use std::time::Duration;

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::outdated::Outdated;
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::discovery::consul::api::Api;
use crate::discovery::consul::arguments::ConsulArguments;
use crate::discovery::consul::watches::Watches;
use alluvium_pipeline::component::{ComponentError, Context, Definition};

mod api;
mod arguments;
#[cfg(test)]
mod tests;
mod watches;

/// The component's definition.
pub(crate) const DEFINITION: Definition<ConsulArguments> = polled::definition::<Consul>(
    "discovery.consul",
    "`discovery.consul` finds the services of a Consul catalog.",
);

struct Consul(Watches);

impl Discovery for Consul {
    type Arguments = ConsulArguments;

    fn new(arguments: &ConsulArguments, context: &Context) -> Result<Self, ComponentError> {
        let api = Api::new(arguments, &context.user_agent)?;
        Ok(Self(Watches::new(api, arguments.catalog.refresh_interval.get())))
    }

    fn interval(&self) -> Duration {
        self.0.pause()
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        self.0.changed().await
    }

    fn failure(&self) -> Option<Outdated> {
        self.0.failure()
    }
}
