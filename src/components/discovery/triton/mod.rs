//! `discovery.triton`: discovers the containers or the compute nodes of a Triton cloud.
//!
//! In: the response of the discovery endpoint, which authenticates the client by its certificate. Out: a target for
//! each container or node.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use url::Url;

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::MetaLabels;
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::http::client::{TlsArguments, tls};
use crate::common::http::json_values::{take_list, text, texts};
use crate::common::http::values::http_url;
use crate::common::http::web_api::WebApi;
use alluvium_lang::attribute::{Interval, NotEmpty, choices};
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};
use alluvium_wire::client::ClientOptions;

#[cfg(test)]
mod tests;

/// Labels of a target, each with the JSON path of its value in the container.
const CONTAINER_LABELS: &[(&str, &str)] = &[
    ("machine_alias", "/vm_alias"),
    ("machine_brand", "/vm_brand"),
    ("machine_id", "/vm_uuid"),
    ("machine_image", "/vm_image_uuid"),
    ("server_id", "/server_uuid"),
];
/// Labels of a target, each with the JSON path of its value in the compute node.
const NODE_LABELS: &[(&str, &str)] = &[("machine_alias", "/server_hostname"), ("machine_id", "/server_uuid")];

arguments! {
    /// Arguments of `discovery.triton`.
    pub(crate) struct TritonArguments {
        /// Account that the containers belong to. The component does not send it, because the client certificate
        /// identifies the account.
        account: NotEmpty<Arc<str>>,
        /// DNS suffix that follows the ID of a container or node in the address of its target.
        dns_suffix: NotEmpty<Arc<str>>,
        /// Host name of the discovery endpoint.
        endpoint: NotEmpty<Arc<str>>,
        /// Groups of containers to discover. Defaults to all groups.
        groups: Option<Vec<Arc<str>>>,
        /// Port of the discovery endpoint, and port in the address of each target.
        port: i64 = 9163,
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "60s",
        /// Kind of targets to discover: `container`, or `cn` for compute nodes.
        role: Role = "container",
        /// Version of the discovery API.
        version: i64 = 1,
    }
    blocks {
        /// TLS settings of connections to the discovery endpoint.
        tls_config: Option<TlsArguments>,
    }
}

choices! {
    /// The kind of Triton resource to discover.
    pub(crate) enum Role {
        Container = "container",
        ComputeNode = "cn",
    }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<TritonArguments> = polled::definition::<Triton>(
    "discovery.triton",
    "`discovery.triton` finds the containers or the compute nodes of a Triton cloud.",
);

struct Triton {
    api: WebApi,
    arguments: TritonArguments,
}

impl Discovery for Triton {
    type Arguments = TritonArguments;

    fn new(arguments: &TritonArguments, context: &Context) -> Result<Self, ComponentError> {
        let url = format!("https://{}:{}", arguments.endpoint.0, arguments.port);
        let url = http_url(&url).map_err(|error| ComponentError(format!("endpoint: {error}")))?;
        Self::with_url(&url, arguments, context)
    }

    fn interval(&self) -> Duration {
        self.arguments.refresh_interval.get()
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let (version, groups) = (format!("v{}", self.arguments.version), self.arguments.groups.as_deref());
        let (path, field, id, labels) = match self.arguments.role {
            Role::Container => (
                vec![version.as_str(), "discover"],
                "/containers",
                "/vm_uuid",
                CONTAINER_LABELS,
            ),
            Role::ComputeNode => (
                vec![version.as_str(), "gz", "discover"],
                "/cns",
                "/server_uuid",
                NODE_LABELS,
            ),
        };
        let mut url = self.api.url(path);
        if let Some(groups) = groups.filter(|groups| !groups.is_empty()) {
            url.query_pairs_mut().append_pair("groups", &groups.join(","));
        }
        let mut answer: Value = self.api.json(url).await?;
        let TritonArguments { dns_suffix, port, .. } = &self.arguments;
        let target = |item: &Value| {
            let mut meta = MetaLabels::new("__meta_triton_");
            meta.set_json(item, labels)
                .set_list("groups", ",", &texts(item, "/groups"));
            Some(meta.with_address(format!("{}.{}:{port}", text(item, id)?, dns_suffix.0)))
        };
        Ok(take_list(&mut answer, field)?.iter().filter_map(target).collect())
    }
}

impl Triton {
    fn with_url(url: &Url, arguments: &TritonArguments, context: &Context) -> Result<Self, ComponentError> {
        let options = ClientOptions {
            tls: tls(arguments.tls_config.as_ref()),
            ..ClientOptions::new(context.user_agent.clone())
        };
        Ok(Self {
            api: WebApi::with_options(&options, url)?,
            arguments: arguments.clone(),
        })
    }
}
