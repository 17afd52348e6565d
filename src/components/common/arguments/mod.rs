//! Types and checks of arguments that several components share.

pub(crate) mod changed_targets;
pub(crate) mod checks;
pub(crate) mod endpoint;
pub(crate) mod targets;
pub(crate) mod texts;
