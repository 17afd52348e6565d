//! CPU profiles of this process with the backend of the `pyroscope` crate. The backend receives the signal SIGPROF as
//! the process uses CPU time, and unwinds the stacks with framehop.
//!
//! Out: gzip pprof with `samples/count` and `cpu/nanoseconds`. The crate's own encoder is not used, because it lacks
//! the sample count and full file names. From its first use on, the backend keeps about 20 MB for its table of stacks.
//! The caller must ensure that only one profile runs at a time.

use std::time::{Instant, SystemTime};

use pyroscope::backend::{Backend, BackendConfig, Pprof, PprofConfig, ReportData, StackFrame};

use super::error::ProfilingError;
use super::samples::{Frame, Samples, program};
use alluvium_profile::pprof::{Profile, ValueType};

/// Sampling rate in Hz, as in Go.
pub(crate) const SAMPLES_PER_SECOND: u32 = 100;

/// A running profile; dropping it stops sampling.
pub(crate) struct Sampling {
    backend: Pprof<'static>,
    started: SystemTime,
    clock: Instant,
}

impl Sampling {
    pub(super) fn start() -> Result<Self, ProfilingError> {
        let config = PprofConfig {
            sample_rate: SAMPLES_PER_SECOND,
        };
        let mut backend = Pprof::new(config, BackendConfig::default());
        backend.initialize().map_err(failed)?;
        Ok(Self {
            backend,
            started: SystemTime::now(),
            clock: Instant::now(),
        })
    }

    /// Stops sampling and returns the samples as gzip pprof.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, ProfilingError> {
        let duration = self.clock.elapsed();
        let batch = self.backend.report().map_err(failed)?;
        let Self { backend, started, .. } = self;
        drop(backend);
        let ReportData::Reports(reports) = batch.data else {
            return Err(failed("the backend returned no stacks"));
        };
        let period = i64::from(1_000_000_000 / SAMPLES_PER_SECOND);
        let cpu = ValueType {
            kind: "cpu",
            unit: "nanoseconds",
        };
        let count = ValueType {
            kind: "samples",
            unit: "count",
        };
        let header = Profile {
            sample_types: vec![count, cpu],
            period_type: cpu,
            period,
            ..Profile::default()
        };
        let program = program();
        let mut samples = Samples::new(&program, header);
        for report in &reports {
            for (trace, &count) in report.iter() {
                // Inlined functions are separate frames, innermost first.
                let frames = trace.frames.iter();
                let stack = frames.map(|frame| samples.location(0, [name(frame)])).collect();
                let count = i64::try_from(count).unwrap_or(i64::MAX);
                samples.add(stack, &[count, count.saturating_mul(period)]);
            }
        }
        Ok(samples.finish(started, duration))
    }
}

fn name(frame: &StackFrame) -> Frame<'_> {
    Frame {
        function: frame.name.as_deref().unwrap_or("[unknown]"),
        // The crate stores the whole path in `relative_path`, and only its last part in `filename`.
        file: frame.relative_path.as_deref().unwrap_or_default(),
        line: frame.line.unwrap_or(0),
    }
}

fn failed(reason: impl ToString) -> ProfilingError {
    let reason = reason.to_string();
    // The crate reports this message when another part of the process is already sampling.
    if reason.contains("start running cpu profiler") {
        return ProfilingError::Busy;
    }
    ProfilingError::Failed {
        profile_name: "CPU",
        reason,
    }
}
