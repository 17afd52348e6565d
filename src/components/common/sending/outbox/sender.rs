//! Sends the queue of one endpoint: batches, retries, and the handling of each kind of refusal.
//!
//! In: a queue. Out: requests. Handled profiles leave the queue. If the endpoint fails as a whole, no profile is lost:
//! the profiles stay in the queue within its limits. A profile is dropped only if the endpoint refuses it permanently,
//! or if requests with only this profile keep failing while other profiles succeed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use rand::RngExt as _;

use crate::common::sending::outbox::delivery::{Deliver, Outcome, Sending};
use crate::common::sending::outbox::failure::{Failure, FailureKind, is_final};
use crate::common::sending::outbox::metrics::{DropReason, EndpointMetrics};
use crate::common::sending::outbox::queue::{Batch, Queue};
use crate::common::sending::outbox::settings::Settings;
use alluvium_base::Shutdown;
use alluvium_pipeline::component::live::LiveHandle;
use alluvium_profile::RawProfile;
use alluvium_wire::queue_report::QueueReport;
use alluvium_wire::refusals::Refused;

/// Number of consecutive failures after which the endpoint counts as unhealthy.
const UNHEALTHY_FAILURES: u64 = 3;
/// Time limit for each of the last two steps of a stopped sender: waiting for the current request, and then sending the
/// remaining queue. Profiles that are not sent stay on disk.
const DRAIN: Duration = Duration::from_secs(5);
/// Maximum number of failures while the profiles of a batch are sent one by one. If no profile has succeeded by then,
/// the server is probably the cause, and the remaining profiles stay in the queue.
const HOPELESS_SINGLES: usize = 16;
/// Minimum time between the first failure of a profile in a request of its own and its drop. A server that starts or
/// stops may accept some profiles and fail on others.
const LONE_TIME: Duration = Duration::from_mins(1);
/// Minimum interval between log messages about refusals.
const REFUSALS_EVERY: Duration = Duration::from_secs(10);
/// Interval between checks of the age of waiting profiles.
const EXPIRE_EVERY: Duration = Duration::from_secs(10);

/// State of an endpoint, for health and debug info.
#[derive(Clone, Debug, Default)]
pub(super) struct EndpointState {
    /// Number of failed requests since the last success.
    pub failures: u64,
    /// The last failure; empty if there was none since the last success.
    pub last_error: String,
    /// Time of the last successful request.
    pub last_success: Option<SystemTime>,
    /// True if the endpoint accepted other profiles in the last attempt.
    is_partial: bool,
}

impl EndpointState {
    /// Returns true if at least [`UNHEALTHY_FAILURES`] consecutive requests have failed.
    pub(super) fn is_unhealthy(&self) -> bool {
        self.failures >= UNHEALTHY_FAILURES
    }
}

/// Profiles that fail in requests of their own.
#[derive(Debug, Default)]
pub(super) struct Lone {
    /// Time of the first failure of each profile, by the profile's id in the queue.
    first_failures: HashMap<u64, Instant>,
    /// Time at which the endpoint last accepted a profile.
    last_accepted: Option<Instant>,
}

/// Sends the queue of one endpoint.
pub(super) struct Sender {
    /// The component, for logs and live views.
    pub live: LiveHandle,
    /// Name of this machine, which requests report to the endpoint.
    pub host: Arc<str>,
    /// Settings of the endpoint.
    pub settings: Settings,
    /// The queue with the profiles for the endpoint.
    pub queue: Arc<Queue>,
    /// The metrics of this endpoint.
    pub metrics: EndpointMetrics,
    /// The code that makes the requests.
    pub delivery: Arc<dyn Deliver>,
    /// State of the endpoint, for health and debug info.
    pub state: Mutex<EndpointState>,
    /// Maximum size of a batch in bytes: the configured size, or less after the endpoint refused a batch as too large.
    pub batch_bytes: AtomicU64,
    /// Profiles that fail in requests of their own.
    pub lone: Mutex<Lone>,
    /// Time of the last log message about refusals, and number of refusals since that message.
    pub refusals: Mutex<(Option<Instant>, u64)>,
    /// Called when the endpoint becomes healthy, and at every failure while it is unhealthy.
    pub on_health: Arc<dyn Fn() + Send + Sync>,
}

