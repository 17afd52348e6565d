//! `discovery.dockerswarm`: discovers the services, tasks or nodes of a Docker Swarm.
//!
//! In: lists from a daemon that is a manager of the swarm. Out: targets; the role selects the kind of object.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::docker_daemon::{Daemon, DockerApi};
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::discovery::schema::Filter;
use crate::common::serving::server::Port;
use crate::discovery::dockerswarm::objects::{Container, Node, Service, Task, ip_of};
use alluvium_lang::attribute::{Interval, choices};
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};

mod objects;
#[cfg(test)]
mod tests;

const PREFIX: &str = "__meta_dockerswarm_";

arguments! {
    /// Arguments of `discovery.dockerswarm`.
    pub(crate) struct SwarmArguments {
        /// Port in the address of each node, and of each service or task that has no TCP port.
        port: Port = 80,
        /// Time between two refreshes of the targets, and the timeout of each request.
        refresh_interval: Interval = "60s",
        /// Kind of targets to discover: `services`, `tasks` or `nodes`.
        role: SwarmRole,
    }
    blocks {
        /// Condition on the discovered objects. An object must match every `filter` block.
        filter: Vec<Filter>,
    }
    shared { daemon: Daemon }
}

choices! {
    /// The kind of object to discover in a swarm.
    pub(crate) enum SwarmRole {
        Services = "services",
        Tasks = "tasks",
        Nodes = "nodes",
    }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<SwarmArguments> = polled::definition::<Swarm>(
    "discovery.dockerswarm",
    "`discovery.dockerswarm` finds the services, tasks or nodes of a Docker Swarm.",
);

struct Swarm {
    api: DockerApi,
    arguments: SwarmArguments,
}

impl Discovery for Swarm {
    type Arguments = SwarmArguments;

    fn new(arguments: &SwarmArguments, context: &Context) -> Result<Self, ComponentError> {
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
        match self.arguments.role {
            SwarmRole::Services => self.services().await,
            SwarmRole::Tasks => self.tasks().await,
            SwarmRole::Nodes => self.nodes().await,
        }
    }
}

impl Swarm {
    async fn services(&self) -> Result<Vec<Target>, DiscoveryError> {
        let services: Vec<Service> = self.api.list("services", &self.arguments.filter).await?;
        let networks = self.api.networks().await?;
        let mut targets = Vec::new();
        for service in &services {
            let mut labels = MetaLabels::new(PREFIX);
            service.label(&mut labels);
            service.label_more(&mut labels);
            for virtual_ip in service.virtual_ips() {
                let ip = ip_of(&virtual_ip.addr)?;
                let mut labels = labels.clone();
                networks.label(&virtual_ip.network_id, &mut labels);
                let ports = service.tcp_ports().map(|port| {
                    let mut labels = labels.clone();
                    labels
                        .set("service_endpoint_port_name", &port.name)
                        .set("service_endpoint_port_publish_mode", &port.publish_mode);
                    labels.with_address(host_port(&ip, port.published_port))
                });
                self.add_ports(&mut targets, ports, &labels, &ip);
            }
        }
        Ok(targets)
    }

    async fn tasks(&self) -> Result<Vec<Target>, DiscoveryError> {
        let tasks: Vec<Task> = self.api.list("tasks", &self.arguments.filter).await?;
        let services: Vec<Service> = self.api.list("services", &[]).await?;
        let services: BTreeMap<&str, &Service> = services.iter().map(|service| (&*service.id, service)).collect();
        let nodes: Vec<Node> = self.api.list("nodes", &[]).await?;
        let nodes: BTreeMap<&str, &Node> = nodes.iter().map(|node| (&*node.id, node)).collect();
        let networks = self.api.networks().await?;
        let containers = self.containers().await;
        let containers: BTreeMap<&str, &Container> = containers.iter().map(|one| (&*one.id, one)).collect();
        let mut targets = Vec::new();
        for task in &tasks {
            let (service, node) = (services.get(&*task.service_id), nodes.get(&*task.node_id));
            let mut labels = MetaLabels::new(PREFIX);
            task.label(containers.get(task.container_id()).copied(), &mut labels);
            if let Some(service) = service {
                service.label(&mut labels);
            }
            if let Some(node) = node {
                node.label(&mut labels);
            }
            let address = node.map(|node| node.address()).unwrap_or_default();
            for port in task.tcp_ports() {
                let mut labels = labels.clone();
                labels.set("task_port_publish_mode", &port.publish_mode);
                targets.push(labels.with_address(host_port(address, port.published_port)));
            }
            for attachment in task.networks() {
                let mut labels = labels.clone();
                networks.label(&attachment.network.id, &mut labels);
                for address in attachment.addresses.iter().flatten() {
                    let ip = ip_of(address)?;
                    let ports = service.iter().flat_map(|service| service.tcp_ports()).map(|port| {
                        let mut labels = labels.clone();
                        labels.set("task_port_publish_mode", &port.publish_mode);
                        labels.with_address(host_port(&ip, port.published_port))
                    });
                    self.add_ports(&mut targets, ports, &labels, &ip);
                }
            }
        }
        Ok(targets)
    }

    async fn nodes(&self) -> Result<Vec<Target>, DiscoveryError> {
        let nodes: Vec<Node> = self.api.list("nodes", &self.arguments.filter).await?;
        let target = |node: &Node| {
            let mut labels = MetaLabels::new(PREFIX);
            node.label(&mut labels);
            node.label_more(&mut labels);
            labels.with_address(host_port(node.address(), self.arguments.port.0))
        };
        Ok(nodes.iter().map(target).collect())
    }

    /// Returns the containers on the daemon's machine. Their labels include the labels of the images, which tasks
    /// lack. If the request fails, returns no containers, because a proxy in front of the daemon may forbid it.
    async fn containers(&self) -> Vec<Container> {
        let listed = self.api.list("containers/json", &[]).await;
        listed.unwrap_or_else(|error| {
            tracing::debug!(
                error = error.to_string(),
                "cannot list containers, tasks get no labels from their images"
            );
            Vec::new()
        })
    }

    /// Adds a target for each port. If there are no ports, adds one target with the port from the arguments.
    fn add_ports(&self, targets: &mut Vec<Target>, ports: impl Iterator<Item = Target>, labels: &MetaLabels, ip: &str) {
        let before = targets.len();
        targets.extend(ports);
        if targets.len() == before {
            targets.push(labels.with_address(host_port(ip, self.arguments.port.0)));
        }
    }
}
