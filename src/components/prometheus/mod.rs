//! Components of Prometheus' family: only those that tell of the program itself.

pub(crate) mod exporter;
