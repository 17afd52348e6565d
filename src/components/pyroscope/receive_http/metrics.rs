//! Metrics of `pyroscope.receive_http`. The connection limit has the same name as in Alloy.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use alluvium_telemetry::metrics::Scope;

type Labels = Vec<(&'static str, String)>;

/// Handles of the component's metrics.
#[derive(Clone, Default)]
pub(super) struct ReceiveMetrics {
    requests: Family<Labels, Counter>,
    profiles: Counter,
    bytes: Counter,
    /// Maximum number of open connections. 0 means 65536.
    pub connections_limit: Gauge,
}

impl ReceiveMetrics {
    /// Creates the handles and registers the metrics in `scope`.
    pub(super) fn new(scope: &Scope) -> Self {
        let metrics = Self::default();
        let (requests, limit) = (metrics.requests.clone(), metrics.connections_limit.clone());
        scope.register(
            "pyroscope_receive_http_requests",
            "Requests, by route and status",
            requests,
        );
        scope.register(
            "pyroscope_receive_http_profiles",
            "Profiles and uploads received",
            metrics.profiles.clone(),
        );
        scope.register(
            "pyroscope_receive_http_received_bytes",
            "Bytes of profiles and uploads received",
            metrics.bytes.clone(),
        );
        scope.register(
            "pyroscope_receive_http_tcp_connections_limit",
            "Maximum number of open connections; 0 means 65536",
            limit,
        );
        metrics
    }

    /// Counts a request by its route, `ingest` or `push`, and its status.
    pub(super) fn request(&self, route: &'static str, status: u16) {
        let labels = vec![("route", route.to_owned()), ("status", status.to_string())];
        self.requests.get_or_create_owned(&labels).inc();
    }

    /// Counts received profiles and their bytes.
    pub(super) fn count_received(&self, profiles: usize, bytes: usize) {
        self.profiles.inc_by(profiles as u64);
        self.bytes.inc_by(bytes as u64);
    }
}
