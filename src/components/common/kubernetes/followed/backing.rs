//! Targets of addresses that may belong to pods, for the roles `endpoints` and `endpointslice`.
//!
//! The target of a pod's address gets the pod's labels. Ports that the pod declares in addition to the ports of the
//! service become targets too, once for each pod.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::arguments::targets::Target;
use crate::common::discovery::meta_labels::host_port;
use crate::common::kubernetes::followed::cluster::Cluster;
use crate::common::kubernetes::followed::store::StoredObject;
use crate::common::kubernetes::objects::{Key, Pod, Reference};
use crate::common::kubernetes::pods::{self, Port, with};

/// Collects the targets of one object.
pub(super) struct Backing<'a> {
    cluster: &'a Cluster,
    /// Labels that are added to all targets.
    common_labels: Target,
    targets: Vec<Target>,
    /// Pods to which addresses belong.
    pods: BTreeMap<Key, BackingPod<'a>>,
}

struct BackingPod<'a> {
    pod: &'a StoredObject<Pod>,
    ports: Vec<Port>,
    /// Port numbers that already have a target.
    covered: Vec<u32>,
}

impl<'a> Backing<'a> {
    /// Creates a collector without targets. `common_labels` contains the labels to add to all targets.
    pub(super) fn new(cluster: &'a Cluster, common_labels: Target) -> Self {
        Self {
            cluster,
            common_labels,
            targets: Vec::new(),
            pods: BTreeMap::new(),
        }
    }

    /// Adds the target of an address. If the address belongs to a pod, the labels of the pod and of the pod's port are
    /// added to the target. `change` edits the labels of the port before they are added.
    pub(super) fn add(
        &mut self,
        mut target: Target,
        port: Option<u32>,
        reference: Option<&Reference>,
        change: impl Fn(&mut Target),
    ) {
        if let Some((key, pod)) = self.cluster.pod(reference) {
            let entry = self.pods.entry(key).or_insert_with(|| BackingPod {
                pod,
                ports: pods::ports(&pod.object),
                covered: Vec::new(),
            });
            target.extend(pod.labels.clone());
            if let Some(declared) = port.and_then(|number| pods::port(&entry.ports, number)) {
                let mut labels = declared.labels.clone();
                change(&mut labels);
                target.extend(labels);
            }
            entry.covered.extend(port);
        }
        self.targets.push(with(&self.common_labels, target));
    }

    /// Returns all targets, including the targets of the pods' other ports.
    pub(super) fn finish(mut self) -> Vec<Target> {
        for BackingPod { pod, ports, covered } in self.pods.values() {
            let ip = &pod.object.status.pod_ip;
            // A pod that is starting or was evicted has no address.
            if ip.is_empty() {
                continue;
            }
            for port in ports.iter().filter(|port| !covered.contains(&port.number)) {
                let mut target = with(&pod.labels, port.labels.clone());
                target.insert("__address__".into(), host_port(ip, port.number).into());
                self.targets.push(with(&self.common_labels, target));
            }
        }
        self.targets
    }
}

/// Adds the labels of a service, if the service is known.
pub(super) fn attach_service(labels: &mut Target, cluster: &Cluster, namespace: &Arc<str>, name: &str) {
    if let Some(service) = cluster.services.get(&Key::new(namespace, name)) {
        labels.extend(service.labels.clone());
    }
}
