//! Arguments of a component that follows a cluster: the connection, the namespaces, and the selection of objects.

use std::sync::Arc;

use crate::common::kubernetes::arguments::KubernetesClient;
use crate::common::kubernetes::selectors::{FieldSelector, LabelSelector};
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::choices;
use alluvium_lang::body::arguments;

arguments! {
    /// Selection of the objects in a cluster. These arguments are part of a component's own arguments.
    pub(crate) struct ClusterArguments {}
    blocks {
        /// Labels of other objects to add to targets.
        attach_metadata: AttachMetadata,
        /// Namespaces to search. Defaults to all namespaces.
        namespaces: Namespaces,
        /// Selectors of objects by kind. The API server applies them.
        selectors: Vec<Selector>,
    }
    shared { client: KubernetesClient }
    check ClusterArguments::check;
}

arguments! {
    /// The body of `attach_metadata { }`.
    pub(crate) struct AttachMetadata {
        /// If true, a target gets the labels and annotations of its namespace.
        namespace: bool = false,
        /// If true, a target gets the labels and annotations of its node.
        node: bool = false,
    }
}

arguments! {
    /// The body of `namespaces { }`.
    pub(crate) struct Namespaces {
        /// Names of the namespaces to search.
        names: Vec<Arc<str>> = [],
        /// If true, the namespace that the program runs in is searched.
        own_namespace: bool = false,
    }
}

arguments! {
    /// The body of `selectors { }`.
    pub(crate) struct Selector {
        /// Field selector, for example `spec.nodeName=node-1`.
        field: Option<FieldSelector>,
        /// Label selector, for example `app=shop,tier in (a, b)`.
        label: Option<LabelSelector>,
        /// Kind of the objects that the selector applies to.
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
    /// Returns the role's name in a configuration.
    fn name(self) -> &'static str {
        let entry = Self::ALL.iter().find(|(_, role)| *role == self);
        entry.map_or("", |(name, _)| name)
    }

    /// Returns the roles that a selector may name if this role is discovered, as in Prometheus.
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
    /// Returns the selector for objects of this role.
    pub(super) fn selector(&self, role: Role) -> Option<&Selector> {
        self.selectors.iter().find(|selector| selector.role == role)
    }

    /// Returns an error if a selector does not fit `discovered_role`, or if a role has two selectors.
    pub(crate) fn check_selectors(&self, discovered_role: Role) -> Result<(), ArgumentError> {
        let allowed = discovered_role.selected();
        for (index, selector) in self.selectors.iter().enumerate() {
            let selector_role = selector.role.name();
            let error = |message| Err(ArgumentError::new(format!("selectors[{index}].role"), message));
            if !allowed.contains(&selector.role) {
                let names: Vec<&str> = allowed.iter().map(|role| role.name()).collect();
                return error(format!(
                    "the role {} does not support selectors of the role {selector_role}; it supports: {}",
                    discovered_role.name(),
                    names.join(", ")
                ));
            }
            let earlier = &self.selectors[..index];
            if earlier.iter().any(|earlier| earlier.role == selector.role) {
                return error(format!("the role {selector_role} already has a selector"));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), ArgumentError> {
        let is_elsewhere = self.client.api_server.is_some() || self.client.kubeconfig_file.is_some();
        if self.namespaces.own_namespace && is_elsewhere {
            let message = "own_namespace is only known in the cluster that the program runs in: it cannot be used with \
                api_server or kubeconfig_file";
            return Err(ArgumentError::new("namespaces.own_namespace", message));
        }
        Ok(())
    }
}
