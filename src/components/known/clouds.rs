//! Discoveries that ask the API of a hosting company: DigitalOcean, Google, Hetzner, IONOS, Linode, OVHcloud, Scaleway.
//!
//! Schemas and checks.

use crate::components::common::{checks, discovery, http_client};
use crate::lang::schema::{Attribute, Kind, Schema, attributes};
use crate::pipeline::component::{Definition, Stability};

/// `discovery.digitalocean`
pub const DIGITALOCEAN: Definition = Definition {
    name: "discovery.digitalocean",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            &[
                http_client::BEARER_TOKEN,
                http_client::BEARER_TOKEN_FILE,
                discovery::port("80"),
                discovery::refresh_interval("\"1m\"")
            ],
            http_client::TRANSPORT_ATTRIBUTES
        ),
        blocks: &[],
    },
    exports: discovery::EXPORTS,
    validate: |arguments| {
        checks::exactly_one(arguments, "", &["bearer_token", "bearer_token_file"])?;
        http_client::check(arguments, "")
    },
    build: None,
    doc: "`discovery.digitalocean` finds the droplets of DigitalOcean.",
};

/// `discovery.gce`
pub const GCE: Definition = Definition {
    name: "discovery.gce",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(&[
            Attribute::optional(
                "filter",
                Kind::String,
                "Filter that the API applies, in its own language."
            ),
            discovery::port("80"),
            Attribute::required("project", Kind::String, "Project of the instances."),
            discovery::refresh_interval("\"60s\""),
            discovery::TAG_SEPARATOR,
            Attribute::required("zone", Kind::String, "Zone of the instances.")
        ]),
        blocks: &[],
    },
    exports: discovery::EXPORTS,
    validate: |_| Ok(()),
    build: None,
    doc: "`discovery.gce` finds the instances of Google Compute Engine.",
};

/// `discovery.hetzner`
pub const HETZNER: Definition = Definition {
    name: "discovery.hetzner",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            &[
                discovery::port("80"),
                discovery::refresh_interval("\"60s\""),
                Attribute::required("role", Kind::String, "What to look for: hcloud or robot.")
            ],
            http_client::ATTRIBUTES
        ),
        blocks: http_client::BLOCKS,
    },
    exports: discovery::EXPORTS,
    validate: |arguments| {
        checks::choice(arguments, "", "role", &["hcloud", "robot"])?;
        http_client::check(arguments, "")
    },
    build: None,
    doc: "`discovery.hetzner` finds the servers of Hetzner Cloud or Hetzner Robot.",
};

/// `discovery.ionos`
pub const IONOS: Definition = Definition {
    name: "discovery.ionos",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            &[
                Attribute::required("datacenter_id", Kind::String, "Id of the data center."),
                discovery::port("80"),
                discovery::refresh_interval("\"60s\"")
            ],
            http_client::ATTRIBUTES
        ),
        blocks: http_client::BLOCKS,
    },
    exports: discovery::EXPORTS,
    validate: |arguments| {
        checks::not_empty(arguments, "", "datacenter_id")?;
        discovery::check_refresh_interval(arguments)?;
        http_client::check(arguments, "")
    },
    build: None,
    doc: "`discovery.ionos` finds the servers of a data center of IONOS.",
};

/// `discovery.linode`
pub const LINODE: Definition = Definition {
    name: "discovery.linode",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            &[
                discovery::port("80"),
                discovery::refresh_interval("\"60s\""),
                Attribute::with_default("region", Kind::String, "\"\"", "Region to look at; empty is all."),
                discovery::TAG_SEPARATOR
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
    doc: "`discovery.linode` finds the instances of Linode.",
};

/// `discovery.ovhcloud`
pub const OVHCLOUD: Definition = Definition {
    name: "discovery.ovhcloud",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(&[
            Attribute::required("application_key", Kind::String, "Key of the application."),
            Attribute::required("application_secret", Kind::Secret, "Secret of the application."),
            Attribute::required("consumer_key", Kind::Secret, "Key of the consumer."),
            Attribute::with_default("endpoint", Kind::String, "\"ovh-eu\"", "Endpoint of the API, by name."),
            discovery::refresh_interval("\"60s\""),
            Attribute::required("service", Kind::String, "What to look for: dedicated_server or vps.")
        ]),
        blocks: &[],
    },
    exports: discovery::EXPORTS,
    validate: |arguments| {
        for name in ["endpoint", "application_key", "application_secret", "consumer_key"] {
            checks::not_empty(arguments, "", name)?;
        }
        checks::choice(arguments, "", "service", &["dedicated_server", "vps"])
    },
    build: None,
    doc: "`discovery.ovhcloud` finds the dedicated servers or the virtual private servers of OVHcloud.",
};

/// `discovery.scaleway`
pub const SCALEWAY: Definition = Definition {
    name: "discovery.scaleway",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            &[
                Attribute::required("access_key", Kind::String, "Access key."),
                Attribute::with_default(
                    "api_url",
                    Kind::String,
                    "\"https://api.scaleway.com\"",
                    "URL of the API."
                ),
                Attribute::optional("name_filter", Kind::String, "Part of the name that a server must have."),
                discovery::port("80"),
                Attribute::required("project_id", Kind::String, "Id of the project."),
                discovery::refresh_interval("\"60s\""),
                Attribute::required("role", Kind::String, "What to look for: instance or baremetal."),
                Attribute::optional("secret_key", Kind::Secret, "Secret of the access key."),
                Attribute::optional(
                    "secret_key_file",
                    Kind::String,
                    "File with the secret of the access key."
                ),
                Attribute::optional(
                    "tags_filter",
                    Kind::List(&Kind::String),
                    "Tags that a server must have, all of them."
                ),
                Attribute::with_default("zone", Kind::String, "\"fr-par-1\"", "Zone of the servers.")
            ],
            http_client::TRANSPORT_ATTRIBUTES
        ),
        blocks: &[http_client::TLS_CONFIG],
    },
    exports: discovery::EXPORTS,
    validate: |arguments| {
        checks::choice(arguments, "", "role", &["instance", "baremetal"])?;
        checks::not_empty(arguments, "", "project_id")?;
        checks::not_empty(arguments, "", "access_key")?;
        checks::exactly_one(arguments, "", &["secret_key", "secret_key_file"])?;
        http_client::check(arguments, "")
    },
    build: None,
    doc: "`discovery.scaleway` finds the instances or the bare metal servers of Scaleway.",
};
