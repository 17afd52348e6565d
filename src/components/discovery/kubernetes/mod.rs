//! `discovery.kubernetes`: discovers the nodes, pods, services, endpoints or ingresses of a Kubernetes cluster.

use crate::common::kubernetes::followed;
use crate::common::kubernetes::followed::arguments::{ClusterArguments, Role};
use crate::common::kubernetes::followed::wanted::{Chosen, Follow, FollowArguments};
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::Definition;

#[cfg(test)]
mod tests;

arguments! {
    /// Arguments of `discovery.kubernetes`.
    pub(crate) struct KubernetesArguments {
        /// Kind of objects to discover: `node`, `pod`, `service`, `endpoints`, `endpointslice` or `ingress`.
        role: Role,
    }
    shared { cluster: ClusterArguments }
    check KubernetesArguments::check;
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<KubernetesArguments> = followed::definition(
    "discovery.kubernetes",
    "`discovery.kubernetes` finds nodes, pods, services, endpoints or ingresses of a Kubernetes cluster and follows \
     their changes.",
);

impl Follow for KubernetesArguments {
    fn selection(&self) -> FollowArguments {
        FollowArguments {
            role: self.role,
            cluster: self.cluster.clone(),
            choose: Chosen::all,
        }
    }
}

impl KubernetesArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        self.cluster.check_selectors(self.role)
    }
}
