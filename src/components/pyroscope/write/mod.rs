//! `pyroscope.write`: sends profiles to servers that speak push.v1, through a durable queue for each.
//!
//! In: profiles through the exported receiver. Out: requests. A producer waits for the disk only, never for an
//! endpoint. All endpoints get every profile and are sent to independently. `queue` holds the profiles, `sender`
//! empties it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::base::{BoxFuture, Shutdown};
use crate::components::common::receiver::{self, TakesProfiles};
use crate::lang::schema::{Attribute, Kind, RECEIVER};
use crate::lang::value::{Number, Value};
use crate::pipeline::component::live::{Entry, ProfileFacts};
use crate::pipeline::component::{Component, ComponentError, Context, Definition, HealthState, Stability};
use crate::profile::{RawProfile, RefusedProfile, SinkError, SinkErrorKind};

mod arguments;
mod delivery;
mod failure;
mod gauges;
mod labels;
mod metrics;
mod parcel;
mod queue;
mod sender;
#[cfg(test)]
mod tests;

use arguments::{EndpointArguments, WriteArguments};
use gauges::QueueGauges;
use labels::LabelPolicy;
use metrics::{DropReason, WriteMetrics};
use queue::{Queue, record};
use sender::{EndpointState, Sender};

/// How long an appended profile waits for others before all are synced to the disk.
const SYNC_EVERY: Duration = Duration::from_millis(100);

/// The component's definition.
pub(crate) const DEFINITION: Definition<WriteArguments> = Definition {
    name: "pyroscope.write",
    stability: Stability::GenerallyAvailable,
    exports: &[Attribute::required(
        "receiver",
        Kind::Capsule(RECEIVER),
        "Takes profiles for all endpoints.",
    )],
    metrics: |scope| drop((WriteMetrics::new(scope), QueueGauges::new(scope))),
    build: Some(build),
    doc: "`pyroscope.write` sends profiles to Pyroscope or Alluvium servers and keeps them in a durable queue until \
        they have arrived.",
};

struct Write {
    context: Context,
    metrics: WriteMetrics,
    gauges: QueueGauges,
    state: RwLock<State>,
    /// Wakes the run loop: the endpoints changed.
    changed: Notify,
    /// Held during an update, so that only one runs at a time.
    updating: Mutex<()>,
}

#[derive(Default)]
struct State {
    labels: LabelPolicy,
    endpoints: Vec<Endpoint>,
}

#[derive(Clone)]
struct Endpoint {
    folder: String,
    sender: Arc<Sender>,
}

fn build(
    context: Context,
    arguments: Arc<WriteArguments>,
) -> Result<Arc<dyn Component<WriteArguments>>, ComponentError> {
    let component = Arc::new(Write {
        metrics: WriteMetrics::new(&context.metrics),
        gauges: QueueGauges::new(&context.metrics),
        context,
        state: RwLock::default(),
        changed: Notify::new(),
        updating: Mutex::default(),
    });
    component.set_arguments(&arguments)?;
    component.report_orphans();
    let receiver = receiver::export(&component.context.id, Arc::downgrade(&component));
    (component.context.exports)(BTreeMap::from([("receiver".into(), receiver)]));
    Ok(Arc::new(RunningWrite(component)))
}

impl Write {
    /// Opens queues and clients of the new endpoints, all or none. Queues of endpoints that stay are kept open.
    fn set_arguments(self: &Arc<Self>, arguments: &WriteArguments) -> Result<(), ComponentError> {
        let _updating = self.updating.lock();
        let mut endpoints: Vec<Endpoint> = Vec::new();
        for endpoint in &arguments.endpoint {
            let taken: BTreeSet<&str> = endpoints.iter().map(|endpoint| endpoint.folder.as_str()).collect();
            let folder = folder_name(endpoint, &taken);
            let sender = self.sender(endpoint.clone(), &folder)?;
            endpoints.push(Endpoint {
                folder,
                sender: Arc::new(sender),
            });
        }
        for endpoint in &endpoints {
            endpoint
                .sender
                .queue
                .set_limits(endpoint.sender.arguments.queue.limits());
        }
        self.gauges.show(endpoints.iter().map(|endpoint| {
            let sender = &endpoint.sender;
            (
                sender.arguments.url.written().to_string(),
                Arc::downgrade(&sender.queue),
            )
        }));
        *self.state.write() = State {
            labels: LabelPolicy {
                external: arguments.external_labels.0.clone(),
                tenants: arguments.tenant_labels().collect(),
            },
            endpoints,
        };
        Ok(())
    }

