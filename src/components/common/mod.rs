//! What several components share: relabel rules, RE2 syntax, HTTP and Kubernetes client arguments,
//! server arguments, bodies of requests, gRPC, checks, the fan-out to receivers.
//!
//! Components do not import each other; what two of them need stands here.

pub(crate) mod aws;
pub(crate) mod azure_machine;
pub(crate) mod bearer;
pub(crate) mod checks;
pub(crate) mod consul_catalog;
pub(crate) mod detector;
pub(crate) mod discovery;
pub(crate) mod docker_daemon;
pub(crate) mod endpoint;
pub(crate) mod environment;
pub(crate) mod expiring;
pub(crate) mod fanout;
pub(crate) mod folder_watcher;
pub(crate) mod google;
pub(crate) mod grpc;
pub(crate) mod http_client;
pub(crate) mod http_fetch;
pub(crate) mod http_values;
pub(crate) mod identity;
pub(crate) mod intake;
pub(crate) mod json_values;
pub(crate) mod kubernetes;
pub(crate) mod listening;
pub(crate) mod meta_labels;
pub(crate) mod otlp;
pub(crate) mod outbox;
pub(crate) mod paging;
pub(crate) mod parts;
pub(crate) mod polled;
pub(crate) mod receiver;
pub(crate) mod relabel;
pub(crate) mod selectors;
pub(crate) mod server;
pub(crate) mod server_tls;
pub(crate) mod source;
pub(crate) mod target_groups;
pub(crate) mod targets;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod unpacked;
pub(crate) mod web_api;
pub(crate) mod zookeeper_tree;
