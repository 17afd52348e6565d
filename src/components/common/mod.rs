//! Code that several components share: arguments, clients of clouds and Kubernetes, discovery, the fan-out to
//! receivers, sending, and servers.
//!
//! Components do not import each other. Code that two of them need is here.

pub(crate) mod arguments;
pub(crate) mod clouds;
pub mod discovery;
pub mod http;
pub(crate) mod kubernetes;
pub(crate) mod passing;
pub(crate) mod sending;
pub mod serving;
pub(crate) mod sources;
#[cfg(test)]
pub(crate) mod testing;
