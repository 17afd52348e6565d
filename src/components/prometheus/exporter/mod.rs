//! Exporters: components that serve metrics, and export a target for scraping them.

// The folder has the component's name `self`, which is a keyword and cannot be the name of a module.
#[path = "self/mod.rs"]
pub(crate) mod own;
