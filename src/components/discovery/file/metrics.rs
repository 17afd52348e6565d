//! Metrics of `discovery.file`.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use crate::telemetry::metrics::Scope;

/// Handles of the component's metrics.
#[derive(Default)]
pub(super) struct FileMetrics {
    /// Times the files were read.
    pub refreshes: Counter,
    /// Files that could not be read, counted at every refresh.
    pub errors: Counter,
    /// Targets that are exported now.
    pub targets: Gauge,
}

impl FileMetrics {
    /// Makes the handles and registers them in `scope`.
    pub(super) fn new(scope: &Scope) -> Self {
        let metrics = Self::default();
        scope.register(
            "discovery_file_refreshes",
            "Times the files were read",
            metrics.refreshes.clone(),
        );
        scope.register(
            "discovery_file_read_errors",
            "Files that could not be read, at every refresh",
            metrics.errors.clone(),
        );
        scope.register(
            "discovery_file_targets",
            "Targets exported now",
            metrics.targets.clone(),
        );
        metrics
    }
}
