//! The controller runs a configuration: loads, reloads, propagates changed exports, stops.
//!
//! A load is all or nothing. It first checks the whole configuration without evaluating expressions. It then evaluates
//! each node after the nodes that it refers to, and builds new components. After that it updates changed components. On
//! a failure it undoes the updates and drops the new components, while the old graph keeps running. On success it swaps
//! the graphs, stops old components and starts new ones.
//!
//! Loads and the propagation of exports exclude each other. Readers (status, metrics) never wait for either.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, RwLock};
use sha2::{Digest, Sha256};

use crate::check::catalog::Catalog;
use crate::check::settings::logging::LoggingSettings;
use crate::component::large_responses::LargeResponses;
use crate::component::live::LiveHub;
use crate::component::own_http::OwnHttp;
use crate::component::{AnyDefinition, HealthState, Stability};
use crate::run::engine::Engine;
use crate::run::load::{LoadRequest, Loader, RefusedLoad, SwapResult};
use crate::run::metrics::Metrics;
use crate::run::names::{Common, constants};
use crate::run::node::{Changes, ContextParts, RestartPolicy};
use crate::run::plan::Running;
use crate::run::prepare::{PrepareHttp, PrepareRemote, no_listener};
use crate::run::stop::stop_all;
use alluvium_base::Shutdown;
use alluvium_cluster::Cluster;
use alluvium_lang::decode::Defaults;
use alluvium_lang::{Diagnostic, Diagnostics, Source, Span, codes};
use alluvium_telemetry::metrics::Scope;

/// Options of a controller.
pub struct Options {
    /// Storage folder; each component has its own folder in it.
    pub storage_path: PathBuf,
    /// Root scope in which metrics are registered.
    pub metrics: Scope,
    /// `User-Agent` of the components' requests.
    pub user_agent: Arc<str>,
    /// Minimum stability of components and functions.
    pub stability: Stability,
    /// Version of the program, for `constants.version` and metrics.
    pub version: String,
    /// Restart policy for components that ended early.
    pub restart: RestartPolicy,
    /// Time limit for components to stop.
    pub shutdown_deadline: Duration,
    /// Called after a successful load with the settings of the `logging` block, or the defaults if there is none.
    pub on_logging: Arc<dyn Fn(&LoggingSettings) + Send + Sync>,
    /// Called in every load with the settings of the `http` block. The returned function is called after the load has
    /// succeeded.
    pub on_http: PrepareHttp,
    /// Called in every load with the settings of the `remotecfg` block. The returned function is called after the load
    /// has succeeded. `None` in a program that cannot run a configuration from a server and so refuses the block.
    pub on_remote: Option<PrepareRemote>,
    /// The program's own endpoints, for components that fetch from them.
    pub own_http: OwnHttp,
    /// The collectors that share targets with this one.
    pub cluster: Cluster,
    /// Limits the large responses of all components. Controllers of one process share it.
    pub large_responses: LargeResponses,
    /// Hub of live debugging for all components.
    pub live: LiveHub,
    /// Id of the configuration, a prefix of the ids of its components. It is empty for the program's own configuration.
    /// A remote configuration has a nonempty id, and may not contain blocks that configure the program.
    pub module: Arc<str>,
}

impl Options {
    /// Returns Alloy's defaults, with metrics in a new scope.
    pub fn new(storage_path: impl Into<PathBuf>) -> Self {
        Self {
            storage_path: storage_path.into(),
            metrics: Scope::new(),
            user_agent: concat!("alluvium/", env!("CARGO_PKG_VERSION")).into(),
            stability: Stability::GenerallyAvailable,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            restart: RestartPolicy::default(),
            shutdown_deadline: Duration::from_mins(10),
            on_logging: Arc::new(|_| {}),
            on_http: Arc::new(no_listener),
            on_remote: None,
            own_http: OwnHttp::default(),
            cluster: Cluster::default(),
            large_responses: LargeResponses::default(),
            live: LiveHub::default(),
            module: Arc::default(),
        }
    }
}

