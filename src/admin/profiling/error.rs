//! Errors of profiling, including a panic of the profiling task.

use std::time::Duration;

/// Maximum length of a CPU profile.
pub(crate) const LONGEST: Duration = Duration::from_mins(5);

/// Why no profile could be taken.
#[derive(Debug, thiserror::Error)]
pub enum ProfilingError {
    /// Another CPU profile is being taken.
    #[error("a CPU profile of this process is being taken already: try again when it is done")]
    Busy,
    /// The duration is zero or too long.
    #[error("a CPU profile takes from 1 to {longest} seconds, not {asked}", longest = LONGEST.as_secs())]
    Duration {
        /// Duration in seconds that was requested.
        asked: u64,
    },
    /// This program was built or started without support for the profile.
    #[error("{0}")]
    Unavailable(&'static str),
    /// The profiler failed although nothing forbids it.
    #[error("the {what} profile failed: {reason}")]
    Failed {
        /// Which profile, `CPU` or `heap`.
        what: &'static str,
        /// What the profiler said.
        reason: String,
    },
}

/// Runs work off the async threads; a panic becomes an error.
pub(super) async fn blocking<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> Result<T, ProfilingError> + Send + 'static,
) -> Result<T, ProfilingError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(ProfilingError::Failed {
            what,
            reason: error.to_string(),
        })
    })
}
