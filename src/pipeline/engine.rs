//! What every evaluation needs and no load changes.

use crate::lang::value::Value;
use crate::pipeline::component::Stability;
use crate::pipeline::graph::Catalog;
use crate::pipeline::metrics::Metrics;
use crate::pipeline::node::Surroundings;

/// The unchanging parts of a controller.
pub(crate) struct Engine {
    /// What components there are.
    pub(crate) catalog: Catalog,
    /// Least stability of what may be used.
    pub(crate) stability: Stability,
    /// Value of `constants`.
    pub(crate) constants: Value,
    /// What components get.
    pub(crate) around: Surroundings,
    /// The engine's own metrics.
    pub(crate) metrics: Metrics,
}
