//! The whole-machine CPU profiler: BPF program, processes, binaries, windows of named stacks.
//!
//! In: the kernel's CPU clock. Out: a [`Window`] of stacks a process, profiles of it with names, and every tick
//! accounted for. Knows no configuration and no receivers: `components::pyroscope::ebpf` and `alluvium record` drive
//! it.

mod arrays;
mod binary;
pub mod budget;
mod bytes;
mod copies;
pub mod cost;
mod events;
pub mod files;
pub mod foreign;
mod go_rows;
mod kernel_side;
pub mod name_cache;
pub mod names;
pub mod object;
mod pending;
mod perf_sample;
mod poll;
pub mod proc;
mod process;
mod profiler;
mod records;
mod rows;
mod run_time;
mod settings;
mod trampolines;
pub mod window;
mod work;
mod worker;

pub use budget::Budget;
pub use copies::Copied;
pub use foreign::{Opener, Refusal, Refused};
pub use name_cache::NameCache;
pub use names::{Comm, Namer, Span, Style};
pub use object::StartError;
pub use profiler::{Ended, Engine, Profiler};
pub use settings::{Choice, Scope, Settings};
pub use window::{Accounts, Places, ProcessInfo, Stacks, Window};
