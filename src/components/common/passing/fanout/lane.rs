//! The lane of one receiver: a bounded queue. While the queue contains batches, a task passes them to the receiver.
//!
//! In: batches. Out: the receiver's responses, in the order of the batches. The sender waits for a response for at most
//! `Patience::sender`. After that time, the batch stays in the lane, and the sender receives the result that
//! [`Unanswered`] names. If the lane is full, or the receiver does not respond within `Patience::lane`, the profiles of
//! the batch are dropped and counted.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::oneshot;

use alluvium_pipeline::component::InFlight;
use alluvium_profile::sink::Receiver;
use alluvium_profile::{RawProfile, RefusedProfile, SinkError, SinkErrorKind};
use alluvium_telemetry::metrics::Scope;

/// Maximum number of profiles in a lane. A single batch may be larger.
const MAX_PROFILES: usize = 1024;
/// Maximum number of bytes in a lane. A single batch may be larger.
const MAX_BYTES: usize = 32 << 20;
/// Timeouts for a receiver.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// Maximum time that the sender waits for a response. After that time the batch stays in the lane.
    pub sender: Duration,
    /// Maximum time that the lane waits for a response. After that time the batch is dropped.
    pub lane: Duration,
    /// Result that the sender receives if it has waited for its maximum time.
    pub unanswered: Unanswered,
}

/// The result for a batch to which the receiver has not responded.
#[derive(Clone, Copy)]
pub(crate) enum Unanswered {
    /// The batch is reported as accepted, because the sender has no use for a later response.
    Accepted,
    /// The batch is reported as refused. The sender may send it again, and must not consider it stored.
    Refused,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            sender: Duration::from_secs(1),
            lane: Duration::from_mins(1),
            unanswered: Unanswered::Accepted,
        }
    }
}

impl Patience {
    /// Returns the timeouts for a component with senders that delete a profile once it is acknowledged.
    pub(crate) fn with_acknowledgement() -> Self {
        Self {
            sender: Duration::from_mins(1),
            unanswered: Unanswered::Refused,
            ..Self::default()
        }
    }
}

/// Metrics that all lanes of a component share.
#[derive(Clone)]
pub(crate) struct LaneMetrics {
    dropped: Family<Vec<(&'static str, String)>, Counter>,
    waiting: Family<Vec<(&'static str, String)>, Gauge<i64, AtomicI64>>,
}

/// Reason why profiles were dropped on the way to a receiver.
#[derive(Clone, Copy)]
enum Reason {
    /// The lane had no space left.
    Full,
    /// The receiver took too long.
    Timeout,
    /// The receiver refused the profiles after the sender had stopped waiting.
    Refused,
}

impl LaneMetrics {
    /// Creates the metrics and registers them in `scope`.
    pub(crate) fn new(scope: &Scope) -> Self {
        let metrics = Self {
            dropped: Family::default(),
            waiting: Family::default(),
        };
        scope.register(
            "alluvium_forward_dropped_profiles",
            "Profiles dropped on the way to one of several receivers",
            metrics.dropped.clone(),
        );
        scope.register(
            "alluvium_forward_waiting_profiles",
            "Profiles waiting for one of several receivers",
            metrics.waiting.clone(),
        );
        metrics
    }
}

/// The bounded queue of one receiver.
pub(super) struct Lane {
    receiver: Receiver,
    patience: Patience,
    state: Mutex<State>,
    metrics: LaneMetrics,
    in_flight: InFlight,
    waiting: Gauge<i64, AtomicI64>,
}

#[derive(Default)]
struct State {
    batches: VecDeque<Batch>,
    /// Number of profiles that wait or are being sent.
    profiles: usize,
    bytes: usize,
    /// True while a task empties the lane.
    moving: bool,
}

struct Batch {
    profiles: Vec<RawProfile>,
    bytes: usize,
    answer: oneshot::Sender<Vec<RefusedProfile>>,
}

impl Lane {
    /// Creates an empty lane for a receiver.
    pub(super) fn new(receiver: Receiver, metrics: LaneMetrics, in_flight: InFlight, patience: Patience) -> Arc<Self> {
        let labels = vec![("receiver", receiver.component_id().to_owned())];
        let waiting = metrics.waiting.get_or_create_owned(&labels);
        Arc::new(Self {
            receiver,
            patience,
            state: Mutex::default(),
            waiting,
            metrics,
            in_flight,
        })
    }

    /// Appends a batch of `bytes` bytes and returns the receiver's refusals. If the lane is full, refuses the whole
    /// batch. If the receiver does not respond in time, returns the result that `patience` names.
    pub(super) async fn append(self: &Arc<Self>, profiles: Vec<RawProfile>, bytes: usize) -> Vec<RefusedProfile> {
        let count = profiles.len();
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.state.lock();
            let full = state.profiles + count > MAX_PROFILES || state.bytes + bytes > MAX_BYTES;
            if full && state.profiles > 0 {
                let waiting = state.profiles;
                drop(state);
                self.dropped(Reason::Full, count);
                let id = self.receiver.component_id();
                let message = format!("the receiver {id} is too slow: {waiting} profiles wait for it");
                let full = SinkError::new(SinkErrorKind::Unavailable, message);
                return full.for_all(count);
            }
            state.profiles += count;
            state.bytes += bytes;
            self.waiting.set(state.profiles as i64);
            state.batches.push_back(Batch {
                profiles,
                bytes,
                answer,
            });
            if !state.moving {
                state.moving = true;
                // The task ends when the lane is empty. A receiver that hangs delays the end by `patience.lane` for
                // each batch.
                self.in_flight.spawn(self.clone().empty());
            }
        }
        match tokio::time::timeout(self.patience.sender, answered).await {
            Ok(Ok(errors)) => errors,
            _ => match self.patience.unanswered {
                Unanswered::Accepted => Vec::new(),
                Unanswered::Refused => self.late(count),
            },
        }
    }

    fn late(&self, count: usize) -> Vec<RefusedProfile> {
        let id = self.receiver.component_id();
        let message = format!(
            "the receiver {id} did not respond within {} s",
            self.patience.sender.as_secs()
        );
        SinkError::new(SinkErrorKind::Unavailable, message).for_all(count)
    }

    async fn empty(self: Arc<Self>) {
        loop {
            let batch = {
                let mut state = self.state.lock();
                let Some(batch) = state.batches.pop_front() else {
                    state.moving = false;
                    return;
                };
                batch
            };
            let count = batch.profiles.len();
            let errors = if let Ok(errors) =
                tokio::time::timeout(self.patience.lane, self.receiver.append(batch.profiles)).await
            {
                errors
            } else {
                self.dropped(Reason::Timeout, count);
                Vec::new()
            };
            if let Err(unreported) = batch.answer.send(errors)
                && !unreported.is_empty()
            {
                self.dropped(Reason::Refused, unreported.len());
            }
            let mut state = self.state.lock();
            state.profiles -= count;
            state.bytes -= batch.bytes;
            self.waiting.set(state.profiles as i64);
        }
    }

    fn dropped(&self, reason: Reason, profiles: usize) {
        let reason = match reason {
            Reason::Full => "receiver_full",
            Reason::Timeout => "receiver_timeout",
            Reason::Refused => "receiver_refused",
        };
        let receiver = self.receiver.component_id().to_owned();
        tracing::debug!(receiver, reason, profiles, "profiles dropped on the way to a receiver");
        let labels = vec![("receiver", receiver), ("reason", reason.to_owned())];
        self.metrics.dropped.get_or_create(&labels).inc_by(profiles as u64);
    }
}
