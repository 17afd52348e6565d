//! `discovery.gce`: discovers the instances of Google Compute Engine.
//!
//! In: the pages of `instances.list`. Out: a target for each instance with a network interface.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use url::Url;

use crate::common::arguments::targets::Target;
use crate::common::clouds::bearer;
use crate::common::clouds::environment::Environment;
use crate::common::clouds::google::Google;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port, label_name};
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::http::json_values::{list, pairs, take_list, text, texts};
use crate::common::http::paging::{Page, all_pages};
use crate::common::http::values::http_url;
use crate::common::http::web_api::WebApi;
use alluvium_lang::attribute::{Interval, NotEmpty};
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};
use alluvium_wire::client::{ClientOptions, ProxyOptions};

#[cfg(test)]
mod tests;

/// Base URL of the Compute Engine API.
const API: &str = "https://compute.googleapis.com/compute/v1/";
/// OAuth scope of the tokens. It allows only reading.
const SCOPE: &str = "https://www.googleapis.com/auth/compute.readonly";
/// Labels of a target, each with the JSON path of its value in the instance.
const LABELS: &[(&str, &str)] = &[
    ("instance_id", "/id"),
    ("instance_name", "/name"),
    ("instance_status", "/status"),
    ("machine_type", "/machineType"),
    ("network", "/networkInterfaces/0/network"),
    ("private_ip", "/networkInterfaces/0/networkIP"),
    ("subnetwork", "/networkInterfaces/0/subnetwork"),
    ("zone", "/zone"),
];

arguments! {
    /// Arguments of `discovery.gce`.
    pub(crate) struct GceArguments {
        /// Condition on the discovered instances, in the filter language of the API.
        filter: Option<Arc<str>>,
        /// Port in the address of each target.
        port: i64 = 80,
        /// Google Cloud project that owns the instances.
        project: NotEmpty<Arc<str>>,
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "60s",
        /// Separator between the tags in the label `__meta_gce_tags`.
        tag_separator: Arc<str> = ",",
        /// Zone in which the instances run.
        zone: NotEmpty<Arc<str>>,
    }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<GceArguments> = polled::definition::<Gce>(
    "discovery.gce",
    "`discovery.gce` finds the instances of Google Compute Engine.",
);

struct Gce {
    api: WebApi,
    credentials: Google,
    arguments: GceArguments,
}

impl Discovery for Gce {
    type Arguments = GceArguments;

    fn new(arguments: &GceArguments, context: &Context) -> Result<Self, ComponentError> {
        let api = http_url(API).map_err(ComponentError::new)?;
        Self::with_url(&api, arguments, context, Environment::of_process())
    }

    fn interval(&self) -> Duration {
        self.arguments.refresh_interval.get()
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let instances = all_pages(|token: Option<String>| self.page(token)).await?;
        Ok(instances.iter().filter_map(|instance| self.target(instance)).collect())
    }
}

impl Gce {
    fn with_url(
        url: &Url,
        arguments: &GceArguments,
        context: &Context,
        environment: Environment,
    ) -> Result<Self, ComponentError> {
        let options = ClientOptions {
            proxy: ProxyOptions {
                from_environment: true,
                ..ProxyOptions::default()
            },
            ..ClientOptions::new(context.user_agent.clone())
        };
        Ok(Self {
            api: WebApi::with_options(&options, url)?,
            credentials: Google::new(SCOPE, &options, environment)?,
            arguments: arguments.clone(),
        })
    }

    async fn page(&self, token: Option<String>) -> Result<Page<Value, String>, DiscoveryError> {
        let GceArguments { project, zone, .. } = &self.arguments;
        let mut url = self.api.url(["projects", &project.0, "zones", &zone.0, "instances"]);
        let pairs = self.arguments.filter.as_deref().map(|filter| ("filter", filter));
        let pairs: Vec<(&str, &str)> = pairs
            .into_iter()
            .chain(token.as_deref().map(|own| ("pageToken", own)))
            .collect();
        if !pairs.is_empty() {
            url.query_pairs_mut().extend_pairs(pairs);
        }
        let headers = bearer::header(&self.credentials.token().await?)?;
        let answer = self.api.get(url, headers).await;
        if answer.is_err() {
            self.credentials.forget().await;
        }
        let mut answer: Value = answer?.json()?;
        // The response for a zone without instances has no list.
        let has_items = answer.get("items").is_some();
        let items = if has_items {
            take_list(&mut answer, "/items")?
        } else {
            Vec::new()
        };
        Ok(Page {
            items,
            next: text(&answer, "/nextPageToken").map(str::to_owned),
        })
    }

    fn target(&self, instance: &Value) -> Option<Target> {
        let address = instance
            .pointer("/networkInterfaces/0")
            .map(|own| text(own, "/networkIP").unwrap_or_default())?;
        let mut labels = MetaLabels::new("__meta_gce_");
        labels
            .set("project", &self.arguments.project.0)
            .set_json(instance, LABELS)
            .set_list("tags", &self.arguments.tag_separator, &texts(instance, "/tags/items"))
            .set_each("label_", pairs(instance, "/labels"));
        for interface in list(instance, "/networkInterfaces") {
            let name = label_name(text(interface, "/name").unwrap_or_default());
            labels.set_some(&format!("interface_ipv4_{name}"), text(interface, "/networkIP"));
        }
        for item in list(instance, "/metadata/items") {
            let value = item.get("value").and_then(Value::as_str);
            labels.set_each("metadata_", text(item, "/key").zip(value));
        }
        if text(instance, "/networkInterfaces/0/accessConfigs/0/type") == Some("ONE_TO_ONE_NAT") {
            labels.set_json(instance, &[("public_ip", "/networkInterfaces/0/accessConfigs/0/natIP")]);
        }
        Some(labels.with_address(host_port(address, self.arguments.port)))
    }
}
