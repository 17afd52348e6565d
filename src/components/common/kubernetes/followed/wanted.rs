//! A component's selection in a cluster: which objects, where they are, and which of their targets.

use std::fmt::Debug;

use crate::components::common::arguments::targets::Target;
use crate::components::common::kubernetes::followed::arguments::{ClusterArguments, Role};
use crate::lang::body::FromBody;

/// The arguments of a component that follows a cluster.
pub(crate) trait Follow: FromBody + Debug + Send + Sync + 'static {
    /// Returns the selected objects and targets, as plain data.
    fn wanted(&self) -> Wanted;
}

/// The objects that are followed, and which of their targets are used.
pub(crate) struct Wanted {
    /// Role of the objects that have targets.
    pub(crate) role: Role,
    /// Location and selection of the objects.
    pub(crate) cluster: ClusterArguments,
    /// Selects and changes the targets of an object.
    pub(crate) choose: Choose,
}

/// Takes the targets of one object and returns those to export.
pub(crate) type Choose = fn(Vec<Target>) -> Chosen;

/// The targets of an object that are exported.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) targets: Vec<Target>,
    /// The problem of the object, if it requests targets that it cannot have.
    pub(crate) complaint: Option<String>,
}

impl Chosen {
    /// Returns all targets of an object, unchanged.
    pub(crate) fn all(targets: Vec<Target>) -> Self {
        let complaint = None;
        Self { targets, complaint }
    }
}
