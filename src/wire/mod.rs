//! The wire: protocols as plain types and functions, both directions, one protocol a file.
//!
//! In: bytes and headers. Out: profiles, questions, answers, errors with their codes. No sockets but those of the clients, no routes (`server`
//! has them), no storage.

pub mod call;
pub mod client;
pub mod collector;
pub mod connect;
pub mod error_detail;
pub mod grpc;
pub mod grpc_status;
pub mod ingest;
pub mod json;
pub mod pprof_message;
pub mod proto;
pub mod push;
pub mod querier;
pub mod refusals;
pub mod service;
pub mod sql;
pub mod weight;
