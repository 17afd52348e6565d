//! Components in the namespace `prometheus`. There is only the exporter of Alluvium's own metrics.

pub(crate) mod exporter;
