//! Runs a configuration: loads, reloads, passes changed exports on, stops.
//!
//! A load is all or nothing. Everything is checked without values, then evaluated from the leaves with new components being built on the way, then changed components
//! are updated; whatever fails on the way, updates are taken back and new components dropped, and the old graph never
//! stopped. Only then graphs are swapped, old components stopped and new ones started.
//!
//! Loads and passes of changed exports exclude each other. Readers (status, metrics) never wait for either.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Mutex, RwLock};
use sha2::{Digest, Sha256};

use crate::base::Shutdown;
use crate::lang::decode::Evaluate;
use crate::lang::schema::Arguments;
use crate::lang::{Diagnostic, Diagnostics, Source, Span, codes};
use crate::pipeline::component::{Definition, HealthState, Stability};
use crate::pipeline::engine::Engine;
use crate::pipeline::graph::{Catalog, Graph};
use crate::pipeline::live::LiveHub;
use crate::pipeline::logging::{self, LoggingSettings};
use crate::pipeline::metrics::{Metrics, RunningComponents};
use crate::pipeline::modules::library;
use crate::pipeline::modules::propagate::Propagate;
use crate::pipeline::modules::stage::{Accept, Stage};
use crate::pipeline::names::constants;
use crate::pipeline::node::{Changes, Node, RestartPolicy, Surroundings};
use crate::pipeline::plan::{Plan, Running, plan};
use crate::pipeline::validate::analyze;
use crate::telemetry::metrics::Scope;

/// How a controller works.
pub struct Options {
    /// Folder under which each component has its own.
    pub storage_path: PathBuf,
    /// Where metrics go.
    pub metrics: Scope,
    /// `User-Agent` of the components' requests.
    pub user_agent: Arc<str>,
    /// Least stability of what may be used.
    pub stability: Stability,
    /// Version of the program, for `constants.version` and metrics.
    pub version: String,
    /// How components that ended are restarted.
    pub restart: RestartPolicy,
    /// How long components may take to end.
    pub shutdown_deadline: Duration,
    /// Called after a successful load with what the `logging` block says, and with its defaults when there is none.
    pub on_logging: Arc<dyn Fn(&LoggingSettings) + Send + Sync>,
}

impl Options {
    /// Alloy's defaults, metrics into a fresh scope.
    pub fn new(storage_path: impl Into<PathBuf>) -> Self {
        Self {
            storage_path: storage_path.into(),
            metrics: Scope::new(),
            user_agent: concat!("alluvium/", env!("CARGO_PKG_VERSION")).into(),
            stability: Stability::GenerallyAvailable,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            restart: RestartPolicy::default(),
            shutdown_deadline: Duration::from_secs(600),
            on_logging: Arc::new(|_| {}),
        }
    }
}

/// Result of the last load.
#[derive(Debug, Clone)]
pub struct LastLoad {
    /// When it was.
    pub time: SystemTime,
    /// What was wrong; `None` when it succeeded.
    pub error: Option<Diagnostics>,
}

/// Runs components. Clones are handles of the same controller.
#[derive(Clone)]
pub struct Controller {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    engine: Engine,
    restart: RestartPolicy,
    shutdown_deadline: Duration,
    on_logging: Arc<dyn Fn(&LoggingSettings) + Send + Sync>,
    changes: Arc<Changes>,
    /// Held through a load from its first step to its last.
    loading: tokio::sync::Mutex<Phase>,
    /// Held while arguments are evaluated and updated.
    changing: Mutex<()>,
    running: Arc<RwLock<Arc<Running>>>,
    last_load: Mutex<Option<LastLoad>>,
    /// A load has succeeded.
    loaded: AtomicBool,
}

enum Phase {
    Open,
    /// The controller has stopped; it loads no more.
    Closed,
}

/// A tree ready to be swapped in.
struct Prepared {
    running: Running,
    logging: LoggingSettings,
    /// What was updated on the way, with the arguments before.
    updated: Vec<(Arc<Node>, Arguments)>,
    /// Imports and `foreach` blocks whose shape changed on the way.
    shape: Vec<Arc<str>>,
    warnings: Diagnostics,
}

