//! A component in the running graph: its instance, arguments, exports, health and task.
//!
//! A node survives reloads that keep its id. [`Shared`] stores the exports and the health that the component reports.
//! The component's context holds `Shared`, but not the node.

use std::any::Any;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures::FutureExt as _;
use parking_lot::Mutex;
use rand::RngExt as _;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::component::large_responses::LargeResponses;
use crate::component::live::{LiveHandle, LiveHub};
use crate::component::own_http::OwnHttp;
use crate::component::{AnyComponent, AnyDefinition, ComponentError, Context, HealthState, InFlight, ValidArguments};
use alluvium_base::Shutdown;
use alluvium_cluster::Cluster;
use alluvium_lang::value::Value;

/// Health of one aspect of a node.
#[derive(Debug, Clone)]
pub(crate) struct Health {
    /// Health state of this aspect.
    pub state: HealthState,
    /// Reason for the state, for display.
    pub message: Cow<'static, str>,
    /// Wall-clock time at which the state began.
    pub updated: SystemTime,
}

/// The waits before restarts of a component that ended early. The wait doubles at each restart, up to the longest.
#[derive(Debug, Clone, Copy)]
pub struct RestartPolicy {
    /// Wait before the first restart.
    pub min_wait: Duration,
    /// Longest wait. If the component runs for at least this long, the next wait is `min_wait` again.
    pub max_wait: Duration,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self {
            min_wait: Duration::from_secs(1),
            max_wait: Duration::from_mins(1),
        }
    }
}

/// Changes for the controller to process. Their number is bounded by the number of components: several changes of one
/// component between two calls of `take` count once.
#[derive(Default)]
pub(crate) struct Changes {
    changed: Mutex<Changed>,
    wake: Notify,
}

/// The changes between two calls of [`Changes::take`].
#[derive(Default)]
pub(crate) struct Changed {
    /// Ids of components whose exports changed, and the time of the first change.
    pub ids: BTreeMap<Arc<str>, Instant>,
    /// Ids of imports and `foreach` blocks that need a new tree, because their items, arguments or texts have changed.
    pub shapes: Vec<Arc<str>>,
}

impl Changes {
    fn add(&self, id: &Arc<str>) {
        self.changed.lock().ids.entry(id.clone()).or_insert_with(Instant::now);
        self.wake.notify_one();
    }

    /// Requests a new tree for imports and `foreach` blocks whose items, arguments or texts have changed.
    pub(crate) fn add_shapes(&self, ids: Vec<Arc<str>>) {
        if !ids.is_empty() {
            self.changed.lock().shapes = ids;
            self.wake.notify_one();
        }
    }

    /// Removes and returns the changes since the last call.
    pub(crate) fn take(&self) -> Changed {
        std::mem::take(&mut *self.changed.lock())
    }

    /// Waits until something may have changed.
    pub(crate) async fn changed(&self) {
        self.wake.notified().await;
    }
}

/// Interned names of exports. Bounded by the definitions of the running components.
#[derive(Default)]
pub(crate) struct ExportNames(Mutex<HashSet<Arc<str>>>);

impl ExportNames {
    fn shared(&self, name: Arc<str>) -> Arc<str> {
        let mut names = self.0.lock();
        if let Some(shared) = names.get(&name) {
            shared.clone()
        } else {
            names.insert(name.clone());
            name
        }
    }
}

/// State that a component reports to the engine.
pub(super) struct Shared {
    id: Arc<str>,
    changes: Arc<Changes>,
    names: Arc<ExportNames>,
    exports: Mutex<Value>,
    health: Mutex<HealthParts>,
}

struct HealthParts {
    run: Health,
    evaluation: Health,
    reported: Option<Health>,
}

/// A component of the running graph.
pub(crate) struct Node {
    /// Full id, such as `pyroscope.scrape.default`.
    pub id: Arc<str>,
    /// The definition of its kind.
    pub definition: &'static dyn AnyDefinition,
    shared: Arc<Shared>,
    component: Arc<dyn AnyComponent>,
    arguments: Mutex<ValidArguments>,
    task: Mutex<Option<Task>>,
    /// Tasks that forward finished data to the component's receivers.
    in_flight: InFlight,
}

enum Task {
    /// The component has nothing to do while it runs, so there is no task.
    Passive,
    /// The component runs in its own task.
    Running { shutdown: Shutdown, handle: JoinHandle<()> },
}

/// The part of a component's context that is the same for all components.
pub(crate) struct ContextParts {
    /// Storage path, with a folder for each component.
    pub storage_path: std::path::PathBuf,
    /// Root scope in which all metrics are registered.
    pub metrics: alluvium_telemetry::metrics::Scope,
    /// `User-Agent` of requests.
    pub user_agent: Arc<str>,
    /// Hub of live debugging for all components.
    pub live: LiveHub,
    /// Receives changes of exports.
    pub changes: Arc<Changes>,
    /// Names of exports, shared by all components.
    pub names: Arc<ExportNames>,
    /// The program's own endpoints.
    pub own_http: OwnHttp,
    /// The collectors that share targets with this one.
    pub cluster: Cluster,
    /// Limits the large responses of all components.
    pub large_responses: LargeResponses,
}

