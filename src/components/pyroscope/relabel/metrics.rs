//! Metrics of `pyroscope.relabel`, with Alloy's names.
//!
//! In Alloy the names of these counters lack the suffix `_total`, which Alluvium's registry adds to every counter.
//! Therefore these metrics are gauges that only grow. `rate()` works on them as well.

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
    /// Profiles whose result of the rules was in the cache.
    pub cache_hits: Gauge,
    /// Profiles whose result of the rules was computed, because it was not in the cache.
    pub cache_misses: Gauge,
    /// Number of results of the rules in the cache.
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
                "Profiles whose result of the rules was in the cache",
                &metrics.cache_hits,
            ),
            (
                "pyroscope_relabel_cache_misses",
                "Profiles whose result of the rules was computed, because it was not in the cache",
                &metrics.cache_misses,
            ),
            (
                "pyroscope_relabel_cache_size",
                "Number of results of the rules in the cache",
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
