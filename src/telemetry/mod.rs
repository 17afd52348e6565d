//! Our own logs and metrics. Knows no other layer but `base`.
//!
//! `logs` writes lines, `metrics` and `process` give numbers. The routes that serve them are in `admin`.

pub(crate) mod logs;
pub(crate) mod memory;
pub mod metrics;
pub mod process;
