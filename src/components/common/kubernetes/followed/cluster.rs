//! The known objects of a cluster, for each kind that a role needs, and lookups of related objects.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common::arguments::targets::Target;
use crate::common::arguments::texts::Texts;
use crate::common::kubernetes::followed::arguments::AttachMetadata;
use crate::common::kubernetes::followed::store::{Described, Store, StoredObject};
use crate::common::kubernetes::objects::{
    EndpointSlice, Endpoints, Ingress, Key, Namespace, Node, Pod, Reference, Service,
};
use crate::common::kubernetes::watch::Event;

/// A kind of objects that [`Cluster`] stores.
pub(super) trait Stored: Described {
    fn store(cluster: &Cluster) -> &Store<Self>;
    fn store_mut(cluster: &mut Cluster) -> &mut Store<Self>;
}

/// A kind of objects that have targets.
pub(super) trait Discovered: Stored {
    /// Returns the targets of an object.
    fn targets(key: &Key, kept: &StoredObject<Self>, cluster: &Cluster) -> Vec<Target>;

    /// Returns true if another object that the targets refer to has changed.
    fn is_touched(key: &Key, kept: &StoredObject<Self>, cluster: &Cluster) -> bool;
}

/// Declares the cluster, which has a store for each kind.
macro_rules! stores {
    ($( $store:ident: $kind:ty ),* $(,)?) => {
        /// The objects, by kind. Stores of kinds that the role does not need stay empty.
        pub(super) struct Cluster {
            /// Selects the objects whose labels are added to targets.
            pub(super) attached: AttachMetadata,
            /// Label texts of all stores. The stores share one set. If a text were in two sets, each set would count
            /// as a user of the text, and neither would ever remove it.
            pub(super) texts: Texts,
            $( pub(super) $store: Store<$kind>, )*
        }

        impl Cluster {
            pub(super) fn new(attached: AttachMetadata) -> Self {
                Self { attached, texts: Texts::default(), $( $store: Store::default(), )* }
            }

            /// Marks each object as unchanged if `is_settled` returns true for its key.
            pub(super) fn settle(&mut self, is_settled: &dyn Fn(&Key) -> bool) {
                $( self.$store.settle(is_settled); )*
            }

            /// Returns the number of stored objects, and the number of objects that are left out because a store is
            /// full.
            pub(super) fn count(&self) -> Count {
                let mut count = Count::default();
                $(
                    count.kept += self.$store.len();
                    count.left_out += self.$store.left_out();
                )*
                count
            }
        }

        $( impl Stored for $kind {
            fn store(cluster: &Cluster) -> &Store<Self> {
                &cluster.$store
            }

            fn store_mut(cluster: &mut Cluster) -> &mut Store<Self> {
                &mut cluster.$store
            }
        } )*
    };
}

stores! {
    nodes: Node,
    namespaces: Namespace,
    pods: Pod,
    services: Service,
    endpoints: Endpoints,
    slices: EndpointSlice,
    ingresses: Ingress,
}

/// Counts of objects, over all kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) kept: usize,
    pub(super) left_out: usize,
}

impl Cluster {
    /// Applies an event from the watch of `namespace`. An empty name stands for all namespaces.
    pub(super) fn take<T: Stored>(&mut self, namespace: &Arc<str>, event: Event<T>) {
        let mut texts = std::mem::take(&mut self.texts);
        T::store_mut(self).take(namespace, event, &mut texts);
        self.texts = texts;
    }

    /// Adds the labels of a node, if the node is known and `attach_metadata` selects node labels.
    pub(super) fn attach_node(&self, labels: &mut Target, name: Option<&str>) {
        let node = name.and_then(|name| self.nodes.get(&Key::cluster(name)));
        if let Some(node) = node.filter(|_| self.attached.node) {
            labels.extend(node.labels.clone());
        }
    }

    /// Adds the labels of a namespace, if the namespace is known and `attach_metadata` selects namespace labels.
    pub(super) fn attach_namespace(&self, labels: &mut Target, name: &Arc<str>) {
        let namespace = self.namespaces.get(&Key::cluster(name));
        if let Some(namespace) = namespace.filter(|_| self.attached.namespace) {
            labels.extend(namespace.labels.clone());
        }
    }

    /// Returns the pod that a reference names, if it names a known pod.
    pub(super) fn pod(&self, reference: Option<&Reference>) -> Option<(Key, &StoredObject<Pod>)> {
        let key = pod_key(reference?)?;
        let pod = self.pods.get(&key)?;
        Some((key, pod))
    }

    /// Returns true if the namespace, node or pod of a target may have changed.
    pub(super) fn has_changed(&self, namespace: &Arc<str>, node: Option<&str>, reference: Option<&Reference>) -> bool {
        let node = node.or_else(|| {
            reference
                .filter(|other| other.kind == "Node")
                .map(|other| other.name.as_str())
        });
        has(self.namespaces.changed(), || Some(Key::cluster(namespace)))
            || has(self.nodes.changed(), || node.map(Key::cluster))
            || has(self.pods.changed(), || reference.and_then(pod_key))
    }
}

/// Returns true if `changed` contains the key. `key` is called only if `changed` is not empty, which is rare.
fn has(changed: &BTreeSet<Key>, key: impl FnOnce() -> Option<Key>) -> bool {
    !changed.is_empty() && key().is_some_and(|key| changed.contains(&key))
}

fn pod_key(reference: &Reference) -> Option<Key> {
    (reference.kind == "Pod").then(|| Key::new(&reference.namespace, &reference.name))
}
