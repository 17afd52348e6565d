//! `discovery.nomad`: discovers the services of a Nomad cluster.
//!
//! In: the list of services, and the instances of each service. Out: a target for each instance.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use url::Url;

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::http::client::HttpClientArguments;
use crate::common::http::paging::ask_lists;
use crate::common::http::values::HttpUrl;
use crate::common::http::web_api::WebApi;
use alluvium_lang::attribute::{Interval, NotEmpty};
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};

#[cfg(test)]
mod tests;

/// Maximum number of concurrent requests, each on a connection of its own. By default, a Nomad agent accepts 100
/// connections from an address and answers 429 on each further connection, also to other programs.
const AT_ONCE: usize = 4;

arguments! {
    /// Arguments of `discovery.nomad`.
    pub(crate) struct NomadArguments {
        /// If true, any server may respond, so services may be out of date. If false, only the leader responds.
        allow_stale: bool = true,
        /// Namespace of the services. `*` selects all namespaces.
        namespace: Arc<str> = "default",
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "60s",
        /// Region of the Nomad servers.
        region: Arc<str> = "global",
        /// URL of the Nomad server, with its port.
        server: NotEmpty<HttpUrl> = "http://localhost:4646",
        /// Separator of the tags in the label `__meta_nomad_tags`.
        tag_separator: Arc<str> = ",",
    }
    shared { client: HttpClientArguments }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<NomadArguments> = polled::definition::<Nomad>(
    "discovery.nomad",
    "`discovery.nomad` finds the services of a Nomad cluster.",
);

struct Nomad {
    api: WebApi,
    arguments: NomadArguments,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Namespace {
    namespace: String,
    services: Vec<ServiceName>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ServiceName {
    service_name: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct Instance {
    #[serde(rename = "ID")]
    id: String,
    service_name: String,
    namespace: String,
    #[serde(rename = "NodeID")]
    node_id: String,
    datacenter: String,
    tags: Option<Vec<String>>,
    address: String,
    port: i64,
}

impl Discovery for Nomad {
    type Arguments = NomadArguments;

    fn new(arguments: &NomadArguments, context: &Context) -> Result<Self, ComponentError> {
        Ok(Self {
            api: WebApi::new(&arguments.client, &context.user_agent, arguments.server.0.url())?,
            arguments: arguments.clone(),
        })
    }

    fn interval(&self) -> Duration {
        self.arguments.refresh_interval.get()
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let namespaces: Vec<Namespace> = self
            .api
            .json(self.url(&["v1", "services"], &self.arguments.namespace))
            .await?;
        let mut services = Vec::new();
        for Namespace {
            namespace,
            services: named,
        } in namespaces
        {
            services.extend(
                named
                    .into_iter()
                    .map(|service| (namespace.clone(), service.service_name)),
            );
        }
        let ask = |(namespace, service)| self.instances(namespace, service);
        let instances = ask_lists(services, AT_ONCE, ask).await?;
        Ok(instances.iter().map(|instance| self.target(instance)).collect())
    }
}

impl Nomad {
    async fn instances(&self, namespace: String, service: String) -> Result<Vec<Instance>, DiscoveryError> {
        let url = self.url(&["v1", "service", &service], &namespace);
        Ok(self.api.json(url).await?)
    }

    fn url(&self, path: &[&str], namespace: &str) -> Url {
        let mut url = self.api.url(path.iter().copied());
        let mut query = url.query_pairs_mut();
        for (name, value) in [("region", &*self.arguments.region), ("namespace", namespace)] {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        if self.arguments.allow_stale {
            query.append_pair("stale", "");
        }
        drop(query);
        url
    }

    fn target(&self, instance: &Instance) -> Target {
        let mut labels = MetaLabels::new("__meta_nomad_");
        labels
            .set("address", &instance.address)
            .set("dc", &instance.datacenter)
            .set("node_id", &instance.node_id)
            .set("namespace", &instance.namespace)
            .set("service", &instance.service_name)
            .set("service_address", &instance.address)
            .set("service_id", &instance.id)
            .set("service_port", instance.port)
            .set_list(
                "tags",
                &self.arguments.tag_separator,
                instance.tags.as_deref().unwrap_or_default(),
            );
        labels.with_address(host_port(&instance.address, instance.port))
    }
}
