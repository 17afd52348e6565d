//! Gauges of the queues of a component, which are computed when the metrics are read. Alloy has no queue on disk, so it
//! has no such metrics.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::RwLock;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;

use crate::common::sending::outbox::metrics::MetricNames;
use crate::common::sending::outbox::queue::{Queue, Waiting};
use alluvium_telemetry::metrics::Scope;

/// Queues by URL of their endpoint.
type Queues = Arc<RwLock<Vec<(String, Weak<Queue>)>>>;
/// Name, help and value of a gauge of a queue.
type GaugeRow = (&'static str, &'static str, fn(&Waiting) -> f64);

/// Gauges of all queues of the component.
pub(super) struct QueueGauges {
    queues: Queues,
}

impl QueueGauges {
    /// Creates the gauges and registers them in `scope`.
    pub(super) fn new(scope: &Scope, names: &MetricNames) -> Self {
        let gauges = Self { queues: Arc::default() };
        let rows: [GaugeRow; 3] = [
            (names.queue_profiles, "Profiles in the endpoint's queue", |waiting| {
                waiting.profiles as f64
            }),
            (names.queue_bytes, "Bytes in the endpoint's queue", |waiting| {
                waiting.bytes as f64
            }),
            (
                names.queue_oldest_age,
                "Age in seconds of the oldest profile in the endpoint's queue",
                |waiting| waiting.oldest_age.as_secs_f64(),
            ),
        ];
        for (name, help, value) in rows {
            let queues = gauges.queues.clone();
            scope.register(name, help, QueueGauge { queues, value });
        }
        gauges
    }

    /// Sets the queues whose state the gauges show.
    pub(super) fn show(&self, queues: impl IntoIterator<Item = (String, Weak<Queue>)>) {
        *self.queues.write() = queues.into_iter().collect();
    }
}

/// A gauge that inspects the queues when it is read.
struct QueueGauge {
    queues: Queues,
    value: fn(&Waiting) -> f64,
}

impl fmt::Debug for QueueGauge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("QueueGauge")
    }
}

impl EncodeMetric for QueueGauge {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        for (endpoint, queue) in self.queues.read().iter() {
            let Some(queue) = queue.upgrade() else { continue };
            let labels = [("endpoint", endpoint.as_str())];
            encoder
                .encode_family(&labels)?
                .encode_gauge(&(self.value)(&queue.waiting()))?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}
