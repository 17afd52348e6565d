//! Metrics of access: refusals by reason, and sessions.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::server::access::refusal::Refusal;
use alluvium_telemetry::metrics::Scope;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

/// Metrics of access. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct AccessMetrics {
    refusals: Family<ReasonLabels, Counter>,
    /// Number of open browser sessions.
    pub(super) sessions: Gauge,
}

impl AccessMetrics {
    /// Creates the metrics and registers them in this scope.
    pub fn new(scope: &Scope) -> Self {
        let metrics = Self::default();
        // All series exist from the start. Otherwise an alert would miss the increase from no value to 1.
        for reason in Refusal::REASONS {
            drop(metrics.refusals.get_or_create(&ReasonLabels { reason }));
        }
        scope.register(
            "alluvium_access_refusals",
            "Refused calls, connections and logins, by reason",
            metrics.refusals.clone(),
        );
        scope.register(
            "alluvium_access_sessions",
            "Open browser sessions",
            metrics.sessions.clone(),
        );
        metrics
    }

    pub(super) fn refused(&self, refusal: &Refusal) {
        let reason = refusal.reason();
        self.refusals.get_or_create(&ReasonLabels { reason }).inc();
    }
}