impl Shared {
    fn set_exports(&self, exports: BTreeMap<Arc<str>, Value>) {
        let exports = exports.into_iter();
        let exports = exports.map(|(name, value)| (self.names.shared(name), value));
        let exports = Value::Object(Arc::new(exports.collect()));
        let mut current = self.exports.lock();
        if *current != exports {
            *current = exports;
            drop(current);
            self.changes.add(&self.id);
        }
    }

    fn set(
        &self,
        pick: impl FnOnce(&mut HealthParts) -> &mut Health,
        state: HealthState,
        message: impl Into<Cow<'static, str>>,
    ) {
        *pick(&mut self.health.lock()) = Health::now(state, message);
    }
}

impl Health {
    /// Creates a health that begins now.
    pub(crate) fn now(state: HealthState, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            state,
            message: message.into(),
            updated: SystemTime::now(),
        }
    }
}

/// The visibility of a component's metrics in the exported text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metrics {
    Shown,
    Hidden,
}

impl Node {
    /// Builds the component without running it. `module` is the id of its module.
    pub(crate) fn build(
        id: Arc<str>,
        module: &str,
        metrics: Metrics,
        definition: &'static dyn AnyDefinition,
        arguments: ValidArguments,
        parts: &ContextParts,
    ) -> Result<Self, ComponentError> {
        let shared = Arc::new(Shared {
            id: id.clone(),
            changes: parts.changes.clone(),
            names: parts.names.clone(),
            exports: Mutex::new(Value::Object(Arc::default())),
            health: Mutex::new(HealthParts {
                run: Health::now(HealthState::Unknown, "component created"),
                evaluation: Health::now(HealthState::Healthy, "component evaluated"),
                reported: None,
            }),
        });
        let (for_exports, for_health) = (shared.clone(), shared.clone());
        let local = match module {
            "" => id.clone(),
            module => id.strip_prefix(module).unwrap_or(&id).trim_start_matches('/').into(),
        };
        let labels = [
            ("component_path", Arc::from(format!("/{module}"))),
            ("component_id", local),
        ];
        let metrics = match metrics {
            Metrics::Shown => parts.metrics.child_of(labels),
            Metrics::Hidden => alluvium_telemetry::metrics::Scope::new(),
        };
        let in_flight = InFlight::default();
        let context = Context {
            id: id.clone(),
            data_path: parts.storage_path.join(&*id),
            metrics,
            exports: Arc::new(move |exports| for_exports.set_exports(exports)),
            health: Arc::new(move |state, message| {
                for_health.health.lock().reported = Some(Health::now(state, message));
            }),
            user_agent: parts.user_agent.clone(),
            live: parts.live.handle(&id),
            own_http: parts.own_http.clone(),
            cluster: parts.cluster.clone(),
            large_responses: parts.large_responses.clone(),
            in_flight: in_flight.clone(),
        };
        let component = definition.build(context, &arguments)?;
        Ok(Self {
            id,
            definition,
            shared,
            component,
            arguments: Mutex::new(arguments),
            task: Mutex::new(None),
            in_flight,
        })
    }

    /// Returns the exports in force, an object.
    pub(crate) fn exports(&self) -> Value {
        self.shared.exports.lock().clone()
    }

    /// Returns the arguments in force.
    pub(crate) fn arguments(&self) -> ValidArguments {
        self.arguments.lock().clone()
    }

    /// True if these are the arguments in force.
    pub(crate) fn has_arguments(&self, arguments: &ValidArguments) -> bool {
        self.arguments.lock().values() == arguments.values()
    }

    /// Returns the component's debug info, for display.
    pub(crate) fn debug_info(&self) -> Value {
        self.component.debug_info()
    }