    fn sender(self: &Arc<Self>, arguments: EndpointArguments, folder: &str) -> Result<Sender, ComponentError> {
        let url = arguments.url.written().clone();
        let failed = |error: &dyn std::fmt::Display| ComponentError(format!("endpoint {url}: {error}"));
        let options = arguments.client_options(&self.context.user_agent);
        let client = crate::wire::client::HttpClient::new(&options).map_err(|error| failed(&error))?;
        let metrics = self.metrics.endpoint(&url);
        let open = {
            let state = self.state.read();
            let same = |endpoint: &&Endpoint| endpoint.folder == folder;
            state
                .endpoints
                .iter()
                .find(same)
                .map(|endpoint| endpoint.sender.clone())
        };
        let queue = match &open {
            Some(sender) => sender.queue.clone(),
            None => Arc::new(
                Queue::open(
                    &self.queue_root().join(folder),
                    arguments.queue.limits(),
                    metrics.clone(),
                )
                .map_err(|error| failed(&format!("cannot open its queue: {error}")))?,
            ),
        };
        let weak = Arc::downgrade(self);
        Ok(Sender {
            live: self.context.live.clone(),
            queue,
            metrics,
            client,
            state: Mutex::new(open.map_or_else(EndpointState::default, |sender| sender.state.lock().clone())),
            batch_bytes: arguments.queue.batch_bytes().into(),
            arguments,
            refusals: Mutex::default(),
            on_health: Arc::new(move || {
                if let Some(this) = weak.upgrade() {
                    this.tell_health();
                }
            }),
        })
    }

    fn queue_root(&self) -> std::path::PathBuf {
        self.context.data_path.join("queue")
    }

    /// Logs the queues of endpoints that are no longer configured. They stay on disk.
    fn report_orphans(&self) {
        let Ok(folders) = std::fs::read_dir(self.queue_root()) else {
            return;
        };
        let state = self.state.read();
        for folder in folders.flatten() {
            let name = folder.file_name().to_string_lossy().into_owned();
            if !state.endpoints.iter().any(|endpoint| endpoint.folder == name) {
                tracing::warn!(
                    component = %self.context.id, folder = %folder.path().display(),
                    "the queue of an endpoint that is not configured any more is left as it is; delete the folder or \
                     configure the endpoint again"
                );
            }
        }
    }

    fn tell_health(&self) {
        let failing: Vec<String> = {
            let state = self.state.read();
            let describe = |endpoint: &Endpoint| {
                let sender = &endpoint.sender;
                let state = sender.state.lock();
                let waiting = sender.queue.waiting();
                state.is_unhealthy().then(|| {
                    format!(
                        "endpoint {} failed {} times, {} profiles wait ({} bytes): {}",
                        sender.arguments.url.written(),
                        state.failures,
                        waiting.profiles,
                        waiting.bytes,
                        state.last_error
                    )
                })
            };
            state.endpoints.iter().filter_map(describe).collect()
        };
        if failing.is_empty() {
            (self.context.health)(HealthState::Healthy, "all endpoints take profiles".to_owned());
        } else {
            (self.context.health)(HealthState::Unhealthy, failing.join("; "));
        }
    }

    async fn append(self: Arc<Self>, profiles: Vec<RawProfile>) -> Vec<RefusedProfile> {
        let (labels, endpoints) = {
            let state = self.state.read();
            (state.labels.clone(), state.endpoints.clone())
        };
        let mut refused = Vec::new();
        let mut places = Vec::with_capacity(profiles.len());
        let mut prepared = Vec::with_capacity(profiles.len());
        for (place, profile) in profiles.into_iter().enumerate() {
            let bytes = profile.pprof.len() as u64;
            self.context.live.tell(|| Entry::Profile(ProfileFacts::of(&profile)));
            match labels.prepare(profile) {
                Ok(profile) => {
                    places.push(place);
                    prepared.push(profile);
                }
                Err(error) => {
                    for endpoint in &endpoints {
                        endpoint.sender.metrics.dropped(DropReason::InvalidLabels, 1, bytes);
                    }
                    refused.push(RefusedProfile::new(place, error));
                }
            }
        }
        let written = tokio::task::spawn_blocking(move || store(&endpoints, &prepared)).await;
        let failed = match written {
            Ok(None) => None,
            Ok(Some(error)) => Some(error),
            Err(error) => Some(SinkError::new(
                SinkErrorKind::Internal,
                format!("queueing failed: {error}"),
            )),
        };
        if let Some(error) = failed {
            refused.extend(
                places
                    .into_iter()
                    .map(|place| RefusedProfile::new(place, error.clone())),
            );
        }
        refused
    }

