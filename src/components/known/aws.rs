//! `discovery.aws`, `discovery.ec2` and `discovery.lightsail`: targets from Amazon's APIs.
//!
//! That a region can be found on the machine itself is not known before the components run.

use std::sync::Arc;
use std::time::Duration;

use crate::components::common::discovery::{self, Filter};
use crate::components::common::http_client::HttpClientArguments;
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::{Secret, choices};
use crate::lang::body::arguments;
use crate::pipeline::component::{Definition, Stability, no_metrics};

arguments! {
    /// Arguments of `discovery.aws`.
    pub(crate) struct AwsArguments {
        /// Clusters to look at, for the roles ecs, elasticache, msk and rds; not set, all.
        clusters: Option<Vec<Arc<str>>>,
        /// External id that is given when the role is taken on.
        external_id: Option<Arc<str>>,
        /// Port of the targets; not set, 80.
        port: Option<i64>,
        /// Time from one look at the targets to the next; not set, 60s.
        refresh_interval: Option<Duration>,
        /// Requests at once, for the roles ecs, elasticache, msk and rds.
        request_concurrency: Option<i64>,
        /// What to look for: ec2, ecs, elasticache, lightsail, msk or rds.
        role: Role,
    }
    blocks {
        /// What is looked for; all filters must match.
        filter: Vec<Filter>,
    }
    shared { account: Account, client: HttpClientArguments }
    check AwsArguments::check;
}

arguments! {
    /// Arguments of `discovery.ec2`.
    pub(crate) struct Ec2Arguments {
        /// Port of a target whose port is not known otherwise.
        port: i64 = 80,
        /// Time from one look at the targets to the next.
        refresh_interval: Duration = "60s",
    }
    blocks {
        /// What is looked for; all filters must match.
        filter: Vec<Filter>,
    }
    shared { account: Account, client: HttpClientArguments }
}

arguments! {
    /// Arguments of `discovery.lightsail`.
    pub(crate) struct LightsailArguments {
        /// Port of a target whose port is not known otherwise.
        port: i64 = 80,
        /// Time from one look at the targets to the next.
        refresh_interval: Duration = "60s",
    }
    shared { account: Account, client: HttpClientArguments }
}

arguments! {
    /// How Amazon is asked, and as whom.
    pub(crate) struct Account {
        /// Access key; not set, the credentials are found as Amazon's tools find them.
        access_key: Option<Arc<str>>,
        /// URL of the API instead of Amazon's.
        endpoint: Option<Arc<str>>,
        /// Profile of the credentials file.
        profile: Option<Arc<str>>,
        /// Region; not set, that of the machine.
        region: Option<Arc<str>>,
        /// Role to take on before asking.
        role_arn: Option<Arc<str>>,
        /// Secret of the access key.
        secret_key: Option<Secret>,
    }
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
        if !self.filter.is_empty() && !matches!(self.role, Role::Ec2 | Role::Rds) {
            let message = format!("filter blocks are for the roles ec2 and rds, not for {role}");
            return Err(ArgumentError::new("filter", message));
        }
        let has_clusters = matches!(self.role, Role::Ecs | Role::ElastiCache | Role::Msk | Role::Rds);
        for (name, is_given) in [
            (
                "clusters",
                self.clusters.as_ref().is_some_and(|clusters| !clusters.is_empty()),
            ),
            ("request_concurrency", self.request_concurrency.unwrap_or_default() != 0),
        ] {
            if is_given && !has_clusters {
                let message = format!("{name} is for the roles ecs, elasticache, msk, rds, not for {role}");
                return Err(ArgumentError::new(name, message));
            }
        }
        Ok(())
    }
}

/// The definition of `discovery.aws`.
pub(crate) const AWS: Definition<AwsArguments> = Definition {
    name: "discovery.aws",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.aws` finds machines, tasks and databases in Amazon Web Services.",
};

/// The definition of `discovery.ec2`.
pub(crate) const EC2: Definition<Ec2Arguments> = Definition {
    name: "discovery.ec2",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.ec2` finds the instances of Amazon EC2.",
};

/// The definition of `discovery.lightsail`.
pub(crate) const LIGHTSAIL: Definition<LightsailArguments> = Definition {
    name: "discovery.lightsail",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.lightsail` finds the instances of Amazon Lightsail.",
};
