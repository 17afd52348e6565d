//! `discovery.consulagent`: discovers the services of one Consul agent.
//!
//! In: the agent's services, its checks and its configuration. The component does not query the cluster of the agent.
//! Out: a target for each instance.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::common::arguments::targets::Target;
use crate::common::discovery::consul_catalog::{Catalog, Check, health};
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::http::client::{TlsArguments, tls};
use crate::common::http::web_api::WebApi;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};
use alluvium_wire::client::ClientOptions;

#[cfg(test)]
mod tests;

arguments! {
    /// Arguments of `discovery.consulagent`.
    pub(crate) struct ConsulAgentArguments {}
    blocks {
        /// TLS settings for the connection to the agent.
        tls_config: Option<TlsArguments>,
    }
    shared { catalog: Catalog }
    check ConsulAgentArguments::check;
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<ConsulAgentArguments> = polled::definition::<ConsulAgent>(
    "discovery.consulagent",
    "`discovery.consulagent` finds the services of one Consul agent.",
);

struct ConsulAgent {
    api: WebApi,
    catalog: Catalog,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Itself {
    config: Config,
    member: Member,
    meta: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Config {
    datacenter: String,
    node_name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Member {
    addr: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct Service {
    #[serde(rename = "ID")]
    id: String,
    service: String,
    address: String,
    /// Consul checks no range, so that a port may be negative or above 65535.
    port: i64,
    tags: Option<Vec<String>>,
    meta: Option<BTreeMap<String, String>>,
    tagged_addresses: Option<BTreeMap<String, TaggedAddress>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct TaggedAddress {
    address: String,
    port: i64,
}

impl ConsulAgentArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        self.catalog.check_credentials(&[])
    }
}

impl Discovery for ConsulAgent {
    type Arguments = ConsulAgentArguments;

    fn new(arguments: &ConsulAgentArguments, context: &Context) -> Result<Self, ComponentError> {
        let options = ClientOptions {
            tls: tls(arguments.tls_config.as_ref()),
            ..ClientOptions::new(context.user_agent.clone())
        };
        Ok(Self {
            api: arguments.catalog.api(options)?,
            catalog: arguments.catalog.clone(),
        })
    }

    fn interval(&self) -> Duration {
        self.catalog.refresh_interval.get()
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let agent: Itself = self.ask("self").await?;
        let services: BTreeMap<String, Service> = self.ask("services").await?;
        let checks: BTreeMap<String, Check> = self.ask("checks").await?;
        let counts = |service: &&Service| {
            let tags = service.tags.as_deref().unwrap_or_default();
            self.catalog.has_service(&service.service) && self.catalog.has_tags(tags)
        };
        let services = services.values().filter(counts);
        Ok(services.map(|service| self.target(&agent, service, &checks)).collect())
    }
}

impl ConsulAgent {
    async fn ask<T: DeserializeOwned>(&self, resource: &str) -> Result<T, DiscoveryError> {
        Ok(self.api.json(self.api.url(["v1", "agent", resource])).await?)
    }

    fn target(&self, agent: &Itself, service: &Service, checks: &BTreeMap<String, Check>) -> Target {
        // A check without a service ID applies to the whole node.
        let of_service = |check: &&Check| check.service_id == service.id || check.service_id.is_empty();
        let tagged = service.tagged_addresses.iter().flatten();
        let datacenter = self.catalog.datacenter.as_deref().unwrap_or(&agent.config.datacenter);
        let mut labels = MetaLabels::new("__meta_consulagent_");
        labels
            .set("service", &service.service)
            .set("dc", datacenter)
            .set("address", &agent.member.addr)
            .set("node", &agent.config.node_name)
            .set("tags", self.catalog.joined(service.tags.as_deref().unwrap_or_default()))
            .set("service_address", &service.address)
            .set("service_port", service.port)
            .set("service_id", &service.id)
            .set("health", health(checks.values().filter(of_service)))
            .set_each("metadata_", agent.meta.iter().flatten())
            .set_each("service_metadata_", service.meta.iter().flatten())
            .set_each(
                "tagged_address_",
                tagged.map(|(name, tagged)| (name, host_port(&tagged.address, tagged.port))),
            );
        let host = Some(&service.address).filter(|address| !address.is_empty());
        labels.with_address(host_port(host.unwrap_or(&agent.member.addr), service.port))
    }
}
