//! The contract between the engine and a component.
//!
//! A component is *defined* by a constant [`Definition`](super::Definition). Its arguments are *validated* by a pure
//! function, which returns a typed value. With that value and a [`Context`] the component is *built* (it may open files
//! and sockets, but spawns nothing), and then *run*: the engine spawns [`Component::run`] and restarts it with backoff
//! when it ends early. A component accesses the outside world only through its `Context`; there is no process-wide
//! state.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use tokio_util::task::TaskTracker;

use crate::component::large_responses::LargeResponses;
use crate::component::live::LiveHandle;
use crate::component::own_http::OwnHttp;
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_cluster::Cluster;
use alluvium_lang::value::Value;

/// The reason why a component could not be built, could not be updated, or stopped running.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct ComponentError(pub String);

impl ComponentError {
    /// Creates an error with the text of another error.
    pub fn new(error: impl Display) -> Self {
        Self(error.to_string())
    }
}

/// A built component with arguments of type `A`.
pub trait Component<A>: Send + Sync + 'static {
    /// Applies new arguments, which differ from the current ones, while the component runs. All or nothing: on an error
    /// the current arguments stay in force.
    fn update(&self, arguments: Arc<A>) -> Result<(), ComponentError>;

    /// Runs until `shutdown` is cancelled, then finishes its pending work and returns. An earlier end is a failure: the
    /// engine shows it and restarts the component with backoff. The future owns every task that it starts.
    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>>;

    /// Returns the component's state for display, as an object (Alloy's debug info), for example targets with their
    /// last scrape, or queue lengths.
    fn debug_info(&self) -> Value {
        Value::Null
    }

    /// Handles a request to `/api/v0/component/ID/...`; the path is relative to the id. `None` if the component has no
    /// endpoints.
    fn serve(&self, _request: http::Request<Bytes>) -> Option<BoxFuture<'static, http::Response<Bytes>>> {
        None
    }

    /// True if the component holds an exclusive resource, such as a port or the lock of a folder. It acquires the
    /// resource when it is built or starts to run, releases it when its run ends, and acquires it again for another
    /// run. If a build or an update fails during a reload, the engine stops each running component that holds an
    /// exclusive resource and that the reload removes or changes, and tries once more. If the second attempt fails too,
    /// the stopped components run again.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// True if `run` only waits for the shutdown, as [`run_passive`] does, so that the engine spawns no task. Such a
    /// component acts when it receives arguments or profiles.
    fn is_passive(&self) -> bool {
        false
    }

    /// Sends the current state to a newly opened live view, for data that is otherwise sent only when it changes.
    /// `arguments` are the current arguments.
    fn show_live(&self, _arguments: &A, _live: &LiveHandle) {}
}

/// Waits for the shutdown: [`Component::run`] of a passive component.
pub fn run_passive(shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
    Box::pin(async move {
        shutdown.cancelled().await;
        Ok(())
    })
}

/// The interfaces through which a component accesses the outside world.
#[derive(Clone)]
pub struct Context {
    /// Id of the node, such as `pyroscope.scrape.default`.
    pub id: Arc<str>,
    /// Path of a folder for its own files, under the storage path. The engine does not create the folder.
    pub data_path: PathBuf,
    /// Scope for its metrics; the engine adds the labels `component_id` and `component_path`.
    pub metrics: alluvium_telemetry::metrics::Scope,
    /// A function that the component calls with all its exports whenever they change.
    pub exports: ExportsSender,
    /// A function that the component calls when its own view of its health changes.
    pub health: HealthSender,
    /// `User-Agent` of its HTTP requests.
    pub user_agent: Arc<str>,
    /// Receives entries for live debugging.
    pub live: LiveHandle,
    /// The program's own endpoints.
    pub own_http: OwnHttp,
    /// The collectors that share targets with this one, if any.
    pub cluster: Cluster,
    /// Limits the large responses that all components together hold in memory.
    pub large_responses: LargeResponses,
    /// Tasks that forward finished data, such as profiles that wait for a slow receiver. When the engine stops the
    /// component, it waits for these tasks after the component has ended, while the receivers still run.
    pub in_flight: InFlight,
}

/// Tasks of a component for which the engine waits when it stops the component. The tracker is closed from the start,
/// so waiting for it ends as soon as no task is left.
#[derive(Clone, Debug)]
pub struct InFlight(TaskTracker);

impl Default for InFlight {
    fn default() -> Self {
        let tasks = TaskTracker::new();
        tasks.close();
        Self(tasks)
    }
}

impl InFlight {
    /// Spawns a task for which the engine waits when it stops the component.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(task);
    }

    /// Returns as soon as no task is left.
    pub async fn ended(&self) {
        self.0.wait().await;
    }
}

/// Passes the exports of a component to the engine.
pub type ExportsSender = Arc<dyn Fn(BTreeMap<Arc<str>, Value>) + Send + Sync>;

/// Passes the health of a component to the engine: the state, and the reason.
pub type HealthSender = Arc<dyn Fn(HealthState, String) + Send + Sync>;

/// Health of a node, ordered from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HealthState {
    /// The component works as intended.
    Healthy,
    /// The state is not known yet.
    Unknown,
    /// The component runs, but something fails.
    Unhealthy,
    /// The task of the component has ended, by a stop or a failure.
    Exited,
}
