//! Durable queues, one for each endpoint of a component, and the tasks that empty them.
//!
//! In: profiles, and endpoints with their settings. Out: requests, which the [`Deliver`] of each endpoint makes. A
//! producer waits only for the disk, never for an endpoint. Every endpoint receives every profile, independently of the
//! other endpoints. `storing` appends to the queues, `queue` stores the profiles, and `sender` sends them. This module
//! does not depend on a protocol.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use url::Url;

use alluvium_base::Shutdown;
use alluvium_base::net::hostname;
use alluvium_lang::value::{Number, Value};
use alluvium_pipeline::component::live::{Entry, ProfileFacts};
use alluvium_pipeline::component::{ComponentError, Context, HealthState};
use alluvium_profile::{RawProfile, RefusedProfile, SinkError, SinkErrorKind};
use alluvium_telemetry::metrics::Scope;

mod arguments;
mod delivery;
mod failure;
mod gauges;
mod metrics;
mod queue;
mod sender;
mod settings;
mod storing;

use gauges::QueueGauges;
use metrics::OutboxMetrics;
use queue::Queue;
use sender::{EndpointState, Sender};

pub(crate) use arguments::QueueArguments;
pub(crate) use delivery::{Deliver, Outcome, Sending};
pub(crate) use failure::{Failure, FailureKind};
pub(crate) use metrics::{DropReason, MetricNames};
pub(crate) use settings::Settings;

/// Time between an append and its sync to the disk. Because of the delay, one sync covers several appends.
const SYNC_EVERY: Duration = Duration::from_millis(100);
/// Maximum wait of a producer for the disk.
const DISK_PATIENCE: Duration = Duration::from_secs(30);
/// Maximum number of concurrent writes. It bounds the threads that wait if the disk does not respond.
const WRITERS: usize = 64;
/// Maximum wait for all senders to end. They need less time if the disk responds.
const END_PATIENCE: Duration = Duration::from_secs(15);
/// Maximum wait for the last sync when a component ends.
const SYNC_PATIENCE: Duration = Duration::from_secs(5);

/// The endpoints of a component, with their queues.
pub(crate) struct Outbox {
    context: Context,
    /// Name of this machine, which requests report to servers.
    host: Arc<str>,
    metrics: OutboxMetrics,
    gauges: QueueGauges,
    endpoints: RwLock<Vec<Endpoint>>,
    /// Wakes the run loop after a change of the endpoints.
    changed: Notify,
    /// Held during an update, so that only one update runs at a time.
    updating: Mutex<()>,
    writers: Arc<Semaphore>,
}

/// An endpoint as its component describes it.
pub(crate) struct Plan {
    /// Name of the endpoint, which may be empty. The folder name of the endpoint's queue contains the name.
    pub name: Arc<str>,
    /// URL of the endpoint. Name and URL together identify the queue.
    pub url: Url,
    /// Waits, limits and timeouts.
    pub settings: Settings,
    /// The code that makes the requests.
    pub delivery: Arc<dyn Deliver>,
}

#[derive(Clone)]
struct Endpoint {
    name: Arc<str>,
    folder: String,
    sender: Arc<Sender>,
}

/// Registers the metrics of an outbox.
pub(crate) fn register_metrics(scope: &Scope, names: &MetricNames) {
    drop((OutboxMetrics::new(scope, names), QueueGauges::new(scope, names)));
}

impl Outbox {
    /// Creates an outbox without endpoints.
    pub(crate) fn new(context: Context, names: &MetricNames) -> Self {
        Self {
            metrics: OutboxMetrics::new(&context.metrics, names),
            gauges: QueueGauges::new(&context.metrics, names),
            host: hostname().into(),
            context,
            endpoints: RwLock::default(),
            changed: Notify::new(),
            updating: Mutex::default(),
            writers: Arc::new(Semaphore::new(WRITERS)),
        }
    }

