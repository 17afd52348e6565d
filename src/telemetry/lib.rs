//! Logs and metrics of the program itself. This module depends only on the layer `base`.
//!
//! `logs` writes lines; `metrics` and `process` provide metrics. The routes that serve them are in `admin`.

pub mod logs;
pub mod memory;
pub mod metrics;
pub mod process;
