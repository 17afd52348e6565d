//! How a profiler works: what its users choose.

use crate::ebpf::budget::Budget;

#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Ticks a second of busy CPU time, on each CPU.
    pub hertz: u32,
    /// Take kernel stacks too.
    pub kernel_stacks: bool,
    /// Put the name of the thread into each stack, as its outermost frame.
    pub comm: bool,
    pub scope: Scope,
    pub budget: Budget,
    /// Bound of CPU: a share of one CPU, above which the rate is lowered; `None`: no bound.
    pub cpu_limit: Option<f64>,
    pub engine: Choice,
    /// Copy each user stack beside the frames that the BPF program found, into
    /// [`Window::copies`](crate::ebpf::Window::copies): for comparing its walk with others. Many times the cost.
    pub copies: bool,
}

/// Which processes are profiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    All,
    /// This one and those that it starts from now on.
    Process(u32),
    /// Those that this one starts from now on.
    ChildrenOf(u32),
}

/// How stacks are to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// By the BPF program, or where the kernel refuses that, by perf events alone.
    #[default]
    Best,
    Events,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hertz: 19,
            kernel_stacks: true,
            comm: false,
            scope: Scope::All,
            budget: Budget::default(),
            cpu_limit: None,
            engine: Choice::Best,
            copies: false,
        }
    }
}
