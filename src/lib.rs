//! Alluvium, a continuous-profiling collector and server.
//!
//! The modules are listed in the order in which a profile passes through them. `lang` parses the configuration, and
//! `pipeline` builds a graph of running `components` from it. Components pass `profile`s to receivers, and `wire`
//! encodes them for the network. `store` keeps them as Parquet files in Delta tables, `query` runs queries over them,
//! and `server` serves the HTTP routes. `docs/architecture.md` describes the modules, and a test in `integration/tidy`
//! checks which modules may import which others.

#[cfg(feature = "server")]
pub mod query;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod store;

pub mod app;
pub mod cli;
