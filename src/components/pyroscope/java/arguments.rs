//! Arguments of `pyroscope.java`, the same as in Alloy.

use std::sync::Arc;
use std::time::Duration;

use crate::common::arguments::targets::Targets;
use crate::common::passing::fanout::Receivers;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{Interval, Positive};
use alluvium_lang::body::arguments;

arguments! {
    /// Arguments of `pyroscope.java`.
    pub(crate) struct JavaArguments {
        /// Folder of an async-profiler installation, or path of its library. If empty, the component uses the library
        /// of an installed package, or else JDK Flight Recorder.
        dist: Arc<str> = "",
        /// Receivers of the profiles.
        forward_to: Receivers,
        /// Processes to profile. The label `__process_pid__` holds the process id.
        targets: Targets,
        /// Folder for the profiler and its recordings, as the profiled process sees it.
        tmp_dir: Arc<str> = "/tmp",
    }
    blocks {
        /// Settings of the recordings.
        profiling_config: ProfilingConfig,
    }
    check JavaArguments::check;
}

arguments! {
    /// The body of `profiling_config { }`.
    pub(crate) struct ProfilingConfig {
        /// Number of allocated bytes between two allocation samples. Empty turns allocation samples off.
        alloc: Arc<str> = "512k",
        /// If true, CPU time is recorded.
        cpu: bool = true,
        /// Arguments of async-profiler. They replace all other arguments of this block except interval and quiet.
        custom_arguments: Vec<Arc<str>> = [],
        /// async-profiler event that triggers a CPU sample, such as cpu, itimer or wall.
        event: Arc<str> = "itimer",
        /// Duration of one recording.
        interval: Interval = "60s",
        /// Minimum duration of recorded waits for a lock. Empty turns lock samples off.
        lock: Arc<str> = "10ms",
        /// Log level of async-profiler.
        log_level: Arc<str> = "INFO",
        /// If true, async-profiler profiles each thread separately.
        per_thread: bool = false,
        /// If true, async-profiler logs nothing.
        quiet: bool = false,
        /// Number of CPU samples per second.
        sample_rate: Positive = 100,
        /// If true, allocations are sampled by thread-local allocation buffer (TLAB) events. Requires alloc.
        tlab: bool = false,
    }
    check ProfilingConfig::check;
}

impl JavaArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "/._-".contains(character);
        if !self.tmp_dir.starts_with('/') || !self.tmp_dir.chars().all(is_plain) {
            let message = "must be an absolute path of letters, digits and `/._-`, because it becomes part of commands";
            return Err(ArgumentError::new("tmp_dir", message));
        }
        Ok(())
    }
}

impl ProfilingConfig {
    /// Returns the time between two CPU samples.
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
                    "must not contain a comma: async-profiler would parse the text after it as an option",
                ));
            }
        }
        if self.custom_arguments.iter().any(|argument| argument.contains('\0')) {
            return Err(ArgumentError::new("custom_arguments", "must not contain a zero byte"));
        }
        Ok(())
    }
}
