//! The composition root and the only module that uses every layer. It builds the parts that a command needs, connects
//! them, and stops them in order.

#[cfg(feature = "server")]
pub(crate) mod auth;
#[cfg(feature = "server")]
pub(crate) mod config;
#[cfg(feature = "server")]
pub(crate) mod demo;
#[cfg(feature = "server")]
pub(crate) mod disk;
#[cfg(feature = "server")]
pub(crate) mod limits;
#[cfg(feature = "server")]
pub(crate) mod maintenance;
#[cfg(feature = "server")]
pub(crate) mod memory;
#[cfg(feature = "server")]
pub(crate) mod overrides;
#[cfg(feature = "server")]
pub(crate) mod serve_options;
#[cfg(feature = "server")]
pub(crate) mod server;
#[cfg(feature = "server")]
mod settings;
#[cfg(feature = "server")]
pub(crate) mod size;
#[cfg(feature = "server")]
pub(crate) mod storage;

pub(crate) mod collector;
pub(crate) mod fence;
pub(crate) mod foreign;
pub(crate) mod live;
mod protection;
pub(crate) mod reload;
pub mod remote;
pub(crate) mod signals;
pub(crate) mod sources;
pub(crate) mod support;
pub(crate) mod terminal;
pub(crate) mod web;

/// `User-Agent` of our HTTP requests.
pub(crate) const USER_AGENT: &str = concat!("alluvium/", env!("CARGO_PKG_VERSION"));