impl Sender {
    /// Sends batches until `stop`. The current request then has five seconds to end. If `shutdown` caused the stop,
    /// tries once more to empty the queue, for at most five seconds.
    pub(super) async fn run(self: Arc<Self>, stop: Shutdown, shutdown: Shutdown) {
        while self.wait_for_work(&stop).await {
            let is_shorter = tokio::select! {
                is_shorter = self.send_batch(self.settings.timeout) => is_shorter,
                // The batch is still in the queue and is sent again later.
                () = wait_after(&stop, DRAIN) => return,
            };
            if !is_shorter && !self.back_off(&stop).await {
                break;
            }
        }
        if shutdown.is_cancelled() {
            let drained = tokio::time::timeout(DRAIN, async {
                while self.queue.waiting().profiles > 0 && self.state.lock().failures == 0 {
                    if !self.send_batch(DRAIN).await {
                        break;
                    }
                }
            });
            // The remaining profiles are on disk.
            let _ = drained.await;
        }
    }

    /// Waits until a batch is full or has waited for `batch_wait`. Returns false when the sender is stopped.
    async fn wait_for_work(&self, shutdown: &Shutdown) -> bool {
        loop {
            if shutdown.is_cancelled() {
                return false;
            }
            self.expire().await;
            let waiting = self.queue.waiting();
            let queue = &self.settings.queue;
            if waiting.profiles > 0 {
                let max_bytes = self.batch_bytes.load(Ordering::Relaxed);
                let is_full = waiting.bytes >= max_bytes || waiting.profiles >= queue.batch_max_profiles.get() as u64;
                let patience = queue.batch_wait.saturating_sub(waiting.oldest_age);
                if is_full || patience.is_zero() {
                    return true;
                }
                tokio::select! {
                    () = shutdown.cancelled() => return false,
                    () = self.queue.arrived() => {}
                    () = tokio::time::sleep(patience) => return true,
                }
                continue;
            }
            tokio::select! {
                () = shutdown.cancelled() => return false,
                () = self.queue.arrived() => {}
                // The wait is bounded, because `waiting` may miss profiles while the disk does not respond.
                () = tokio::time::sleep(EXPIRE_EVERY) => {}
            }
        }
    }

    /// Drops and counts profiles that are too old.
    async fn expire(&self) {
        if self.queue.is_expired() {
            let queue = self.queue.clone();
            let _ = tokio::task::spawn_blocking(move || queue.expire()).await;
        }
    }