    /// Replaces the endpoints, all or none. Opens the queues of new endpoints, and keeps the other queues open.
    pub(crate) fn set_endpoints(self: &Arc<Self>, plans: Vec<Plan>) -> Result<(), ComponentError> {
        let _updating = self.updating.lock();
        let mut endpoints: Vec<Endpoint> = Vec::new();
        for plan in plans {
            let used_names: BTreeSet<&str> = endpoints.iter().map(|endpoint| endpoint.folder.as_str()).collect();
            let folder = folder_name(&plan, &used_names);
            endpoints.push(Endpoint {
                name: plan.name.clone(),
                sender: Arc::new(self.sender(plan, &folder)?),
                folder,
            });
        }
        for endpoint in &endpoints {
            let sender = &endpoint.sender;
            sender.queue.set_limits(sender.settings.queue.limits());
        }
        self.gauges.show(endpoints.iter().map(|endpoint| {
            let sender = &endpoint.sender;
            (sender.settings.endpoint.to_string(), Arc::downgrade(&sender.queue))
        }));
        *self.endpoints.write() = endpoints;
        Ok(())
    }

    /// Wakes the run loop after a change of the endpoints.
    pub(crate) fn wake(&self) {
        self.changed.notify_one();
    }

    fn sender(self: &Arc<Self>, plan: Plan, folder: &str) -> Result<Sender, ComponentError> {
        let settings = plan.settings;
        let metrics = self.metrics.endpoint(&settings.endpoint);
        let open = {
            let endpoints = self.endpoints.read();
            let has_folder = |endpoint: &&Endpoint| endpoint.folder == folder;
            endpoints
                .iter()
                .find(has_folder)
                .map(|endpoint| endpoint.sender.clone())
        };
        let queue = if let Some(sender) = &open {
            sender.queue.clone()
        } else {
            let path = self.queue_root().join(folder);
            let opened = Queue::open(&path, settings.queue.limits(), metrics.clone());
            Arc::new(opened.map_err(|error| {
                let endpoint = &settings.endpoint;
                ComponentError(format!("endpoint {endpoint}: cannot open its queue: {error}"))
            })?)
        };
        let weak = Arc::downgrade(self);
        Ok(Sender {
            live: self.context.live.clone(),
            host: self.host.clone(),
            queue,
            metrics,
            delivery: plan.delivery,
            state: Mutex::new(open.map_or_else(EndpointState::default, |sender| sender.state.lock().clone())),
            batch_bytes: settings.queue.batch_bytes().into(),
            settings,
            lone: Mutex::default(),
            refusals: Mutex::default(),
            on_health: Arc::new(move || {
                if let Some(outbox) = weak.upgrade() {
                    outbox.tell_health();
                }
            }),
        })
    }

    fn queue_root(&self) -> std::path::PathBuf {
        self.context.data_path.join("queue")
    }

    /// Logs the queues of endpoints that are no longer configured. These queues stay on disk.
    pub(crate) fn report_orphans(&self) {
        let Ok(folders) = std::fs::read_dir(self.queue_root()) else {
            return;
        };
        let endpoints = self.endpoints.read();
        for folder in folders.flatten() {
            let name = folder.file_name().to_string_lossy().into_owned();
            if !endpoints.iter().any(|endpoint| endpoint.folder == name) {
                tracing::warn!(
                    component = %self.context.id, folder = %folder.path().display(),
                    "the queue of an endpoint that is no longer configured stays on disk; delete the folder or \
                     configure the endpoint again"
                );
            }
        }
    }

    fn tell_health(&self) {
        let failing: Vec<String> = {
            let endpoints = self.endpoints.read();
            let describe = |endpoint: &Endpoint| {
                let sender = &endpoint.sender;
                let state = sender.state.lock();
                let waiting = sender.queue.waiting();
                state.is_unhealthy().then(|| {
                    format!(
                        "endpoint {} failed {} times, {} profiles wait ({} bytes): {}",
                        sender.settings.endpoint, state.failures, waiting.profiles, waiting.bytes, state.last_error
                    )
                })
            };
            endpoints.iter().filter_map(describe).collect()
        };
        if failing.is_empty() {
            (self.context.health)(HealthState::Healthy, "all endpoints accept profiles".to_owned());
        } else {
            (self.context.health)(HealthState::Unhealthy, failing.join("; "));
        }
    }

