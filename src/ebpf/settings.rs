//! Settings of a profiler that its users choose.

use crate::budget::Budget;

#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Ticks per second on each CPU. Ticks of an idle CPU are counted, but record no stack.
    pub hertz: u32,
    /// If true, kernel stacks are recorded.
    pub kernel_stacks: bool,
    /// If true, each stack gets the name of the thread as its outermost frame.
    pub comm: bool,
    pub scope: Scope,
    pub budget: Budget,
    /// CPU limit of the profiler as a share of one CPU. The rate is lowered to stay within the limit. `None` for no
    /// limit.
    pub cpu_limit: Option<f64>,
    pub engine: Choice,
    /// If true, each user stack is also copied into [`Window::copies`](crate::Window::copies), to compare the
    /// walk of the BPF program with other unwinders. This multiplies the cost of profiling.
    pub copies: bool,
}

/// The processes to profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    All,
    /// The process with this id, and the processes that it starts from now on.
    Process(u32),
    /// Only the processes that the process with this id starts from now on.
    ChildrenOf(u32),
}

/// The method to collect stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// By the BPF program, or by perf events alone if the kernel refuses the program.
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
