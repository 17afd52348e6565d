//! Metrics of HTTP: requests by route and status, their duration, and requests in progress.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use alluvium_telemetry::metrics::Scope;

/// Buckets of the duration histogram in seconds, from a label lookup to the longest query.
const SECONDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 15.0, 60.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(in crate::server) struct RouteLabels {
    pub(in crate::server) route: String,
    pub(in crate::server) status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(in crate::server) struct TimeLabels {
    pub(in crate::server) route: String,
}

/// Metrics of HTTP requests.
#[derive(Clone, Debug)]
pub struct ServerMetrics {
    pub(in crate::server) requests: Family<RouteLabels, Counter>,
    pub(in crate::server) seconds: Family<TimeLabels, Histogram>,
    pub(in crate::server) in_flight: Gauge,
}

impl ServerMetrics {
    /// Creates the metrics and registers them in this scope.
    pub fn new(scope: &Scope) -> Self {
        let metrics = Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            in_flight: Gauge::default(),
        };
        scope.register(
            "alluvium_http_requests",
            "Completed requests, by route and status",
            metrics.requests.clone(),
        );
        scope.register(
            "alluvium_http_request_seconds",
            "Time from the headers of a request to the headers of its response, by route",
            metrics.seconds.clone(),
        );
        scope.register(
            "alluvium_http_requests_in_flight",
            "Requests in progress",
            metrics.in_flight.clone(),
        );
        metrics
    }
}
