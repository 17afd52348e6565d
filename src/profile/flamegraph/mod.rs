//! Flame graphs. Stacks are added to a [`Tree`]. A tree can be converted to the levels that Pyroscope's clients draw
//! ([`FlameGraph`]) or to a [`CallGraph`]. The difference of two trees is a [`DiffGraph`]. A flame graph can be drawn
//! as static SVG, and a call graph can be written as Graphviz text.
//!
//! No function of this module recurses, so no profile can overflow the call stack. The module does no I/O and uses no
//! serde: the wire layer copies the fields into its own types.

mod call_graph;
mod diff;
mod dot;
mod from_profile;
mod levels;
mod marked;
mod paths;
mod svg;
#[cfg(test)]
#[path = "../../testing/tree.rs"]
#[expect(unreachable_pub, reason = "the crate `testing` offers the same file to other crates")]
mod testing;
mod tree;

pub use call_graph::CallGraph;
pub use diff::DiffGraph;
pub use diff::diff;
pub use dot::dot;
pub use from_profile::address_name;
pub use levels::Block;
pub use levels::FlameGraph;
pub use paths::Paths;
pub use svg::{SvgOptions, svg};
pub use tree::FrameId;
pub use tree::{FrameRef, Tree};

/// Name of the node that represents all nodes that are too small to show.
pub const OTHER: &str = "other";
/// Name of the root node, which contains all other nodes.
pub const TOTAL: &str = "total";
