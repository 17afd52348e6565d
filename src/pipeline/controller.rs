//! Runs a configuration: loads, reloads, passes changed exports on, stops.
//!
//! A load is all or nothing. Everything is checked without values, then evaluated from the leaves with new components being built on the way, then changed components
//! are updated; whatever fails on the way, updates are taken back and new components dropped, and the old graph never
//! stopped. Only then graphs are swapped, old components stopped and new ones started.
//!
//! Loads and passes of changed exports exclude each other. Readers (status, metrics) never wait for either.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Mutex, RwLock};
use sha2::{Digest, Sha256};

use crate::base::Shutdown;
use crate::lang::decode::{Evaluate, decode};
use crate::lang::diagnostic::Severity;
use crate::lang::schema::Arguments;
use crate::lang::value::Value;
use crate::lang::{Diagnostic, Diagnostics, Source, Span, codes};
use crate::pipeline::component::{Definition, HealthState, Stability};
use crate::pipeline::graph::{Graph, GraphNode, SourceBlock};
use crate::pipeline::live::LiveHub;
use crate::pipeline::logging::{self, LoggingSettings};
use crate::pipeline::metrics::Metrics;
use crate::pipeline::names::{Names, constants};
use crate::pipeline::node::{Changes, Node, RestartPolicy, Surroundings};
use crate::pipeline::plan::{Nodes, Plan, plan};
use crate::pipeline::stop::stop_all;
use crate::pipeline::validate::{analyze, check_arguments};
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
    definitions: Vec<&'static Definition>,
    stability: Stability,
    restart: RestartPolicy,
    shutdown_deadline: Duration,
    on_logging: Arc<dyn Fn(&LoggingSettings) + Send + Sync>,
    constants: Value,
    around: Surroundings,
    changes: Arc<Changes>,
    metrics: Metrics,
    /// Held through a load from its first step to its last.
    loading: tokio::sync::Mutex<Phase>,
    /// Held while arguments are evaluated and updated.
    changing: Mutex<()>,
    running: Arc<RwLock<Arc<Running>>>,
    last_load: Mutex<Option<LastLoad>>,
    /// A load has succeeded.
    loaded: AtomicBool,
}

/// The graph in force and its nodes.
#[derive(Default)]
pub(crate) struct Running {
    pub(crate) graph: Graph,
    pub(crate) nodes: Nodes,
}

enum Phase {
    Open,
    /// The controller has stopped; it loads no more.
    Closed,
}

/// A graph ready to be swapped in.
struct Prepared {
    running: Running,
    plan: Plan,
    logging: LoggingSettings,
    /// What was updated on the way, with the arguments before.
    updated: Vec<(Arc<Node>, Arguments)>,
    warnings: Diagnostics,
}

