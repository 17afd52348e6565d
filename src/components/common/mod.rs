//! What several components share: relabel rules, RE2 syntax, HTTP and Kubernetes client arguments,
//! server arguments, checks, the fan-out to receivers.
//!
//! Components do not import each other; what two of them need stands here.

pub mod checks;
pub mod detector;
pub mod discovery;
pub mod fanout;
pub mod folder_watcher;
pub mod http_client;
pub mod http_fetch;
pub mod http_values;
pub mod identity;
pub mod kubernetes_client;
pub mod polled;
pub mod re2;
pub mod relabel;
pub mod selectors;
pub mod server;
pub mod source;
pub mod targets;
#[cfg(test)]
pub(crate) mod testing;
