//! Why there is no profile, a panic of the work on it included.

use std::time::Duration;

/// The longest CPU profile that is taken.
pub(crate) const LONGEST: Duration = Duration::from_mins(5);

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfilingError {
    /// Another CPU profile is being taken.
    #[error("a CPU profile of this process is being taken already: try again when it is done")]
    Busy,
    /// The duration is zero or too long.
    #[error("a CPU profile takes from 1 to {longest} seconds, not {asked}", longest = LONGEST.as_secs())]
    Duration {
        /// What was asked for, in seconds.
        asked: u64,
    },
    /// This program was built or started without it.
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

/// Does work off the async threads.
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
