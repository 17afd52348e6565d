//! Objects of the Kubernetes API, with the fields that components read.
//!
//! Names and types follow the API's reference. All other fields that the server sends are ignored.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

/// A kind of objects that can be listed and watched.
pub(crate) trait Resource: DeserializeOwned + Send + 'static {
    /// Path of the kind's group and version: `api/v1`.
    const GROUP: &'static str;
    /// Name of the kind in paths and messages: `pods`.
    const PLURAL: &'static str;

    /// Returns name, labels and other metadata.
    fn metadata(&self) -> &Metadata;

    /// Returns the same metadata mutably, so that a caller can remove it from the object.
    fn metadata_mut(&mut self) -> &mut Metadata;
}

/// Identifies an object among the objects of its kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Namespace; empty for a cluster-scoped object.
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
}

impl Key {
    /// Returns the key of an object in a namespace. An empty namespace stands for the whole cluster.
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// Returns the key of a cluster-scoped object.
    pub(crate) fn cluster(name: &str) -> Self {
        Self::new("", name)
    }
}

/// Declares the structs of objects. A missing or null field is empty.
macro_rules! objects {
    ($(
        $(#[doc = $doc:literal])*
        struct $name:ident { $( $field:ident $(as $key:literal)? : $type:ty ),* $(,)? }
    )*) => { $(
        $(#[doc = $doc])*
        #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub(crate) struct $name {
            $( $(#[serde(rename = $key)])? #[serde(deserialize_with = "or_empty")] pub(crate) $field: $type, )*
        }
    )* };
}

/// Implements [`Resource`] for the structs of kinds that can be listed.
macro_rules! resources {
    ($( $name:ident = $group:literal / $plural:literal ),* $(,)?) => { $(
        impl Resource for $name {
            const GROUP: &'static str = $group;
            const PLURAL: &'static str = $plural;

            fn metadata(&self) -> &Metadata {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut Metadata {
                &mut self.metadata
            }
        }
    )* };
}

resources! {
    Pod = "api/v1" / "pods",
    Node = "api/v1" / "nodes",
    Namespace = "api/v1" / "namespaces",
    Service = "api/v1" / "services",
    Endpoints = "api/v1" / "endpoints",
    EndpointSlice = "apis/discovery.k8s.io/v1" / "endpointslices",
    Ingress = "apis/networking.k8s.io/v1" / "ingresses",
    ConfigMap = "api/v1" / "configmaps",
    Secret = "api/v1" / "secrets",
}

objects! {
    /// Metadata of an object of any kind.
    struct Metadata {
        name: String,
        namespace: String,
        uid: String,
        resource_version: String,
        labels: BTreeMap<String, String>,
        annotations: BTreeMap<String, String>,
        owner_references: Vec<Owner>,
    }

    /// An owner of an object; at most one owner controls it.
    struct Owner {
        kind: String,
        name: String,
        controller: bool,
    }

    struct Pod {
        metadata: Metadata,
        spec: PodSpec,
        status: PodStatus,
    }

    struct PodSpec {
        node_name: String,
        containers: Vec<Container>,
        init_containers: Vec<Container>,
    }

    struct Container {
        name: String,
        image: String,
        ports: Vec<ContainerPort>,
    }

    struct ContainerPort {
        name: String,
        container_port: u32,
        protocol: String,
    }

    struct PodStatus {
        phase: String,
        pod_ip as "podIP": String,
        host_ip as "hostIP": String,
        conditions: Vec<Condition>,
        container_statuses: Vec<ContainerStatus>,
        init_container_statuses: Vec<ContainerStatus>,
    }

    /// A condition of an object, such as `Ready` being `True`.
    struct Condition {
        kind as "type": String,
        status: String,
    }

    struct ContainerStatus {
        name: String,
        container_id as "containerID": String,
    }

    struct Node {
        metadata: Metadata,
        spec: NodeSpec,
        status: NodeStatus,
    }

    struct NodeSpec {
        provider_id as "providerID": String,
    }

    struct NodeStatus {
        addresses: Vec<NodeAddress>,
        conditions: Vec<Condition>,
        daemon_endpoints: DaemonEndpoints,
    }

    struct NodeAddress {
        kind as "type": String,
        address: String,
    }

    struct DaemonEndpoints {
        kubelet_endpoint: DaemonEndpoint,
    }

    struct DaemonEndpoint {
        port as "Port": u32,
    }

    struct Namespace {
        metadata: Metadata,
    }

    struct Service {
        metadata: Metadata,
        spec: ServiceSpec,
        status: ServiceStatus,
    }

    struct ServiceSpec {
        kind as "type": String,
        cluster_ip as "clusterIP": String,
        external_name: String,
        load_balancer_ip as "loadBalancerIP": String,
        ip_families: Vec<String>,
        ip_family_policy: String,
        ports: Vec<ServicePort>,
    }

    struct ServicePort {
        name: String,
        port: u32,
        protocol: String,
    }

    struct ServiceStatus {
        load_balancer: LoadBalancer,
    }

    struct LoadBalancer {
        ingress: Vec<LoadBalancerIngress>,
    }

    struct LoadBalancerIngress {
        ip: String,
    }

    struct Endpoints {
        metadata: Metadata,
        subsets: Vec<Subset>,
    }

    struct Subset {
        addresses: Vec<EndpointAddress>,
        not_ready_addresses: Vec<EndpointAddress>,
        ports: Vec<EndpointPort>,
    }

    struct EndpointAddress {
        ip: String,
        hostname: String,
        node_name: Option<String>,
        target_ref: Option<Reference>,
    }

    /// A reference from one object to another.
    struct Reference {
        kind: String,
        namespace: String,
        name: String,
    }

    struct EndpointPort {
        name: Option<String>,
        port: Option<u32>,
        protocol: Option<String>,
        app_protocol: Option<String>,
    }

    struct EndpointSlice {
        metadata: Metadata,
        address_type: String,
        endpoints: Vec<SliceEndpoint>,
        ports: Vec<EndpointPort>,
    }

    struct SliceEndpoint {
        addresses: Vec<String>,
        conditions: EndpointConditions,
        hostname: Option<String>,
        node_name: Option<String>,
        zone: Option<String>,
        target_ref: Option<Reference>,
        deprecated_topology: BTreeMap<String, String>,
    }

    struct EndpointConditions {
        ready: Option<bool>,
        serving: Option<bool>,
        terminating: Option<bool>,
    }

    struct Ingress {
        metadata: Metadata,
        spec: IngressSpec,
    }

    struct IngressSpec {
        ingress_class_name: Option<String>,
        rules: Vec<IngressRule>,
        tls: Vec<IngressTls>,
    }

    struct IngressRule {
        host: String,
        http: Option<IngressHttp>,
    }

    struct IngressHttp {
        paths: Vec<IngressPath>,
    }

    struct IngressPath {
        path: String,
    }

    struct IngressTls {
        hosts: Vec<String>,
    }

    struct ConfigMap {
        metadata: Metadata,
        data: BTreeMap<String, String>,
    }

    /// Reason why the server refused a request.
    struct Status {
        code: u16,
        message: String,
        reason: String,
    }

    /// Metadata of a list: its version, and the token of its next page.
    struct ListMetadata {
        resource_version: String,
        next as "continue": String,
    }
}

/// An object with Base64-encoded secrets. It has no `Debug`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Secret {
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) data: BTreeMap<String, String>,
}

impl Metadata {
    /// Returns the key that identifies the object.
    pub(crate) fn key(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }

    /// Returns the owner that controls the object.
    pub(crate) fn controller(&self) -> Option<&Owner> {
        self.owner_references.iter().find(|owner| owner.controller)
    }
}

/// Reads null as an empty value, because Go writes an empty list as null.
fn or_empty<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_missing_or_null_are_empty_and_others_are_passed_over() {
        let text = r#"{"metadata": {"name": "a", "labels": null, "managedFields": [1]},
            "addressType": "IPv4", "endpoints": null, "ports": [{"port": 80}]}"#;
        let slice: EndpointSlice = serde_json::from_str(text).unwrap();
        assert_eq!(slice.metadata.key(), Key::cluster("a"));
        assert!(slice.endpoints.is_empty() && slice.ports[0].port == Some(80));
        assert_eq!(slice.ports[0].name, None);
    }
}
