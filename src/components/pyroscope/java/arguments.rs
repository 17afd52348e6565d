//! Arguments of `pyroscope.java`, which are Alloy's.

use std::sync::Arc;
use std::time::Duration;

use crate::components::common::arguments::targets::Targets;
use crate::components::common::passing::fanout::Receivers;
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::{Interval, Positive};
use crate::lang::body::arguments;

arguments! {
    /// Arguments of `pyroscope.java`.
    pub(crate) struct JavaArguments {
        /// Folder of an async-profiler; empty for that of a package of the system.
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
    check JavaArguments::check;
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
        sample_rate: Positive = 100,
        /// Whether allocations are sampled by the buffers of threads; needs alloc.
        tlab: bool = false,
    }
    check ProfilingConfig::check;
}

impl JavaArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "/._-".contains(character);
        if !self.tmp_dir.starts_with('/') || !self.tmp_dir.chars().all(is_plain) {
            let message = "must be an absolute path of letters, digits and `/._-`: it becomes a part of commands";
            return Err(ArgumentError::new("tmp_dir", message));
        }
        Ok(())
    }
}

impl ProfilingConfig {
    /// Time from one sample of CPU time to the next.
    pub(super) fn period(&self) -> Duration {
        Duration::from_nanos(1_000_000_000 / self.sample_rate.get().max(1) as u64).max(Duration::from_nanos(1))
    }

    fn check(&self) -> Result<(), ArgumentError> {
        if self.custom_arguments.is_empty() && self.tlab && self.alloc.is_empty() {
            let message = "profiling_config.tlab requires profiling_config.alloc to be set";
            return Err(ArgumentError::new("tlab", message));
        }
        let texts = [
            ("alloc", &self.alloc),
            ("event", &self.event),
            ("lock", &self.lock),
            ("log_level", &self.log_level),
        ];
        for (name, text) in texts {
            if text.contains([',', '\0']) {
                return Err(ArgumentError::new(
                    name,
                    "must not have a comma: it would be another option of async-profiler",
                ));
            }
        }
        if self.custom_arguments.iter().any(|argument| argument.contains('\0')) {
            return Err(ArgumentError::new("custom_arguments", "must have no zero byte"));
        }
        Ok(())
    }
}
