//! Metrics of `discovery.file`.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use alluvium_telemetry::metrics::Scope;

/// Handles of the component's metrics.
#[derive(Default)]
pub(super) struct FileMetrics {
    /// Number of refreshes. Each refresh reads all files.
    pub refreshes: Counter,
    /// Number of failed reads of files. A file that cannot be read or parsed counts at each refresh.
    pub errors: Counter,
    /// Number of targets that are currently exported.
    pub targets: Gauge,
}

impl FileMetrics {
    /// Creates the handles and registers them in `scope`.
    pub(super) fn new(scope: &Scope) -> Self {
        let metrics = Self::default();
        scope.register(
            "discovery_file_refreshes",
            "Refreshes; each refresh reads all files",
            metrics.refreshes.clone(),
        );
        scope.register(
            "discovery_file_read_errors",
            "Failed reads of files; a file that cannot be read or parsed counts at each refresh",
            metrics.errors.clone(),
        );
        scope.register(
            "discovery_file_targets",
            "Targets currently exported",
            metrics.targets.clone(),
        );
        metrics
    }
}
