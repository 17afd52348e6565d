//! Our own logs, metrics and profiles. Knows no other layer.

pub mod metrics;