    /// Passes a request to the component.
    pub(crate) fn serve(
        &self,
        request: http::Request<bytes::Bytes>,
    ) -> Option<alluvium_base::BoxFuture<'static, http::Response<bytes::Bytes>>> {
        self.component.serve(request)
    }

    /// True if the component holds an exclusive resource.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.component.is_exclusive()
    }

    /// Sends the current state to a newly opened live view.
    pub(crate) fn show_live(&self, live: &LiveHandle) {
        self.component.show_live(&self.arguments(), live);
    }

    /// Updates the component with new arguments. On an error the current arguments stay in force.
    pub(crate) fn update(&self, arguments: &ValidArguments) -> Result<(), ComponentError> {
        self.component.update(arguments)?;
        *self.arguments.lock() = arguments.clone();
        Ok(())
    }

    /// Returns the worst health of the task, the evaluation and the component's own report; on a tie the newest.
    pub(crate) fn health(&self) -> Health {
        let aspects = self.shared.health.lock();
        let mut worst = &aspects.run;
        for aspect in [Some(&aspects.evaluation), aspects.reported.as_ref()]
            .into_iter()
            .flatten()
        {
            if (aspect.state, aspect.updated) > (worst.state, worst.updated) {
                worst = aspect;
            }
        }
        worst.clone()
    }

    /// Sets the health of the last evaluation of the node's arguments.
    pub(crate) fn set_evaluation(&self, state: HealthState, message: impl Into<Cow<'static, str>>) {
        self.shared.set(|aspects| &mut aspects.evaluation, state, message);
    }

    /// True if the last evaluation of the node's arguments failed.
    pub(crate) fn evaluation_failed(&self) -> bool {
        self.shared.health.lock().evaluation.state == HealthState::Unhealthy
    }

    fn set_run(&self, state: HealthState, message: impl Into<Cow<'static, str>>) {
        self.shared.set(|aspects| &mut aspects.run, state, message);
    }

    /// Starts the task that runs the component and restarts it. Does nothing if it is running already.
    pub(crate) fn start(self: &Arc<Self>, policy: RestartPolicy) {
        let mut task = self.task.lock();
        if task.is_some() {
            return;
        }
        if self.component.is_passive() {
            self.set_run(HealthState::Healthy, "started component");
            *task = Some(Task::Passive);
            return;
        }
        let shutdown = Shutdown::new();
        let handle = tokio::spawn(supervise(self.clone(), shutdown.clone(), policy));
        *task = Some(Task::Running { shutdown, handle });
    }

    /// Aborts the component's task.
    pub(crate) fn abort(&self) {
        if let Some(Task::Running { shutdown, handle }) = self.task.lock().take() {
            shutdown.cancel();
            handle.abort();
        }
    }

    /// Cancels the component, and waits for the component and its data in flight, at most until `deadline`. At the
    /// deadline it aborts the task. Returns false if the component or its data did not finish in time.
    pub(crate) async fn stop(&self, deadline: Instant) -> bool {
        let task = self.task.lock().take();
        let Some(task) = task else { return true };
        let Task::Running { shutdown, mut handle } = task else {
            let is_empty = self.wait_for_receivers(deadline).await;
            self.set_run(HealthState::Exited, "component stopped");
            return is_empty;
        };
        shutdown.cancel();
        let mut finished = tokio::time::timeout_at(deadline.into(), &mut handle).await.is_ok();
        if finished {
            finished = self.wait_for_receivers(deadline).await;
            self.set_run(HealthState::Exited, "component stopped");
        } else {
            handle.abort();
            tracing::warn!(component_id = %self.id, "component did not stop in time and was aborted");
            self.set_run(HealthState::Exited, "component aborted at the shutdown deadline");
        }
        finished
    }

    /// Waits until the receivers have received the data in flight. Returns false if data remains at the deadline.
    async fn wait_for_receivers(&self, deadline: Instant) -> bool {
        let is_empty = tokio::time::timeout_at(deadline.into(), self.in_flight.ended())
            .await
            .is_ok();
        if !is_empty {
            tracing::warn!(component_id = %self.id, "receivers were too slow, profiles were dropped");
        }
        is_empty
    }
}

async fn supervise(node: Arc<Node>, shutdown: Shutdown, policy: RestartPolicy) {
    let mut wait = policy.min_wait;
    loop {
        let started = Instant::now();
        node.set_run(HealthState::Healthy, "started component");
        // A panic ends the component, but not this task.
        let run = AssertUnwindSafe(async { node.component.run(shutdown.clone()).await });
        let reason = match run.catch_unwind().await {
            Ok(Ok(())) => "component ended without an error".to_owned(),
            Ok(Err(error)) => format!("component ended with an error: {error}"),
            Err(panic) => format!("component panicked: {}", panic_text(&*panic)),
        };
        if shutdown.is_cancelled() {
            return;
        }
        if started.elapsed() >= policy.max_wait {
            wait = policy.min_wait;
        }
        tracing::error!(component_id = %node.id, reason, wait = ?wait, "component ended and will be restarted");
        node.set_run(
            HealthState::Exited,
            format!("{reason}; it is restarted in {}", alluvium_base::duration::format(wait)),
        );
        // The wait is up to a fifth longer, so that components that failed together do not restart together.
        let jitter = rand::rng().random_range(0.0..0.2);
        tokio::select! {
            () = tokio::time::sleep(wait.mul_f64(1.0 + jitter)) => {}
            () = shutdown.cancelled() => return,
        }
        wait = (wait * 2).min(policy.max_wait);
    }
}

/// Returns the message of a panic.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
