//! Alluvium, a continuous-profiling collector and server.
//!
//! This list of the layers follows the path of a profile. `lang` parses the configuration, and `pipeline` builds a
//! graph of running `components` from it. Components pass `profile`s to receivers, and `wire` encodes profiles for the
//! network. `store` keeps profiles as Parquet files in Delta tables, `query` runs queries over them, and `server`
//! serves the HTTP routes. The layers of the collector are crates, for example `alluvium-lang` in `src/lang`. The other
//! layers are modules of this crate. `docs/architecture.md` describes all layers. A test in `integration/tidy` checks
//! which layers may import which others.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests send requests with a plain client")
)]

#[cfg(feature = "server")]
pub mod query;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod store;

pub mod app;
pub mod cli;
