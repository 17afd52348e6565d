//! Metric handles of a bucket and its cache. Every name starts with `alluvium_store_object_`.
//!
//! Only a store with tables in a bucket registers the metrics. An operation is counted once, regardless of its retries.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use alluvium_telemetry::metrics::Scope;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Operation {
    /// `get`, `put`, `list`, `delete` or `copy`.
    pub operation: &'static str,
}

/// The metric handles. Clones share the values.
#[derive(Debug, Clone, Default)]
pub struct BucketMetrics {
    /// Operations on the bucket. Retries within one operation are not counted.
    pub requests: Family<Operation, Counter>,
    /// Operations that failed after all attempts. `NotFound`, `AlreadyExists` and `Precondition` are not failures.
    pub failures: Family<Operation, Counter>,
    /// Bytes read from the bucket.
    pub read_bytes: Counter,
    /// Bytes written to the bucket.
    pub written_bytes: Counter,
    /// Size of the local cache in bytes.
    pub cache_bytes: Gauge,
    /// Blocks of objects found in the cache.
    pub cache_hits: Counter,
    /// Blocks read from the bucket.
    pub cache_misses: Counter,
    /// Failed polls for the commits of other servers.
    pub sync_failures: Counter,
}

impl BucketMetrics {
    /// Registers the metrics in `scope`.
    pub fn new(scope: &Scope) -> Self {
        let metrics = Self::default();
        let Self {
            requests,
            failures,
            read_bytes,
            written_bytes,
            cache_bytes,
            cache_hits,
            cache_misses,
            sync_failures,
        } = metrics.clone();
        scope.register("alluvium_store_object_requests", "Operations on the bucket.", requests);
        scope.register(
            "alluvium_store_object_failures",
            "Operations on the bucket that failed after all attempts.",
            failures,
        );
        scope.register(
            "alluvium_store_object_read_bytes",
            "Bytes read from the bucket.",
            read_bytes,
        );
        scope.register(
            "alluvium_store_object_written_bytes",
            "Bytes written to the bucket.",
            written_bytes,
        );
        scope.register(
            "alluvium_store_object_cache_bytes",
            "Size of the local cache of the bucket in bytes.",
            cache_bytes,
        );
        scope.register(
            "alluvium_store_object_cache_hits",
            "Blocks of objects found in the local cache.",
            cache_hits,
        );
        scope.register(
            "alluvium_store_object_cache_misses",
            "Blocks of objects read from the bucket.",
            cache_misses,
        );
        scope.register(
            "alluvium_store_object_sync_failures",
            "Failed polls for the commits of other servers.",
            sync_failures,
        );
        metrics
    }

    /// Counts an operation. If `error` is a failure, also counts the failure.
    pub fn count(&self, operation: &'static str, error: Option<&object_store::Error>) {
        self.requests.get_or_create(&Operation { operation }).inc();
        if let Some(error) = error {
            self.failed(operation, error);
        }
    }

    pub fn failed(&self, operation: &'static str, error: &object_store::Error) {
        use object_store::Error;
        if !matches!(
            error,
            Error::NotFound { .. } | Error::AlreadyExists { .. } | Error::Precondition { .. }
        ) {
            self.failures.get_or_create(&Operation { operation }).inc();
        }
    }
}
