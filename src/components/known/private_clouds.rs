//! Discoveries that ask a cloud of one's own: OpenStack and Triton.
//!
//! Schemas and checks.

use crate::components::common::{checks, discovery, http_client};
use crate::lang::schema::{Attribute, Kind, Schema, attributes};
use crate::pipeline::component::{Definition, Stability};

/// `discovery.openstack`
pub const OPENSTACK: Definition = Definition {
    name: "discovery.openstack",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(&[
            Attribute::with_default(
                "all_tenants",
                Kind::Bool,
                "false",
                "Whether instances of all projects are looked at; needs the rights of an administrator."
            ),
            Attribute::optional(
                "application_credential_id",
                Kind::String,
                "Id of the application credential."
            ),
            Attribute::optional(
                "application_credential_name",
                Kind::String,
                "Name of the application credential."
            ),
            Attribute::optional(
                "application_credential_secret",
                Kind::Secret,
                "Secret of the application credential."
            ),
            Attribute::with_default(
                "availability",
                Kind::String,
                "\"public\"",
                "Endpoint of the API: public, internal or admin."
            ),
            Attribute::optional("domain_id", Kind::String, "Id of the domain."),
            Attribute::optional("domain_name", Kind::String, "Name of the domain."),
            Attribute::optional("identity_endpoint", Kind::String, "URL of the identity service."),
            Attribute::optional("password", Kind::Secret, "Password."),
            discovery::port("80"),
            Attribute::optional("project_id", Kind::String, "Id of the project."),
            Attribute::optional("project_name", Kind::String, "Name of the project."),
            discovery::refresh_interval("\"60s\""),
            Attribute::required("region", Kind::String, "Region."),
            Attribute::required("role", Kind::String, "What to look for: instance or hypervisor."),
            Attribute::optional("userid", Kind::String, "Id of the user."),
            Attribute::optional("username", Kind::String, "Name of the user.")
        ]),
        blocks: &[http_client::TLS_CONFIG],
    },
    exports: discovery::EXPORTS,
    validate: |arguments| {
        checks::choice(arguments, "", "availability", &["public", "internal", "admin"])?;
        checks::choice(arguments, "", "role", &["instance", "hypervisor"])?;
        http_client::check(arguments, "")
    },
    build: None,
    doc: "`discovery.openstack` finds the instances or the hypervisors of an OpenStack cloud.",
};

/// `discovery.triton`
pub const TRITON: Definition = Definition {
    name: "discovery.triton",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(&[
            Attribute::required("account", Kind::String, "Account of the containers."),
            Attribute::required("dns_suffix", Kind::String, "End of the names of the targets."),
            Attribute::required("endpoint", Kind::String, "Host of the discovery endpoint."),
            Attribute::optional("groups", Kind::List(&Kind::String), "Groups to look at; not set, all."),
            Attribute::with_default("port", Kind::Int, "9163", "Port of the discovery endpoint."),
            discovery::refresh_interval("\"60s\""),
            Attribute::with_default(
                "role",
                Kind::String,
                "\"container\"",
                "What to look for: container or cn (compute nodes)."
            ),
            Attribute::with_default("version", Kind::Int, "1", "Version of the discovery API.")
        ]),
        blocks: &[http_client::TLS_CONFIG],
    },
    exports: discovery::EXPORTS,
    validate: |arguments| {
        discovery::check_refresh_interval(arguments)?;
        checks::choice(arguments, "", "role", &["container", "cn"])?;
        http_client::check(arguments, "")
    },
    build: None,
    doc: "`discovery.triton` finds the containers or the compute nodes of a Triton cloud.",
};
