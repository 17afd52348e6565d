//! Metrics of `pyroscope.relabel`, with Alloy's names.
//!
//! Alloy's names of these counters lack the suffix `_total`, which our registry adds to every counter. Therefore these
//! are gauges that only grow, on which `rate()` works as well.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use crate::telemetry::metrics::Scope;

/// Handles of the component's metrics.
#[derive(Clone, Default)]
pub(super) struct RelabelMetrics {
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
    /// Samples that the rules for them dropped.
    pub samples_dropped: Counter,
    /// Profiles of a format in which samples cannot be seen.
    pub unread: Counter,
}

impl RelabelMetrics {
    /// Makes the handles and registers them in `scope`.
    pub(super) fn new(scope: &Scope) -> Self {
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
        scope.register(
            "pyroscope_relabel_samples_dropped",
            "Samples that rules for samples dropped",
            metrics.samples_dropped.clone(),
        );
        scope.register(
            "pyroscope_relabel_profiles_unread",
            "Profiles that went on without rules for samples, as they are no pprof",
            metrics.unread.clone(),
        );
        metrics
    }
}