impl Controller {
    /// A controller that runs nothing yet. `definitions` are the components it may run.
    pub fn new(definitions: &[&'static Definition], options: Options) -> Self {
        let changes = Arc::new(Changes::default());
        let running: Arc<RwLock<Arc<Running>>> = Arc::default();
        // The registry may outlive the controller and must not keep its components.
        let weak = Arc::downgrade(&running);
        let look = move || weak.upgrade().map(|running| running.read().clone()).unwrap_or_default();
        let looked = look.clone();
        let metrics = Metrics::register(
            &options.metrics,
            &options.version,
            move || count_by_health(&look()),
            move || connections(&looked().graph),
        );
        let inner = Inner {
            definitions: definitions.to_vec(),
            stability: options.stability,
            restart: options.restart,
            shutdown_deadline: options.shutdown_deadline,
            on_logging: options.on_logging,
            constants: constants(&options.version),
            metrics,
            around: Surroundings {
                storage_path: options.storage_path,
                metrics: options.metrics,
                user_agent: options.user_agent,
                live: LiveHub::default(),
                changes: changes.clone(),
            },
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
        let result = if matches!(*phase, Phase::Closed) {
            let message = "the controller has stopped";
            Err(Diagnostic::error(codes::BUILD_FAILED, &first, Span::default(), message).into())
        } else {
            self.attempt(Arc::new(sources), &first).await
        };
        *self.inner.last_load.lock() = Some(LastLoad {
            time: SystemTime::now(),
            error: result.as_ref().err().cloned(),
        });
        let Swapped {
            old,
            stop,
            start,
            hash,
            warnings,
        } = match result {
            Ok(swapped) => swapped,
            Err(diagnostics) => {
                self.inner.metrics.loaded(None);
                return Err(diagnostics);
            }
        };
        self.inner.loaded.store(true, Ordering::Relaxed);
        self.inner.metrics.loaded(Some(&hash));
        stop_all(&old.graph, stop, self.inner.shutdown_deadline).await;
        for node in start {
            node.start(self.inner.restart);
        }
        drop(phase);
        Ok(warnings)
    }

    /// Prepares a load and swaps it in. When something cannot be built or updated, and components that the new configuration does not have hold what there is only
    /// one of, those make room for a second attempt; when that fails as well they run again.
    async fn attempt(&self, sources: Arc<Vec<(String, String)>>, first: &Source) -> Result<Swapped, Diagnostics> {
        let once = async || {
            let (inner, sources) = (self.inner.clone(), sources.clone());
            // Builds and updates may take a while; they are plain functions and must not hold up the runtime.
            let done = tokio::task::spawn_blocking(move || inner.prepare_and_swap(&sources)).await;
            done.unwrap_or_else(|error| {
                let message = format!("a component panicked while the configuration was loaded: {error}");
                let diagnostic = Diagnostic::error(codes::BUILD_FAILED, first, Span::default(), message);
                Err(Refused {
                    diagnostics: diagnostic.into(),
                    in_the_way: Vec::new(),
                })
            })
        };
        let in_the_way = match once().await {
            Ok(swapped) => return Ok(swapped),
            Err(refused) if refused.in_the_way.is_empty() => return Err(refused.diagnostics),
            Err(refused) => refused.in_the_way,
        };
        let old = self.inner.running();
        stop_all(&old.graph, in_the_way.iter().cloned(), self.inner.shutdown_deadline).await;
        let second = once().await;
        if second.is_err() {
            for node in in_the_way {
                node.start(self.inner.restart);
            }
        }
        second.map_err(|refused| refused.diagnostics)
    }

    /// Notes a load that failed before it came here: the configuration could not be read.
    pub fn load_failed(&self, path: &str, message: &str) {
        let source = Source::new(path, "");
        let diagnostic = Diagnostic::error(codes::BUILD_FAILED, &source, Span::default(), message);
        *self.inner.last_load.lock() = Some(LastLoad {
            time: SystemTime::now(),
            error: Some(diagnostic.into()),
        });
        self.inner.metrics.loaded(None);
    }

    /// Passes changed exports on until `shutdown`, then stops every component, those that refer to others first, and returns. No load succeeds after that.
    pub async fn run(&self, shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = self.inner.changes.changed() => {}
            }
            let inner = self.inner.clone();
            if let Err(error) = tokio::task::spawn_blocking(move || inner.pass_on()).await {
                tracing::error!(%error, "a component panicked while it was given new arguments");
            }
        }
        let mut phase = self.inner.loading.lock().await;
        *phase = Phase::Closed;
        let running = self.inner.running();
        let nodes = running.nodes.values().cloned();
        stop_all(&running.graph, nodes, self.inner.shutdown_deadline).await;
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
        &self.inner.around.live
    }

    pub(crate) fn running(&self) -> Arc<Running> {
        self.inner.running()
    }
}

/// A load that is in force; its components still have to be stopped and started.
struct Swapped {
    old: Arc<Running>,
    stop: Vec<Arc<Node>>,
    start: Vec<Arc<Node>>,
    hash: String,
    warnings: Diagnostics,
}

/// A load that has changed nothing.
struct Refused {
    diagnostics: Diagnostics,
    /// Running components that may hold what it lacked.
    in_the_way: Vec<Arc<Node>>,
}

impl From<Diagnostics> for Refused {
    fn from(diagnostics: Diagnostics) -> Self {
        Self {
            diagnostics,
            in_the_way: Vec::new(),
        }
    }
}

impl Inner {
    fn running(&self) -> Arc<Running> {
        self.running.read().clone()
    }

    fn prepare_and_swap(&self, sources: &[(String, String)]) -> Result<Swapped, Refused> {
        let _changing = self.changing.lock();
        let _evaluating = self.metrics.evaluate();
        let current = self.running();
        let prepared = self.prepare(sources, &current)?;
        let hash = hash(sources);
        let start = prepared
            .plan
            .start
            .iter()
            .filter_map(|index| prepared.running.nodes.get(&prepared.running.graph.nodes[*index].id))
            .cloned()
            .collect();
        for (node, _) in &prepared.updated {
            node.set_evaluation(HealthState::Healthy, "component evaluated");
        }
        // One that could not be evaluated may now have the very arguments that it last ran with: nothing to update, yet well again.
        for node in prepared.running.nodes.values().filter(|node| node.evaluation_failed()) {
            node.set_evaluation(HealthState::Healthy, "component evaluated");
        }
        *self.running.write() = Arc::new(prepared.running);
        (self.on_logging)(&prepared.logging);
        Ok(Swapped {
            old: current,
            stop: prepared.plan.stop,
            start,
            hash,
            warnings: prepared.warnings,
        })
    }

