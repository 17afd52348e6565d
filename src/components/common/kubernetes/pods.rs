//! Targets of a pod, with the same labels as in Prometheus.
//!
//! In: a pod from the API server or a kubelet. Out: a target for each port of each container, and a target without a
//! port for each container that declares no port. All these targets share the labels of the whole pod, which are built
//! once.

use std::collections::BTreeMap;

use crate::common::arguments::targets::Target;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::kubernetes::objects::{Condition, Container, ContainerPort, ContainerStatus, Metadata, Pod};

/// Prefix of all label names.
pub(crate) const PREFIX: &str = "__meta_kubernetes_";

/// A port that a container declares.
pub(crate) struct Port {
    pub(crate) number: u32,
    /// Labels of the container and of the port.
    pub(crate) labels: Target,
    /// Index of the container in the pod.
    container: usize,
}

/// Returns the labels of the whole pod, without its namespace.
pub(crate) fn labels(pod: &Pod) -> Target {
    let mut labels = MetaLabels::new(PREFIX);
    set_object(&mut labels, "pod", &pod.metadata);
    labels
        .set("pod_ip", &pod.status.pod_ip)
        .set("pod_ready", condition(&pod.status.conditions, "Ready"))
        .set("pod_phase", &pod.status.phase)
        .set("pod_node_name", &pod.spec.node_name)
        .set("pod_host_ip", &pod.status.host_ip)
        .set("pod_uid", &pod.metadata.uid);
    if let Some(owner) = pod.metadata.controller() {
        let non_empty = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        labels
            .set_some("pod_controller_kind", non_empty(&owner.kind))
            .set_some("pod_controller_name", non_empty(&owner.name));
    }
    labels.into_target()
}

/// Returns the labels of the whole pod, including its namespace.
pub(crate) fn labels_with_namespace(pod: &Pod) -> Target {
    let mut labels = labels(pod);
    labels.insert(
        format!("{PREFIX}namespace").into(),
        pod.metadata.namespace.as_str().into(),
    );
    labels
}

/// Returns the targets of a pod, each with the labels `common_labels` added. A pod without an address has no targets.
pub(crate) fn targets(pod: &Pod, common_labels: &Target) -> Vec<Target> {
    let ip = &pod.status.pod_ip;
    if ip.is_empty() {
        return Vec::new();
    }
    let mut targets = Vec::new();
    for (index, container) in containers(pod).enumerate() {
        let mut labels = container_labels(pod, index, container);
        labels.set("pod_container_id", container_id(pod, index, container));
        if container.ports.is_empty() {
            // The target has no port; a relabel rule of the user can add a port.
            targets.push(with(common_labels, labels.with_address(ip.as_str())));
        }
        for port in &container.ports {
            let mut labels = labels.clone();
            set_port(&mut labels, port);
            targets.push(with(
                common_labels,
                labels.with_address(host_port(ip, port.container_port)),
            ));
        }
    }
    targets
}

/// Returns the ports of all containers of a pod.
pub(crate) fn ports(pod: &Pod) -> Vec<Port> {
    let port = |index, container, port: &ContainerPort| {
        let mut labels = container_labels(pod, index, container);
        set_port(&mut labels, port);
        Port {
            number: port.container_port,
            labels: labels.into_target(),
            container: index,
        }
    };
    let all = containers(pod).enumerate();
    all.flat_map(|(index, container)| {
        container
            .ports
            .iter()
            .map(move |declared| port(index, container, declared))
    })
    .collect()
}

/// Returns the port with this number. If several containers declare the number, returns the first such port of the last
/// of these containers.
pub(crate) fn port(ports: &[Port], number: u32) -> Option<&Port> {
    let matching = ports.iter().filter(|port| port.number == number);
    matching.reduce(|first, port| if first.container == port.container { first } else { port })
}

/// Sets name, labels and annotations of an object. The label names start with `kind`.
pub(crate) fn set_object(labels: &mut MetaLabels, kind: &str, metadata: &Metadata) {
    labels.set(&format!("{kind}_name"), &metadata.name);
    set_maps(labels, kind, metadata);
}

/// For each label and annotation of an object, sets a label with its value, and a label with `present` in its name and
/// the value `true`.
pub(crate) fn set_maps(labels: &mut MetaLabels, kind: &str, metadata: &Metadata) {
    set_map(labels, &format!("{kind}_label"), &metadata.labels);
    set_map(labels, &format!("{kind}_annotation"), &metadata.annotations);
}

/// For each entry of a map, sets a label with its value, and a label with `present` in its name and the value `true`.
fn set_map(labels: &mut MetaLabels, name: &str, entries: &BTreeMap<String, String>) {
    labels.set_each(&format!("{name}_"), entries);
    labels.set_each(&format!("{name}present_"), entries.keys().map(|key| (key, "true")));
}

/// Returns the labels of both sets. `additional` takes precedence.
pub(crate) fn with(labels: &Target, additional: Target) -> Target {
    let mut merged = labels.clone();
    merged.extend(additional);
    merged
}

/// Returns the regular containers, then the init containers.
fn containers(pod: &Pod) -> impl Iterator<Item = &Container> {
    pod.spec.containers.iter().chain(&pod.spec.init_containers)
}

fn is_init(pod: &Pod, index: usize) -> bool {
    index >= pod.spec.containers.len()
}

fn container_labels(pod: &Pod, index: usize, container: &Container) -> MetaLabels {
    let mut labels = MetaLabels::new(PREFIX);
    labels
        .set("pod_container_name", &container.name)
        .set("pod_container_image", &container.image)
        .set("pod_container_init", is_init(pod, index));
    labels
}

fn set_port(labels: &mut MetaLabels, port: &ContainerPort) {
    labels
        .set("pod_container_port_name", &port.name)
        .set("pod_container_port_number", port.container_port)
        .set("pod_container_port_protocol", &port.protocol);
}

/// Returns the container's id with the runtime as prefix (`containerd://0a1b`); empty before the container is created.
fn container_id<'a>(pod: &'a Pod, index: usize, container: &Container) -> &'a str {
    let statuses: &[ContainerStatus] = if is_init(pod, index) {
        &pod.status.init_container_statuses
    } else {
        &pod.status.container_statuses
    };
    let status = statuses.iter().find(|status| status.name == container.name);
    status.map_or("", |status| &status.container_id)
}

/// Returns the status of a condition: `true`, `false` or `unknown`.
fn condition(conditions: &[Condition], kind: &str) -> String {
    let condition = conditions.iter().find(|condition| condition.kind == kind);
    condition.map_or_else(|| "unknown".to_owned(), |condition| condition.status.to_lowercase())
}