impl Controller {
    /// A controller that runs nothing yet. `definitions` are the components it may run.
    pub fn new(definitions: &[&'static Definition], options: Options) -> Self {
        let changes = Arc::new(Changes::default());
        let running: Arc<RwLock<Arc<Running>>> = Arc::default();
        // The registry may outlive the controller and must not keep its components.
        let counted = Arc::downgrade(&running);
        options.metrics.register_collector(RunningComponents(move || {
            let running = counted.upgrade().map(|running| running.read().clone());
            running.map(|running| count_by_health(&running)).unwrap_or_default()
        }));
        let inner = Inner {
            engine: Engine {
                catalog: Catalog::new(definitions),
                stability: options.stability,
                constants: constants(&options.version),
                metrics: Metrics::register(&options.metrics, &options.version),
                around: Surroundings {
                    storage_path: options.storage_path,
                    metrics: options.metrics,
                    user_agent: options.user_agent,
                    live: LiveHub::default(),
                    changes: changes.clone(),
                },
            },
            restart: options.restart,
            shutdown_deadline: options.shutdown_deadline,
            on_logging: options.on_logging,
            changes,
            loading: tokio::sync::Mutex::new(Phase::Open),
            changing: Mutex::new(()),
            running,
            last_load: Mutex::new(None),
            loaded: AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Loads a configuration of several files, each a name and a text; the first time and at every reload. On an error nothing has changed. The answer
    /// holds the warnings. Components run when this returns.
    pub async fn load(&self, sources: Vec<(String, String)>) -> Result<Diagnostics, Diagnostics> {
        let phase = self.inner.loading.lock().await;
        let first = sources
            .first()
            .map(|(path, text)| Source::new(path.as_str(), text.as_str()))
            .unwrap_or_else(|| Source::new("", ""));
        let hash = hash(&sources);
        let result = if matches!(*phase, Phase::Closed) {
            let message = "the controller has stopped";
            Err(Diagnostic::error(codes::BUILD_FAILED, &first, Span::default(), message).into())
        } else {
            let inner = self.inner.clone();
            // Builds and updates may take a while; they are plain functions and must not hold up the runtime.
            tokio::task::spawn_blocking(move || inner.prepare_and_swap(&sources))
                .await
                .unwrap_or_else(|error| {
                    let message = format!("a component panicked while the configuration was loaded: {error}");
                    Err(Diagnostic::error(codes::BUILD_FAILED, &first, Span::default(), message).into())
                })
        };
        *self.inner.last_load.lock() = Some(LastLoad {
            time: SystemTime::now(),
            error: result.as_ref().err().cloned(),
        });
        let swapped = match result {
            Ok(swapped) => swapped,
            Err(diagnostics) => {
                self.inner.engine.metrics.loaded(None);
                return Err(diagnostics);
            }
        };
        self.inner.loaded.store(true, Ordering::Relaxed);
        self.inner.engine.metrics.loaded(Some(&hash));
        self.inner.stop_and_start(swapped.plan).await;
        drop(phase);
        Ok(swapped.warnings)
    }

    /// Passes changed exports on until `shutdown`, then stops every component, those that refer to others first, and returns. No load succeeds after that.
    pub async fn run(&self, shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = self.inner.changes.changed() => {}
            }
            let inner = self.inner.clone();
            match tokio::task::spawn_blocking(move || inner.pass_on()).await {
                Ok(causes) => {
                    for cause in causes {
                        self.reshape(cause).await;
                    }
                }
                Err(error) => tracing::error!(%error, "a component panicked while it was given new arguments"),
            }
        }
        let mut phase = self.inner.loading.lock().await;
        *phase = Phase::Closed;
        let running = self.inner.running();
        let deadline = Instant::now() + self.inner.shutdown_deadline;
        for node in running.order.iter().rev() {
            node.stop(deadline).await;
        }
    }

    /// Takes up the new shape of an import or a `foreach`: all or nothing, as a load.
    async fn reshape(&self, cause: Arc<str>) {
        let _phase = self.inner.loading.lock().await;
        let inner = self.inner.clone();
        match tokio::task::spawn_blocking(move || inner.reshape(&cause)).await {
            Ok(Some(plan)) => self.inner.stop_and_start(plan).await,
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "a component panicked while a module was loaded"),
        }
    }

    /// True from the first successful load on: the program is ready.
    pub fn ready(&self) -> bool {
        self.inner.loaded.load(Ordering::Relaxed)
    }

    /// Ids of components that are not healthy; empty when all is well.
    pub fn unhealthy(&self) -> Vec<String> {
        let running = self.inner.running();
        let sick = running
            .nodes
            .values()
            .filter(|node| node.health().state > HealthState::Unknown);
        sick.map(|node| node.id.to_string()).collect()
    }

