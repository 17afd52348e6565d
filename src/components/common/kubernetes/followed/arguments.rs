//! Arguments of a component that follows a cluster: the connection, the namespaces, and which objects to select.

use std::sync::Arc;

use crate::components::common::kubernetes::arguments::KubernetesClient;
use crate::components::common::kubernetes::selectors::{FieldSelector, LabelSelector};
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::choices;
use crate::lang::body::arguments;

arguments! {
    /// Where and how to look, shared among a component's own arguments.
    pub(crate) struct ClusterArguments {}
    blocks {
        /// Labels of other objects that a target gets.
        attach_metadata: AttachMetadata,
        /// Namespaces to look at; all when none is given.
        namespaces: Namespaces,
        /// Which objects of a kind are asked for; the API server picks them.
        selectors: Vec<Selector>,
    }
    shared { client: KubernetesClient }
    check ClusterArguments::check;
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
    /// Its name in a configuration.
    fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, role)| *role == self);
        found.map_or("", |(name, _)| name)
    }

    /// The roles that a selector may name when this role is discovered (Prometheus' table).
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

impl ClusterArguments {
    /// The selector that picks objects of this role.
    pub(super) fn selector(&self, role: Role) -> Option<&Selector> {
        self.selectors.iter().find(|selector| selector.role == role)
    }

    /// Checks that the selectors fit the role `wanted`.
    pub(crate) fn check_selectors(&self, wanted: Role) -> Result<(), ArgumentError> {
        let allowed = wanted.selected();
        for (index, selector) in self.selectors.iter().enumerate() {
            let of = selector.role.name();
            let error = |message| Err(ArgumentError::new(format!("selectors[{index}].role"), message));
            if !allowed.contains(&selector.role) {
                let names: Vec<&str> = allowed.iter().map(|role| role.name()).collect();
                return error(format!(
                    "the role {} has no selectors of the role {of}; it has: {}",
                    wanted.name(),
                    names.join(", ")
                ));
            }
            let earlier = &self.selectors[..index];
            if earlier.iter().any(|earlier| earlier.role == selector.role) {
                return error(format!("there is a selector of the role {of} already"));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), ArgumentError> {
        let is_elsewhere = self.client.api_server.is_some() || self.client.kubeconfig_file.is_some();
        if self.namespaces.own_namespace && is_elsewhere {
            let message = "own_namespace is known in the cluster that the program runs in: it has no meaning with \
                api_server or kubeconfig_file";
            return Err(ArgumentError::new("namespaces.own_namespace", message));
        }
        Ok(())
    }
}
