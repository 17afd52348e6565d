//! Metrics of access: refusals by reason, and sessions.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::server::access::refusal::Refusal;
use crate::telemetry::metrics::Scope;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

/// Metrics of access. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct AccessMetrics {
    refusals: Family<ReasonLabels, Counter>,
    /// Sessions of the page that are open.
    pub(super) sessions: Gauge,
}

impl AccessMetrics {
    /// Registers the metrics in this scope.
    pub fn new(scope: &Scope) -> Self {
        let metrics = Self::default();
        // All of them from the start: an alert sees a counter only after its second value.
        for reason in Refusal::REASONS {
            drop(metrics.refusals.get_or_create(&ReasonLabels { reason }));
        }
        scope.register(
            "alluvium_access_refusals",
            "Calls, connections and logins refused, by reason",
            metrics.refusals.clone(),
        );
        scope.register(
            "alluvium_access_sessions",
            "Sessions of the page that are open",
            metrics.sessions.clone(),
        );
        metrics
    }

    pub(super) fn refused(&self, refusal: &Refusal) {
        let reason = refusal.reason();
        self.refusals.get_or_create(&ReasonLabels { reason }).inc();
    }
}
