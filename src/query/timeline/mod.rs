//! Time series and heatmaps of profiles, with exemplars and spans.
//!
//! In: a selection, a range and a step. Out: lines of points or of heatmap cells.

mod exemplars;
pub(in crate::query) mod heatmap;
mod label_sets;
pub(in crate::query) mod lines;
mod spans;
mod steps;
