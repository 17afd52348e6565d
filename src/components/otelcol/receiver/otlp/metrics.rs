//! Metrics of `otelcol.receiver.otlp`. Alloy's component has no metrics for profiles, so the names are Alluvium's.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use alluvium_telemetry::metrics::Scope;

type Labels = Vec<(&'static str, String)>;

/// Handles of the component's metrics.
#[derive(Clone, Default)]
pub(super) struct ReceiverMetrics {
    requests: Family<Labels, Counter>,
    profiles: Counter,
    rejected: Counter,
}

impl ReceiverMetrics {
    /// Creates the handles and registers the metrics in `scope`.
    pub(super) fn new(scope: &Scope) -> Self {
        let metrics = Self::default();
        scope.register(
            "otelcol_receiver_otlp_requests",
            "Requests, by transport and status",
            metrics.requests.clone(),
        );
        scope.register(
            "otelcol_receiver_otlp_profiles",
            "Received profiles; a profile of several services counts once for each service",
            metrics.profiles.clone(),
        );
        scope.register(
            "otelcol_receiver_otlp_rejected_profiles",
            "Received profiles that a receiver refused",
            metrics.rejected.clone(),
        );
        metrics
    }

    /// Counts a request by its transport, `grpc` or `http`, and its HTTP status. For gRPC, `status` is the equivalent
    /// HTTP status.
    pub(super) fn request(&self, transport: &'static str, status: u16) {
        let labels = vec![("transport", transport.to_owned()), ("status", status.to_string())];
        self.requests.get_or_create_owned(&labels).inc();
    }

    /// Counts received profiles and, separately, the received profiles that a receiver refused.
    pub(super) fn count_received(&self, profiles: usize, rejected: usize) {
        self.profiles.inc_by(profiles as u64);
        self.rejected.inc_by(rejected as u64);
    }
}
