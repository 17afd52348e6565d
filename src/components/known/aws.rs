//! `discovery.aws`, `discovery.ec2` and `discovery.lightsail`: targets from Amazon's APIs.
//!
//! Schema and checks. That a region can be found on the machine itself is not known before the components run.

use crate::components::common::{checks, discovery, http_client};
use crate::lang::schema::{Arguments, Attribute, Kind, Schema, attributes, blocks};
use crate::pipeline::component::{ArgumentError, Definition, Stability};

const ROLES: [&str; 6] = ["ec2", "ecs", "elasticache", "lightsail", "msk", "rds"];
/// Roles whose machines stand in clusters.
const CLUSTER_ROLES: [&str; 4] = ["ecs", "elasticache", "msk", "rds"];
const FILTER_ROLES: [&str; 2] = ["ec2", "rds"];

/// `discovery.aws`
pub const AWS: Definition = Definition {
    name: "discovery.aws",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            ACCOUNT,
            &[
                Attribute::optional(
                    "clusters",
                    Kind::List(&Kind::String),
                    "Clusters to look at, for the roles ecs, elasticache, msk and rds; not set, all.",
                ),
                Attribute::optional(
                    "external_id",
                    Kind::String,
                    "External id that is given when the role is taken on."
                ),
                Attribute::optional("port", Kind::Int, "Port of the targets; not set, 80."),
                Attribute::optional(
                    "refresh_interval",
                    Kind::Duration,
                    "Time from one look at the targets to the next; not set, 60s.",
                ),
                Attribute::optional(
                    "request_concurrency",
                    Kind::Int,
                    "Requests at once, for the roles ecs, elasticache, msk and rds.",
                ),
                Attribute::required(
                    "role",
                    Kind::String,
                    "What to look for: ec2, ecs, elasticache, lightsail, msk or rds.",
                ),
            ],
            http_client::ATTRIBUTES
        ),
        blocks: blocks!(&[discovery::FILTER], http_client::BLOCKS),
    },
    exports: discovery::EXPORTS,
    validate: check_aws,
    build: None,
    doc: "`discovery.aws` finds machines, tasks and databases in Amazon Web Services.",
};

/// `discovery.ec2`
pub const EC2: Definition = Definition {
    name: "discovery.ec2",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            ACCOUNT,
            &[discovery::port("80"), discovery::refresh_interval("\"60s\"")],
            http_client::ATTRIBUTES
        ),
        blocks: blocks!(&[discovery::FILTER], http_client::BLOCKS),
    },
    exports: discovery::EXPORTS,
    validate: |arguments| {
        discovery::check_filters(arguments)?;
        http_client::check(arguments, "")
    },
    build: None,
    doc: "`discovery.ec2` finds the instances of Amazon EC2.",
};

/// `discovery.lightsail`
pub const LIGHTSAIL: Definition = Definition {
    name: "discovery.lightsail",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            ACCOUNT,
            &[discovery::port("80"), discovery::refresh_interval("\"60s\"")],
            http_client::ATTRIBUTES
        ),
        blocks: http_client::BLOCKS,
    },
    exports: discovery::EXPORTS,
    validate: |arguments| http_client::check(arguments, ""),
    build: None,
    doc: "`discovery.lightsail` finds the instances of Amazon Lightsail.",
};

const ACCOUNT: &[Attribute] = &[
    Attribute::optional(
        "access_key",
        Kind::String,
        "Access key; not set, the credentials are found as Amazon's tools find them.",
    ),
    Attribute::optional("endpoint", Kind::String, "URL of the API instead of Amazon's."),
    Attribute::optional("profile", Kind::String, "Profile of the credentials file."),
    Attribute::optional("region", Kind::String, "Region; not set, that of the machine."),
    Attribute::optional("role_arn", Kind::String, "Role to take on before asking."),
    Attribute::optional("secret_key", Kind::Secret, "Secret of the access key."),
];

fn check_aws(arguments: &Arguments) -> Result<(), ArgumentError> {
    checks::choice(arguments, "", "role", &ROLES)?;
    let role = arguments.string("role");
    if arguments.block("filter").is_some() && !FILTER_ROLES.contains(&role.as_ref()) {
        let message = format!("filter blocks are for the roles ec2 and rds, not for {role}");
        return Err(checks::error("filter", message));
    }
    discovery::check_filters(arguments)?;
    for (name, given) in [
        ("clusters", !arguments.strings("clusters").is_empty()),
        ("request_concurrency", arguments.int("request_concurrency") != 0),
    ] {
        if given && !CLUSTER_ROLES.contains(&role.as_ref()) {
            let message = format!("{name} is for the roles {}, not for {role}", CLUSTER_ROLES.join(", "));
            return Err(checks::error(name, message));
        }
    }
    http_client::check(arguments, "")
}
