//! Metrics to show beside profiles, from the one server that the configuration names.
//!
//! Nobody can make this server ask another host: the address is no part of a request, redirects are not followed, and
//! nothing but a query, a range, a step and the tenant is passed on. Length of the query, number of points, size, time
//! and number of answers at one time are limited.

pub(in crate::server) mod client;
pub(in crate::server) mod question;

pub use client::{Prometheus, PrometheusError};
