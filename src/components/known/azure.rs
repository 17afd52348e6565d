//! `discovery.azure`: targets from Azure's API.
//!
//! Schema and checks.

use crate::components::common::{checks, discovery, http_client};
use crate::lang::schema::{Attribute, Block, Kind, Schema, attributes};
use crate::pipeline::component::{Definition, Stability};

/// `discovery.azure`
pub const DEFINITION: Definition = Definition {
    name: "discovery.azure",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            &[
                Attribute::with_default(
                    "environment",
                    Kind::String,
                    "\"AzurePublicCloud\"",
                    "Cloud of Azure to ask."
                ),
                discovery::port("80"),
                discovery::refresh_interval("\"5m\""),
                Attribute::optional(
                    "resource_group",
                    Kind::String,
                    "Resource group to look at; not set, all."
                ),
                Attribute::optional("subscription_id", Kind::String, "Subscription to look at."),
            ],
            http_client::TRANSPORT_ATTRIBUTES
        ),
        blocks: &[
            Block::optional(
                "managed_identity",
                &MANAGED_IDENTITY,
                "Credentials: an identity of the machine.",
            ),
            Block::optional("oauth", &OAUTH, "Credentials: an application and its secret."),
            Block::optional("sdk_auth", &SDK, "Credentials: as Azure's own tools find them."),
            http_client::TLS_CONFIG,
            Block::optional(
                "workload_identity",
                &Schema::EMPTY,
                "Credentials: the identity of a workload in Kubernetes.",
            ),
        ],
    },
    exports: discovery::EXPORTS,
    validate: |arguments| {
        let credentials = ["oauth", "managed_identity", "sdk_auth", "workload_identity"];
        checks::exactly_one(arguments, "", &credentials)?;
        http_client::check(arguments, "")
    },
    build: None,
    doc: "`discovery.azure` finds the virtual machines of Azure.",
};

const MANAGED_IDENTITY: Schema = Schema {
    attributes: &[Attribute::required("client_id", Kind::String, "Id of the identity.")],
    blocks: &[],
};

const OAUTH: Schema = Schema {
    attributes: &[
        Attribute::required("client_id", Kind::String, "Id of the application."),
        Attribute::required("client_secret", Kind::Secret, "Secret of the application."),
        Attribute::required("tenant_id", Kind::String, "Id of the tenant."),
    ],
    blocks: &[],
};

const SDK: Schema = Schema {
    attributes: &[Attribute::optional("tenant_id", Kind::String, "Id of the tenant.")],
    blocks: &[],
};
