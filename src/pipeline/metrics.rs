//! The engine's own metrics, under Alloy's names.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;

use crate::telemetry::metrics::Scope;

type Labels = Vec<(&'static str, String)>;

/// Handles of the engine's metrics.
pub struct Metrics {
    last_load_successful: Gauge,
    last_success: Gauge<f64, AtomicU64>,
    failures: Counter,
    hash: Family<Labels, Gauge>,
    /// Seconds that one evaluation of a component took.
    pub evaluation_seconds: Histogram,
    /// Components waiting for an evaluation.
    pub queue_size: Gauge<i64, AtomicI64>,
}

impl Metrics {
    /// Registers the metrics.
    pub fn register(scope: &Scope, version: &str) -> Self {
        let metrics = Self {
            last_load_successful: Gauge::default(),
            last_success: Gauge::default(),
            failures: Counter::default(),
            hash: Family::default(),
            evaluation_seconds: Histogram::new([0.001, 0.01, 0.1, 1.0, 10.0, 60.0]),
            queue_size: Gauge::default(),
        };
        scope.register(
            "alloy_config_last_load_successful",
            "1 when the last load of the configuration succeeded",
            metrics.last_load_successful.clone(),
        );
        scope.register(
            "alloy_config_last_load_success_timestamp_seconds",
            "Time of the last successful load",
            metrics.last_success.clone(),
        );
        scope.register(
            "alloy_config_load_failures",
            "Loads of the configuration that failed",
            metrics.failures.clone(),
        );
        scope.register(
            "alloy_config_hash",
            "Hash of the configuration in force",
            metrics.hash.clone(),
        );
        scope.register(
            "alloy_component_evaluation_seconds",
            "Time taken by the evaluation of a component",
            metrics.evaluation_seconds.clone(),
        );
        scope.register(
            "alloy_component_evaluation_queue_size",
            "Components whose changed exports wait to be passed on",
            metrics.queue_size.clone(),
        );
        scope.register(
            "alloy_build",
            "Version of the program",
            Info::new(vec![("version", version.to_owned())]),
        );
        metrics
    }

    /// Counts a load; `hash` is that of the configuration now in force.
    pub fn loaded(&self, hash: Option<&str>) {
        self.last_load_successful.set(i64::from(hash.is_some()));
        let Some(hash) = hash else {
            self.failures.inc();
            return;
        };
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        self.last_success.set(now.unwrap_or(Duration::ZERO).as_secs_f64());
        self.hash.clear();
        self.hash.get_or_create(&vec![("sha256", hash.to_owned())]).set(1);
    }
}

/// Counts components by health when it is asked, so that no count can drift.
pub struct RunningComponents<F>(pub F);

impl<F> fmt::Debug for RunningComponents<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("RunningComponents")
    }
}

impl<F: Fn() -> Vec<(&'static str, i64)> + Send + Sync + 'static> Collector for RunningComponents<F> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let family = Family::<Labels, Gauge>::default();
        for (health, count) in (self.0)() {
            family
                .get_or_create(&vec![("health_type", health.to_owned())])
                .set(count);
        }
        let descriptor = encoder.encode_descriptor(
            "alloy_component_controller_running_components",
            "Components by health",
            None,
            family.metric_type(),
        )?;
        family.encode(descriptor)
    }
}