    /// True when no component is unhealthy or has ended.
    pub fn healthy(&self) -> bool {
        self.unhealthy().is_empty()
    }

    /// How the last load went; `None` before the first.
    pub fn last_load(&self) -> Option<LastLoad> {
        self.inner.last_load.lock().clone()
    }

    pub(crate) fn live_hub(&self) -> &LiveHub {
        &self.inner.engine.around.live
    }

    pub(crate) fn running(&self) -> Arc<Running> {
        self.inner.running()
    }
}

/// What is left to do when a graph is in force.
struct Swapped {
    plan: Plan,
    warnings: Diagnostics,
}

impl Inner {
    fn running(&self) -> Arc<Running> {
        self.running.read().clone()
    }

    async fn stop_and_start(&self, plan: Plan) {
        let deadline = Instant::now() + self.shutdown_deadline;
        for node in plan.stop {
            node.stop(deadline).await;
        }
        for node in plan.start {
            node.start(self.restart);
        }
    }

    fn prepare_and_swap(&self, sources: &[(String, String)]) -> Result<Swapped, Diagnostics> {
        let _changing = self.changing.lock();
        let current = self.running();
        let (graph, found) = analyze(sources, &self.engine.catalog, self.engine.stability, false);
        let warnings = self.engine.refuse_not_built(found);
        if warnings.has_errors() {
            return Err(warnings);
        }
        let graph = Arc::new(graph);
        let folder = sources.first().map(|(path, _)| folder_of(path)).unwrap_or_default();
        let prepared = match self.prepare(&graph, &folder, &current, Accept::All, &warnings) {
            Ok(prepared) => prepared,
            // New content of an import may be what is wrong: with its last good content the configuration may be right.
            Err(diagnostics) if has_refused_content(&current) => self
                .prepare(&graph, &folder, &current, Accept::AllButContent, &warnings)
                .map_err(|_| diagnostics)?,
            Err(diagnostics) => return Err(diagnostics),
        };
        let (logging, warnings) = (prepared.logging.clone(), prepared.warnings.clone());
        let plan = self.swap(prepared, &current);
        (self.on_logging)(&logging);
        Ok(Swapped { plan, warnings })
    }

    /// A new tree for the graph in force, because an import or a `foreach` changed. On a failure that one is unhealthy and nothing has changed.
    fn reshape(&self, cause: &Arc<str>) -> Option<Plan> {
        let _changing = self.changing.lock();
        let current = self.running();
        let graph = current.root.graph.clone();
        let folder = current.root.surroundings.module_path.clone();
        let accept = Accept::Only(cause.clone());
        match self.prepare(&graph, &folder, &current, accept, &Diagnostics::new()) {
            Ok(prepared) => {
                tracing::info!(id = %cause, "modules updated");
                Some(self.swap(prepared, &current))
            }
            Err(diagnostics) => {
                tracing::error!(id = %cause, error = %diagnostics, "modules could not be updated; what ran before stays");
                let message = format!("the new modules could not be loaded: {diagnostics}");
                if let Some(node) = current.nodes.get(cause) {
                    node.set_evaluation(HealthState::Unhealthy, message);
                } else if let Some((instance, index)) = current.root.locate(cause)
                    && let Some(entry) = instance.entry(index)
                {
                    entry.set_evaluation(HealthState::Unhealthy, message);
                }
                None
            }
        }
    }

    /// Puts a tree in force.
    fn swap(&self, prepared: Prepared, current: &Running) -> Plan {
        let Prepared {
            running,
            updated,
            shape,
            ..
        } = prepared;
        let plan = plan(current, &running);
        for (node, _) in &updated {
            node.set_evaluation(HealthState::Healthy, "component evaluated");
        }
        // One that could not be evaluated may now have the very arguments that it last ran with: nothing to update, yet well again.
        for node in running.nodes.values().filter(|node| node.evaluation_failed()) {
            if !running.has_refused_content(node) {
                node.set_evaluation(HealthState::Healthy, "component evaluated");
            }
        }
        *self.running.write() = Arc::new(running);
        // Updates on the way may have given an import or a `foreach` another shape.
        self.changes.add_shapes(shape);
        plan
    }