    /// Changes each profile with `prepare` and appends it to the queues of all endpoints. Returns the refused profiles.
    /// All other profiles are queued.
    pub(crate) async fn append(
        &self,
        profiles: Vec<RawProfile>,
        prepare: impl Fn(RawProfile) -> Result<RawProfile, SinkError>,
    ) -> Vec<RefusedProfile> {
        let endpoints = self.endpoints.read().clone();
        let mut refused = Vec::new();
        let mut indices = Vec::with_capacity(profiles.len());
        let mut prepared = Vec::with_capacity(profiles.len());
        for (index, profile) in profiles.into_iter().enumerate() {
            let bytes = profile.pprof.len() as u64;
            self.context.live.tell(|| Entry::Profile(ProfileFacts::of(&profile)));
            match prepare(profile) {
                Ok(profile) => {
                    indices.push(index);
                    prepared.push(profile);
                }
                Err(error) => {
                    for endpoint in &endpoints {
                        endpoint.sender.metrics.dropped(DropReason::InvalidLabels, 1, bytes);
                    }
                    refused.push(RefusedProfile::new(index, error));
                }
            }
        }
        let failed = self.write(endpoints, prepared).await;
        if let Some(error) = failed {
            refused.extend(
                indices
                    .into_iter()
                    .map(|index| RefusedProfile::new(index, error.clone())),
            );
        }
        refused
    }

    /// Writes to all queues. If the disk does not respond in time, returns an error, but sends the profiles if the disk
    /// stores them later. If the producer sends the profiles again with the same ids, servers recognize the duplicates.
    async fn write(&self, endpoints: Vec<Endpoint>, profiles: Vec<RawProfile>) -> Option<SinkError> {
        let senders = endpoints.clone();
        let count = profiles.len() as u64;
        let bytes: u64 = profiles.iter().map(|profile| profile.pprof.len() as u64).sum();
        let writers = self.writers.clone();
        let written = tokio::time::timeout(DISK_PATIENCE, async move {
            let writer = writers.acquire_owned().await;
            tokio::task::spawn_blocking(move || {
                let _writer = writer;
                storing::store(endpoints.iter().map(|endpoint| &*endpoint.sender).collect(), &profiles)
            })
            .await
        });
        match written.await {
            Ok(Ok(failed)) => failed,
            Ok(Err(error)) => Some(SinkError::new(
                SinkErrorKind::Internal,
                format!("cannot queue the profiles: {error}"),
            )),
            Err(_) => {
                for sender in &senders {
                    sender.sender.metrics.dropped(DropReason::Disk, count, bytes);
                }
                let message = format!(
                    "the disk of the queue did not respond within {} s",
                    DISK_PATIENCE.as_secs()
                );
                Some(SinkError::new(SinkErrorKind::Unavailable, message))
            }
        }
    }

    /// Empties the queues until the shutdown.
    pub(crate) async fn run(self: Arc<Self>, shutdown: Shutdown) {
        self.tell_health();
        loop {
            let endpoints = self.endpoints.read().clone();
            let stop = shutdown.child_token();
            let mut tasks = JoinSet::new();
            for endpoint in &endpoints {
                tasks.spawn(endpoint.sender.clone().run(stop.clone(), shutdown.clone()));
            }
            // These tasks are not awaited. They end when the set is dropped.
            let mut syncing = JoinSet::new();
            for endpoint in &endpoints {
                syncing.spawn(sync_always(endpoint.sender.clone()));
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.changed.notified() => {}
            }
            stop.cancel();
            // A task that does not end in time is aborted. Its batch is still in the queue.
            let _ = tokio::time::timeout(END_PATIENCE, async { while tasks.join_next().await.is_some() {} }).await;
            for endpoint in endpoints {
                let queue = endpoint.sender.queue.clone();
                let synced = tokio::task::spawn_blocking(move || queue.sync());
                // A disk that does not respond must not keep the process from ending.
                let _ = tokio::time::timeout(SYNC_PATIENCE, synced).await;
            }
            if shutdown.is_cancelled() {
                return;
            }
        }
    }

