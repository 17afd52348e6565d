//! The role `pod`: a target for each port that a container declares, and one for each container without ports.

use crate::common::arguments::targets::Target;
use crate::common::kubernetes::followed::cluster::{Cluster, Discovered};
use crate::common::kubernetes::followed::store::{Described, StoredObject};
use crate::common::kubernetes::objects::{Key, Pod};
use crate::common::kubernetes::pods;

impl Described for Pod {
    fn labels(&self) -> Target {
        pods::labels(self)
    }
}

/// The targets of a pod. If node labels are attached and a node selector excludes the pod's node, there are no targets.
impl Discovered for Pod {
    fn targets(key: &Key, pod: &StoredObject<Self>, cluster: &Cluster) -> Vec<Target> {
        let node = &pod.object.spec.node_name;
        if cluster.attached.node && cluster.nodes.get(&Key::cluster(node)).is_none() {
            return Vec::new();
        }
        let mut labels = pod.labels.clone();
        labels.insert("__meta_kubernetes_namespace".into(), key.namespace.clone());
        cluster.attach_node(&mut labels, Some(node));
        cluster.attach_namespace(&mut labels, &key.namespace);
        pods::targets(&pod.object, &labels)
    }

    fn is_touched(key: &Key, pod: &StoredObject<Self>, cluster: &Cluster) -> bool {
        cluster.has_changed(&key.namespace, Some(&pod.object.spec.node_name), None)
    }
}
