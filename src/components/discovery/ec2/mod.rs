//! `discovery.ec2`: discovers the instances of Amazon EC2.
//!
//! In: the pages of `DescribeInstances`. Out: a target for each instance that has an address.

use std::time::Duration;

use crate::common::arguments::targets::Target;
use crate::common::clouds::aws::account::Account;
use crate::common::clouds::aws::client::Aws;
use crate::common::clouds::aws::ec2;
use crate::common::clouds::aws::ec2::Zones;
use crate::common::clouds::aws::signed_client::SignedClientArguments;
use crate::common::clouds::environment::Environment;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::discovery::schema::Filter;
use alluvium_lang::attribute::Interval;
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};

#[cfg(test)]
mod tests;

arguments! {
    /// Arguments of `discovery.ec2`.
    pub(crate) struct Ec2Arguments {
        /// Port in the address of each target.
        port: i64 = 80,
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "60s",
    }
    blocks {
        /// Condition on the discovered instances. An instance must match every `filter` block.
        filter: Vec<Filter>,
    }
    shared { account: Account, client: SignedClientArguments }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<Ec2Arguments> =
    polled::definition::<Ec2>("discovery.ec2", "`discovery.ec2` finds the instances of Amazon EC2.");

struct Ec2 {
    aws: Aws,
    zones: Zones,
    arguments: Ec2Arguments,
}

impl Discovery for Ec2 {
    type Arguments = Ec2Arguments;

    fn new(arguments: &Ec2Arguments, context: &Context) -> Result<Self, ComponentError> {
        let options = arguments.client.options(&context.user_agent);
        Ok(Self {
            aws: Aws::new(&arguments.account, None, &options, Environment::of_process())?,
            zones: Zones::default(),
            arguments: arguments.clone(),
        })
    }

    fn interval(&self) -> Duration {
        self.arguments.refresh_interval.get()
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        Ok(ec2::targets(&self.aws, &self.arguments.filter, self.arguments.port, &self.zones).await?)
    }
}