    /// Returns the state of each endpoint, for debug info.
    pub(crate) fn debug_info(&self) -> Value {
        let number = |value: u64| Value::Number(Number::Uint(value));
        let endpoints = self.endpoints.read().clone();
        let entry = |endpoint: Endpoint| {
            let sender = &endpoint.sender;
            let waiting = sender.queue.waiting();
            let state = sender.state.lock().clone();
            let (sent, dropped) = sender.metrics.totals();
            let last_success = state.last_success.map_or(Value::Null, |time| {
                let time: chrono::DateTime<chrono::Utc> = SystemTime::into(time);
                Value::string(time.to_rfc3339())
            });
            Value::object([
                ("url", Value::String(sender.settings.endpoint.clone())),
                ("name", Value::String(endpoint.name.clone())),
                ("queue_folder", Value::string(endpoint.folder.clone())),
                ("queued_profiles", number(waiting.profiles)),
                ("queued_bytes", number(waiting.bytes)),
                (
                    "oldest_age",
                    Value::string(alluvium_base::duration::format(waiting.oldest_age)),
                ),
                ("sent_profiles", number(sent)),
                ("dropped_profiles", number(dropped)),
                ("failures", number(state.failures)),
                ("last_error", Value::string(state.last_error)),
                ("last_success", last_success),
            ])
        };
        Value::object([("endpoints", Value::array(endpoints.into_iter().map(entry)))])
    }
}

/// Syncs appended profiles to the disk in groups. Sleeps while there is nothing to sync.
async fn sync_always(sender: Arc<Sender>) {
    loop {
        if !sender.queue.is_sync_due() {
            sender.queue.written().await;
        }
        tokio::time::sleep(SYNC_EVERY).await;
        let queue = sender.queue.clone();
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || queue.sync()).await {
            tracing::error!(
                component = %sender.live.id(), endpoint = %sender.settings.endpoint, error = %error,
                "cannot sync the queue to the disk"
            );
        }
    }
}

/// Returns the folder name of an endpoint's queue: readable, and different for different endpoints. It depends only on
/// name and URL, so that queued profiles are found after a change of a header or timeout.
fn folder_name(endpoint: &Plan, used_names: &BTreeSet<&str>) -> String {
    let readable = match endpoint.name.as_ref() {
        "" => endpoint.url.host_str().unwrap_or("endpoint"),
        name => name,
    };
    let readable: String = readable
        .chars()
        .take(40)
        .map(|character| {
            if character.is_ascii_alphanumeric() {
                character
            } else {
                '-'
            }
        })
        .collect();
    let identity = format!("{}\0{}", endpoint.name, endpoint.url);
    let base = format!("{readable}-{:016x}", xxhash_rust::xxh3::xxh3_64(identity.as_bytes()));
    // Endpoints with the same name and URL (for two tenants) are distinguished by their order.
    let mut name = base.clone();
    let mut number = 2;
    while used_names.contains(name.as_str()) {
        name = format!("{base}-{number}");
        number += 1;
    }
    name
}

impl Drop for Outbox {
    fn drop(&mut self) {
        let queues: Vec<Arc<Queue>> = self
            .endpoints
            .get_mut()
            .iter()
            .map(|endpoint| endpoint.sender.queue.clone())
            .collect();
        let (done, finished) = std::sync::mpsc::channel();
        // The thread is detached, so that a disk that does not respond does not keep the process from ending.
        let spawned = std::thread::Builder::new()
            .name("outbox-end".to_owned())
            .spawn(move || {
                for queue in queues {
                    // After a kill, the page cache still has all writes. This sync protects against a power failure
                    // after a clean end.
                    let _ = queue.sync();
                }
                let _ = done.send(());
            });
        if spawned.is_ok() {
            let _ = finished.recv_timeout(SYNC_PATIENCE);
        }
    }
}
