//! `discovery.ionos`: discovers the servers of an IONOS data center.
//!
//! In: the pages of servers with their nested resources. Out: a target for each server that has an address.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use url::Url;

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port, label_name};
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::http::api_error::ApiError;
use crate::common::http::client::HttpClientArguments;
use crate::common::http::json_values::{list, take_list, text, texts};
use crate::common::http::paging::numbered_pages;
use crate::common::http::values::http_url;
use crate::common::http::web_api::WebApi;
use alluvium_lang::attribute::{Interval, NotEmpty};
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};

#[cfg(test)]
mod tests;

/// Base URL of the IONOS API.
const API: &str = "https://api.ionos.com/cloudapi/v6/";
/// Number of servers in one page. This is the maximum that the API allows.
const PAGE: usize = 1000;
/// NAME in the label `nic_ip_NAME` of a network interface that has no name.
const UNNAMED: &str = "unnamed";
/// Labels of a target, each with the JSON path of its value in the server.
const LABELS: &[(&str, &str)] = &[
    ("availability_zone", "/properties/availabilityZone"),
    ("boot_cdrom_id", "/properties/bootCdrom/id"),
    ("boot_image_id", "/entities/volumes/items/0/properties/image"),
    ("boot_volume_id", "/properties/bootVolume/id"),
    ("cpu_family", "/properties/cpuFamily"),
    ("id", "/id"),
    ("lifecycle", "/metadata/state"),
    ("name", "/properties/name"),
    ("state", "/properties/vmState"),
    ("type", "/properties/type"),
];

arguments! {
    /// Arguments of `discovery.ionos`.
    pub(crate) struct IonosArguments {
        /// ID of the data center whose servers are discovered.
        datacenter_id: NotEmpty<Arc<str>>,
        /// Port in the address of each target.
        port: i64 = 80,
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "60s",
    }
    shared { client: HttpClientArguments }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<IonosArguments> = polled::definition::<Ionos>(
    "discovery.ionos",
    "`discovery.ionos` finds the servers of an IONOS data center.",
);

struct Ionos {
    api: WebApi,
    arguments: IonosArguments,
}

impl Discovery for Ionos {
    type Arguments = IonosArguments;

    fn new(arguments: &IonosArguments, context: &Context) -> Result<Self, ComponentError> {
        let api = http_url(API).map_err(ComponentError::new)?;
        Self::with_url(&api, arguments, context)
    }

    fn interval(&self) -> Duration {
        self.arguments.refresh_interval.get()
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let targets = numbered_pages(|number| async move {
            let mut url = self
                .api
                .url(["datacenters", &self.arguments.datacenter_id.0, "servers"]);
            let offset = (number - 1) * PAGE;
            url.set_query(Some(&format!("depth=3&limit={PAGE}&offset={offset}")));
            let mut answer: Value = self.api.json(url).await?;
            let servers = take_list(&mut answer, "/items")?;
            let id = text(&answer, "/id");
            let targets = servers.iter().map(|server| self.target(server, id)).collect();
            Ok::<_, ApiError>((targets, (servers.len() == PAGE).into()))
        });
        let targets: Vec<Option<Target>> = targets.await?;
        Ok(targets.into_iter().flatten().collect())
    }
}

impl Ionos {
    fn with_url(url: &Url, arguments: &IonosArguments, context: &Context) -> Result<Self, ComponentError> {
        Ok(Self {
            api: WebApi::new(&arguments.client, &context.user_agent, url)?,
            arguments: arguments.clone(),
        })
    }

    /// Returns the target of a server, with the first address of the last network interface that has an address.
    /// `list_id` is the ID of the list of servers in the response.
    fn target(&self, server: &Value, list_id: Option<&str>) -> Option<Target> {
        let (mut all, mut by_interface) = (Vec::<&str>::new(), BTreeMap::<String, Vec<&str>>::new());
        for interface in list(server, "/entities/nics/items").iter().rev() {
            let Some(properties) = interface.get("properties") else {
                continue;
            };
            let name = label_name(text(properties, "/name").unwrap_or(UNNAMED));
            let addresses = texts(properties, "/ips");
            all.extend(&addresses);
            by_interface.entry(name).or_default().extend(addresses);
        }
        let address = host_port(all.first()?, self.arguments.port);
        let mut labels = MetaLabels::new("__meta_ionos_server_");
        labels
            .set_json(server, LABELS)
            .set_some("servers_id", list_id)
            .set_list("ip", ",", &all);
        for (name, addresses) in by_interface {
            labels.set(&format!("nic_ip_{name}"), format!(",{},", addresses.join(",")));
        }
        Some(labels.with_address(address))
    }
}
