//! `discovery.hetzner`: discovers the servers of Hetzner Cloud or Hetzner Robot.
//!
//! In: the pages of servers and networks from Hetzner Cloud, or the list of servers from Hetzner Robot. Out: a target
//! for each server, except servers of Hetzner Cloud without an IPv4 address.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use url::Url;

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port, label_name};
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::http::client::HttpClientArguments;
use crate::common::http::json_values::{list, pairs, take_list, text};
use crate::common::http::paging::numbered_pages;
use crate::common::http::values::http_url;
use crate::common::http::web_api::WebApi;
use alluvium_lang::attribute::{Interval, choices};
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};

#[cfg(test)]
mod tests;

/// Base URL of the API of Hetzner Cloud.
const CLOUD: &str = "https://api.hetzner.cloud/v1/";
/// Base URL of the API of Hetzner Robot.
const ROBOT: &str = "https://robot-ws.your-server.de/";
/// Labels of a target, each with the JSON path of its value in a server of Hetzner Cloud.
const CLOUD_LABELS: &[(&str, &str)] = &[
    ("datacenter", "/datacenter/name"),
    ("hcloud_cpu_cores", "/server_type/cores"),
    ("hcloud_cpu_type", "/server_type/cpu_type"),
    ("hcloud_disk_size_gb", "/server_type/disk"),
    ("hcloud_image_description", "/image/description"),
    ("hcloud_image_name", "/image/name"),
    ("hcloud_image_os_flavor", "/image/os_flavor"),
    ("hcloud_image_os_version", "/image/os_version"),
    ("hcloud_server_type", "/server_type/name"),
    ("public_ipv4", "/public_net/ipv4/ip"),
    ("public_ipv6_network", "/public_net/ipv6/ip"),
    ("server_id", "/id"),
    ("server_name", "/name"),
    ("server_status", "/status"),
];
/// Labels of a target, each with the JSON path of its value in a server of Hetzner Robot.
const ROBOT_LABELS: &[(&str, &str)] = &[
    ("public_ipv4", "/server_ip"),
    ("robot_cancelled", "/cancelled"),
    ("robot_product", "/product"),
    ("server_id", "/server_number"),
    ("server_name", "/server_name"),
    ("server_status", "/status"),
];

arguments! {
    /// Arguments of `discovery.hetzner`.
    pub(crate) struct HetznerArguments {
        /// Port in the address of each target.
        port: i64 = 80,
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "60s",
        /// Hetzner service whose servers are discovered: `hcloud` (Hetzner Cloud) or `robot` (Hetzner Robot).
        role: Role,
    }
    shared { client: HttpClientArguments }
}

