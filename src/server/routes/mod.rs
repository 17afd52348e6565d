//! The table of routes, and the HTTP routes that are not calls of a service.
//!
//! In: an HTTP request. Out: an HTTP response. [`table`] lists every route.

mod adhoc;
mod delete;
mod ingest;
mod otlp;
mod profefe;
pub(in crate::server) mod prometheus;
mod render;
mod services;
mod sql;
mod status;
pub(in crate::server) mod table;