/// Result of the most recent load.
#[derive(Debug, Clone)]
pub struct LastLoad {
    /// When the load ended, successfully or not.
    pub time: SystemTime,
    /// The errors; `None` if the load succeeded.
    pub error: Option<Diagnostics>,
}

/// Runs components. Clones are handles to the same controller.
#[derive(Clone)]
pub struct Controller {
    inner: Arc<Inner>,
}

struct Inner {
    loader: Loader,
    restart: RestartPolicy,
    shutdown_deadline: Duration,
    /// Locked from the first step of a load to the last.
    loading: tokio::sync::Mutex<Phase>,
    last_load: Mutex<Option<LastLoad>>,
    /// The configuration in force; locked by loads.
    in_force: Mutex<Option<ActiveConfiguration>>,
    /// True once a load has succeeded.
    loaded: AtomicBool,
}

/// A configuration in force.
struct ActiveConfiguration {
    sources: Arc<Vec<Source>>,
    hash: String,
    warnings: Diagnostics,
}

enum Phase {
    Open,
    /// The controller has stopped and accepts no more loads.
    Closed,
}

impl Controller {
    /// Creates a controller without a configuration. `definitions` are the components that it may run.
    pub fn new(definitions: &[&'static dyn AnyDefinition], options: Options) -> Self {
        let changes = Arc::new(Changes::default());
        let running: Arc<RwLock<Arc<Running>>> = Arc::default();
        // The registry may outlive the controller and must not keep the controller's components alive.
        let weak = Arc::downgrade(&running);
        let look = move || weak.upgrade().map(|running| running.read().clone()).unwrap_or_default();
        let looked = look.clone();
        let metrics = Metrics::register(
            &options.metrics,
            &options.version,
            &options.module,
            move || count_by_health(&look()),
            move || connections(&looked()),
        );
        let inner = Inner {
            loader: Loader {
                engine: Engine {
                    module: options.module,
                    catalog: Catalog::new(definitions),
                    stability: options.stability,
                    common: Common {
                        constants: constants(&options.version),
                        defaults: Defaults::default(),
                    },
                    metrics,
                    context: ContextParts {
                        storage_path: options.storage_path,
                        metrics: options.metrics,
                        user_agent: options.user_agent,
                        live: options.live,
                        changes: changes.clone(),
                        names: Arc::default(),
                        own_http: options.own_http,
                        cluster: options.cluster,
                        large_responses: options.large_responses,
                    },
                },
                on_logging: options.on_logging,
                on_http: options.on_http,
                on_remote: options.on_remote,
                changes,
                changing: Mutex::new(()),
                in_force: running,
            },
            restart: options.restart,
            shutdown_deadline: options.shutdown_deadline,
            loading: tokio::sync::Mutex::new(Phase::Open),
            last_load: Mutex::new(None),
            in_force: Mutex::new(None),
            loaded: AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Loads a configuration of several files, each with a name and a text, for the first time or as a reload. On an
    /// error nothing has changed. On success it returns the warnings, and the components are running.
    pub async fn load<P, T>(&self, sources: Vec<(P, T)>) -> Result<Diagnostics, Diagnostics>
    where
        P: Into<Arc<str>>,
        T: Into<Arc<str>>,
    {
        let sources = sources.into_iter().map(|(path, text)| Source::new(path, text));
        self.load_sources(Arc::new(sources.collect())).await
    }

    async fn load_sources(&self, sources: Arc<Vec<Source>>) -> Result<Diagnostics, Diagnostics> {
        let phase = self.inner.loading.lock().await;
        let first = sources.first().cloned().unwrap_or_else(|| Source::new("", ""));
        let result = if matches!(*phase, Phase::Closed) {
            let message = "the controller has stopped";
            Err(Diagnostic::error(codes::BUILD_FAILED, &first, Span::default(), message).into())
        } else if let Some(warnings) = self.inner.unchanged(&sources) {
            return Ok(warnings);
        } else {
            self.attempt(LoadRequest::Load(sources.clone()), &first).await
        };
        *self.inner.last_load.lock() = Some(LastLoad {
            time: SystemTime::now(),
            error: result.as_ref().err().cloned(),
        });
        let swapped = match result {
            Ok(swapped) => swapped,
            Err(diagnostics) => {
                self.inner.loader.engine.metrics.loaded(None);
                return Err(diagnostics);
            }
        };
        self.inner.loaded.store(true, Ordering::Relaxed);
        let hash = hash(&sources);
        self.inner.loader.engine.metrics.loaded(Some(&hash));
        let warnings = swapped.warnings.clone();
        *self.inner.in_force.lock() = Some(ActiveConfiguration {
            sources,
            hash,
            warnings: warnings.clone(),
        });
        self.stop_and_start(swapped).await;
        drop(phase);
        Ok(warnings)
    }

    /// Prepares a load and swaps it in. If a component cannot be built or updated, this function stops the components
    /// that hold an exclusive resource and that the new configuration either does not contain or contains with other
    /// arguments. Then it tries once more. The second attempt rebuilds the components with other arguments, so that two
    /// components can swap resources. If the second attempt fails as well, the stopped components are started again.
    async fn attempt(&self, request: LoadRequest, first: &Source) -> Result<SwapResult, Diagnostics> {
        let once = async |replace: BTreeSet<Arc<str>>| {
            let (inner, request) = (self.inner.clone(), request.clone());
            // Builds and updates are blocking functions that may take a while, and must not block the runtime.
            let result = tokio::task::spawn_blocking(move || inner.loader.prepare_and_swap(&request, &replace)).await;
            result.unwrap_or_else(|error| {
                let message = format!("a component panicked while the configuration was loaded: {error}");
                let diagnostic = Diagnostic::error(codes::BUILD_FAILED, first, Span::default(), message);
                Err(RefusedLoad::from(Diagnostics::from(diagnostic)))
            })
        };
        let refused = match once(BTreeSet::new()).await {
            Ok(swapped) => return Ok(swapped),
            Err(refused) if refused.blocking.is_empty() => return Err(refused.diagnostics),
            Err(refused) => refused,
        };
        let blocking = refused.blocking;
        let old = self.inner.loader.running();
        stop_all(&old.root, blocking.iter().cloned(), self.inner.shutdown_deadline).await;
        let second = once(refused.to_replace).await;
        if second.is_err() {
            for node in blocking {
                node.start(self.inner.restart);
            }
        }
        second.map_err(|refused| refused.diagnostics)
    }

    /// Stops the components that a load has removed and starts the new ones.
    async fn stop_and_start(&self, swapped: SwapResult) {
        stop_all(&swapped.old.root, swapped.plan.stop, self.inner.shutdown_deadline).await;
        for node in swapped.plan.start {
            node.start(self.inner.restart);
        }
    }

    /// Records a load that failed before it reached the controller, because the configuration could not be read.
    pub fn load_failed(&self, path: &str, message: &str) {
        let source = Source::new(path, "");
        let diagnostic = Diagnostic::error(codes::BUILD_FAILED, &source, Span::default(), message);
        *self.inner.last_load.lock() = Some(LastLoad {
            time: SystemTime::now(),
            error: Some(diagnostic.into()),
        });
        self.inner.loader.engine.metrics.loaded(None);
    }

    /// Propagates changed exports until `shutdown`, then stops all components; a component stops before the components
    /// that it refers to. After the shutdown, no load succeeds.
    pub async fn run(&self, shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = self.inner.loader.changes.changed() => {}
            }
            let inner = self.inner.clone();
            match tokio::task::spawn_blocking(move || inner.loader.propagate_changes()).await {
                Ok(causes) => {
                    for cause in causes {
                        self.reshape(cause).await;
                    }
                }
                Err(error) => tracing::error!(%error, "a component panicked during an update of its arguments"),
            }
        }
        let mut phase = self.inner.loading.lock().await;
        *phase = Phase::Closed;
        let running = self.inner.loader.running();
        let nodes = running.nodes.values().cloned();
        stop_all(&running.root, nodes, self.inner.shutdown_deadline).await;
    }

    /// Builds a new tree, because the items of a `foreach`, or the arguments or texts of an import, have changed. All
    /// or nothing, like a load.
    async fn reshape(&self, cause: Arc<str>) {
        let _phase = self.inner.loading.lock().await;
        let nowhere = Source::new(cause.clone(), "");
        match self.attempt(LoadRequest::Shape(cause.clone()), &nowhere).await {
            Ok(swapped) => {
                tracing::info!(id = %cause, "modules updated");
                self.stop_and_start(swapped).await;
            }
            Err(diagnostics) => {
                tracing::error!(id = %cause, error = %diagnostics, "cannot update the modules; the previous ones \
                    stay");
                let message = format!("the new modules could not be loaded: {diagnostics}");
                self.inner
                    .loader
                    .running()
                    .set_evaluation(&cause, HealthState::Unhealthy, message);
            }
        }
    }

    /// True after the first successful load, when the program is ready.
    pub fn ready(&self) -> bool {
        self.inner.loaded.load(Ordering::Relaxed)
    }

    /// Returns the ids of components that are unhealthy or have exited, including those in modules.
    pub fn unhealthy(&self) -> Vec<String> {
        self.inner.loader.running().unhealthy()
    }

    /// True if no component is unhealthy or has exited.
    pub fn healthy(&self) -> bool {
        self.unhealthy().is_empty()
    }

    /// Returns the result of the last load; `None` before the first.
    pub fn last_load(&self) -> Option<LastLoad> {
        self.inner.last_load.lock().clone()
    }

    /// Returns the program's own endpoints, as components use them.
    pub fn own_http(&self) -> &OwnHttp {
        &self.inner.loader.engine.context.own_http
    }

    pub(crate) fn live_hub(&self) -> &LiveHub {
        &self.inner.loader.engine.context.live
    }

    pub(crate) fn running(&self) -> Arc<Running> {
        self.inner.loader.running()
    }
}

impl Inner {
    /// Returns the warnings of the configuration in force if it consists of these texts and a load would change
    /// nothing. (Changed exports are propagated without a load.) Returns `None` if a load is needed: after a failed
    /// evaluation, and if there is a block `http` or `remotecfg`, because only a load reads its certificates.
    fn unchanged(&self, sources: &[Source]) -> Option<Diagnostics> {
        let in_force = self.in_force.lock();
        let in_force = in_force
            .as_ref()
            .filter(|configuration| *configuration.sources == sources)?;
        let running = self.loader.running();
        let read_again = ["http", "remotecfg"]
            .iter()
            .any(|name| running.root.graph.settings.contains_key(name));
        if !running.is_well_evaluated() || read_again {
            return None;
        }
        *self.last_load.lock() = Some(LastLoad {
            time: SystemTime::now(),
            error: None,
        });
        self.loader.engine.metrics.loaded(Some(&in_force.hash));
        Some(in_force.warnings.clone())
    }
}

/// Dropping a controller that was not stopped aborts its tasks.
impl Drop for Inner {
    fn drop(&mut self) {
        for node in self.loader.running().nodes.values() {
            node.abort();
        }
    }
}

fn hash(sources: &[Source]) -> String {
    let mut hasher = Sha256::new();
    for source in sources {
        hasher.update(source.text().as_bytes());
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

/// Returns the references between nodes by id, including those in modules.
fn connections(running: &Running) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    running.root.walk(&mut |instance, index, _| {
        let Some(node) = instance.graph.nodes.get(index) else {
            return;
        };
        let id = |index: usize| instance.global_id(index).map(|id| id.to_string());
        for target in &node.references {
            pairs.extend(id(index).zip(id(*target)));
        }
    });
    pairs
}

/// Returns Alloy's name of a health state.
pub(crate) fn health_name(state: HealthState) -> &'static str {
    match state {
        HealthState::Healthy => "healthy",
        HealthState::Unknown => "unknown",
        HealthState::Unhealthy => "unhealthy",
        HealthState::Exited => "exited",
    }
}
