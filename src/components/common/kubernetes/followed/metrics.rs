//! Metrics of a component that follows a cluster.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use alluvium_telemetry::metrics::Scope;

/// The component's metrics.
#[derive(Clone, Default)]
pub(super) struct KubernetesMetrics {
    /// Number of requests for a page of a list or for a watch.
    pub(super) requests: Counter,
    /// Number of failed lists and watches.
    pub(super) failures: Counter,
    /// Number of started lists of all objects of a kind.
    pub(super) lists: Counter,
    /// Number of objects that were found, changed or removed.
    pub(super) events: Counter,
    pub(super) targets: Gauge,
}

impl KubernetesMetrics {
    /// Creates the metrics and registers them in `scope`.
    pub(super) fn new(scope: &Scope) -> Self {
        let metrics = Self::default();
        let counters = [
            (
                "discovery_requests",
                "Requests to the API server: watches, and pages of lists",
                &metrics.requests,
            ),
            ("discovery_failures", "Failed lists and watches", &metrics.failures),
            (
                "discovery_kubernetes_lists",
                "Full lists of all objects of a kind",
                &metrics.lists,
            ),
            (
                "discovery_kubernetes_events",
                "Objects that were found, changed or removed",
                &metrics.events,
            ),
        ];
        for (name, help, counter) in counters {
            scope.register(name, help, counter.clone());
        }
        scope.register(
            "discovery_targets",
            "Targets currently exported",
            metrics.targets.clone(),
        );
        metrics
    }
}
