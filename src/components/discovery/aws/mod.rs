//! `discovery.aws`: resources in AWS, by role.
//!
//! In: the answers of the service that the role names. Out: targets. The roles `ec2` and `lightsail` are those of the
//! components with these names.

use std::sync::Arc;
use std::time::Duration;

use crate::components::common::arguments::targets::Target;
use crate::components::common::clouds::aws::account::Account;
use crate::components::common::clouds::aws::client::Aws;
use crate::components::common::clouds::aws::ec2;
use crate::components::common::clouds::aws::ec2::Zones;
use crate::components::common::clouds::aws::lightsail;
use crate::components::common::clouds::environment::Environment;
use crate::components::common::discovery::schema::Filter;
use crate::components::common::discovery::polled;
use crate::components::common::discovery::polled::Discovery;
use crate::components::common::http::client::HttpClientArguments;
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::{Interval, Natural, choices};
use crate::lang::body::arguments;
use crate::pipeline::component::{ComponentError, Context, Definition};

mod ecs;
mod msk;
#[cfg(test)]
mod tests;

/// Port of the targets, where none is configured.
const PORT: i64 = 80;
/// Refresh interval, where none is configured.
const INTERVAL: Duration = Duration::from_mins(1);

arguments! {
    /// Arguments of `discovery.aws`.
    pub(crate) struct AwsArguments {
        /// Clusters to look at, for the roles ecs and msk; not set, all.
        clusters: Option<Vec<Arc<str>>>,
        /// External id that is given when the role is taken on.
        external_id: Option<Arc<str>>,
        /// Port of the targets; not set, 80.
        port: Option<i64>,
        /// Time from one look at the targets to the next; not set, 60s.
        refresh_interval: Option<Interval>,
        /// Requests at once, for the roles ecs and msk; not set, 20 and 10.
        request_concurrency: Option<Natural>,
        /// What to look for: ec2, ecs, lightsail or msk.
        role: Role,
    }
    blocks {
        /// What is looked for; all filters must match. For the role ec2.
        filter: Vec<Filter>,
    }
    shared { account: Account, client: HttpClientArguments }
    check AwsArguments::check;
}

choices! {
    /// What is looked for at Amazon.
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

    async fn targets(&self) -> Result<Vec<Target>, String> {
        let port = self.arguments.port.filter(|port| *port != 0).unwrap_or(PORT);
        let clusters = self.arguments.clusters.as_deref().unwrap_or_default();
        let clusters = clusters.iter().map(ToString::to_string).collect();
        match self.arguments.role {
            Role::Ec2 => ec2::targets(&self.aws, &self.arguments.filter, port, &self.zones).await,
            Role::Ecs => ecs::targets(&self.aws, clusters, port, self.at_once(20)).await,
            Role::Lightsail => lightsail::targets(&self.aws, port).await,
            Role::Msk => msk::targets(&self.aws, clusters, port, self.at_once(10)).await,
            // The check refuses them.
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

    fn at_once(&self, default: usize) -> usize {
        let given = self.arguments.request_concurrency.map_or(0, Natural::get);
        usize::try_from(given)
            .ok()
            .filter(|given| *given > 0)
            .unwrap_or(default)
    }
}
