//! The whole-machine CPU profiler: BPF program, processes, binaries, and windows of stacks with names.
//!
//! In: the kernel's CPU clock. Out: a [`Window`] with the stacks of each process, profiles of the window with names,
//! and an account of every tick. The profiler does not depend on configurations and receivers, so that both the
//! component `pyroscope.ebpf` and the command `alluvium record` can use it.

mod arrays;
mod binary;
pub(crate) mod bounds;
pub(crate) mod budget;
mod bytes;
mod copies;
pub(crate) mod cost;
mod events;
pub(crate) mod files;
pub(crate) mod foreign;
mod go_rows;
mod kernel_side;
pub(crate) mod name_cache;
pub(crate) mod names;
pub(crate) mod object;
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
pub(crate) mod window;
mod work;
mod worker;

pub use bounds::{Omission, OmissionCounts};
pub use budget::Budget;
pub use copies::Copied;
pub use foreign::RefusalCounts;
pub use foreign::{Opener, Refusal};
pub use name_cache::NameCache;
pub use names::{Comm, Namer, Span, Style};
pub use object::StartError;
pub use profiler::{Engine, Profiler};
pub use settings::Choice;
pub use settings::{Scope, Settings};
pub use window::{Accounts, ProcessInfo, Window};
pub use window::{FrameSources, Stacks};
