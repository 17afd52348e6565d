//! The state that all routes share, with data about the server itself and its callers.
//!
//! In: the store, the query engine and the options. Out: [`shared::ServerState`], which every handler receives.

pub(in crate::server) mod metrics;
mod page;
pub(in crate::server) mod ready;
pub(in crate::server) mod senders;
pub(in crate::server) mod settings;
pub(in crate::server) mod shared;
pub(in crate::server) mod tenant;
