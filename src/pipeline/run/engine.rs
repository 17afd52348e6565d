//! The parts of a controller that evaluations use and that loads do not change.

use std::sync::Arc;

use crate::check::catalog::Catalog;
use crate::component::Stability;
use crate::run::metrics::Metrics;
use crate::run::names::Common;
use crate::run::node::ContextParts;

/// The constant parts of a controller.
pub(crate) struct Engine {
    /// Id of the configuration: empty for the program's own configuration, and a name for a remote configuration.
    pub(crate) module: Arc<str>,
    /// The available components.
    pub(crate) catalog: Catalog,
    /// Minimum stability of components and functions.
    pub(crate) stability: Stability,
    /// `constants`, and data shared by evaluations.
    pub(crate) common: Common,
    /// Parts of the context of every component.
    pub(crate) context: ContextParts,
    /// The engine's own metrics.
    pub(crate) metrics: Metrics,
}
