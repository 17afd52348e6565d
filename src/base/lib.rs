//! Utilities that std lacks and several layers use: durations, the time since boot, memory budgets and pressure, counts
//! of waiting tasks, record files, atomic file replacement, certificates in PEM and their renewal, JSON, regular
//! expressions and letter cases as in Go, file descriptors, compressed responses, DNS, hosts and network interfaces,
//! compressed sections of ELF files, limits on repeated log messages, the spread of periodic requests,
//! shutdown.
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
pub mod log_throttle;
pub mod net;
pub mod pem;
pub mod pressure;
pub mod re2;
pub mod reloaded_files;
pub mod segment;
pub mod spread;
pub mod waiters;

/// The signal that asks a task to finish its work and return.
pub use tokio_util::sync::CancellationToken as Shutdown;

/// A boxed future, for trait objects between layers.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
