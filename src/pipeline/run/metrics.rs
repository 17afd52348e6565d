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

use alluvium_telemetry::metrics::Scope;

type Labels = Vec<(&'static str, String)>;

/// Alloy's buckets for both histograms, 5 ms to 10 min.
const BUCKETS: [f64; 12] = [0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];
/// Evaluations of at least this duration are counted as slow.
const MIN_SLOW_DURATION: Duration = Duration::from_mins(1);

/// Handles of the engine's metrics.
pub(crate) struct Metrics {
    last_load_successful: Gauge,
    last_success: Gauge<f64, AtomicU64>,
    failures: Counter,
    hash: Family<Labels, Gauge>,
    evaluating: Gauge,
    evaluation_seconds: Histogram,
    slow_seconds: Family<Labels, Gauge<f64, AtomicU64>>,
    wait_seconds: Histogram,
    /// Number of components that wait for an evaluation.
    pub queue_size: Gauge<i64, AtomicI64>,
    /// The scope that keeps the metrics of this controller registered.
    _controller: Scope,
}

impl Metrics {
    /// Registers the metrics. The metrics about components and the graph are computed at each collection. `module` is
    /// the id of the configuration. The program's own configuration has an empty id. Only this configuration
    /// has metrics about the program and its loads.
    pub(super) fn register(
        scope: &Scope,
        version: &str,
        module: &str,
        components: impl Fn() -> Vec<(&'static str, i64)> + Send + Sync + 'static,
        connections: impl Fn() -> Vec<(String, String)> + Send + Sync + 'static,
    ) -> Self {
        // The labels of Alloy's root controller.
        let controller = scope.child([
            ("controller_path", "/".to_owned()),
            ("controller_id", module.to_owned()),
        ]);
        let metrics = Self {
            last_load_successful: Gauge::default(),
            last_success: Gauge::default(),
            failures: Counter::default(),
            hash: Family::default(),
            evaluating: Gauge::default(),
            evaluation_seconds: Histogram::new(BUCKETS),
            slow_seconds: Family::default(),
            wait_seconds: Histogram::new(BUCKETS),
            queue_size: Gauge::default(),
            _controller: controller.clone(),
        };
        if module.is_empty() {
            metrics.register_program(scope, version);
        }
        controller.register(
            "alloy_component_controller_evaluating",
            "1 while the graph is being evaluated",
            metrics.evaluating.clone(),
        );
        controller.register(
            "alloy_component_evaluation_seconds",
            "Time taken by the evaluation of a component",
            metrics.evaluation_seconds.clone(),
        );
        // A gauge that only grows: the name of a counter would end in `_total`, but Alloy's name does not.
        controller.register(
            "alloy_component_evaluation_slow_seconds",
            "Seconds spent on evaluations of a component that took a minute or longer",
            metrics.slow_seconds.clone(),
        );
        controller.register(
            "alloy_component_dependencies_wait_seconds",
            "Time from a change of a component's exports to the evaluation of the components that use them",
            metrics.wait_seconds.clone(),
        );
        controller.register(
            "alloy_component_evaluation_queue_size",
            "Components whose changed exports are yet to be propagated",
            metrics.queue_size.clone(),
        );
        controller.register_collector(GraphCollector {
            components,
            connections,
        });
        metrics
    }

    fn register_program(&self, scope: &Scope, version: &str) {
        scope.register(
            "alloy_config_last_load_successful",
            "1 if the last load of the configuration succeeded",
            self.last_load_successful.clone(),
        );
        scope.register(
            "alloy_config_last_load_success_timestamp_seconds",
            "Time of the last successful load",
            self.last_success.clone(),
        );
        scope.register(
            "alloy_config_load_failures",
            "Failed loads of the configuration",
            self.failures.clone(),
        );
        scope.register(
            "alloy_config_hash",
            "Hash of the configuration in force",
            self.hash.clone(),
        );
        scope.register(
            "alloy_build",
            "Version of the program",
            Info::new(vec![
                ("version", format!("v{}", version.trim_start_matches('v'))),
                ("goos", std::env::consts::OS.to_owned()),
                ("goarch", arch().to_owned()),
            ]),
        );
    }

    /// Marks the graph as being evaluated until the returned value is dropped.
    pub(super) fn evaluate(&self) -> EvaluationTimer<'_> {
        self.evaluating.set(1);
        EvaluationTimer(&self.evaluating)
    }

    /// Records the evaluation of a component; `id` is called only if the evaluation was slow.
    pub(crate) fn evaluated(&self, took: Duration, id: impl FnOnce() -> String) {
        self.evaluation_seconds.observe(took.as_secs_f64());
        if took >= MIN_SLOW_DURATION {
            self.slow_seconds
                .get_or_create(&vec![("component_id", id())])
                .inc_by(took.as_secs_f64());
        }
    }

    /// Records how long a change waited for the evaluation of the components that use it.
    pub(super) fn record_wait(&self, time: Duration) {
        self.wait_seconds.observe(time.as_secs_f64());
    }

    /// Counts a load. `hash` is the hash of the new configuration in force; `None` if the load failed.
    pub(super) fn loaded(&self, hash: Option<&str>) {
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

/// A guard that [`Metrics::evaluate`] returns.
pub(crate) struct EvaluationTimer<'a>(&'a Gauge);

impl Drop for EvaluationTimer<'_> {
    fn drop(&mut self) {
        self.0.set(0);
    }
}

/// A collector that computes its metrics from the graph at each collection, so that no count can drift.
struct GraphCollector<C, E> {
    components: C,
    connections: E,
}

impl<C, E> fmt::Debug for GraphCollector<C, E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("FromGraph")
    }
}

impl<C, E> Collector for GraphCollector<C, E>
where
    C: Fn() -> Vec<(&'static str, i64)> + Send + Sync + 'static,
    E: Fn() -> Vec<(String, String)> + Send + Sync + 'static,
{
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let family = Family::<Labels, Gauge>::default();
        for (health, count) in (self.components)() {
            family
                .get_or_create(&vec![("health_type", health.to_owned())])
                .set(count);
        }
        let descriptor = encoder.encode_descriptor(
            "alloy_component_controller_running_components",
            "Number of running components by health.",
            None,
            family.metric_type(),
        )?;
        family.encode(descriptor)?;
        let family = Family::<Labels, Gauge>::default();
        for (from, to) in (self.connections)() {
            family.get_or_create(&vec![("from", from), ("to", to)]).set(1);
        }
        let descriptor = encoder.encode_descriptor(
            "alloy_component_graph_connection",
            "1 for each reference from one component to another.",
            None,
            family.metric_type(),
        )?;
        family.encode(descriptor)
    }
}

/// Returns the processor architecture by its Go name.
fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
