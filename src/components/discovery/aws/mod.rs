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
mod elasticache;
mod elements;
mod msk;
mod query_lists;
mod rds;
#[cfg(test)]
mod tests;

/// Default of the argument `port`.
const PORT: i64 = 80;
/// Default of the argument `refresh_interval`.
const INTERVAL: Duration = Duration::from_mins(1);

arguments! {
    /// Arguments of `discovery.aws`.
    pub(crate) struct AwsArguments {
        /// Clusters to discover, for the roles `ecs`, `elasticache`, `msk` and `rds`. The roles `elasticache` and `msk`
        /// require ARNs. Defaults to all clusters.
        clusters: Option<Vec<Arc<str>>>,
        /// External ID to send when the component assumes the role `role_arn`.
        external_id: Option<Arc<str>>,
        /// Port in the address of each target. Defaults to 80. It has no effect for the role `elasticache`, because
        /// each target has the port of its cache.
        port: Option<i64>,
        /// Time between two refreshes of the targets. Defaults to 60s.
        refresh_interval: Option<Interval>,
        /// Maximum number of concurrent API requests, for the roles `ecs`, `elasticache`, `msk` and `rds`. Defaults to
        /// 20 for `ecs` and 10 for the others.
        request_concurrency: Option<Natural>,
        /// Kind of targets to discover: `ec2`, `ecs`, `elasticache`, `lightsail`, `msk` or `rds`.
        role: Role,
    }
    blocks {
        /// Condition on the discovered instances, for the roles `ec2` and `rds`. An instance must match every `filter`
        /// block.
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
        if !self.filter.is_empty() && !matches!(self.role, Role::Ec2 | Role::Rds) {
            let message = format!("filter blocks are for the roles ec2 and rds, not for {role}");
            return Err(ArgumentError::new("filter", message));
        }
        let has_clusters = matches!(self.role, Role::Ecs | Role::ElastiCache | Role::Msk | Role::Rds);
        let clusters = self.clusters.as_deref().unwrap_or_default();
        let concurrency = self.request_concurrency.map_or(0, Natural::get);
        for (name, is_given) in [
            ("clusters", !clusters.is_empty()),
            ("request_concurrency", concurrency != 0),
        ] {
            if is_given && !has_clusters {
                let message = format!("{name} is for the roles ecs, elasticache, msk and rds, not for {role}");
                return Err(ArgumentError::new(name, message));
            }
        }
        if self.role == Role::ElastiCache {
            let checked = elasticache::check_arns(clusters);
            checked.map_err(|error| ArgumentError::new("clusters", error.to_string()))?;
        }
        Ok(())
    }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<AwsArguments> = polled::definition::<AnyRole>(
    "discovery.aws",
    "`discovery.aws` finds instances, tasks, brokers, caches and databases in Amazon Web Services.",
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
        let filters = &self.arguments.filter;
        let arns = self.arguments.clusters.as_deref().unwrap_or_default();
        let clusters = arns.iter().map(ToString::to_string).collect();
        match self.arguments.role {
            Role::Ec2 => Ok(ec2::targets(&self.aws, filters, port, &self.zones).await?),
            Role::Ecs => ecs::targets(&self.aws, clusters, port, self.concurrency(20)).await,
            Role::ElastiCache => elasticache::targets(&self.aws, arns, self.concurrency(10)).await,
            Role::Lightsail => Ok(lightsail::targets(&self.aws, port).await?),
            Role::Msk => msk::targets(&self.aws, clusters, port, self.concurrency(10)).await,
            Role::Rds => rds::targets(&self.aws, clusters, filters, port, self.concurrency(10)).await,
        }
    }
}

impl AnyRole {
    fn within(arguments: &AwsArguments, context: &Context, environment: Environment) -> Result<Self, ComponentError> {
        let options = arguments.client.options(&context.user_agent);
        if arguments.role == Role::ElastiCache && arguments.port.is_some_and(|port| port != 0) {
            tracing::warn!(component = %context.id, "`port` has no effect for the role elasticache");
        }
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
