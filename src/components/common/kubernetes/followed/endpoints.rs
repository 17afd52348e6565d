//! The role `endpoints`: a target for each address and port of a service, including addresses that are not ready.

use crate::common::arguments::targets::Target;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::kubernetes::followed::backing::{Backing, attach_service};
use crate::common::kubernetes::followed::cluster::{Cluster, Discovered};
use crate::common::kubernetes::followed::store::{Described, StoredObject};
use crate::common::kubernetes::objects::{EndpointAddress, EndpointPort, Endpoints, Key, Reference};
use crate::common::kubernetes::pods::{PREFIX, set_object};

impl Described for Endpoints {
    fn labels(&self) -> Target {
        let mut labels = MetaLabels::new(PREFIX);
        labels.set("namespace", &self.metadata.namespace);
        set_object(&mut labels, "endpoints", &self.metadata);
        labels.into_target()
    }
}

/// The targets of an `Endpoints` object. Its service has the same name.
impl Discovered for Endpoints {
    fn targets(key: &Key, endpoints: &StoredObject<Self>, cluster: &Cluster) -> Vec<Target> {
        let mut common_labels = endpoints.labels.clone();
        attach_service(&mut common_labels, cluster, &key.namespace, &key.name);
        cluster.attach_namespace(&mut common_labels, &key.namespace);
        let mut backing = Backing::new(cluster, common_labels);
        for subset in &endpoints.object.subsets {
            for port in &subset.ports {
                let ready = subset.addresses.iter().map(|address| (address, "true"));
                let others = subset.not_ready_addresses.iter().map(|address| (address, "false"));
                for (address, is_ready) in ready.chain(others) {
                    add(&mut backing, cluster, address, port, is_ready);
                }
            }
        }
        backing.finish()
    }

    fn is_touched(key: &Key, endpoints: &StoredObject<Self>, cluster: &Cluster) -> bool {
        let subsets = endpoints.object.subsets.iter();
        let mut addresses = subsets.flat_map(|subset| subset.addresses.iter().chain(&subset.not_ready_addresses));
        cluster.services.changed().contains(key)
            || cluster.has_changed(&key.namespace, None, None)
            || addresses.any(
                |EndpointAddress {
                     node_name, target_ref, ..
                 }| { cluster.has_changed(&key.namespace, node_name.as_deref(), target_ref.as_ref()) },
            )
    }
}

fn add(backing: &mut Backing, cluster: &Cluster, address: &EndpointAddress, port: &EndpointPort, is_ready: &str) {
    let number = port.port.unwrap_or_default();
    let protocol = port.protocol.as_deref().unwrap_or_default();
    let mut labels = MetaLabels::new(PREFIX);
    labels
        .set("endpoint_port_name", port.name.as_deref().unwrap_or_default())
        .set("endpoint_port_protocol", protocol)
        .set("endpoint_ready", is_ready)
        .set_some("endpoint_node_name", address.node_name.as_ref());
    if !address.hostname.is_empty() {
        labels.set("endpoint_hostname", &address.hostname);
    }
    let mut node = address.node_name.as_deref();
    if let Some(Reference { kind, name, .. }) = &address.target_ref {
        labels
            .set("endpoint_address_target_kind", kind)
            .set("endpoint_address_target_name", name);
        if kind == "Node" {
            node = node.or(Some(name));
        }
    }
    let mut target = labels.with_address(host_port(&address.ip, number));
    cluster.attach_node(&mut target, node);
    // The label of the container's port gets the protocol of the endpoint's port instead of the declared protocol.
    let change = |port: &mut Target| {
        port.insert(format!("{PREFIX}pod_container_port_protocol").into(), protocol.into());
    };
    backing.add(target, Some(number), address.target_ref.as_ref(), change);
}
