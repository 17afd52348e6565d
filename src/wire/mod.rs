//! Wire protocols as plain types and functions, for both directions, one protocol per file.
//!
//! In: bytes and headers. Out: profiles, queries, responses, and errors with their codes. The layer has no routes (they
//! are in `server`), no storage, and no sockets except those of the clients.

pub(crate) mod at_time;
pub(crate) mod byte_order;
pub mod call;
pub mod client;
pub(crate) mod collector;
pub mod connect;
pub(crate) mod error_detail;
pub mod files;
pub(crate) mod flamebearer;
pub(crate) mod folded;
pub(crate) mod grpc;
pub mod grpc_status;
pub mod ingest;
pub(crate) mod json;
pub(crate) mod jwt;
pub mod otlp;
pub(crate) mod perf_script;
pub(crate) mod pprof_message;
pub(crate) mod profefe;
pub mod proto;
pub mod push;
pub mod querier;
pub(crate) mod queue_report;
pub(crate) mod refusals;
pub(crate) mod service;
pub(crate) mod sigv4;
pub(crate) mod sink_error;
pub(crate) mod sql;
pub(crate) mod tree_bytes;
pub(crate) mod weight;
pub(crate) mod zookeeper;
