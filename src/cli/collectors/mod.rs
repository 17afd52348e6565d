//! Commands that query a running collector.

mod dump_targets;
pub(in crate::cli) mod goroutines;
