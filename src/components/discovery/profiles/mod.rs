//! `discovery.profiles`: discovers the pods whose annotations request profiling, as targets for `pyroscope.scrape`.
//!
//! The component watches pods as `discovery.kubernetes` does. [`annotations`] turns the annotations of a pod into
//! targets.

use crate::common::kubernetes::followed;
use crate::common::kubernetes::followed::arguments::{ClusterArguments, Role};
use crate::common::kubernetes::followed::wanted::{Follow, FollowArguments};
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::Definition;

mod annotations;
mod requests;
#[cfg(test)]
mod tests;

arguments! {
    /// Arguments of `discovery.profiles`.
    pub(crate) struct ProfilesArguments {}
    shared { cluster: ClusterArguments }
    check ProfilesArguments::check;
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<ProfilesArguments> = followed::definition(
    "discovery.profiles",
    "`discovery.profiles` finds the pods of a Kubernetes cluster whose annotations request profiling. Alloy does not \
     have this component.",
);

impl Follow for ProfilesArguments {
    fn selection(&self) -> FollowArguments {
        FollowArguments {
            role: Role::Pod,
            cluster: self.cluster.clone(),
            choose: annotations::choose,
        }
    }
}

impl ProfilesArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        self.cluster.check_selectors(Role::Pod)
    }
}