    fn prepare(
        &self,
        graph: &Arc<Graph>,
        folder: &Arc<str>,
        current: &Running,
        accept: Accept,
        warnings: &Diagnostics,
    ) -> Result<Prepared, Diagnostics> {
        let mut stage = Stage::new(&self.engine, current, accept);
        let root = stage.root(graph.clone(), folder.clone());
        let mut diagnostics = warnings.clone();
        diagnostics.extend(std::mem::take(&mut stage.diagnostics));
        let logging = match graph.settings.get("logging") {
            None => LoggingSettings::default(),
            Some(text) => {
                logging::settings(text, &Evaluate(&root.names(&self.engine.constants, None))).unwrap_or_else(|found| {
                    diagnostics.extend(found);
                    LoggingSettings::default()
                })
            }
        };
        diagnostics.sort();
        if diagnostics.has_errors() {
            return Err(diagnostics);
        }
        if root.entries.iter().any(Option::is_none) {
            let message = "a part of the configuration could not be evaluated";
            let source = Source::new("", "");
            return Err(Diagnostic::error(codes::BUILD_FAILED, &source, Span::default(), message).into());
        }
        let Stage {
            nodes,
            order,
            libraries,
            ..
        } = stage;
        let mut pass = Propagate::of_load(&self.engine);
        if let Err(found) = pass.pass(&root, None) {
            take_back(pass.updated);
            return Err(found);
        }
        Ok(Prepared {
            running: Running {
                root,
                nodes,
                order,
                libraries,
            },
            logging,
            updated: pass.updated,
            shape: pass.shape,
            warnings: diagnostics,
        })
    }

    /// Evaluates what refers to components whose exports changed, and updates what came out different. The answer are imports and `foreach` blocks that
    /// need a new tree.
    fn pass_on(&self) -> Vec<Arc<str>> {
        let _changing = self.changing.lock();
        let changed = self.changes.take();
        let running = self.running();
        let mut causes = changed.shapes;
        self.engine
            .metrics
            .queue_size
            .set(i64::try_from(changed.ids.len()).unwrap_or(i64::MAX));
        for id in changed.ids {
            match (running.libraries.get(&id), running.nodes.get(&id)) {
                (Some(library), Some(node)) => {
                    if library::content(&node.exports()) != library.content {
                        causes.push(id);
                    } else if node.evaluation_failed() {
                        node.set_evaluation(HealthState::Healthy, "component evaluated");
                    }
                }
                _ => {
                    running.root.mark_changed(&id);
                }
            }
        }
        let mut pass = Propagate::of_run(&self.engine);
        // Failures are in the health of what failed.
        let _ = pass.pass(&running.root, None);
        causes.extend(pass.shape);
        self.engine.metrics.queue_size.set(0);
        causes
    }
}

/// A controller that is dropped without having been stopped takes its tasks with it.
impl Drop for Inner {
    fn drop(&mut self) {
        for node in self.running.read().nodes.values() {
            node.abort();
        }
    }
}

/// Gives updated components their former arguments, last first.
fn take_back(done: Vec<(Arc<Node>, Arguments)>) {
    for (node, before) in done.into_iter().rev() {
        if let Err(error) = node.update(before) {
            let message = format!("former arguments could not be restored after a failed reload: {error}");
            tracing::error!(component_id = %node.id, %error, "former arguments could not be restored");
            node.set_evaluation(HealthState::Unhealthy, message);
        }
    }
}

/// True when an import has content that is not in force: it was refused, or the load that is to take it up is this one.
fn has_refused_content(running: &Running) -> bool {
    running.nodes.values().any(|node| running.has_refused_content(node))
}

/// The folder of a file, `.` when its name has none.
fn folder_of(path: &str) -> Arc<str> {
    match std::path::Path::new(path).parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.display().to_string().into(),
        _ => ".".into(),
    }
}

fn hash(sources: &[(String, String)]) -> String {
    let mut hasher = Sha256::new();
    for (_, text) in sources {
        hasher.update(text.as_bytes());
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn count_by_health(running: &Running) -> Vec<(&'static str, i64)> {
    let mut counts: BTreeMap<&'static str, i64> = BTreeMap::new();
    for node in running.nodes.values() {
        *counts.entry(health_name(node.health().state)).or_default() += 1;
    }
    counts.into_iter().collect()
}

/// A state as Alloy writes it.
pub(crate) fn health_name(state: HealthState) -> &'static str {
    match state {
        HealthState::Healthy => "healthy",
        HealthState::Unknown => "unknown",
        HealthState::Unhealthy => "unhealthy",
        HealthState::Exited => "exited",
    }
}
