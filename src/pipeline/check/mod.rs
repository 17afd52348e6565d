//! Static checks of a configuration, and the graphs for running it. Pure: this module builds no component and reads no
//! environment variable.
//!
//! In: texts and the definitions of components. `validate::analyze` reads the statements of every scope into a
//! [`graph::Graph`]. Scopes are the configuration itself, the body of a `declare`, and the template of a `foreach`.
//! `analyze` also resolves references, orders the nodes, and checks every block against its schema. Out: the graph, and
//! diagnostics. Nothing here depends on the running components.

mod analyzer;
pub(crate) mod arguments;
pub(crate) mod blocks;
mod bodies;
mod broken;
pub(crate) mod catalog;
pub(crate) mod declare;
mod env;
pub mod foreign;
pub(crate) mod graph;
pub(crate) mod library;
mod links;
mod lints;
mod order;
mod redact;
mod scope;
pub mod settings;
mod types;
mod validate;

pub(crate) use analyzer::Extent;
pub use redact::redact;
pub(crate) use validate::analyze;
pub use validate::validate;
