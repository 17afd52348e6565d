//! Applications in the form of Marathon's API, and the targets of their tasks.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::common::arguments::targets::Target;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};

#[derive(Deserialize)]
pub(super) struct Applications {
    pub(super) apps: Vec<Application>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Application {
    id: String,
    labels: Option<Labels>,
    tasks: Option<Vec<Task>>,
    container: Option<Container>,
    port_definitions: Option<Vec<PortDefinition>>,
    networks: Option<Vec<Network>>,
    require_ports: bool,
}

type Labels = BTreeMap<String, String>;

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Task {
    id: String,
    host: String,
    ports: Option<Vec<u32>>,
    ip_addresses: Option<Vec<IpAddress>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct IpAddress {
    ip_address: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Container {
    docker: Option<Docker>,
    port_mappings: Option<Vec<PortMapping>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Docker {
    image: String,
    /// Port mappings of Marathon before 1.5. Newer versions have them in the container.
    port_mappings: Option<Vec<PortMapping>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct PortMapping {
    labels: Option<Labels>,
    container_port: u32,
    host_port: u32,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PortDefinition {
    labels: Option<Labels>,
    port: u32,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Network {
    mode: String,
}

/// A port that every task of an application has. The number is 0 if Mesos chooses a port for each task.
struct Port<'a> {
    number: u32,
    labels: Option<&'a Labels>,
    prefix: &'static str,
}

impl Application {
    /// Returns a target for each port of each task.
    pub(super) fn targets(&self) -> Vec<Target> {
        let image = self.docker().map(|docker| &*docker.image).unwrap_or_default();
        let mut labels = MetaLabels::new("__meta_marathon_");
        labels
            .set("app", &self.id)
            .set("image", image)
            .set_each("app_label_", self.labels.iter().flatten());
        let ports = self.ports();
        let tasks = self.tasks.iter().flatten();
        tasks.flat_map(|task| self.task(task, &ports, &labels)).collect()
    }

    fn task(&self, task: &Task, ports: &[Port], labels: &MetaLabels) -> Vec<Target> {
        let own = task.ports.as_deref().unwrap_or_default();
        let address = task
            .ip_addresses
            .iter()
            .flatten()
            .next()
            .filter(|_| self.is_in_container_network());
        let host = address.map_or(&task.host, |address| &address.ip_address);
        let target = |(index, number, port): (usize, u32, Option<&Port>)| {
            let mut labels = labels.clone();
            labels.set("task", &task.id).set("port_index", index);
            if let Some(port) = port {
                labels.set_each(port.prefix, port.labels.into_iter().flatten());
            }
            labels.with_address(host_port(host, number))
        };
        if ports.is_empty() {
            return own
                .iter()
                .enumerate()
                .map(|(index, number)| target((index, *number, None)))
                .collect();
        }
        let chosen = |index: usize| own.get(index).filter(|_| own.len() == ports.len()).copied();
        let ports = ports.iter().enumerate().map(|(index, port)| match port.number {
            0 => (index, chosen(index).unwrap_or_default(), Some(port)),
            number => (index, number, Some(port)),
        });
        ports.map(target).collect()
    }

    /// Returns the ports that the application declares: the port mappings of its container, or else its port
    /// definitions.
    fn ports(&self) -> Vec<Port<'_>> {
        let of_container = self
            .container
            .as_ref()
            .and_then(|container| container.port_mappings.as_deref());
        let of_docker = self.docker().and_then(|docker| docker.port_mappings.as_deref());
        let mappings = [of_container, of_docker]
            .into_iter()
            .flatten()
            .find(|mappings| !mappings.is_empty());
        if let Some(mappings) = mappings {
            // A task in a container network is reached at its container port, any other task at its host port.
            let number: fn(&PortMapping) -> u32 = if self.is_in_container_network() {
                |mapping| mapping.container_port
            } else {
                |mapping| mapping.host_port
            };
            let port = |mapping| Port {
                number: number(mapping),
                labels: mapping.labels.as_ref(),
                prefix: "port_mapping_label_",
            };
            return mappings.iter().map(port).collect();
        }
        let definitions = self.port_definitions.iter().flatten();
        let port = |definition: &'_ PortDefinition| if self.require_ports { definition.port } else { 0 };
        definitions
            .map(|definition| Port {
                number: port(definition),
                labels: definition.labels.as_ref(),
                prefix: "port_definition_label_",
            })
            .collect()
    }

    fn docker(&self) -> Option<&Docker> {
        self.container.as_ref().and_then(|container| container.docker.as_ref())
    }

    fn is_in_container_network(&self) -> bool {
        let first = self.networks.iter().flatten().next();
        first.is_some_and(|network| network.mode == "container")
    }
}
