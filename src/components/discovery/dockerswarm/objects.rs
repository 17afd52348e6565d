//! Services, tasks and nodes as the API of Docker Swarm describes them, and the labels that targets get from them.

use serde::Deserialize;

use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::docker_daemon::ObjectLabels;
use crate::common::discovery::meta_labels::MetaLabels;

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct Service {
    #[serde(rename = "ID")]
    pub(super) id: String,
    spec: ServiceSpec,
    endpoint: ServiceEndpoint,
    update_status: Option<State>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct ServiceSpec {
    name: String,
    labels: ObjectLabels,
    mode: Mode,
    task_template: TaskSpec,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct Mode {
    replicated: Option<serde::de::IgnoredAny>,
    global: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct TaskSpec {
    container_spec: Option<ContainerSpec>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct ContainerSpec {
    image: String,
    hostname: String,
    labels: ObjectLabels,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ServiceEndpoint {
    #[serde(rename = "Ports")]
    ports: Option<Vec<SwarmPort>>,
    #[serde(rename = "VirtualIPs")]
    virtual_ips: Option<Vec<VirtualIp>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct SwarmPort {
    pub(super) name: String,
    protocol: String,
    pub(super) published_port: u16,
    pub(super) publish_mode: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct VirtualIp {
    #[serde(rename = "NetworkID")]
    pub(super) network_id: String,
    pub(super) addr: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct State {
    state: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct Task {
    #[serde(rename = "ID")]
    id: String,
    #[serde(rename = "ServiceID")]
    pub(super) service_id: String,
    #[serde(rename = "NodeID")]
    pub(super) node_id: String,
    slot: i64,
    desired_state: String,
    spec: TaskSpec,
    status: TaskStatus,
    networks_attachments: Option<Vec<Attachment>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct TaskStatus {
    state: String,
    container_status: Option<ContainerStatus>,
    port_status: PortStatus,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ContainerStatus {
    #[serde(rename = "ContainerID")]
    container_id: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct PortStatus {
    ports: Option<Vec<SwarmPort>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct Attachment {
    pub(super) network: AttachedNetwork,
    pub(super) addresses: Option<Vec<String>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct AttachedNetwork {
    #[serde(rename = "ID")]
    pub(super) id: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct Container {
    pub(super) id: String,
    labels: ObjectLabels,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct Node {
    #[serde(rename = "ID")]
    pub(super) id: String,
    spec: NodeSpec,
    description: NodeDescription,
    status: NodeStatus,
    manager_status: Option<ManagerStatus>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct NodeSpec {
    role: String,
    availability: String,
    labels: ObjectLabels,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct NodeDescription {
    hostname: String,
    platform: Platform,
    engine: Engine,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Platform {
    #[serde(rename = "Architecture")]
    architecture: String,
    #[serde(rename = "OS")]
    os: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct Engine {
    engine_version: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct NodeStatus {
    state: String,
    addr: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct ManagerStatus {
    leader: bool,
    reachability: String,
    addr: String,
}

impl Service {
    /// Sets the labels for targets of the service and of its tasks.
    pub(super) fn label(&self, labels: &mut MetaLabels) {
        let mode = match &self.spec.mode {
            Mode { global: Some(_), .. } => "global",
            Mode {
                replicated: Some(_), ..
            } => "replicated",
            _ => "",
        };
        labels
            .set("service_id", &self.id)
            .set("service_name", &self.spec.name)
            .set("service_mode", mode)
            .set_each("service_label_", self.spec.labels.iter().flatten());
    }

    /// Sets the labels that only targets of the service have.
    pub(super) fn label_more(&self, labels: &mut MetaLabels) {
        let container = self.spec.task_template.container_spec.as_ref();
        labels
            .set_some("service_task_container_hostname", container.map(|spec| &spec.hostname))
            .set_some("service_task_container_image", container.map(|spec| &spec.image))
            .set_some(
                "service_updating_status",
                self.update_status.as_ref().map(|status| &status.state),
            );
    }

    /// Returns the virtual IPs of the service. Skips virtual IPs without an assigned address.
    pub(super) fn virtual_ips(&self) -> impl Iterator<Item = &VirtualIp> {
        let all = self.endpoint.virtual_ips.iter().flatten();
        all.filter(|virtual_ip| !virtual_ip.addr.is_empty())
    }

    pub(super) fn tcp_ports(&self) -> impl Iterator<Item = &SwarmPort> {
        tcp(self.endpoint.ports.as_ref())
    }
}

impl Task {
    /// Sets the labels of the task and of its container. Labels from the service's specification take precedence over
    /// labels from the image.
    pub(super) fn label(&self, container: Option<&Container>, labels: &mut MetaLabels) {
        let of_image = container.and_then(|container| container.labels.as_ref());
        let specified = self.spec.container_spec.as_ref().and_then(|spec| spec.labels.as_ref());
        labels
            .set("task_id", &self.id)
            .set("task_desired_state", &self.desired_state)
            .set("task_state", &self.status.state)
            .set("task_slot", self.slot)
            .set_some(
                "task_container_id",
                self.status.container_status.as_ref().map(|status| &status.container_id),
            )
            .set_each("container_label_", of_image.into_iter().flatten())
            .set_each("container_label_", specified.into_iter().flatten());
    }

    /// Returns the ID of the task's container, or an empty string if the task has no container.
    pub(super) fn container_id(&self) -> &str {
        let status = self.status.container_status.as_ref();
        status.map(|status| &*status.container_id).unwrap_or_default()
    }

    pub(super) fn networks(&self) -> impl Iterator<Item = &Attachment> {
        self.networks_attachments.iter().flatten()
    }

    /// Returns the TCP ports that the task itself publishes on its node.
    pub(super) fn tcp_ports(&self) -> impl Iterator<Item = &SwarmPort> {
        tcp(self.status.port_status.ports.as_ref())
    }
}

impl Node {
    /// Sets the labels for targets of the node and of its tasks.
    pub(super) fn label(&self, labels: &mut MetaLabels) {
        let platform = &self.description.platform;
        labels
            .set("node_id", &self.id)
            .set("node_role", &self.spec.role)
            .set("node_address", &self.status.addr)
            .set("node_availability", &self.spec.availability)
            .set("node_hostname", &self.description.hostname)
            .set("node_platform_architecture", &platform.architecture)
            .set("node_platform_os", &platform.os)
            .set("node_status", &self.status.state)
            .set_each("node_label_", self.spec.labels.iter().flatten());
    }

    /// Sets the labels that only targets of the node have.
    pub(super) fn label_more(&self, labels: &mut MetaLabels) {
        let manager = self.manager_status.as_ref();
        labels
            .set("node_engine_version", &self.description.engine.engine_version)
            .set_some("node_manager_leader", manager.map(|manager| manager.leader))
            .set_some(
                "node_manager_reachability",
                manager.map(|manager| &manager.reachability),
            )
            .set_some("node_manager_address", manager.map(|manager| &manager.addr));
    }

    pub(super) fn address(&self) -> &str {
        &self.status.addr
    }
}

/// Returns the IP address in an address with a prefix length, such as `10.0.0.3/24`.
pub(super) fn ip_of(network: &str) -> Result<String, DiscoveryError> {
    let address = network.split_once('/').map(|(address, _)| address);
    let address = address.filter(|address| address.parse::<std::net::IpAddr>().is_ok());
    address.map(str::to_owned).ok_or_else(|| {
        let reason = "expected an IP address with a prefix length";
        DiscoveryError::Response(format!("docker returned the address `{network}`: {reason}"))
    })
}

fn tcp(ports: Option<&Vec<SwarmPort>>) -> impl Iterator<Item = &SwarmPort> {
    ports.into_iter().flatten().filter(|port| port.protocol == "tcp")
}
