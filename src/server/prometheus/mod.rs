//! Fetches the metrics that the page shows beside profiles, from the one Prometheus server that the configuration
//! names.
//!
//! No client can make this server send requests to another host. The address does not come from a request, redirects
//! are not followed, and only a query, a range, a step and the tenant are passed on. The length of the query, the
//! number of points, the size and the time of the response, and the number of concurrent requests are limited.

pub(in crate::server) mod client;
pub(in crate::server) mod range_query;

pub use client::{Prometheus, PrometheusError};
