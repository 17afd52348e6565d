//! `discovery.docker`: discovers the containers of a Docker daemon.
//!
//! In: the daemon's lists of running containers and of networks. Out: a target for each TCP port of a container, in
//! its first network or in each of its networks. A container without TCP ports becomes one target in each of these
//! networks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::docker_daemon::{Daemon, DockerApi, Networks, ObjectLabels};
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::discovery::schema::Filter;
use crate::common::serving::server::Port;
use alluvium_lang::attribute::Interval;
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};

#[cfg(test)]
mod tests;

arguments! {
    /// Arguments of `discovery.docker`.
    pub(crate) struct DockerArguments {
        /// Address of containers that use the network of the host.
        host_networking_host: Arc<str> = "localhost",
        /// If true, a container that is attached to several networks gets targets only for the network with the
        /// alphabetically first name.
        match_first_network: bool = true,
        /// Port in the address of a container that has no TCP port.
        port: Port = 80,
        /// Time between two refreshes of the targets, and the timeout of each request.
        refresh_interval: Interval = "1m",
    }
    blocks {
        /// Condition on the discovered containers. A container must match every `filter` block.
        filter: Vec<Filter>,
    }
    shared { daemon: Daemon }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<DockerArguments> = polled::definition::<Docker>(
    "discovery.docker",
    "`discovery.docker` finds the containers of a Docker daemon.",
);

struct Docker {
    api: DockerApi,
    arguments: DockerArguments,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct Container {
    id: String,
    names: Vec<String>,
    image: String,
    #[serde(rename = "ImageID")]
    image_id: String,
    labels: ObjectLabels,
    ports: Option<Vec<ContainerPort>>,
    host_config: HostConfig,
    network_settings: NetworkSettings,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct HostConfig {
    network_mode: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct NetworkSettings {
    networks: Option<BTreeMap<String, Option<Endpoint>>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Endpoint {
    #[serde(rename = "NetworkID")]
    network_id: String,
    #[serde(rename = "IPAddress")]
    address: String,
    #[serde(rename = "GlobalIPv6Address")]
    ipv6_address: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct ContainerPort {
    #[serde(rename = "IP")]
    ip: String,
    private_port: u16,
    public_port: u16,
    #[serde(rename = "Type")]
    protocol: String,
}

impl Discovery for Docker {
    type Arguments = DockerArguments;

    fn new(arguments: &DockerArguments, context: &Context) -> Result<Self, ComponentError> {
        let timeout = arguments.refresh_interval.get();
        Ok(Self {
            api: DockerApi::new(&arguments.daemon, context, timeout)?,
            arguments: arguments.clone(),
        })
    }

    fn interval(&self) -> Duration {
        self.arguments.refresh_interval.get()
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let containers: Vec<Container> = self.api.list("containers/json", &self.arguments.filter).await?;
        let networks = self.api.networks().await?;
        let by_id: BTreeMap<&str, &Container> = containers.iter().map(|one| (&*one.id, one)).collect();
        Ok(containers
            .iter()
            .flat_map(|container| self.container(container, container.endpoints(&by_id), &networks))
            .collect())
    }
}

impl Container {
    /// Returns the networks of the container. If the container uses the network of another container, returns the
    /// networks of the other container.
    fn endpoints<'a>(&'a self, containers: &BTreeMap<&str, &'a Self>) -> Vec<&'a Endpoint> {
        let mut owner = self;
        // A chain of references that is longer than the list is a cycle.
        for _ in 0..containers.len() {
            let has_networks = owner.network_settings.networks.iter().flatten().next().is_some();
            let other = owner.host_config.network_mode.strip_prefix("container:");
            match other.and_then(|id| containers.get(id)) {
                Some(other) if !has_networks => owner = other,
                _ => break,
            }
        }
        let networks = owner.network_settings.networks.iter().flatten();
        networks.filter_map(|(_, endpoint)| endpoint.as_ref()).collect()
    }
}

impl Endpoint {
    fn ip(&self) -> &str {
        if self.address.is_empty() {
            &self.ipv6_address
        } else {
            &self.address
        }
    }
}

impl Docker {
    fn container(&self, container: &Container, mut endpoints: Vec<&Endpoint>, networks: &Networks) -> Vec<Target> {
        let Some(name) = container.names.first() else {
            return Vec::new();
        };
        let mut labels = MetaLabels::new("__meta_docker_");
        labels
            .set("container_id", &container.id)
            .set("container_name", name)
            .set("container_network_mode", &container.host_config.network_mode)
            .set_some(
                "container_image",
                Some(&container.image).filter(|image| !image.is_empty()),
            )
            .set_some(
                "container_image_id",
                Some(&container.image_id).filter(|id| !id.is_empty()),
            )
            .set_each("container_label_", container.labels.iter().flatten());
        if self.arguments.match_first_network {
            endpoints.truncate(1);
        }
        let in_network = |endpoint: &&Endpoint| {
            let mut labels = labels.clone();
            labels.set("network_ip", endpoint.ip());
            networks.label(&endpoint.network_id, &mut labels);
            self.ports(container, endpoint.ip(), &labels)
        };
        endpoints.iter().flat_map(in_network).collect()
    }

    fn ports(&self, container: &Container, ip: &str, labels: &MetaLabels) -> Vec<Target> {
        let ports = container.ports.iter().flatten().filter(|port| port.protocol == "tcp");
        let targets: Vec<Target> = ports
            .map(|port| {
                let mut labels = labels.clone();
                labels.set("port_private", port.private_port);
                if port.public_port > 0 {
                    labels
                        .set("port_public", port.public_port)
                        .set("port_public_ip", &port.ip);
                }
                labels.with_address(host_port(ip, port.private_port))
            })
            .collect();
        if !targets.is_empty() {
            return targets;
        }
        // A container in the network of the host has no ports of its own.
        match &*container.host_config.network_mode {
            "host" => vec![labels.with_address(self.arguments.host_networking_host.clone())],
            _ => vec![labels.with_address(host_port(ip, self.arguments.port.0))],
        }
    }
}
