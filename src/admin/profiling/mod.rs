//! Profiles of the own process as gzip pprof: CPU time by sampling, heap by jemalloc.
//!
//! In: a duration. Out: bytes in the format of Go's `net/http/pprof`, with function names. Only one CPU profile runs at
//! a time, because a process has one handler for SIGPROF. Symbols are resolved outside the async threads and cached.
//! This module does not depend on HTTP.

mod cpu;
mod error;
mod heap;
mod samples;
mod symbols;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use alluvium_base::Shutdown;

pub(crate) use error::LONGEST;
pub(crate) use error::ProfilingError;

use error::blocking;

/// Takes profiles of this process. Clones share the symbol cache and the lock.
#[derive(Clone)]
pub struct Profiling {
    process: Arc<ProcessLocks>,
    shutdown: Shutdown,
}

#[derive(Default)]
struct ProcessLocks {
    cpu: tokio::sync::Mutex<()>,
    symbols: Mutex<symbols::Symbols>,
}

impl Profiling {
    /// Creates a profiler. When `shutdown` is cancelled, a running CPU profile ends early and returns its samples so
    /// far.
    pub fn new(shutdown: Shutdown) -> Self {
        Self {
            process: Arc::default(),
            shutdown,
        }
    }

    /// Samples the CPU time of all threads for this duration. Sample types are `samples/count` and `cpu/nanoseconds`,
    /// as in Go. Sampling stops when the future is dropped.
    pub async fn cpu(&self, duration: Duration) -> Result<Vec<u8>, ProfilingError> {
        if duration < Duration::from_secs(1) || duration > LONGEST {
            return Err(ProfilingError::Duration {
                seconds: duration.as_secs(),
            });
        }
        let _one_at_a_time = self.process.cpu.try_lock().map_err(|_| ProfilingError::Busy)?;
        let sampling = blocking("CPU", cpu::Sampling::start).await?;
        tokio::select! {
            () = tokio::time::sleep(duration) => {}
            () = self.shutdown.cancelled() => {}
        }
        blocking("CPU", move || sampling.finish()).await
    }

    /// Returns the live allocations by the stack that allocated them. Sample types are `inuse_objects/count` and
    /// `inuse_space/bytes`, the last two of Go's four sample types, because jemalloc does not count freed memory.
    pub async fn heap(&self) -> Result<Vec<u8>, ProfilingError> {
        let dump = heap::dump().await?;
        let process = self.process.clone();
        blocking("heap", move || heap::to_pprof(&dump, &mut process.symbols.lock())).await
    }
}

#[cfg(test)]
mod tests;
