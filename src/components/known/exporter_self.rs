//! `prometheus.exporter.self`: the address of the program's own metrics, as a target.
//!
//! Schema only.

use crate::components::common::discovery;
use crate::lang::schema::Schema;
use crate::pipeline::component::{Definition, Stability};

/// `prometheus.exporter.self`
pub const DEFINITION: Definition = Definition {
    name: "prometheus.exporter.self",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema::EMPTY,
    exports: discovery::EXPORTS,
    validate: |_| Ok(()),
    build: None,
    doc: "`prometheus.exporter.self` gives the program's own metrics as a target.",
};
