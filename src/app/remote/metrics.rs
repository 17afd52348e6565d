//! Metrics of the remote configuration, under Alloy's names.

use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use alluvium_telemetry::metrics::Scope;

type Hashes = Family<Vec<(&'static str, String)>, Gauge>;

/// Go's default buckets, 5 ms to 10 s.
const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

pub(super) struct RemoteMetrics {
    hash: Hashes,
    received: Hashes,
    successful: Gauge,
    not_modified: Gauge,
    failures: Counter,
    attempts: Counter,
    success_time: Gauge<f64, AtomicU64>,
    request_seconds: Histogram,
}

impl RemoteMetrics {
    pub(super) fn register(scope: &Scope) -> Self {
        let metrics = Self {
            hash: Family::default(),
            received: Family::default(),
            successful: Gauge::default(),
            not_modified: Gauge::default(),
            failures: Counter::default(),
            attempts: Counter::default(),
            success_time: Gauge::default(),
            request_seconds: Histogram::new(BUCKETS),
        };
        scope.register(
            "remotecfg_hash",
            "Hash of the remote configuration that is in force",
            metrics.hash.clone(),
        );
        scope.register(
            "remotecfg_last_received_hash",
            "Hash of the last configuration that the server sent",
            metrics.received.clone(),
        );
        scope.register(
            "remotecfg_last_load_successful",
            "1 if the configuration of the last request is in force",
            metrics.successful.clone(),
        );
        scope.register(
            "remotecfg_last_load_not_modified",
            "1 if the server reported no change at the last request",
            metrics.not_modified.clone(),
        );
        scope.register(
            "remotecfg_load_failures",
            "Failed requests for the configuration, and configurations that could not be loaded",
            metrics.failures.clone(),
        );
        scope.register(
            "remotecfg_load_attempts",
            "Requests for the configuration",
            metrics.attempts.clone(),
        );
        scope.register(
            "remotecfg_last_load_success_timestamp_seconds",
            "Time of the last configuration that the server sent",
            metrics.success_time.clone(),
        );
        scope.register(
            "remotecfg_request_duration_seconds",
            "Duration of successful requests for the configuration",
            metrics.request_seconds.clone(),
        );
        metrics
    }

    pub(super) fn asks(&self) {
        self.attempts.inc();
    }

    pub(super) fn answered(&self, duration: Duration) {
        self.request_seconds.observe(duration.as_secs_f64());
    }

    /// Records a response without a new configuration.
    pub(super) fn not_modified(&self) {
        self.not_modified.set(1);
    }

    /// Records a response with a new configuration.
    pub(super) fn modified(&self) {
        self.not_modified.set(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        self.success_time.set(now.as_secs_f64());
    }

    pub(super) fn received(&self, hash: &str) {
        show(&self.received, Some(hash));
    }

    pub(super) fn failed(&self) {
        self.failures.inc();
        self.successful.set(0);
    }

    /// Sets the hash of the running configuration. `None` means that no remote configuration runs.
    pub(super) fn in_force(&self, hash: Option<&str>) {
        self.successful.set(i64::from(hash.is_some()));
        show(&self.hash, hash);
    }
}

fn show(hashes: &Hashes, hash: Option<&str>) {
    hashes.clear();
    if let Some(hash) = hash {
        hashes.get_or_create(&vec![("hash", hash.to_owned())]).set(1);
    }
}
