//! The composition root: the only module that sees every layer. It builds what a command needs, joins it, and stops it
//! in order.

#[cfg(feature = "server")]
pub mod config;
#[cfg(feature = "server")]
pub mod demo;
#[cfg(feature = "server")]
pub mod maintenance;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub(crate) mod size;
#[cfg(feature = "server")]
pub mod storage;

pub mod collector;
mod door;
pub mod live;
pub mod reload;
pub mod remote;
pub mod signals;
pub mod sources;
pub mod support;
pub mod terminal;
pub mod web;

/// `User-Agent` of our HTTP requests.
pub const USER_AGENT: &str = concat!("alluvium/", env!("CARGO_PKG_VERSION"));
