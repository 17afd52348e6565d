//! The whole-machine CPU profiler: BPF program, processes, binaries, windows of named stacks.
//!
//! In: the kernel's CPU clock. Out: a [`Window`] of stacks a process, profiles of it with names, and every tick accounted for. Knows no
//! configuration and no receivers: `components::pyroscope::ebpf` and `alluvium record` drive it.

mod arrays;
mod bytes;
mod events;
pub mod files;
mod go_rows;
pub mod names;
pub mod object;
pub mod proc;
mod profiler;
mod records;
mod run_time;
pub mod window;

pub use names::{Comm, KernelNames, Namer, Span, Style};
pub use object::StartError;
pub use profiler::{Profiler, Scope, Settings};
pub use window::{Accounts, ProcessInfo, Window};
