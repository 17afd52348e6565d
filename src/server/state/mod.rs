//! The state that all routes share, and what the server knows about itself and its callers.
//!
//! In: what the composition root creates. Out: [`shared::ServerState`], which every handler gets.

pub(in crate::server) mod metrics;
mod page;
pub(in crate::server) mod ready;
pub(in crate::server) mod senders;
pub(in crate::server) mod settings;
pub(in crate::server) mod shared;
pub(in crate::server) mod tenant;
