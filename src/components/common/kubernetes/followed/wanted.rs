//! What a component wants of a cluster: which objects, where they are, and which of their targets.

use std::fmt::Debug;

use crate::components::common::arguments::targets::Target;
use crate::components::common::kubernetes::followed::arguments::{ClusterArguments, Role};
use crate::lang::body::FromBody;

/// The arguments of a component that follows a cluster.
pub(crate) trait Follow: FromBody + Debug + Send + Sync + 'static {
    /// The objects and targets that they ask for, as plain data.
    fn wanted(&self) -> Wanted;
}

/// Which objects are followed, and which of their targets are taken.
pub(crate) struct Wanted {
    /// The objects that have targets.
    pub(crate) role: Role,
    /// Where the objects are, and which of them are selected.
    pub(crate) cluster: ClusterArguments,
    /// Selects and changes the targets of an object.
    pub(crate) choose: Choose,
}

/// Takes the targets of one object and gives those that are exported.
pub(crate) type Choose = fn(Vec<Target>) -> Chosen;

/// The targets of an object that are exported.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) targets: Vec<Target>,
    /// What is wrong with the object, if it requests targets that it cannot have.
    pub(crate) complaint: Option<String>,
}

impl Chosen {
    /// All targets of an object, unchanged.
    pub(crate) fn all(targets: Vec<Target>) -> Self {
        let complaint = None;
        Self { targets, complaint }
    }
}
