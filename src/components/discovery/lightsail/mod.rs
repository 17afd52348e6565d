//! `discovery.lightsail`: discovers the instances of Amazon Lightsail.
//!
//! In: the responses of `GetInstances`, page by page. Out: a target for each instance that has a private address.

use std::time::Duration;

use crate::common::arguments::targets::Target;
use crate::common::clouds::aws::account::Account;
use crate::common::clouds::aws::client::Aws;
use crate::common::clouds::aws::lightsail;
use crate::common::clouds::aws::signed_client::SignedClientArguments;
use crate::common::clouds::environment::Environment;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use alluvium_lang::attribute::Interval;
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};

#[cfg(test)]
mod tests;

arguments! {
    /// Arguments of `discovery.lightsail`.
    pub(crate) struct LightsailArguments {
        /// Port in the address of each target.
        port: i64 = 80,
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "60s",
    }
    shared { account: Account, client: SignedClientArguments }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<LightsailArguments> = polled::definition::<Lightsail>(
    "discovery.lightsail",
    "`discovery.lightsail` finds the instances of Amazon Lightsail.",
);

struct Lightsail {
    aws: Aws,
    port: i64,
    interval: Duration,
}

impl Discovery for Lightsail {
    type Arguments = LightsailArguments;

    fn new(arguments: &LightsailArguments, context: &Context) -> Result<Self, ComponentError> {
        let options = arguments.client.options(&context.user_agent);
        Ok(Self {
            aws: Aws::new(&arguments.account, None, &options, Environment::of_process())?,
            port: arguments.port,
            interval: arguments.refresh_interval.get(),
        })
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        Ok(lightsail::targets(&self.aws, self.port).await?)
    }
}
