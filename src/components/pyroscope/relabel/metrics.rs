//! Metrics of `pyroscope.relabel`, with Alloy's names.
//!
//! Alloy's counters have no `_total` here, which our registry adds to every counter; so they are gauges that only grow,
//! and `rate()` works on them alike.

use prometheus_client::metrics::gauge::Gauge;

use crate::telemetry::metrics::Scope;

/// Handles of the component's metrics.
#[derive(Clone, Default)]
pub struct RelabelMetrics {
    /// Profiles that were received.
    pub processed: Gauge,
    /// Profiles that were forwarded.
    pub written: Gauge,
    /// Profiles that the rules dropped.
    pub dropped: Gauge,
    /// Results taken from the cache.
    pub cache_hits: Gauge,
    /// Results that were worked out.
    pub cache_misses: Gauge,
    /// Results that the cache holds now.
    pub cache_size: Gauge,
}

impl RelabelMetrics {
    /// Makes the handles and registers them in `scope`.
    pub fn new(scope: &Scope) -> Self {
        let metrics = Self::default();
        for (name, help, gauge) in [
            (
                "pyroscope_relabel_profiles_processed",
                "Profiles that came",
                &metrics.processed,
            ),
            (
                "pyroscope_relabel_profiles_written",
                "Profiles that went on",
                &metrics.written,
            ),
            (
                "pyroscope_relabel_profiles_dropped",
                "Profiles that the rules dropped",
                &metrics.dropped,
            ),
            (
                "pyroscope_relabel_cache_hits",
                "Results taken from the cache",
                &metrics.cache_hits,
            ),
            (
                "pyroscope_relabel_cache_misses",
                "Results that were worked out",
                &metrics.cache_misses,
            ),
            (
                "pyroscope_relabel_cache_size",
                "Results in the cache",
                &metrics.cache_size,
            ),
        ] {
            scope.register(name, help, gauge.clone());
        }
        metrics
    }
}
