//! Metrics of `pyroscope.java`.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use alluvium_telemetry::metrics::Scope;

/// The outcome of one recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The profiles of the recording were forwarded.
    Forwarded,
    /// The recording could not be started.
    NotStarted,
    /// The recording could not be stopped or read, or the process ended first.
    Lost,
    /// The recording was read and is malformed.
    Malformed,
    /// A receiver refused a profile of the recording.
    Refused,
}

/// Handles of the component's metrics.
#[derive(Clone)]
pub(super) struct JavaMetrics {
    recordings: Family<Vec<(&'static str, String)>, Counter>,
    /// Bytes of the recordings that were read.
    pub bytes: Counter,
    /// Samples that were dropped because they have no stack.
    pub samples_lost: Counter,
    /// Number of profiled JVMs.
    pub processes: Gauge,
}

impl JavaMetrics {
    /// Creates the handles and registers the metrics in `scope`.
    pub(super) fn new(scope: &Scope) -> Self {
        let metrics = Self {
            recordings: Family::default(),
            bytes: Counter::default(),
            samples_lost: Counter::default(),
            processes: Gauge::default(),
        };
        scope.register(
            "pyroscope_java_recordings",
            "Recordings, by outcome",
            metrics.recordings.clone(),
        );
        scope.register(
            "pyroscope_java_recording_bytes",
            "Bytes of the recordings that were read",
            metrics.bytes.clone(),
        );
        scope.register(
            "pyroscope_java_samples_without_stack",
            "Samples that were dropped because they have no stack",
            metrics.samples_lost.clone(),
        );
        scope.register(
            "pyroscope_java_processes",
            "Number of Java processes that are being profiled",
            metrics.processes.clone(),
        );
        metrics
    }

    /// Counts a recording by its outcome.
    pub(super) fn recorded(&self, outcome: Outcome) {
        let name = match outcome {
            Outcome::Forwarded => "forwarded",
            Outcome::NotStarted => "not_started",
            Outcome::Lost => "lost",
            Outcome::Malformed => "malformed",
            Outcome::Refused => "refused",
        };
        let labels = vec![("outcome", name.to_owned())];
        self.recordings.get_or_create_owned(&labels).inc();
    }
}
