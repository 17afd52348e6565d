//! Exporters: components that serve metrics and export a target for them.

// The folder is `self`, after the component, which is not allowed as the name of a module.
#[path = "self/mod.rs"]
pub(crate) mod own;
