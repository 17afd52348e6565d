//! `discovery.consul`, `discovery.consulagent` and `discovery.nomad`: targets from HashiCorp's catalogs.
//!
//! Schema and checks.

use crate::components::common::{checks, discovery, http_client};
use crate::lang::schema::{Attribute, Kind, Schema, attributes};
use crate::pipeline::component::{Definition, Stability};

/// `discovery.consul`
pub const CONSUL: Definition = Definition {
    name: "discovery.consul",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            CATALOG,
            &[
                ALLOW_STALE,
                Attribute::optional(
                    "namespace",
                    Kind::String,
                    "Namespace of the services (Consul Enterprise)."
                ),
                Attribute::optional(
                    "node_meta",
                    Kind::Map(&Kind::String),
                    "Metadata that a node must have for its services to count.",
                ),
                Attribute::optional(
                    "partition",
                    Kind::String,
                    "Admin partition of the services (Consul Enterprise)."
                ),
            ],
            http_client::ATTRIBUTES
        ),
        blocks: http_client::BLOCKS,
    },
    exports: discovery::EXPORTS,
    validate: |arguments| {
        discovery::check_refresh_interval(arguments)?;
        http_client::check(arguments, "")
    },
    build: None,
    doc: "`discovery.consul` finds the services of a Consul catalog.",
};

/// `discovery.consulagent`
pub const CONSUL_AGENT: Definition = Definition {
    name: "discovery.consulagent",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(CATALOG),
        blocks: &[http_client::TLS_CONFIG],
    },
    exports: discovery::EXPORTS,
    validate: |arguments| {
        discovery::check_refresh_interval(arguments)?;
        http_client::check(arguments, "")
    },
    build: None,
    doc: "`discovery.consulagent` finds the services of one Consul agent.",
};

/// `discovery.nomad`
pub const NOMAD: Definition = Definition {
    name: "discovery.nomad",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            &[
                ALLOW_STALE,
                Attribute::with_default("namespace", Kind::String, "\"default\"", "Namespace of the services."),
                discovery::refresh_interval("\"60s\""),
                Attribute::with_default("region", Kind::String, "\"global\"", "Region of the servers."),
                Attribute::with_default(
                    "server",
                    Kind::String,
                    "\"http://localhost:4646\"",
                    "URL of the server."
                ),
                discovery::TAG_SEPARATOR,
            ],
            http_client::ATTRIBUTES
        ),
        blocks: http_client::BLOCKS,
    },
    exports: discovery::EXPORTS,
    validate: |arguments| {
        checks::not_empty(arguments, "", "server")?;
        http_client::check(arguments, "")
    },
    build: None,
    doc: "`discovery.nomad` finds the services of a Nomad cluster.",
};

const ALLOW_STALE: Attribute = Attribute::with_default(
    "allow_stale",
    Kind::Bool,
    "true",
    "Whether any server may answer, not only the leader.",
);

const CATALOG: &[Attribute] = &[
    Attribute::optional("datacenter", Kind::String, "Data center; not set, that of the agent."),
    Attribute::optional("password", Kind::Secret, "Password (old form of basic_auth)."),
    discovery::refresh_interval("\"30s\""),
    Attribute::with_default("scheme", Kind::String, "\"http\"", "http or https."),
    Attribute::with_default(
        "server",
        Kind::String,
        "\"localhost:8500\"",
        "Host and port of the agent.",
    ),
    Attribute::optional(
        "services",
        Kind::List(&Kind::String),
        "Services to look for; not set, all.",
    ),
    discovery::TAG_SEPARATOR,
    Attribute::optional(
        "tags",
        Kind::List(&Kind::String),
        "Tags that a service must have, all of them.",
    ),
    Attribute::optional("token", Kind::Secret, "Token of the API."),
    Attribute::optional("username", Kind::String, "User (old form of basic_auth)."),
];
