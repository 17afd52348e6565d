//! Wire protocols as plain types and functions, for clients and for servers. Each protocol is one module.
//!
//! In: bytes and headers. Out: profiles, queries, responses, and errors with their codes. The layer has no routes (they
//! are in `server`), no storage, and no sockets except those of the clients.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests send requests with a plain client")
)]

pub mod at_time;
pub mod byte_order;
pub mod call;
pub mod client;
pub mod collector;
mod compression;
pub mod connect;
pub(crate) mod error_detail;
pub mod files;
pub mod flamebearer;
pub(crate) mod folded;
pub mod grpc;
pub mod grpc_status;
pub mod ingest;
pub(crate) mod json;
pub mod jwt;
pub mod otlp;
pub(crate) mod perf_script;
pub mod pprof_message;
pub mod profefe;
pub mod proto;
pub mod push;
pub mod querier;
pub mod queue_report;
pub mod refusals;
pub mod service;
pub mod sigv4;
pub(crate) mod sink_error;
pub mod sql;
pub mod tree_bytes;
pub mod weight;
pub mod zookeeper;
