//! Shared code of the discoveries: polling, target groups, meta labels, and the clients of some registries.
//!
//! In: the services that a discovery lists. Out: targets.

pub(crate) mod consul_catalog;
pub(crate) mod discovery_error;
pub(crate) mod docker_daemon;
pub(crate) mod identity;
pub mod meta_labels;
pub(crate) mod outdated;
pub(crate) mod parts;
pub(crate) mod polled;
pub(crate) mod schema;
pub(crate) mod target_groups;
pub(crate) mod zookeeper_tree;
