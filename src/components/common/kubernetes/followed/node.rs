//! The role `node`: a target for the kubelet of each node.

use crate::common::arguments::targets::Target;
use crate::common::discovery::meta_labels::{MetaLabels, host_port, label_name};
use crate::common::kubernetes::followed::cluster::{Cluster, Discovered};
use crate::common::kubernetes::followed::store::{Described, StoredObject};
use crate::common::kubernetes::objects::{Key, Namespace, Node};
use crate::common::kubernetes::pods::{PREFIX, set_maps, set_object};

/// Types of node addresses, in order of precedence. A node's target has the first of these addresses that exists.
const ADDRESS_TYPES: [&str; 6] = [
    "InternalIP",
    "InternalDNS",
    "ExternalIP",
    "ExternalDNS",
    "LegacyHostIP",
    "Hostname",
];

/// The labels that are attached to targets on the node.
impl Described for Node {
    fn labels(&self) -> Target {
        let mut labels = MetaLabels::new(PREFIX);
        set_object(&mut labels, "node", &self.metadata);
        labels.into_target()
    }
}

/// The labels that are attached to targets in the namespace. They do not include the namespace's name, which the
/// targets already have.
impl Described for Namespace {
    fn labels(&self) -> Target {
        let mut labels = MetaLabels::new(PREFIX);
        set_maps(&mut labels, "namespace", &self.metadata);
        labels.into_target()
    }
}

/// The target of a node. A node without an address has no target.
impl Discovered for Node {
    fn targets(key: &Key, node: &StoredObject<Self>, _: &Cluster) -> Vec<Target> {
        let status = &node.object.status;
        let first = |kind: &str| status.addresses.iter().find(|address| address.kind == kind);
        let Some(address) = ADDRESS_TYPES.iter().find_map(|kind| first(kind)) else {
            return Vec::new();
        };
        let mut labels = MetaLabels::new(PREFIX);
        labels.set("node_provider_id", &node.object.spec.provider_id);
        for condition in &status.conditions {
            let name = format!("node_condition_{}", label_name(&condition.kind.to_lowercase()));
            labels.set(&name, condition.status.to_lowercase());
        }
        // If a type has several addresses, the first address overwrites the later addresses.
        for address in status.addresses.iter().rev() {
            labels.set(&format!("node_address_{}", label_name(&address.kind)), &address.address);
        }
        let mut target = labels.with_address(host_port(
            &address.address,
            status.daemon_endpoints.kubelet_endpoint.port,
        ));
        target.insert("instance".into(), key.name.clone());
        target.extend(node.labels.clone());
        vec![target]
    }

    fn is_touched(_: &Key, _: &StoredObject<Self>, _: &Cluster) -> bool {
        false
    }
}
