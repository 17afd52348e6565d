//! Commands that run until they are stopped: `run`, `serve` and `demo`; and `token`, which edits a server's tokens.

mod cluster;
#[cfg(feature = "server")]
pub(in crate::cli) mod demo;
mod go;
pub(in crate::cli) mod run;
#[cfg(feature = "server")]
pub(in crate::cli) mod serve;
#[cfg(feature = "server")]
mod server_flags;
#[cfg(feature = "server")]
pub(in crate::cli) mod token;
