//! What every evaluation needs and no load changes.

use std::sync::Arc;

use crate::pipeline::check::catalog::Catalog;
use crate::pipeline::component::Stability;
use crate::pipeline::run::metrics::Metrics;
use crate::pipeline::run::names::Common;
use crate::pipeline::run::node::Surroundings;

/// The unchanging parts of a controller.
pub(crate) struct Engine {
    /// Id of the configuration itself: empty, or a name for one from elsewhere.
    pub(crate) module: Arc<str>,
    /// What components there are.
    pub(crate) catalog: Catalog,
    /// Least stability of what may be used.
    pub(crate) stability: Stability,
    /// `constants`, and what evaluations share.
    pub(crate) common: Common,
    /// What every component gets in its context.
    pub(crate) around: Surroundings,
    /// The engine's own metrics.
    pub(crate) metrics: Metrics,
}
