//! The contract between the engine and a component.
//!
//! A component is *defined* by a constant [`Definition`](super::Definition). Its arguments are *validated* purely,
//! which makes a typed value that is kept. With that value and a [`Context`] it is *built* (may open files and sockets,
//! spawns nothing), and then *run*: the engine spawns [`Component::run`] and restarts it with backoff when it ends
//! early. All that a component may use of the world comes in its `Context`; there is no process-wide state.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use crate::base::{BoxFuture, Shutdown};
use crate::lang::value::Value;
use crate::pipeline::component::live::LiveHandle;
use crate::pipeline::component::own_http::OwnHttp;

/// A component could not be built, updated or run on.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct ComponentError(pub String);

/// A built component whose arguments are an `A`.
pub trait Component<A>: Send + Sync + 'static {
    /// Takes new arguments while running, different from the last. All or nothing: on an error the old ones stay in
    /// force.
    fn update(&self, arguments: Arc<A>) -> Result<(), ComponentError>;

    /// Works until `shutdown` is cancelled, then finishes what it holds and returns. Ending earlier is a failure: the
    /// engine shows it and restarts with backoff. The task owns every task that it starts.
    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>>;

    /// State for people, as an object (Alloy's debug info): targets and their last scrape, queue lengths.
    fn debug_info(&self) -> Value {
        Value::Null
    }

    /// Answers a request to `/api/v0/component/ID/...`; the path begins behind the id. `None` when the component serves
    /// nothing.
    fn serve(&self, _request: http::Request<Bytes>) -> Option<BoxFuture<'static, http::Response<Bytes>>> {
        None
    }

    /// True when it holds something of which there is only one (a port, a folder's lock) from its build or run to the
    /// end of its run, and takes it again when it is run again. When a reload removes such a component, and something
    /// cannot be built or updated beside it, the engine stops it first and tries once more; if that fails too it runs
    /// again.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// True when `run` does nothing but wait for the end: the engine then spares it a task. It works when it is given
    /// arguments or profiles.
    fn is_passive(&self) -> bool {
        false
    }

    /// Sends the present state to a live view that has just been opened, of what is otherwise sent only when it
    /// changes. `arguments` are those in force.
    fn show_live(&self, _arguments: &A, _live: &LiveHandle) {}
}

/// What a component may use.
#[derive(Clone)]
pub struct Context {
    /// Id of the node: `pyroscope.scrape.default`.
    pub id: Arc<str>,
    /// A folder for its own files under the storage path; not created yet.
    pub data_path: PathBuf,
    /// Where its metrics go; the engine adds the labels `component_id` and `component_path`.
    pub metrics: crate::telemetry::metrics::Scope,
    /// Called with the whole set of exports whenever it changes.
    pub exports: ExportsSender,
    /// Called when the component's own view of its health changes.
    pub health: HealthSender,
    /// `User-Agent` of its HTTP requests.
    pub user_agent: Arc<str>,
    /// Where it tells what flows through it.
    pub live: LiveHandle,
    /// The program's own endpoints.
    pub own_http: OwnHttp,
}

/// Tells the engine the exports of a component.
pub(crate) type ExportsSender = Arc<dyn Fn(BTreeMap<Arc<str>, Value>) + Send + Sync>;

/// Tells the engine the health of a component: healthy or not, and why.
pub(crate) type HealthSender = Arc<dyn Fn(HealthState, String) + Send + Sync>;

/// Health of a node, worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HealthState {
    /// Does what it is there for.
    Healthy,
    /// Nothing is known of it yet.
    Unknown,
    /// Runs but fails at something.
    Unhealthy,
    /// Its task has ended, by a stop or a failure.
    Exited,
}
