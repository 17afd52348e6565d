//! Sends requests to Consul and converts the responses to targets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use serde::Deserialize;
use url::Url;

use crate::common::arguments::targets::Target;
use crate::common::discovery::consul_catalog::{Catalog, Check, health};
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::http::web_api::{Answer, WebApi};
use crate::discovery::consul::arguments::ConsulArguments;
use alluvium_pipeline::component::ComponentError;

/// Maximum time that a blocking query waits, as in Prometheus.
pub(super) const LONGEST_WAIT: Duration = Duration::from_mins(2);
/// Time that a response may take in addition to the wait of its query. Consul adds up to a sixteenth of the wait, and
/// the network adds its latency.
const SLACK: Duration = Duration::from_secs(25);

/// A client of a Consul agent.
pub(super) struct Api {
    web: WebApi,
    catalog: Catalog,
    /// Query parameters of every request.
    parameters: Vec<(&'static str, String)>,
    /// Metadata that the node of a target must have.
    node_meta: BTreeMap<Arc<str>, Arc<str>>,
}

/// The response to a query, with the index after which the next query waits for a change.
pub(super) struct Indexed<T> {
    pub(super) index: u64,
    pub(super) value: T,
}

/// Makes a query wait for a change after the index `after`, but not longer than `max_wait`.
#[derive(Clone, Copy)]
pub(super) struct Wait {
    pub(super) after: u64,
    pub(super) max_wait: Duration,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AgentItself {
    config: AgentConfig,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AgentConfig {
    datacenter: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct Entry {
    node: Node,
    service: Service,
    checks: Option<Vec<Check>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct Node {
    node: String,
    address: String,
    meta: Option<BTreeMap<String, String>>,
    tagged_addresses: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct Service {
    #[serde(rename = "ID")]
    id: String,
    address: String,
    /// Consul checks no range, so that a port may be negative or above 65535.
    port: i64,
    tags: Option<Vec<String>>,
    meta: Option<BTreeMap<String, String>>,
    namespace: String,
    partition: String,
}

impl Api {
    pub(super) fn new(arguments: &ConsulArguments, user_agent: &Arc<str>) -> Result<Self, ComponentError> {
        let web = arguments.catalog.api(arguments.client.options(user_agent))?;
        let mut parameters = Vec::new();
        for (name, value) in [
            ("dc", &arguments.catalog.datacenter),
            ("ns", &arguments.namespace),
            ("partition", &arguments.partition),
        ] {
            parameters.extend(value.as_ref().map(|value| (name, value.to_string())));
        }
        if arguments.allow_stale {
            parameters.push(("stale", String::new()));
        }
        let node_meta = arguments.node_meta.iter().flatten();
        parameters.extend(node_meta.map(|(key, value)| ("node-meta", format!("{key}:{value}"))));
        Ok(Self {
            web: web.with_timeout(LONGEST_WAIT + SLACK),
            catalog: arguments.catalog.clone(),
            parameters,
            node_meta: arguments.node_meta.clone().unwrap_or_default(),
        })
    }

    /// Returns the services that the arguments name. Returns `None` if the arguments name no services or contain tags,
    /// because then the catalog must be read.
    pub(super) fn named(&self) -> Option<&[Arc<str>]> {
        let named = self.catalog.services.as_deref().filter(|services| !services.is_empty());
        named.filter(|_| self.catalog.tags.iter().flatten().next().is_none())
    }

    /// Returns the data center of the targets.
    pub(super) async fn datacenter(&self) -> Result<Arc<str>, DiscoveryError> {
        if let Some(datacenter) = &self.catalog.datacenter {
            return Ok(datacenter.clone());
        }
        let agent: AgentItself = self.web.json(self.web.url(["v1", "agent", "self"])).await?;
        Ok(agent.config.datacenter.into())
    }

    /// Returns the names of the services that match the arguments.
    pub(super) async fn services(&self, wait: Option<Wait>) -> Result<Indexed<Vec<Arc<str>>>, DiscoveryError> {
        let url = self.web.url(["v1", "catalog", "services"]);
        let response = self.ask(url, wait).await?;
        let services: BTreeMap<String, Option<Vec<String>>> = response.value.json()?;
        let counts = |(name, tags): &(String, Option<Vec<String>>)| {
            self.catalog.has_service(name) && self.catalog.has_tags(tags.as_deref().unwrap_or_default())
        };
        let names = services.into_iter().filter(counts).map(|(name, _)| name.into());
        Ok(Indexed {
            index: response.index,
            value: names.collect(),
        })
    }

    /// Returns a target for each instance of a service.
    pub(super) async fn service(
        &self,
        name: &str,
        datacenter: &str,
        wait: Option<Wait>,
    ) -> Result<Indexed<Vec<Target>>, DiscoveryError> {
        let mut url = self.web.url(["v1", "health", "service", name]);
        for tag in self.catalog.tags.iter().flatten() {
            url.query_pairs_mut().append_pair("tag", tag);
        }
        let response = self.ask(url, wait.filter(|_| self.can_wait())).await?;
        let entries: Vec<Entry> = response.value.json()?;
        let mut labels = MetaLabels::new("__meta_consul_");
        labels.set("service", name).set("dc", datacenter);
        let entries = entries.iter().filter(|entry| self.is_selected(&entry.node));
        let targets = entries.map(|entry| self.target(labels.clone(), entry));
        Ok(Indexed {
            index: response.index,
            value: targets.collect(),
        })
    }

    /// Returns false if Consul rejects blocking queries for a service. Agents with the streaming backend, which is the
    /// default, turn node metadata into a filter expression, in which a key must not contain a hyphen.
    fn can_wait(&self) -> bool {
        !self.node_meta.keys().any(|key| key.contains('-'))
    }

    /// Returns true if a node has the metadata of the arguments. Consul answers a blocking query also with nodes whose
    /// metadata only contains the text of the arguments.
    fn is_selected(&self, node: &Node) -> bool {
        let has = |key: &str, value: &str| {
            let meta = node.meta.as_ref().and_then(|meta| meta.get(key));
            meta.is_some_and(|meta| meta == value)
        };
        self.node_meta.iter().all(|(key, value)| has(key, value))
    }

    async fn ask(&self, mut url: Url, wait: Option<Wait>) -> Result<Indexed<Answer>, DiscoveryError> {
        for (name, value) in &self.parameters {
            url.query_pairs_mut().append_pair(name, value);
        }
        if let Some(Wait { after, max_wait }) = wait {
            // If the wait is zero, Consul uses its own default.
            let wait_text = format!("{}ms", max_wait.as_millis().max(1));
            url.query_pairs_mut()
                .append_pair("index", &after.to_string())
                .append_pair("wait", &wait_text);
        }
        let answer = self.web.get(url, HeaderMap::new()).await?;
        let index = answer
            .headers
            .get("x-consul-index")
            .and_then(|value| value.to_str().ok());
        let index = index.and_then(|index| index.parse().ok());
        let index = index.ok_or_else(|| {
            let missing = format!("{} answered without the header X-Consul-Index", answer.url);
            DiscoveryError::Response(missing)
        })?;
        Ok(Indexed { index, value: answer })
    }

    fn target(&self, mut labels: MetaLabels, entry: &Entry) -> Target {
        let Entry { node, service, checks } = entry;
        labels
            .set("address", &node.address)
            .set("node", &node.node)
            .set("namespace", &service.namespace)
            .set("partition", &service.partition)
            .set("tags", self.catalog.joined(service.tags.as_deref().unwrap_or_default()))
            .set("service_address", &service.address)
            .set("service_port", service.port)
            .set("service_id", &service.id)
            .set("health", health(checks.iter().flatten()))
            .set_each("metadata_", node.meta.iter().flatten())
            .set_each("service_metadata_", service.meta.iter().flatten())
            .set_each("tagged_address_", node.tagged_addresses.iter().flatten());
        // A service may run on another host than the node on which it is registered.
        let host = Some(&service.address).filter(|address| !address.is_empty());
        labels.with_address(host_port(host.unwrap_or(&node.address), service.port))
    }
}
