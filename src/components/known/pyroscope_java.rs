//! `pyroscope.java`: profiles of Java processes of this machine, taken with async-profiler.

use std::sync::Arc;

use crate::components::common::fanout::Receivers;
use crate::components::common::targets::Targets;
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::Interval;
use crate::lang::body::arguments;
use crate::pipeline::component::{Definition, Stability, no_metrics};

arguments! {
    /// Arguments of `pyroscope.java`.
    pub(crate) struct JavaArguments {
        /// Folder of an async-profiler to use instead of the one that comes along.
        dist: Arc<str> = "",
        /// Receivers of the profiles.
        forward_to: Receivers,
        /// Processes to profile; the label __process_pid__ holds the number.
        targets: Targets,
        /// Folder, as the process sees it, for the profiler and its recordings.
        tmp_dir: Arc<str> = "/tmp",
    }
    blocks {
        /// What is recorded of a process.
        profiling_config: ProfilingConfig,
    }
}

arguments! {
    /// The body of `profiling_config { }`.
    pub(crate) struct ProfilingConfig {
        /// Bytes of allocations from one sample to the next; empty records none.
        alloc: Arc<str> = "512k",
        /// Whether CPU time is recorded.
        cpu: bool = true,
        /// Arguments of async-profiler that replace all those above but interval.
        custom_arguments: Vec<Arc<str>> = [],
        /// Clock of the CPU samples.
        event: Arc<str> = "itimer",
        /// Time that one recording covers.
        interval: Interval = "60s",
        /// Wait for locks from which one is recorded; empty records none.
        lock: Arc<str> = "10ms",
        /// What async-profiler logs.
        log_level: Arc<str> = "INFO",
        /// Whether threads are told apart.
        per_thread: bool = false,
        /// Whether async-profiler logs nothing.
        quiet: bool = false,
        /// Samples of CPU time a second.
        sample_rate: i64 = 100,
        /// Whether allocations are sampled by the buffers of threads; needs alloc.
        tlab: bool = false,
    }
    check ProfilingConfig::check;
}

/// The definition of `pyroscope.java`.
pub(crate) const DEFINITION: Definition<JavaArguments> = Definition {
    name: "pyroscope.java",
    stability: Stability::GenerallyAvailable,
    exports: &[],
    metrics: no_metrics,
    build: None,
    doc: "`pyroscope.java` profiles the Java processes of this machine with async-profiler.",
};

impl ProfilingConfig {
    fn check(&self) -> Result<(), ArgumentError> {
        if self.custom_arguments.is_empty() && self.tlab && self.alloc.is_empty() {
            let message = "profiling_config.tlab requires profiling_config.alloc to be set";
            return Err(ArgumentError::new("tlab", message));
        }
        Ok(())
    }
}
