//! What std lacks and every layer needs: durations, byte sizes, backoff, record files, files replaced as a whole,
//! shutdown.
//!
//! Nothing here knows of profiles or configuration.

pub(crate) mod bytes;
pub(crate) mod duration;
pub(crate) mod encoding;
pub(crate) mod file;
pub(crate) mod net;
pub(crate) mod segment;

/// The signal that asks a task to finish what it holds and return.
pub use tokio_util::sync::CancellationToken as Shutdown;

/// A boxed future, for trait objects at layer borders.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
