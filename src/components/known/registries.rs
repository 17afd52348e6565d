//! Discoveries that ask a registry of services: Eureka, Kuma, Marathon, PuppetDB, Uyuni, and Nerve and Serverset in ZooKeeper.
//!
//! Schemas and checks.

use crate::components::common::{checks, discovery, http_client};
use crate::lang::schema::{Arguments, Attribute, Kind, Schema, attributes};
use crate::pipeline::component::{ArgumentError, Definition, Stability};

/// `discovery.eureka`
pub const EUREKA: Definition = Definition {
    name: "discovery.eureka",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            &[
                discovery::refresh_interval("\"30s\""),
                Attribute::required("server", Kind::String, "URL of the registry.")
            ],
            http_client::ATTRIBUTES
        ),
        blocks: http_client::BLOCKS,
    },
    exports: discovery::EXPORTS,
    validate: |arguments| {
        checks::http_url(arguments, "", "server")?;
        http_client::check(arguments, "")
    },
    build: None,
    doc: "`discovery.eureka` finds the instances of a Eureka registry.",
};

/// `discovery.kuma`
pub const KUMA: Definition = Definition {
    name: "discovery.kuma",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            &[
                Attribute::with_default(
                    "fetch_timeout",
                    Kind::Duration,
                    "\"2m\"",
                    "Longest time that a request may take."
                ),
                discovery::refresh_interval("\"30s\""),
                Attribute::required("server", Kind::String, "URL of the control plane.")
            ],
            http_client::ATTRIBUTES
        ),
        blocks: http_client::BLOCKS,
    },
    exports: discovery::EXPORTS,
    validate: |arguments| {
        discovery::check_refresh_interval(arguments)?;
        checks::positive(arguments, "", "fetch_timeout")?;
        http_client::check(arguments, "")
    },
    build: None,
    doc: "`discovery.kuma` finds the proxies of a Kuma control plane.",
};

/// `discovery.marathon`
pub const MARATHON: Definition = Definition {
    name: "discovery.marathon",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            &[
                Attribute::optional("auth_token", Kind::Secret, "Token of DC/OS."),
                Attribute::optional("auth_token_file", Kind::String, "File with the token of DC/OS."),
                discovery::refresh_interval("\"30s\""),
                Attribute::required("servers", Kind::List(&Kind::String), "URLs of the servers.")
            ],
            http_client::ATTRIBUTES
        ),
        blocks: http_client::BLOCKS,
    },
    exports: discovery::EXPORTS,
    validate: check_marathon,
    build: None,
    doc: "`discovery.marathon` finds the tasks of a Marathon cluster.",
};

/// `discovery.nerve`
pub const NERVE: Definition = Definition {
    name: "discovery.nerve",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(ZOOKEEPER),
        blocks: &[],
    },
    exports: discovery::EXPORTS,
    validate: |arguments| checks::positive(arguments, "", "timeout"),
    build: None,
    doc: "`discovery.nerve` finds the services that Nerve writes into ZooKeeper.",
};

/// `discovery.puppetdb`
pub const PUPPETDB: Definition = Definition {
    name: "discovery.puppetdb",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            &[
                Attribute::with_default(
                    "include_parameters",
                    Kind::Bool,
                    "false",
                    "Whether the parameters of a resource become labels; they may hold secrets."
                ),
                discovery::port("80"),
                Attribute::required("query", Kind::String, "Query in the Puppet Query Language."),
                discovery::refresh_interval("\"60s\""),
                Attribute::required("url", Kind::String, "URL of the database.")
            ],
            http_client::ATTRIBUTES
        ),
        blocks: http_client::BLOCKS,
    },
    exports: discovery::EXPORTS,
    validate: |arguments| {
        checks::http_url(arguments, "", "url")?;
        http_client::check(arguments, "")
    },
    build: None,
    doc: "`discovery.puppetdb` finds the resources of a PuppetDB.",
};

/// `discovery.serverset`
pub const SERVERSET: Definition = Definition {
    name: "discovery.serverset",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(ZOOKEEPER),
        blocks: &[],
    },
    exports: discovery::EXPORTS,
    validate: check_serverset,
    build: None,
    doc: "`discovery.serverset` finds the members of serversets in ZooKeeper.",
};

/// `discovery.uyuni`
pub const UYUNI: Definition = Definition {
    name: "discovery.uyuni",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            &[
                Attribute::with_default(
                    "entitlement",
                    Kind::String,
                    "\"monitoring_entitled\"",
                    "Entitlement that a system must have."
                ),
                Attribute::required("password", Kind::Secret, "Password."),
                discovery::refresh_interval("\"1m\""),
                Attribute::with_default(
                    "separator",
                    Kind::String,
                    "\",\"",
                    "Text between the groups in the label that holds them all."
                ),
                Attribute::required("server", Kind::String, "URL of the server."),
                Attribute::required("username", Kind::String, "User.")
            ],
            http_client::TRANSPORT_ATTRIBUTES
        ),
        blocks: &[http_client::TLS_CONFIG],
    },
    exports: discovery::EXPORTS,
    validate: |arguments| {
        checks::http_url(arguments, "", "server")?;
        http_client::check(arguments, "")
    },
    build: None,
    doc: "`discovery.uyuni` finds the systems that a Uyuni server monitors.",
};

const ZOOKEEPER: &[Attribute] = &[
    Attribute::required("paths", Kind::List(&Kind::String), "Paths in ZooKeeper to look at."),
    Attribute::required("servers", Kind::List(&Kind::String), "Servers of ZooKeeper, HOST:PORT."),
    Attribute::with_default("timeout", Kind::Duration, "\"10s\"", "Timeout of the session."),
];

fn check_marathon(arguments: &Arguments) -> Result<(), ArgumentError> {
    discovery::check_refresh_interval(arguments)?;
    checks::not_empty(arguments, "", "servers")?;
    for names in [
        &["auth_token", "auth_token_file", "basic_auth"][..],
        &["auth_token", "auth_token_file", "bearer_token", "bearer_token_file"],
        &["auth_token", "auth_token_file", "authorization"],
    ] {
        checks::at_most_one(arguments, "", names)?;
    }
    http_client::check(arguments, "")
}

fn check_serverset(arguments: &Arguments) -> Result<(), ArgumentError> {
    checks::not_empty(arguments, "", "servers")?;
    checks::not_empty(arguments, "", "paths")?;
    for (index, path) in arguments.strings("paths").iter().enumerate() {
        if !path.starts_with('/') {
            let message = format!("`{path}` must begin with /");
            return Err(checks::error(format!("paths[{index}]"), message));
        }
    }
    checks::positive(arguments, "", "timeout")
}
