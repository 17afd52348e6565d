//! `discovery.aws`: discovers resources in AWS; the role selects the service.
//!
//! In: the responses of the selected service. Out: targets. The roles `ec2` and `lightsail` do the same as the
//! components `discovery.ec2` and `discovery.lightsail`.

use std::sync::Arc;
use std::time::Duration;

use crate::common::arguments::targets::Target;
use crate::common::clouds::aws::account::Account;
use crate::common::clouds::aws::client::Aws;
use crate::common::clouds::aws::ec2;
use crate::common::clouds::aws::ec2::Zones;
use crate::common::clouds::aws::lightsail;
use crate::common::clouds::aws::signed_client::SignedClientArguments;
use crate::common::clouds::environment::Environment;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::discovery::schema::Filter;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{Interval, Natural, choices};
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};

mod ecs;
mod msk;
#[cfg(test)]
mod tests;

/// Default of the argument `port`.
const PORT: i64 = 80;
/// Default of the argument `refresh_interval`.
const INTERVAL: Duration = Duration::from_mins(1);

arguments! {
    /// Arguments of `discovery.aws`.
    pub(crate) struct AwsArguments {
        /// Clusters to discover, for the roles `ecs` and `msk`. Defaults to all clusters.
        clusters: Option<Vec<Arc<str>>>,
        /// External ID to send when the component assumes the role `role_arn`.
        external_id: Option<Arc<str>>,
        /// Port in the address of each target. Defaults to 80.
        port: Option<i64>,
        /// Time between two refreshes of the targets. Defaults to 60s.
        refresh_interval: Option<Interval>,
        /// Maximum number of concurrent API requests. Defaults to 20 for the role `ecs` and 10 for `msk`.
        request_concurrency: Option<Natural>,
        /// Kind of targets to discover: `ec2`, `ecs`, `lightsail` or `msk`.
        role: Role,
    }
    blocks {
        /// Condition on the discovered instances, for the role `ec2`. An instance must match every `filter` block.
        filter: Vec<Filter>,
    }
    shared { account: Account, client: SignedClientArguments }
    check AwsArguments::check;
}

choices! {
    /// The kind of AWS resource to discover.
    pub(crate) enum Role {
        Ec2 = "ec2",
        Ecs = "ecs",
        ElastiCache = "elasticache",
        Lightsail = "lightsail",
        Msk = "msk",
        Rds = "rds",
    }
}

impl AwsArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        let name = Role::ALL.iter().find(|(_, role)| *role == self.role);
        let role = name.map_or("", |(name, _)| *name);
        if matches!(self.role, Role::ElastiCache | Role::Rds) {
            let message = format!("the role {role} is not supported: Amazon's managed databases serve no profiles");
            return Err(ArgumentError::new("role", message));
        }
        if !self.filter.is_empty() && self.role != Role::Ec2 {
            let message = format!("filter blocks are for the role ec2, not for {role}");
            return Err(ArgumentError::new("filter", message));
        }
        let has_clusters = matches!(self.role, Role::Ecs | Role::Msk);
        let concurrency = self.request_concurrency.map_or(0, Natural::get);
        for (name, is_given) in [
            ("clusters", !self.clusters.as_deref().unwrap_or_default().is_empty()),
            ("request_concurrency", concurrency != 0),
        ] {
            if is_given && !has_clusters {
                let message = format!("{name} is for the roles ecs and msk, not for {role}");
                return Err(ArgumentError::new(name, message));
            }
        }
        Ok(())
    }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<AwsArguments> = polled::definition::<AnyRole>(
    "discovery.aws",
    "`discovery.aws` finds instances, tasks and brokers in Amazon Web Services.",
);

struct AnyRole {
    aws: Aws,
    zones: Zones,
    arguments: AwsArguments,
}

impl Discovery for AnyRole {
    type Arguments = AwsArguments;

    fn new(arguments: &AwsArguments, context: &Context) -> Result<Self, ComponentError> {
        Self::within(arguments, context, Environment::of_process())
    }

    fn interval(&self) -> Duration {
        self.arguments.refresh_interval.map_or(INTERVAL, Interval::get)
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let port = self.arguments.port.filter(|port| *port != 0).unwrap_or(PORT);
        let clusters = self.arguments.clusters.as_deref().unwrap_or_default();
        let clusters = clusters.iter().map(ToString::to_string).collect();
        match self.arguments.role {
            Role::Ec2 => Ok(ec2::targets(&self.aws, &self.arguments.filter, port, &self.zones).await?),
            Role::Ecs => ecs::targets(&self.aws, clusters, port, self.concurrency(20)).await,
            Role::Lightsail => Ok(lightsail::targets(&self.aws, port).await?),
            Role::Msk => msk::targets(&self.aws, clusters, port, self.concurrency(10)).await,
            // `AwsArguments::check` rejects these roles.
            Role::ElastiCache | Role::Rds => Ok(Vec::new()),
        }
    }
}

impl AnyRole {
    fn within(arguments: &AwsArguments, context: &Context, environment: Environment) -> Result<Self, ComponentError> {
        let options = arguments.client.options(&context.user_agent);
        Ok(Self {
            aws: Aws::new(&arguments.account, arguments.external_id.clone(), &options, environment)?,
            zones: Zones::default(),
            arguments: arguments.clone(),
        })
    }

    fn concurrency(&self, default: usize) -> usize {
        let configured = self.arguments.request_concurrency.map_or(0, Natural::get);
        usize::try_from(configured)
            .ok()
            .filter(|limit| *limit > 0)
            .unwrap_or(default)
    }
}
