//! The objects that a component follows in a cluster, and the function that selects the targets to export.

use std::fmt::Debug;

use crate::common::arguments::targets::Target;
use crate::common::kubernetes::followed::arguments::{ClusterArguments, Role};
use alluvium_lang::body::FromBody;

/// The arguments of a component that follows a cluster.
pub(crate) trait Follow: FromBody + Debug + Send + Sync + 'static {
    /// Returns the selected objects and targets, as plain data.
    fn selection(&self) -> FollowArguments;
}

/// The objects to follow, and the selection of their targets.
pub(crate) struct FollowArguments {
    /// Role of the objects that become targets.
    pub(crate) role: Role,
    /// Connection to the cluster, and selection of the objects.
    pub(crate) cluster: ClusterArguments,
    /// Selects and changes the targets of an object.
    pub(crate) choose: Choose,
}

/// Receives all targets of one object and returns the targets to export.
pub(crate) type Choose = fn(Vec<Target>) -> Chosen;

/// The targets to export for one object.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) targets: Vec<Target>,
    /// The reason why the object has fewer targets than it requests, or `None` if no target is missing.
    pub(crate) complaint: Option<String>,
}

impl Chosen {
    /// Returns all targets of an object, unchanged.
    pub(crate) fn all(targets: Vec<Target>) -> Self {
        let complaint = None;
        Self { targets, complaint }
    }
}
