//! Metrics of the requests to endpoints. The metrics that `pyroscope.write` also has in Alloy have the same names as
//! there.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use alluvium_telemetry::metrics::Scope;

/// Names of the metrics of a component, written out in full so that a text search finds them.
pub(crate) struct MetricNames {
    pub sent_profiles: &'static str,
    pub sent_bytes: &'static str,
    pub dropped_profiles: &'static str,
    pub dropped_bytes: &'static str,
    pub dropped_profiles_by_reason: &'static str,
    pub retries: &'static str,
    pub requests: &'static str,
    pub latency: &'static str,
    pub queue_profiles: &'static str,
    pub queue_bytes: &'static str,
    pub queue_oldest_age: &'static str,
}

type Labels = Vec<(&'static str, String)>;

/// Bucket bounds of the latency histogram in seconds: from the latency of a server on this machine to more than the
/// default timeout of 10 s.
const LATENCY_SECONDS: [f64; 12] = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

/// Reason why a profile did not reach an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DropReason {
    /// The queue was larger than `max_bytes`, and this was its oldest profile.
    QueueSize,
    /// The profile waited longer than `max_age`.
    QueueAge,
    /// The profile's record on disk cannot be read.
    Damaged,
    /// The endpoint refused the profile permanently.
    Rejected,
    /// The profile's labels are not valid.
    InvalidLabels,
    /// The disk was full and this was the oldest profile, or the profile could not be written to the queue.
    Disk,
}

impl DropReason {
    /// Returns the value of the label `reason`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::QueueSize => "queue_size",
            Self::QueueAge => "queue_age",
            Self::Damaged => "damaged",
            Self::Rejected => "rejected",
            Self::InvalidLabels => "invalid_labels",
            Self::Disk => "disk",
        }
    }
}

/// Metrics of the component, by endpoint.
#[derive(Clone)]
pub(super) struct OutboxMetrics {
    sent_profiles: Family<Labels, Counter>,
    sent_bytes: Family<Labels, Counter>,
    dropped_profiles: Family<Labels, Counter>,
    dropped_bytes: Family<Labels, Counter>,
    dropped_by_reason: Family<Labels, Counter>,
    retries: Family<Labels, Counter>,
    requests: Family<Labels, Counter>,
    latency: Family<Labels, Histogram, fn() -> Histogram>,
}

impl Default for OutboxMetrics {
    fn default() -> Self {
        Self {
            sent_profiles: Family::default(),
            sent_bytes: Family::default(),
            dropped_profiles: Family::default(),
            dropped_bytes: Family::default(),
            dropped_by_reason: Family::default(),
            retries: Family::default(),
            requests: Family::default(),
            latency: Family::new_with_constructor(|| Histogram::new(LATENCY_SECONDS)),
        }
    }
}

impl OutboxMetrics {
    /// Creates the metrics and registers them in `scope`.
    pub(super) fn new(scope: &Scope, names: &MetricNames) -> Self {
        let metrics = Self::default();
        let counters: [(_, _, &Family<Labels, Counter>); 7] = [
            (
                names.sent_profiles,
                "Profiles that the endpoint accepted",
                &metrics.sent_profiles,
            ),
            (
                names.sent_bytes,
                "Bytes of profiles that the endpoint accepted",
                &metrics.sent_bytes,
            ),
            (
                names.dropped_profiles,
                "Profiles that did not reach the endpoint",
                &metrics.dropped_profiles,
            ),
            (
                names.dropped_bytes,
                "Bytes of profiles that did not reach the endpoint",
                &metrics.dropped_bytes,
            ),
            (
                names.dropped_profiles_by_reason,
                "Profiles that did not reach the endpoint, by reason",
                &metrics.dropped_by_reason,
            ),
            (names.retries, "Retried requests", &metrics.retries),
            (
                names.requests,
                "Requests to the endpoint, by outcome",
                &metrics.requests,
            ),
        ];
        for (name, help, family) in counters {
            scope.register(name, help, family.clone());
        }
        scope.register(
            names.latency,
            "Duration of requests to the endpoint in seconds",
            metrics.latency.clone(),
        );
        metrics
    }

    /// Returns the metrics of one endpoint; `endpoint` is its URL.
    pub(super) fn endpoint(&self, endpoint: &str) -> EndpointMetrics {
        let labels = vec![("endpoint", endpoint.to_owned())];
        EndpointMetrics {
            sent_profiles: self.sent_profiles.get_or_create_owned(&labels),
            sent_bytes: self.sent_bytes.get_or_create_owned(&labels),
            dropped_profiles: self.dropped_profiles.get_or_create_owned(&labels),
            dropped_bytes: self.dropped_bytes.get_or_create_owned(&labels),
            retries: self.retries.get_or_create_owned(&labels),
            latency: self.latency.get_or_create_owned(&vec![
                ("endpoint", endpoint.to_owned()),
                ("type", "push_endpoint".to_owned()),
            ]),
            all: self.clone(),
            endpoint: endpoint.to_owned(),
        }
    }
}

/// The metrics of one endpoint.
#[derive(Clone)]
pub(crate) struct EndpointMetrics {
    sent_profiles: Counter,
    sent_bytes: Counter,
    dropped_profiles: Counter,
    dropped_bytes: Counter,
    /// Number of retried requests.
    pub retries: Counter,
    /// Seconds from request to response.
    pub latency: Histogram,
    all: OutboxMetrics,
    endpoint: String,
}

impl EndpointMetrics {
    /// Counts profiles that the endpoint accepted.
    pub(super) fn sent(&self, profiles: u64, bytes: u64) {
        self.sent_profiles.inc_by(profiles);
        self.sent_bytes.inc_by(bytes);
    }

    /// Counts profiles that did not reach the endpoint.
    pub(crate) fn dropped(&self, reason: DropReason, profiles: u64, bytes: u64) {
        self.dropped_profiles.inc_by(profiles);
        self.dropped_bytes.inc_by(bytes);
        let labels = vec![
            ("endpoint", self.endpoint.clone()),
            ("reason", reason.name().to_owned()),
        ];
        self.all.dropped_by_reason.get_or_create_owned(&labels).inc_by(profiles);
    }

    /// Counts a request by its outcome: `ok`, `partial`, `refused` or `failed`.
    pub(crate) fn request(&self, outcome: &'static str) {
        let labels = vec![("endpoint", self.endpoint.clone()), ("outcome", outcome.to_owned())];
        self.all.requests.get_or_create_owned(&labels).inc();
    }

    /// Returns the numbers of profiles sent and dropped so far.
    pub(super) fn totals(&self) -> (u64, u64) {
        (self.sent_profiles.get(), self.dropped_profiles.get())
    }
}
