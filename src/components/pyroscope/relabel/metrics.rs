//! Metrics of `pyroscope.relabel`, with Alloy's names.
//!
//! The names of Alloy's counters lack the suffix `_total`, which Alluvium's registry adds to every counter. Therefore
//! the metrics that Alloy has are gauges here. All except the cache size only grow, so `rate()` works on them.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use alluvium_telemetry::metrics::Scope;

/// Handles of the component's metrics.
#[derive(Clone, Default)]
pub(super) struct RelabelMetrics {
    /// Profiles that were received.
    pub processed: Gauge,
    /// Profiles that were forwarded.
    pub written: Gauge,
    /// Profiles that the rules dropped.
    pub dropped: Gauge,
    /// Profiles whose relabeled labels were in the cache.
    pub cache_hits: Gauge,
    /// Profiles whose labels were relabeled, because the cache did not contain the result.
    pub cache_misses: Gauge,
    /// Number of relabeling results in the cache.
    pub cache_size: Gauge,
    /// Samples that the blocks `sample_rule` dropped.
    pub samples_dropped: Counter,
    /// Profiles whose samples cannot be read, because they are not pprof.
    pub unread: Counter,
}

impl RelabelMetrics {
    /// Creates the handles and registers the metrics in `scope`.
    pub(super) fn new(scope: &Scope) -> Self {
        let metrics = Self::default();
        for (name, help, gauge) in [
            (
                "pyroscope_relabel_profiles_processed",
                "Profiles received",
                &metrics.processed,
            ),
            (
                "pyroscope_relabel_profiles_written",
                "Profiles forwarded",
                &metrics.written,
            ),
            (
                "pyroscope_relabel_profiles_dropped",
                "Profiles that the rules dropped",
                &metrics.dropped,
            ),
            (
                "pyroscope_relabel_cache_hits",
                "Profiles whose relabeled labels were in the cache",
                &metrics.cache_hits,
            ),
            (
                "pyroscope_relabel_cache_misses",
                "Profiles whose labels were relabeled, because the cache did not contain the result",
                &metrics.cache_misses,
            ),
            (
                "pyroscope_relabel_cache_size",
                "Number of relabeling results in the cache",
                &metrics.cache_size,
            ),
        ] {
            scope.register(name, help, gauge.clone());
        }
        scope.register(
            "pyroscope_relabel_samples_dropped",
            "Samples that the blocks sample_rule dropped",
            metrics.samples_dropped.clone(),
        );
        scope.register(
            "pyroscope_relabel_profiles_unread",
            "Profiles to which the blocks sample_rule were not applied, because the profiles are not pprof",
            metrics.unread.clone(),
        );
        metrics
    }
}
