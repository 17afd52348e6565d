//! Settings of a profiler that its users choose.

use crate::ebpf::budget::Budget;

#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Ticks a second of busy CPU time, on each CPU.
    pub hertz: u32,
    /// Whether to take kernel stacks.
    pub kernel_stacks: bool,
    /// Whether to add the name of the thread to each stack as its outermost frame.
    pub comm: bool,
    pub scope: Scope,
    pub budget: Budget,
    /// Limit as a share of one CPU, above which the rate is lowered; `None` for no limit.
    pub cpu_limit: Option<f64>,
    pub engine: Choice,
    /// Whether to copy each user stack beside the frames that the BPF program found, into
    /// [`Window::copies`](crate::ebpf::Window::copies), to compare its walk with others. Multiplies the cost.
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

/// How stacks are collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// By the BPF program, or by perf events alone where the kernel refuses it.
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
