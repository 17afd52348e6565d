//! The reason why a component cannot fetch its value.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use tokio::runtime::TryCurrentError;

use crate::common::sources::detector::TextError;

/// The reason why a component cannot fetch its value. The component shows the text as its health.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// The thread has no Tokio runtime for requests.
    #[error(transparent)]
    Runtime(#[from] TryCurrentError),
    /// A file of this machine cannot be used.
    #[error(transparent)]
    File(#[from] TextError),
    #[error("cannot list the folder {}: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    /// A server or another program did not return the value. Each component has its own error type.
    #[error(transparent)]
    Remote(Box<dyn Error + Send + Sync>),
}
