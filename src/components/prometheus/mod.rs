//! Components in the namespace `prometheus`: only the exporter of the program's own metrics.

pub(crate) mod exporter;
