//! Components that make metrics of something and are targets for them.

// The folder has the component's name, which no module can have.
#[path = "self/mod.rs"]
pub(crate) mod own;
