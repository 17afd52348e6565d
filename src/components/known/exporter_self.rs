//! `prometheus.exporter.self`: the address of the program's own metrics, as a target.

use crate::components::common::discovery;
use crate::lang::body::arguments;
use crate::pipeline::component::{Definition, Stability, no_metrics};

arguments! {
    /// Arguments of `prometheus.exporter.self`, which takes none.
    pub(crate) struct SelfArguments {}
}

/// The definition of `prometheus.exporter.self`.
pub(crate) const DEFINITION: Definition<SelfArguments> = Definition {
    name: "prometheus.exporter.self",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`prometheus.exporter.self` gives the program's own metrics as a target.",
};