    fn prepare(&self, sources: &[(String, String)], current: &Running) -> Result<Prepared, Refused> {
        let (graph, found) = analyze(sources, &self.definitions, self.stability);
        let mut diagnostics = refuse_not_built(found);
        if diagnostics.has_errors() {
            return Err(diagnostics.into());
        }
        let plan = plan(&current.graph, &current.nodes, &graph);
        let mut nodes = Nodes::new();
        let mut wanted: BTreeMap<usize, Arguments> = BTreeMap::new();
        let mut failed: BTreeSet<usize> = BTreeSet::new();
        for index in &graph.order {
            let node = &graph.nodes[*index];
            // What depends on a failure cannot be evaluated; it was checked without values.
            if node.references.iter().any(|reference| failed.contains(reference)) {
                failed.insert(*index);
                continue;
            }
            match self.stage(node, &nodes, current, failed.is_empty()) {
                Ok((staged, arguments)) => {
                    nodes.insert(node.id.clone(), staged);
                    wanted.insert(*index, arguments);
                }
                Err(found) => {
                    diagnostics.extend(found);
                    failed.insert(*index);
                }
            }
        }
        let logging = match &graph.logging {
            None => LoggingSettings::default(),
            Some(text) => logging::settings(text, &Evaluate(&self.names(&nodes))).unwrap_or_else(|found| {
                diagnostics.extend(found);
                LoggingSettings::default()
            }),
        };
        let refused = |diagnostics: Diagnostics| {
            // A mistake in the text is not mended by room.
            let lacks = |found: &Diagnostic| {
                found.severity == Severity::Warning || matches!(found.code, codes::BUILD_FAILED | codes::UPDATE_FAILED)
            };
            let in_the_way = match diagnostics.iter().all(lacks) {
                true => plan.stop.iter().filter(|node| node.is_exclusive()).cloned().collect(),
                false => Vec::new(),
            };
            Refused {
                diagnostics,
                in_the_way,
            }
        };
        if diagnostics.has_errors() {
            return Err(refused(diagnostics));
        }
        let updated = self.update_all(&graph, &nodes, wanted).map_err(refused)?;
        Ok(Prepared {
            running: Running { graph, nodes },
            plan,
            logging,
            updated,
            warnings: diagnostics,
        })
    }

    /// Evaluates a node of a new graph, and builds it when it is not running. Nothing is built when something failed before: the load is lost, and
    /// a build may open files and sockets.
    fn stage(
        &self,
        node: &GraphNode,
        nodes: &Nodes,
        current: &Running,
        build: bool,
    ) -> Result<(Arc<Node>, Arguments), Diagnostics> {
        let arguments = self.arguments(node, nodes)?;
        if let Some(existing) = current.nodes.get(&node.id) {
            return Ok((existing.clone(), arguments));
        }
        if !build {
            return Err(Diagnostics::new());
        }
        let built = Node::build(node.id.clone(), node.definition, arguments.clone(), &self.around);
        // Its dependants come after it.
        self.changes.forget(&node.id);
        built.map(|built| (Arc::new(built), arguments)).map_err(|error| {
            let message = format!("{} could not be built: {error}", node.id);
            block_error(codes::BUILD_FAILED, &node.block, message).into()
        })
    }

    /// The arguments of a node with the exports of `nodes`.
    fn arguments(&self, node: &GraphNode, nodes: &Nodes) -> Result<Arguments, Diagnostics> {
        let started = Instant::now();
        let SourceBlock { source, block } = &*node.block;
        let names = self.names(nodes);
        let schema = node.definition.arguments;
        let decoded = decode(source, block.header(), &block.body, schema, &Evaluate(&names));
        decoded.diagnostics.into_result(())?;
        check_arguments(node.definition, &node.block, &decoded.arguments)?;
        self.metrics.evaluated(&node.id, started.elapsed());
        Ok(decoded.arguments)
    }

    fn names<'a>(&'a self, nodes: &'a Nodes) -> Names<'a> {
        Names {
            nodes,
            constants: &self.constants,
        }
    }

