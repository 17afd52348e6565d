//! Utilities that std lacks and all layers use: durations, byte sizes, backoff, record files, atomic file replacement,
//! certificates in PEM and their renewal, counts of waiting tasks, JSON, regular expressions and letter cases as in Go,
//! memory pressure, file descriptors, names and network interfaces, compressed sections of ELF files, shutdown.
//!
//! Nothing here depends on profiles or configuration.

pub mod boot;
pub mod bytes;
pub mod descriptors;
pub mod dns;
pub mod duration;
pub mod encoding;
pub mod expand;
pub mod file;
pub mod go_json;
pub mod interfaces;
pub mod letters;
pub mod net;
pub mod pem;
pub mod pressure;
pub mod re2;
pub mod renewed;
pub mod segment;
pub mod seldom;
pub mod waiters;

/// The signal that asks a task to finish its work and return.
pub use tokio_util::sync::CancellationToken as Shutdown;

/// A boxed future, for trait objects between layers.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
