//! What several components share: relabel rules, RE2 syntax, HTTP and Kubernetes client arguments,
//! server arguments, bodies of requests, gRPC, checks, the fan-out to receivers.
//!
//! Components do not import each other; what two of them need stands here.

pub(crate) mod arguments;
pub(crate) mod clouds;
pub(crate) mod discovery;
pub(crate) mod http;
pub(crate) mod kubernetes;
pub(crate) mod passing;
pub(crate) mod sending;
pub(crate) mod serving;
pub(crate) mod sources;
#[cfg(test)]
pub(crate) mod testing;
