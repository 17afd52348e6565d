//! Errors of profiling, including a panic of the profiling task.

use std::time::Duration;

/// Maximum length of a CPU profile.
pub(crate) const LONGEST: Duration = Duration::from_mins(5);

/// Reason why no profile could be taken.
#[derive(Debug, thiserror::Error)]
pub enum ProfilingError {
    /// Another CPU profile is being taken.
    #[error("a CPU profile of this process is already being taken: try again when it is done")]
    Busy,
    /// The duration is zero or too long.
    #[error("the duration of a CPU profile must be 1 to {longest} seconds, not {seconds}", longest = LONGEST.as_secs())]
    Duration {
        /// Requested duration in seconds.
        seconds: u64,
    },
    /// This program was built or started without support for the profile.
    #[error("{0}")]
    Unavailable(&'static str),
    /// The profiler failed for an unexpected reason.
    #[error("the {profile_name} profile failed: {reason}")]
    Failed {
        /// Kind of the profile, `CPU` or `heap`.
        profile_name: &'static str,
        /// Error message of the profiler.
        reason: String,
    },
}

/// Runs work outside the async threads; a panic becomes an error.
pub(super) async fn blocking<T: Send + 'static>(
    profile_name: &'static str,
    work: impl FnOnce() -> Result<T, ProfilingError> + Send + 'static,
) -> Result<T, ProfilingError> {
    let result = tokio::task::spawn_blocking(work).await;
    result.unwrap_or_else(|error| {
        Err(ProfilingError::Failed {
            profile_name,
            reason: error.to_string(),
        })
    })
}
