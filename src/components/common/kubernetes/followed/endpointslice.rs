//! The role `endpointslice`: one target for each combination of an address and a port in an EndpointSlice.

use std::sync::Arc;

use crate::common::arguments::targets::Target;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::kubernetes::followed::backing::{Backing, attach_service};
use crate::common::kubernetes::followed::cluster::{Cluster, Discovered};
use crate::common::kubernetes::followed::store::{Described, StoredObject};
use crate::common::kubernetes::objects::{EndpointPort, EndpointSlice, Key, Reference, Service, SliceEndpoint};
use crate::common::kubernetes::pods::{PREFIX, set_object};

/// Label with the name of the service that the slice belongs to.
const SERVICE: &str = "__meta_kubernetes_endpointslice_label_kubernetes_io_service_name";

impl Described for EndpointSlice {
    fn labels(&self) -> Target {
        let mut labels = MetaLabels::new(PREFIX);
        labels.set("namespace", &self.metadata.namespace);
        labels.set("endpointslice_address_type", &self.address_type);
        set_object(&mut labels, "endpointslice", &self.metadata);
        labels.into_target()
    }
}

/// The targets of a slice.
impl Discovered for EndpointSlice {
    fn targets(key: &Key, slice: &StoredObject<Self>, cluster: &Cluster) -> Vec<Target> {
        let mut common_labels = slice.labels.clone();
        if let Some(service) = service(key, slice) {
            attach_service(&mut common_labels, cluster, &service.namespace, &service.name);
            let service = cluster.services.get(&service);
            if service.is_some_and(|service| is_second_family(&service.object, &slice.object)) {
                return Vec::new();
            }
        }
        cluster.attach_namespace(&mut common_labels, &key.namespace);
        let mut backing = Backing::new(cluster, common_labels);
        for endpoint in &slice.object.endpoints {
            for port in &slice.object.ports {
                for address in &endpoint.addresses {
                    let mut target = labels(endpoint, port).with_address(match port.port {
                        Some(number) => host_port(address, number),
                        None => address.clone(),
                    });
                    cluster.attach_node(&mut target, node(endpoint));
                    backing.add(target, port.port, endpoint.target_ref.as_ref(), |_| {});
                }
            }
        }
        backing.finish()
    }

    fn is_touched(key: &Key, slice: &StoredObject<Self>, cluster: &Cluster) -> bool {
        service(key, slice).is_some_and(|service| cluster.services.changed().contains(&service))
            || cluster.has_changed(&key.namespace, None, None)
            || slice
                .object
                .endpoints
                .iter()
                .any(|endpoint| cluster.has_changed(&key.namespace, node(endpoint), endpoint.target_ref.as_ref()))
    }
}

/// Returns the service that a slice belongs to.
fn service(key: &Key, slice: &StoredObject<EndpointSlice>) -> Option<Key> {
    let name = slice.labels.get(SERVICE)?;
    let namespace: Arc<str> = key.namespace.clone();
    Some(Key {
        namespace,
        name: name.clone(),
    })
}

/// Returns the name of the node whose labels are added to a target.
fn node(endpoint: &SliceEndpoint) -> Option<&str> {
    match &endpoint.target_ref {
        Some(Reference { kind, name, .. }) if kind == "Node" => Some(name),
        _ => endpoint.node_name.as_deref(),
    }
}

/// Returns true if a slice contains addresses of the second address family of a dual-stack service. The slice of the
/// first family contains the same endpoints.
fn is_second_family(service: &Service, slice: &EndpointSlice) -> bool {
    let is_dual = matches!(
        service.spec.ip_family_policy.as_str(),
        "PreferDualStack" | "RequireDualStack"
    );
    let first = service.spec.ip_families.first();
    is_dual && first.is_some_and(|first| *first != slice.address_type)
}

fn labels(endpoint: &SliceEndpoint, port: &EndpointPort) -> MetaLabels {
    let mut labels = MetaLabels::new(PREFIX);
    labels
        .set_some("endpointslice_port_name", port.name.as_ref())
        .set_some("endpointslice_port_protocol", port.protocol.as_ref())
        .set_some("endpointslice_port", port.port)
        .set_some("endpointslice_port_app_protocol", port.app_protocol.as_ref())
        .set_some("endpointslice_endpoint_conditions_ready", endpoint.conditions.ready)
        .set_some("endpointslice_endpoint_conditions_serving", endpoint.conditions.serving)
        .set_some(
            "endpointslice_endpoint_conditions_terminating",
            endpoint.conditions.terminating,
        )
        .set_some("endpointslice_endpoint_hostname", endpoint.hostname.as_ref())
        .set_some("endpointslice_endpoint_node_name", endpoint.node_name.as_ref())
        .set_some("endpointslice_endpoint_zone", endpoint.zone.as_ref());
    if let Some(Reference { kind, name, .. }) = &endpoint.target_ref {
        labels
            .set("endpointslice_address_target_kind", kind)
            .set("endpointslice_address_target_name", name);
    }
    let topology = &endpoint.deprecated_topology;
    labels.set_each("endpointslice_endpoint_topology_", topology);
    labels.set_each(
        "endpointslice_endpoint_topology_present_",
        topology.keys().map(|key| (key, "true")),
    );
    labels
}