choices! {
    /// The Hetzner service whose servers are discovered.
    pub(crate) enum Role {
        Cloud = "hcloud",
        Robot = "robot",
    }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<HetznerArguments> = polled::definition::<Hetzner>(
    "discovery.hetzner",
    "`discovery.hetzner` finds the servers of Hetzner Cloud or Hetzner Robot.",
);

struct Hetzner {
    api: WebApi,
    role: Role,
    port: i64,
    interval: Duration,
}

impl Discovery for Hetzner {
    type Arguments = HetznerArguments;

    fn new(arguments: &HetznerArguments, context: &Context) -> Result<Self, ComponentError> {
        let api = match arguments.role {
            Role::Cloud => CLOUD,
            Role::Robot => ROBOT,
        };
        let api = http_url(api).map_err(ComponentError::new)?;
        Self::with_url(&api, arguments, context)
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        match self.role {
            Role::Cloud => self.cloud().await,
            Role::Robot => self.robot().await,
        }
    }
}

impl Hetzner {
    fn with_url(url: &Url, arguments: &HetznerArguments, context: &Context) -> Result<Self, ComponentError> {
        Ok(Self {
            api: WebApi::new(&arguments.client, &context.user_agent, url)?,
            role: arguments.role,
            port: arguments.port,
            interval: arguments.refresh_interval.get(),
        })
    }

    async fn cloud(&self) -> Result<Vec<Target>, DiscoveryError> {
        let servers = self.all("servers").await?;
        let networks = self.all("networks").await?;
        let name = |network: &Value| Some((network.get("id")?.as_u64()?, label_name(text(network, "/name")?)));
        let names: BTreeMap<u64, String> = networks.iter().filter_map(name).collect();
        Ok(servers
            .iter()
            .filter_map(|server| self.cloud_server(server, &names))
            .collect())
    }

    async fn all(&self, resource: &str) -> Result<Vec<Value>, DiscoveryError> {
        let all = numbered_pages(|number| async move {
            let mut url = self.api.url([resource]);
            url.set_query(Some(&format!("page={number}&per_page=50")));
            let mut answer: Value = self.api.json(url).await?;
            let items = take_list(&mut answer, &format!("/{resource}"))?;
            let next = answer.pointer("/meta/pagination/next_page");
            Ok((items, next.is_some_and(Value::is_number).into()))
        });
        all.await
    }

    /// Returns the target of a server. If the server has no public address, its first private address is used.
    fn cloud_server(&self, server: &Value, networks: &BTreeMap<u64, String>) -> Option<Target> {
        let mut labels = MetaLabels::new("__meta_hetzner_");
        let memory = server.pointer("/server_type/memory").and_then(Value::as_f64);
        labels
            .set("role", "hcloud")
            .set_json(server, CLOUD_LABELS)
            .set_some("hcloud_memory_size_gb", memory.map(f64::trunc));
        let location = server
            .get("location")
            .or_else(|| server.pointer("/datacenter/location"));
        for (name, path) in [("", "/name"), ("_network_zone", "/network_zone")] {
            let value = location.and_then(|location| text(location, path));
            labels.set_some(&format!("hcloud_location{name}"), value);
            labels.set_some(&format!("hcloud_datacenter_location{name}"), value);
        }
        for network in list(server, "/private_net") {
            let name = network
                .get("network")
                .and_then(Value::as_u64)
                .and_then(|id| networks.get(&id));
            if let (Some(name), Some(address)) = (name, text(network, "/ip")) {
                labels.set(&format!("hcloud_private_ipv4_{name}"), address);
            }
        }
        for (name, value) in pairs(server, "/labels") {
            labels.set_each("hcloud_label_", [(name, value)]);
            labels.set_each("hcloud_labelpresent_", [(name, true)]);
        }
        let address = text(server, "/public_net/ipv4/ip").or_else(|| text(server, "/private_net/0/ip"))?;
        Some(labels.with_address(host_port(address, self.port)))
    }

    async fn robot(&self) -> Result<Vec<Target>, DiscoveryError> {
        let servers: Vec<Value> = self.api.json(self.api.url(["server"])).await?;
        let servers = servers.iter().filter_map(|server| server.get("server"));
        Ok(servers.map(|server| self.robot_server(server)).collect())
    }

    fn robot_server(&self, server: &Value) -> Target {
        let mut labels = MetaLabels::new("__meta_hetzner_");
        let center = text(server, "/dc").map(str::to_lowercase);
        let is_ipv6 = |subnet: &&Value| text(subnet, "/ip").is_some_and(|address| address.contains(':'));
        let network = list(server, "/subnet").iter().find(is_ipv6);
        let network = network.and_then(|own| Some(format!("{}/{}", text(own, "/ip")?, text(own, "/mask")?)));
        labels
            .set("role", "robot")
            .set_json(server, ROBOT_LABELS)
            .set_some("datacenter", center.as_ref())
            .set_some("robot_datacenter", center.as_ref())
            .set_some("public_ipv6_network", network);
        labels.with_address(host_port(text(server, "/server_ip").unwrap_or_default(), self.port))
    }
}