    /// Gives every component whose arguments differ its new ones, leaves first; what depends on an updated one is evaluated again, with its new
    /// exports. All or nothing.
    fn update_all(
        &self,
        graph: &Graph,
        nodes: &Nodes,
        mut wanted: BTreeMap<usize, Arguments>,
    ) -> Result<Vec<(Arc<Node>, Arguments)>, Diagnostics> {
        let mut done: Vec<(Arc<Node>, Arguments)> = Vec::new();
        let mut touched: BTreeSet<usize> = BTreeSet::new();
        for index in &graph.order {
            let graph_node = &graph.nodes[*index];
            let (Some(node), Some(mut arguments)) = (nodes.get(&graph_node.id), wanted.remove(index)) else {
                continue;
            };
            let result = if graph_node
                .references
                .iter()
                .any(|reference| touched.contains(reference))
            {
                self.arguments(graph_node, nodes).map(|evaluated| arguments = evaluated)
            } else {
                Ok(())
            };
            let result = result.and_then(|()| {
                if node.has_arguments(&arguments) {
                    return Ok(());
                }
                let before = node.arguments();
                let exports = node.exports();
                node.update(arguments).map_err(|error| {
                    let message = format!("{} refused its new arguments: {error}", node.id);
                    Diagnostics::from(block_error(codes::UPDATE_FAILED, &graph_node.block, message))
                })?;
                done.push((node.clone(), before));
                // Its dependants come after it; what was evaluated before may lack a change that came from within.
                if self.changes.forget(&node.id) || node.exports() != exports {
                    touched.insert(*index);
                }
                Ok(())
            });
            if let Err(diagnostics) = result {
                take_back(done);
                return Err(diagnostics);
            }
        }
        Ok(done)
    }

    /// Evaluates what refers to components whose exports changed, and updates what came out different.
    fn pass_on(&self) {
        let _changing = self.changing.lock();
        let _evaluating = self.metrics.evaluate();
        let changed = self.changes.take();
        let running = self.running();
        let graph = &running.graph;
        // Who has to be evaluated, and since when.
        let mut dependants: BTreeMap<usize, Instant> = BTreeMap::new();
        for (id, since) in changed {
            let users = graph.find(&id).map(|index| graph.nodes[index].referenced_by.as_slice());
            for user in users.unwrap_or_default() {
                let first = dependants.entry(*user).or_insert(since);
                *first = since.min(*first);
            }
        }
        self.metrics
            .queue_size
            .set(i64::try_from(dependants.len()).unwrap_or(i64::MAX));
        for (index, since) in dependants {
            self.metrics.waited(since.elapsed());
            self.metrics.queue_size.dec();
            let graph_node = &graph.nodes[index];
            let Some(node) = running.nodes.get(&graph_node.id) else {
                continue;
            };
            let result = self.arguments(graph_node, &running.nodes).and_then(|arguments| {
                if node.has_arguments(&arguments) {
                    return Ok(());
                }
                node.update(arguments).map_err(|error| {
                    let message = format!("{} refused its new arguments: {error}", node.id);
                    Diagnostics::from(block_error(codes::UPDATE_FAILED, &graph_node.block, message))
                })
            });
            match result {
                Ok(()) => node.set_evaluation(HealthState::Healthy, "component evaluated"),
                Err(diagnostics) => {
                    tracing::error!(component_id = %node.id, error = %diagnostics, "component could not be evaluated");
                    node.set_evaluation(HealthState::Unhealthy, diagnostics.to_string());
                }
            }
        }
        self.metrics.queue_size.set(0);
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

/// What a check only warns of, a run refuses: a component that cannot be built.
fn refuse_not_built(diagnostics: Diagnostics) -> Diagnostics {
    let refuse = |found: Diagnostic| match found.code {
        codes::WILL_NOT_RUN => Diagnostic::error(codes::NOT_BUILT, &found.source, found.span, found.message)
            .hint("`validate` checks it already; to run the rest, remove the block and what refers to it"),
        _ => found,
    };
    diagnostics.into_iter().map(refuse).collect()
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

fn block_error(code: codes::Code, text: &SourceBlock, message: String) -> Diagnostic {
    Diagnostic::error(code, &text.source, text.block.header(), message)
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

/// Ids of components with those they refer to.
fn connections(graph: &Graph) -> Vec<(String, String)> {
    let of_node = |node: &GraphNode| {
        let id = node.id.to_string();
        let targets = node.references.iter().filter_map(|index| graph.nodes.get(*index));
        let pairs = targets.map(|target| (id.clone(), target.id.to_string()));
        pairs.collect::<Vec<_>>()
    };
    graph.nodes.iter().flat_map(of_node).collect()
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
