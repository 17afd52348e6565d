//! Utilities that std lacks and all layers use: durations, byte sizes, backoff, record files, atomic file replacement,
//! renewed certificate files, JSON, regular expressions and letter cases of Go, memory pressure, file descriptors,
//! names and network interfaces, compressed sections of ELF files, shutdown.
//!
//! Nothing here depends on profiles or configuration.

pub(crate) mod boot;
pub(crate) mod bytes;
pub(crate) mod descriptors;
pub(crate) mod dns;
pub(crate) mod duration;
pub(crate) mod encoding;
pub(crate) mod expand;
pub(crate) mod file;
pub(crate) mod go_json;
pub(crate) mod interfaces;
pub(crate) mod letters;
pub(crate) mod net;
pub mod pressure;
pub mod re2;
pub(crate) mod renewed;
pub(crate) mod segment;
pub(crate) mod seldom;

/// The signal that asks a task to finish its work and return.
pub use tokio_util::sync::CancellationToken as Shutdown;

/// A boxed future, for trait objects between layers.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
