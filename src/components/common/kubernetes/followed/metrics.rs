//! Metrics of a component that follows a cluster.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use crate::telemetry::metrics::Scope;

/// Handles of the component's metrics.
#[derive(Clone, Default)]
pub(super) struct KubernetesMetrics {
    /// Lists and watches that were begun; each page of a list counts.
    pub(super) requests: Counter,
    /// Lists and watches that failed.
    pub(super) failures: Counter,
    /// Times that all objects of a kind were listed.
    pub(super) lists: Counter,
    /// Objects that were found, changed or went.
    pub(super) events: Counter,
    pub(super) targets: Gauge,
}

impl KubernetesMetrics {
    /// Makes the handles and registers them in `scope`.
    pub(super) fn new(scope: &Scope) -> Self {
        let metrics = Self::default();
        let counters = [
            (
                "discovery_requests",
                "Requests to the API server: watches, and pages of lists",
                &metrics.requests,
            ),
            ("discovery_failures", "Lists and watches that failed", &metrics.failures),
            (
                "discovery_kubernetes_lists",
                "Times that all objects of a kind were listed",
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
        scope.register("discovery_targets", "Targets exported now", metrics.targets.clone());
        metrics
    }
}
