//! The reason why a repository cannot be pulled. No error contains a secret.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::TryCurrentError;

/// The reason why a repository cannot be pulled.
#[derive(Debug, thiserror::Error)]
pub(super) enum GitError {
    #[error("cannot create the folder {}: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    /// A file of the working copy cannot be read.
    #[error("cannot read {name}: {source}")]
    Read {
        /// Name of the file in diagnostics.
        name: String,
        source: io::Error,
    },
    /// A folder of the working copy cannot be listed.
    #[error("cannot list {name}: {source}")]
    List {
        /// Name of the folder in diagnostics.
        name: String,
        source: io::Error,
    },
    /// The path, a folder on the way to it, or a module in it is a symbolic link.
    #[error(
        "{name} is a symbolic link to `{target}`, which import.git does not follow: import the file or folder that the \
         link names, if it is in the repository"
    )]
    Link {
        /// Name of the link in diagnostics.
        name: String,
        /// The target, possibly shortened.
        target: String,
    },
    #[error("cannot read the password file {path}: {source}")]
    Password { path: Arc<str>, source: io::Error },
    /// A file with a key or a script for git cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The caller's thread has no Tokio runtime.
    #[error(transparent)]
    Runtime(#[from] TryCurrentError),
    #[error("import.git needs the program `git`, which is not installed")]
    NotInstalled,
    #[error("cannot start {command}: {source}")]
    Start { command: String, source: io::Error },
    #[error("{command} did not finish within {} s", timeout.as_secs())]
    Timeout { command: String, timeout: Duration },
    /// Git ended with an error.
    #[error("{command} failed: {output}")]
    Failed {
        command: String,
        /// The beginning of git's error output.
        output: String,
    },
}

impl GitError {
    /// Returns true if git found the lock file of a git process that was killed.
    pub(super) fn is_locked(&self) -> bool {
        matches!(self, Self::Failed { output, .. } if output.contains(".lock': File exists"))
    }
}