    async fn run(self: Arc<Self>, shutdown: Shutdown) {
        self.tell_health();
        loop {
            let endpoints = self.state.read().endpoints.clone();
            let stop = shutdown.child_token();
            let mut tasks = JoinSet::new();
            for endpoint in &endpoints {
                tasks.spawn(endpoint.sender.clone().run(stop.clone(), shutdown.clone()));
            }
            // Not awaited: these tasks end when the set is dropped.
            let mut syncing = JoinSet::new();
            for endpoint in &endpoints {
                syncing.spawn(sync_always(endpoint.sender.clone()));
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.changed.notified() => {}
            }
            stop.cancel();
            while tasks.join_next().await.is_some() {}
            for endpoint in endpoints {
                let queue = endpoint.sender.queue.clone();
                let _ = tokio::task::spawn_blocking(move || queue.sync()).await;
            }
            if shutdown.is_cancelled() {
                return;
            }
        }
    }
}

/// Syncs appended profiles to the disk in groups. Sleeps while there are none.
async fn sync_always(sender: Arc<Sender>) {
    loop {
        if !sender.queue.is_sync_due() {
            sender.queue.written().await;
        }
        tokio::time::sleep(SYNC_EVERY).await;
        let queue = sender.queue.clone();
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || queue.sync()).await {
            tracing::error!(
                component = %sender.live.id(), endpoint = %sender.arguments.url.written(), error = %error,
                "cannot bring the queue to the disk"
            );
        }
    }
}

/// Appends to all queues and returns the first error. The profiles are encoded once for all.
fn store(endpoints: &[Endpoint], profiles: &[RawProfile]) -> Option<SinkError> {
    let encoded = record::encode(profiles, queue::now_ms());
    let mut first_error = None;
    for endpoint in endpoints {
        let sender = &endpoint.sender;
        if let Err(error) = sender.queue.append(&encoded) {
            let bytes = profiles.iter().map(|profile| profile.pprof.len() as u64).sum();
            sender.metrics.dropped(DropReason::Disk, profiles.len() as u64, bytes);
            let message = format!("cannot queue for endpoint {}: {error}", sender.arguments.url.written());
            first_error.get_or_insert(SinkError::new(SinkErrorKind::Unavailable, message));
        }
    }
    first_error
}

impl TakesProfiles for Write {
    fn take(self: Arc<Self>, profiles: Vec<RawProfile>) -> BoxFuture<'static, Vec<RefusedProfile>> {
        Box::pin(self.append(profiles))
    }
}

struct RunningWrite(Arc<Write>);

impl Component<WriteArguments> for RunningWrite {
    fn update(&self, arguments: Arc<WriteArguments>) -> Result<(), ComponentError> {
        self.0.set_arguments(&arguments)?;
        self.0.changed.notify_one();
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        Box::pin(async move {
            self.0.clone().run(shutdown).await;
            Ok(())
        })
    }

    fn debug_info(&self) -> Value {
        let number = |value: u64| Value::Number(Number::Uint(value));
        let endpoints = self.0.state.read().endpoints.clone();
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
                ("url", Value::String(sender.arguments.url.written().clone())),
                ("name", Value::String(sender.arguments.name.clone())),
                ("queue_folder", Value::string(endpoint.folder.clone())),
                ("queued_profiles", number(waiting.profiles)),
                ("queued_bytes", number(waiting.bytes)),
                (
                    "oldest_age",
                    Value::string(crate::base::duration::format(waiting.oldest_age)),
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

/// Folder of an endpoint's queue: readable, and different for different endpoints. It depends on name and URL only, so
/// that profiles still wait in it after a header or timeout has changed.
fn folder_name(endpoint: &EndpointArguments, taken: &BTreeSet<&str>) -> String {
    let readable = match endpoint.name.as_ref() {
        "" => endpoint.url.url().host_str().unwrap_or("endpoint"),
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
    let identity = format!("{}\0{}", endpoint.name, endpoint.url.url());
    let base = format!("{readable}-{:016x}", xxhash_rust::xxh3::xxh3_64(identity.as_bytes()));
    // Two endpoints with the same name and URL (for two tenants) are told apart by their order.
    let mut name = base.clone();
    let mut number = 2;
    while taken.contains(name.as_str()) {
        name = format!("{base}-{number}");
        number += 1;
    }
    name
}

impl Drop for Write {
    fn drop(&mut self) {
        for endpoint in &self.state.read().endpoints {
            // After a kill, the page cache still has everything; this is for a power failure after a clean end.
            let _ = endpoint.sender.queue.sync();
        }
    }
}
