//! The services of Pyroscope's API, one file each. Every call is a method of a generated trait.
//!
//! In: messages. Out: calls to the store and the query engine, and the results as messages.

pub(in crate::server) mod about;
pub(in crate::server) mod debuginfo;
pub(in crate::server) mod health;
pub(in crate::server) mod parameters;
pub(in crate::server) mod push;
pub(in crate::server) mod querier;
pub(in crate::server) mod recording_rules;
pub(in crate::server) mod shelf;
mod timeline_messages;
pub(in crate::server) mod user_settings;
pub(in crate::server) mod vcs;
