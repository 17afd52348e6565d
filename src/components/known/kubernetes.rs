//! `discovery.kubernetes` and `discovery.kubelet`: targets from a Kubernetes API server and from the agent of one node.
//!
//! Nothing is asked of a cluster here.

use std::sync::Arc;
use std::time::Duration;

use crate::components::common::discovery;
use crate::components::common::http_client::HttpClientArguments;
use crate::components::common::http_values::HttpUrl;
use crate::components::common::kubernetes_client::KubernetesClient;
use crate::components::common::selectors::{FieldSelector, LabelSelector};
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::choices;
use crate::lang::body::arguments;
use crate::pipeline::component::{Definition, Stability, no_metrics};

arguments! {
    /// Arguments of `discovery.kubernetes`.
    pub(crate) struct KubernetesArguments {
        /// What to look for: node, pod, service, endpoints, endpointslice or ingress.
        role: Role,
    }
    blocks {
        /// Labels of other objects that a target gets.
        attach_metadata: AttachMetadata,
        /// Namespaces to look at; all when none is given.
        namespaces: Namespaces,
        /// Which objects of a kind are asked for; the API server picks them.
        selectors: Vec<Selector>,
    }
    shared { client: KubernetesClient }
    check KubernetesArguments::check;
}

arguments! {
    /// Arguments of `discovery.kubelet`.
    pub(crate) struct KubeletArguments {
        /// Namespaces to look at; all when the list is empty.
        namespaces: Vec<Arc<str>> = [],
        /// Time from one look at the targets to the next.
        refresh_interval: Duration = "5s",
        /// URL of the kubelet, with its port.
        url: HttpUrl = "https://localhost:10250",
    }
    shared { client: HttpClientArguments }
}

arguments! {
    /// The body of `attach_metadata { }`.
    pub(crate) struct AttachMetadata {
        /// Labels and annotations of the namespace.
        namespace: bool = false,
        /// Labels and annotations of the node.
        node: bool = false,
    }
}

arguments! {
    /// The body of `namespaces { }`.
    pub(crate) struct Namespaces {
        /// Namespaces to look at, by name.
        names: Vec<Arc<str>> = [],
        /// The namespace that the program runs in.
        own_namespace: bool = false,
    }
}

arguments! {
    /// The body of `selectors { }`.
    pub(crate) struct Selector {
        /// Field selector: `spec.nodeName=node-1`.
        field: Option<FieldSelector>,
        /// Label selector: `app=shop,tier in (a, b)`.
        label: Option<LabelSelector>,
        /// Kind of the objects that the selector picks from.
        role: Role,
    }
}

choices! {
    /// A kind of objects in a cluster.
    pub(crate) enum Role {
        Node = "node",
        Pod = "pod",
        Service = "service",
        Endpoints = "endpoints",
        EndpointSlice = "endpointslice",
        Ingress = "ingress",
    }
}

impl Role {
    fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, role)| *role == self);
        found.map_or("", |(name, _)| name)
    }

    /// The roles that selectors of this one may pick from (Prometheus' table).
    fn selected(self) -> &'static [Self] {
        match self {
            Self::Node => &[Self::Node],
            Self::Pod => &[Self::Pod, Self::Node],
            Self::Service => &[Self::Service],
            Self::Endpoints => &[Self::Pod, Self::Service, Self::Endpoints],
            Self::EndpointSlice => &[Self::Pod, Self::Service, Self::EndpointSlice],
            Self::Ingress => &[Self::Ingress],
        }
    }
}

impl KubernetesArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        let allowed = self.role.selected();
        let (role, names) = (self.role.name(), allowed.iter().map(|role| role.name()));
        for (index, selector) in self.selectors.iter().enumerate() {
            let of = selector.role.name();
            let error = |message| Err(ArgumentError::new(format!("selectors[{index}].role"), message));
            if !allowed.contains(&selector.role) {
                let names: Vec<&str> = names.collect();
                return error(format!(
                    "the role {role} has no selectors of the role {of}; it has: {}",
                    names.join(", ")
                ));
            }
            if self
                .selectors
                .iter()
                .take(index)
                .any(|earlier| earlier.role == selector.role)
            {
                return error(format!("there is a selector of the role {of} already"));
            }
        }
        Ok(())
    }
}

/// The definition of `discovery.kubernetes`.
pub(crate) const KUBERNETES: Definition<KubernetesArguments> = Definition {
    name: "discovery.kubernetes",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.kubernetes` finds nodes, pods, services, endpoints or ingresses of a Kubernetes cluster and \
        follows their changes.",
};

/// The definition of `discovery.kubelet`.
pub(crate) const KUBELET: Definition<KubeletArguments> = Definition {
    name: "discovery.kubelet",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.kubelet` finds the pods of one node by asking its kubelet.",
};
