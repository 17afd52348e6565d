//! Our own logs, metrics and profiles. Knows no other layer but `base`.
//!
//! `logs` writes lines, `metrics` and `process` give numbers, `profiling` gives pprof of this process. The routes that serve them
//! are in `admin`.

pub mod logs;
pub mod memory;
pub mod metrics;
pub mod process;
pub mod profiling;
