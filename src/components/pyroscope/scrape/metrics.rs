//! Metrics of `pyroscope.scrape`.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use alluvium_telemetry::metrics::Scope;

type Labels = Vec<(&'static str, String)>;

/// Bucket bounds of the duration histogram in seconds. They fit profiles that a target returns at once, and profiles
/// that it records for 14 or 29 seconds (one second less than an interval of 15 or 30 seconds).
const DURATION_SECONDS: [f64; 11] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0];

/// The outcome of the scrape of one profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The profile was forwarded.
    Forwarded,
    /// The profile is the first of a cumulative kind and serves as the base of differences.
    Baseline,
    /// The target returned no usable profile, or a profile beyond a limit.
    Failed,
    /// A receiver refused the profile.
    Refused,
}

impl Outcome {
    /// Returns the name of the outcome in metrics and debug info.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Forwarded => "forwarded",
            Self::Baseline => "baseline",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }
}

/// Handles of the component's metrics.
#[derive(Clone)]
pub(super) struct ScrapeMetrics {
    scrapes: Family<Labels, Counter>,
    /// Duration of scrapes in seconds.
    pub duration: Histogram,
    /// Bytes of the profiles that were received.
    pub bytes: Counter,
    /// Number of profiles being scraped, one for each kind of each target.
    pub targets: Gauge,
    /// Number of targets that other collectors of the cluster scrape.
    pub targets_elsewhere: Gauge,
}

impl ScrapeMetrics {
    /// Creates the handles and registers the metrics in `scope`.
    pub(super) fn new(scope: &Scope) -> Self {
        let metrics = Self {
            scrapes: Family::default(),
            duration: Histogram::new(DURATION_SECONDS),
            bytes: Counter::default(),
            targets: Gauge::default(),
            targets_elsewhere: Gauge::default(),
        };
        scope.register(
            "pyroscope_scrape_scrapes",
            "Scrapes, by outcome",
            metrics.scrapes.clone(),
        );
        scope.register(
            "pyroscope_scrape_duration_seconds",
            "Duration of scrapes in seconds",
            metrics.duration.clone(),
        );
        scope.register(
            "pyroscope_scrape_received_bytes",
            "Bytes of profiles received from targets",
            metrics.bytes.clone(),
        );
        scope.register(
            "pyroscope_scrape_targets",
            "Number of profiles being scraped, one for each kind of each target",
            metrics.targets.clone(),
        );
        scope.register(
            "pyroscope_scrape_targets_elsewhere",
            "Number of targets that other collectors of the cluster scrape",
            metrics.targets_elsewhere.clone(),
        );
        metrics
    }

    /// Counts a scrape by its outcome.
    pub(super) fn scraped(&self, outcome: Outcome) {
        let labels = vec![("outcome", outcome.name().to_owned())];
        self.scrapes.get_or_create_owned(&labels).inc();
    }
}