    /// Waits before the next attempt. Returns false when the sender is stopped.
    async fn back_off(&self, shutdown: &Shutdown) -> bool {
        let shortest = self.settings.min_backoff;
        let (failures, is_partial) = {
            let state = self.state.lock();
            (state.failures.max(1), state.is_partial)
        };
        let longest = if is_partial {
            self.settings.max_backoff.min(LONE_TIME)
        } else {
            self.settings.max_backoff
        };
        let doubled = shortest.saturating_mul(1 << (failures - 1).min(20)).min(longest);
        // Half of the wait is random, so that many collectors do not retry at the same time.
        let wait = doubled.mul_f64(rand::rng().random_range(0.5..1.0));
        let deadline = Instant::now() + wait;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.metrics.retries.inc();
                return true;
            }
            tokio::select! {
                () = shutdown.cancelled() => return false,
                () = tokio::time::sleep(left.min(EXPIRE_EVERY)) => self.expire().await,
            }
        }
    }

    /// Sends one batch from the front of the queue. Returns true if the queue became shorter, or if the next batch may
    /// be sent at once.
    async fn send_batch(&self, timeout: Duration) -> bool {
        let queue = self.queue.clone();
        let max_bytes = self.batch_bytes.load(Ordering::Relaxed);
        let max_profiles = self.settings.queue.batch_max_profiles.get();
        let Ok(batch) = tokio::task::spawn_blocking(move || queue.take(max_bytes, max_profiles)).await else {
            return false;
        };
        if batch.profiles.is_empty() {
            self.finish(Vec::new()).await;
            return true;
        }
        let outcome = self.push(&batch.profiles, timeout).await;
        match outcome {
            Outcome::Accepted => {
                self.count_sent(&batch.profiles);
                self.succeeded();
                self.finish(batch.ids).await;
                true
            }
            Outcome::Failed(failure) => match failure.kind {
                FailureKind::Profiles | FailureKind::TooLarge if batch.profiles.len() == 1 => {
                    self.reject(&batch.profiles, &failure.message);
                    self.finish(batch.ids).await;
                    true
                }
                FailureKind::TooLarge => {
                    // The endpoint, or a proxy before it, accepts only smaller requests, so batches become smaller from
                    // now on.
                    let half = (batch.bytes / 2).max(1);
                    self.batch_bytes.store(half, Ordering::Relaxed);
                    tracing::info!(
                        component = %self.live.id(), endpoint = %self.settings.endpoint, bytes = half,
                        "endpoint accepts only smaller requests, sending smaller batches"
                    );
                    self.finish(Vec::new()).await;
                    true
                }
                FailureKind::Profiles => self.send_singly(batch, &HashSet::new(), 0, timeout).await,
                FailureKind::Server if self.is_patience_over() => {
                    self.send_singly(batch, &HashSet::new(), 0, timeout).await
                }
                FailureKind::Server | FailureKind::Endpoint => {
                    self.failed(&failure);
                    self.finish(Vec::new()).await;
                    self.honour(&failure).await;
                    false
                }
            },
            Outcome::Partly(refused, failure) => self.settle(batch, refused, &failure, timeout).await,
        }
    }

    /// Handles a batch that the endpoint accepted except for some profiles. Refused profiles that can never succeed are
    /// dropped. The other refused profiles stay in the queue, or are sent one by one to find the error of each profile.
    async fn settle(&self, batch: Batch, refused: Vec<Refused>, failure: &Failure, timeout: Duration) -> bool {
        let mut done: HashSet<usize> = (0..batch.ids.len()).collect();
        for refused in &refused {
            done.remove(&refused.index);
        }
        let passed = done.len();
        let accepted: Vec<RawProfile> = done.iter().map(|&index| batch.profiles[index].clone()).collect();
        self.count_sent(&accepted);
        let mut is_explained = true;
        for Refused { index, error } in refused {
            match error {
                Some(error) if is_final(error.kind, &self.settings) => {
                    self.reject(std::slice::from_ref(&batch.profiles[index]), &error.message);
                    done.insert(index);
                }
                Some(_) => {}
                None => is_explained = false,
            }
        }
        if done.len() == batch.ids.len() {
            self.succeeded();
            self.finish(batch.ids).await;
            return true;
        }
        let is_final = !is_explained && matches!(failure.kind, FailureKind::Profiles | FailureKind::TooLarge);
        if is_final || (failure.kind != FailureKind::Endpoint && self.is_patience_over()) {
            // Sends each refused profile by itself, which assigns each error to its profile.
            return self.send_singly(batch, &done, passed, timeout).await;
        }
        if passed > 0 && failure.kind == FailureKind::Endpoint {
            // The endpoint accepts profiles up to a limit, so the next attempt must follow soon.
            self.succeeded();
        }
        self.failed(failure);
        self.state.lock().is_partial = passed > 0;
        self.finish(done.iter().map(|&index| batch.ids[index]).collect()).await;
        self.honour(failure).await;
        false
    }

    /// Sends the profiles of a refused batch one by one, so that a bad profile does not affect the other profiles. The
    /// profiles at the indices `settled` are already handled; `passed` of them were accepted.
    async fn send_singly(&self, batch: Batch, settled: &HashSet<usize>, mut passed: usize, timeout: Duration) -> bool {
        let started = Instant::now();
        let mut done: Vec<u64> = settled.iter().map(|&index| batch.ids[index]).collect();
        let mut stuck: Vec<usize> = Vec::new();
        let mut last_failure = None;
        for (index, profile) in batch.profiles.iter().enumerate() {
            if settled.contains(&index) {
                continue;
            }
            let profile = std::slice::from_ref(profile);
            match self.push(profile, timeout).await {
                Outcome::Accepted => {
                    self.count_sent(profile);
                    done.push(batch.ids[index]);
                    passed += 1;
                }
                Outcome::Failed(failure) | Outcome::Partly(_, failure) => match failure.kind {
                    FailureKind::Profiles | FailureKind::TooLarge => {
                        self.reject(profile, &failure.message);
                        done.push(batch.ids[index]);
                    }
                    FailureKind::Server => {
                        stuck.push(index);
                        last_failure = Some(failure);
                        if passed == 0 && stuck.len() >= HOPELESS_SINGLES {
                            break;
                        }
                    }
                    FailureKind::Endpoint => {
                        last_failure = Some(failure);
                        break;
                    }
                },
            }
        }
        for index in self.give_up(&batch, &stuck, started) {
            if let Some(failure) = &last_failure {
                self.reject(std::slice::from_ref(&batch.profiles[index]), &failure.message);
            }
            done.push(batch.ids[index]);
        }
        let is_all_done = done.len() == batch.ids.len();
        self.finish(done).await;
        match last_failure {
            Some(failure) if !is_all_done => {
                self.failed(&failure);
                self.state.lock().is_partial = passed > 0;
                false
            }
            _ => {
                self.succeeded();
                true
            }
        }
    }

    /// Returns the profiles to drop of those that failed in requests of their own in a round that began at `started`.
    /// If a profile fails alone for some time after all retries, while other profiles succeed, it is itself the cause.
    fn give_up(&self, batch: &Batch, stuck: &[usize], started: Instant) -> Vec<usize> {
        if !self.is_patience_over() {
            return Vec::new();
        }
        let time = self.settings.max_backoff.min(LONE_TIME);
        let mut lone = self.lone.lock();
        let Lone {
            first_failures,
            last_accepted,
        } = &mut *lone;
        first_failures.retain(|id, _| batch.ids.contains(id));
        let is_cause = |&index: &usize| {
            let first = *first_failures.entry(batch.ids[index]).or_insert(started);
            first.elapsed() >= time && last_accepted.is_some_and(|last| last >= first)
        };
        stuck.iter().copied().filter(is_cause).collect()
    }

    fn is_patience_over(&self) -> bool {
        let retries = self.settings.max_retries;
        retries > 0 && self.state.lock().failures >= retries
    }

    /// Sends profiles, without retries.
    async fn push(&self, profiles: &[RawProfile], timeout: Duration) -> Outcome {
        let sending = Sending {
            live: &self.live,
            metrics: &self.metrics,
            settings: &self.settings,
            report: &self.report(profiles.len() as u64),
            timeout,
        };
        self.delivery.deliver(profiles, sending).await
    }

    /// Returns the report about the queue for a request with `sending_count` profiles.
    fn report(&self, sending_count: u64) -> QueueReport {
        let waiting = self.queue.waiting();
        QueueReport {
            host: self.host.to_string(),
            component: self.live.id().to_string(),
            profiles: waiting.profiles.saturating_sub(sending_count),
            oldest_age: waiting.oldest_age,
            dropped: self.metrics.totals().1,
            failures: self.state.lock().failures,
        }
    }

    /// Waits for the delay that the server requested, but at most `max_backoff` and at most [`DRAIN`].
    async fn honour(&self, failure: &Failure) {
        if let Some(wait) = failure.retry_after {
            tokio::time::sleep(wait.min(self.settings.max_backoff).min(DRAIN)).await;
        }
    }

    async fn finish(&self, done: Vec<u64>) {
        let queue = self.queue.clone();
        let _ = tokio::task::spawn_blocking(move || queue.finish(&done)).await;
    }

    fn count_sent(&self, profiles: &[RawProfile]) {
        if !profiles.is_empty() {
            self.lone.lock().last_accepted = Some(Instant::now());
        }
        self.metrics.sent(profiles.len() as u64, bytes_of(profiles));
    }

    fn reject(&self, profiles: &[RawProfile], reason: &str) {
        self.metrics
            .dropped(DropReason::Rejected, profiles.len() as u64, bytes_of(profiles));
        // A server that refuses everything must not fill the log: one message in an interval counts all refusals since
        // the last message.
        let refused = {
            let mut log = self.refusals.lock();
            log.1 += profiles.len() as u64;
            if log.0.is_some_and(|last| last.elapsed() < REFUSALS_EVERY) {
                return;
            }
            log.0 = Some(Instant::now());
            std::mem::take(&mut log.1)
        };
        if let Some(profile) = profiles.first() {
            tracing::warn!(
                component = %self.live.id(), endpoint = %self.settings.endpoint,
                refused, labels = %profile.labels,
                error = %reason, "endpoint refused profiles, they are dropped"
            );
        }
    }

    fn succeeded(&self) {
        let was_unhealthy = {
            let mut state = self.state.lock();
            let was_unhealthy = state.is_unhealthy();
            *state = EndpointState {
                last_success: Some(SystemTime::now()),
                ..EndpointState::default()
            };
            was_unhealthy
        };
        if was_unhealthy {
            tracing::info!(component = %self.live.id(), endpoint = %self.settings.endpoint,
            "endpoint accepts profiles again");
            (self.on_health)();
        }
    }

    fn failed(&self, failure: &Failure) {
        let failures = {
            let mut state = self.state.lock();
            state.failures += 1;
            state.is_partial = false;
            state.last_error.clone_from(&failure.message);
            state.failures
        };
        tracing::warn!(
            component = %self.live.id(), endpoint = %self.settings.endpoint, failures, error = %failure.message,
            "cannot send profiles, keeping them in the queue"
        );
        if failures >= UNHEALTHY_FAILURES {
            (self.on_health)();
        }
    }
}

/// Completes when the time `wait` has passed since `stop`.
async fn wait_after(stop: &Shutdown, wait: Duration) {
    stop.cancelled().await;
    tokio::time::sleep(wait).await;
}

fn bytes_of(profiles: &[RawProfile]) -> u64 {
    profiles.iter().map(|profile| profile.pprof.len() as u64).sum()
}
