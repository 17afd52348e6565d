//! The collector: a controller for all components, HTTP endpoints, and reload on SIGHUP, over HTTP or on file changes.
//!
//! The first load must succeed. If a later load fails, nothing changes, and the log, the HTTP response and the metrics
//! report the failure. The page and its API are under the prefix of `--server.http.ui-path-prefix`. As in Alloy, all
//! other routes are at the root.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::app::foreign::Conversion;
use crate::app::protection::{Protection, from_within};
use crate::app::reload::{Reloader, shared};
use crate::app::remote::{MODULE, Remote};
use crate::app::sources::Sources;
use crate::app::support::SupportBundle;
use crate::app::web::{CollectorWeb, Controllers};
use crate::app::{USER_AGENT, live};
use alluvium_admin::browser::AllowedHosts;
use alluvium_admin::listen::{ListenOptions, Listener};
use alluvium_admin::profiling::Profiling;
use alluvium_admin::{AdminState, Support};
use alluvium_base::Shutdown;
use alluvium_base::file::{create_folders, warn_of_open_folder};
use alluvium_base::net::is_this_machine;
use alluvium_cluster::{Agent, Cluster};
use alluvium_pipeline::check::settings::http::HttpSettings;
use alluvium_pipeline::check::settings::remote::RemoteSettings;
use alluvium_pipeline::component::Stability;
use alluvium_pipeline::component::large_responses::LargeResponses;
use alluvium_pipeline::component::live::LiveHub;
use alluvium_pipeline::component::own_http::OwnHttp;
use alluvium_pipeline::{Controller, LoggingSettings, Options};
use alluvium_telemetry::logs::{LogHandle, Settings};
use alluvium_telemetry::metrics::Scope;
use alluvium_telemetry::process::{ProcessMetrics, ResourceMetrics};

/// Default address at which components reach the collector's HTTP endpoints without a socket; the same as in Alloy.
pub(crate) const MEMORY_ADDRESS: &str = "alloy.internal:12345";

/// Options of a collector, from its flags.
#[derive(Debug, Clone)]
pub(crate) struct CollectorOptions {
    pub config_path: PathBuf,
    /// Converts the configuration to Alloy text. `None` if the configuration is Alloy text already.
    pub conversion: Option<Conversion>,
    /// `host:port` of the HTTP endpoints.
    pub listen: String,
    /// Additional host names by which browsers may address the port. The names of this machine are always allowed.
    pub allowed_hosts: AllowedHosts,
    /// `host:port` at which components reach the HTTP endpoints without a socket.
    pub memory_address: String,
    /// If true, `/debug/pprof` is served.
    pub enable_pprof: bool,
    /// If true, `/-/support` is served.
    pub support_bundle: bool,
    /// Path prefix of the page and its API.
    pub ui_path_prefix: String,
    /// Time for which changed files must stay the same before they are reloaded. If `None`, the collector does not
    /// watch the files.
    pub watch: Option<Duration>,
    /// Name of this collector. If empty, the host name is used.
    pub node_name: String,
    /// Settings for sharing targets with other collectors. `None` if this collector does not share targets.
    pub cluster: Option<alluvium_cluster::Options>,
    /// `User-Agent` of the components' requests.
    pub user_agent: String,
    /// The effective flags as `name=value`, for the support bundle.
    pub flags: Vec<String>,
    /// Folder for the files of components.
    pub storage_path: PathBuf,
    /// Lowest stability level that a component may have.
    pub stability: Stability,
    /// Time limit for components to stop.
    pub shutdown_deadline: Duration,
}

impl CollectorOptions {
    #[cfg_attr(not(feature = "server"), allow(dead_code, reason = "only the demo and tests use it"))]
    pub(crate) fn new(config_path: impl Into<PathBuf>, storage_path: impl Into<PathBuf>) -> Self {
        Self {
            config_path: config_path.into(),
            conversion: None,
            listen: "127.0.0.1:12345".to_owned(),
            allowed_hosts: AllowedHosts::default(),
            memory_address: MEMORY_ADDRESS.to_owned(),
            enable_pprof: true,
            support_bundle: true,
            ui_path_prefix: "/".to_owned(),
            watch: None,
            node_name: String::new(),
            cluster: None,
            user_agent: USER_AGENT.to_owned(),
            flags: Vec::new(),
            storage_path: storage_path.into(),
            stability: Stability::GenerallyAvailable,
            shutdown_deadline: Duration::from_mins(10),
        }
    }
}

/// Parses the value of `--stability.level`.
pub(crate) fn parse_stability(text: &str) -> anyhow::Result<Stability> {
    match text {
        "generally-available" => Ok(Stability::GenerallyAvailable),
        "public-preview" => Ok(Stability::PublicPreview),
        "experimental" => Ok(Stability::Experimental),
        _ => bail!("unknown stability `{text}`: expected generally-available, public-preview or experimental"),
    }
}

/// Returns a controller for all components. The `logging` block of the configuration configures `logs`. If there is no
/// such block, the settings of the command line apply (`flags`). This controller has no listener and requests no remote
/// configuration.
#[cfg_attr(not(feature = "server"), expect(dead_code, reason = "only the demo uses it"))]
pub(crate) fn controller(options: &CollectorOptions, metrics: Scope, logs: LogHandle, flags: Settings) -> Controller {
    let settings = Options {
        on_logging: Arc::new(move |requested: &LoggingSettings| apply_logging(&logs, requested, flags)),
        ..engine(options, metrics)
    };
    Controller::new(alluvium_components::ALL, settings)
}

/// Returns the engine options that all controllers share.
fn engine(options: &CollectorOptions, metrics: Scope) -> Options {
    Options {
        metrics,
        user_agent: Arc::from(options.user_agent.as_str()),
        stability: options.stability,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        shutdown_deadline: options.shutdown_deadline,
        ..Options::new(&options.storage_path)
    }
}

/// Returns the controller that runs the configuration files, and a [`Remote`], which runs the remote configuration with
/// another controller. The `http` block of the files configures `protection`. Both controllers share targets with the
/// same cluster.
fn controllers(
    options: &CollectorOptions,
    cluster: &Cluster,
    protection: &Protection,
    metrics: &Scope,
    logs: LogHandle,
    flags: Settings,
) -> (Controller, Remote) {
    let (own_http, live) = (OwnHttp::new(&options.memory_address), LiveHub::default());
    let large_responses = LargeResponses::default();
    let remote = Options {
        own_http: own_http.clone(),
        cluster: cluster.clone(),
        live: live.clone(),
        large_responses: large_responses.clone(),
        module: MODULE.into(),
        ..engine(options, metrics.clone())
    };
    let remote = Remote::new(
        Controller::new(alluvium_components::ALL, remote),
        &options.config_path,
        &options.storage_path,
        &options.user_agent,
        metrics,
    );
    let (protection, remote_handle) = (protection.clone(), remote.clone());
    let settings = Options {
        on_logging: Arc::new(move |requested: &LoggingSettings| apply_logging(&logs, requested, flags)),
        on_http: Arc::new(move |requested: &HttpSettings| protection.prepare(requested)),
        on_remote: Some(Arc::new(move |settings: Option<&RemoteSettings>| {
            remote_handle.prepare(settings)
        })),
        own_http,
        cluster: cluster.clone(),
        live,
        large_responses,
        ..engine(options, metrics.clone())
    };
    (Controller::new(alluvium_components::ALL, settings), remote)
}

/// Runs a collector until `shutdown`.
pub(crate) async fn run(
    options: CollectorOptions,
    logs: LogHandle,
    flags: Settings,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    // The configuration is read before the port opens, so that errors in the configuration are reported even if the
    // port is taken.
    let sources = Sources::new(&options.config_path, options.conversion.clone());
    let texts = sources.read()?;
    let metrics = Scope::new();
    metrics.register_collector(ProcessMetrics::new());
    metrics.register_collector(ResourceMetrics::new());
    let protection = Protection::default();
    let listen = ListenOptions {
        allowed_hosts: options.allowed_hosts.clone(),
        ..ListenOptions::default()
    };
    let listener = Listener::bind(&options.listen, listen).await?;
    let member = member(&options, listener.local_addr(), &metrics).await?;
    let cluster = member.as_ref().map(Agent::cluster).unwrap_or_default();
    let (controller, remote) = controllers(&options, &cluster, &protection, &metrics, logs.clone(), flags);
    create_folders(&options.storage_path)
        .and_then(|()| warn_of_open_folder(&options.storage_path))
        .with_context(|| format!("cannot create the storage folder {}", options.storage_path.display()))?;
    let reloader = Arc::new(Reloader::new(controller.clone(), sources));
    if reloader.load(shared(texts)).await.is_err() {
        bail!(
            "could not perform the initial load successfully: the configuration {} has errors",
            options.config_path.display()
        );
    }
    let address = listener.local_addr();
    tracing::info!(%address, config = %options.config_path.display(), "collecting");
    if !is_this_machine(address.ip()) && !protection.has_password() {
        tracing::warn!(
            %address,
            "other machines can reach this port without a password: configure http > auth, or listen \
             on 127.0.0.1"
        );
    }
    let controllers = Controllers {
        own: controller.clone(),
        remote: Some(remote.controller().clone()),
    };
    let routes = Routes {
        controllers: controllers.clone(),
        remote: remote.clone(),
        reloader: reloader.clone(),
        web: Arc::new(CollectorWeb {
            controllers,
            node_name: node_name(&options),
            address,
            cluster,
        }),
        metrics,
        logs,
    };
    // The same guard applies to requests over the port and to requests from components.
    let routes = protection.guard(routes.build(&options, &shutdown));
    controller.own_http().set(from_within(routes.clone()));
    let http = tokio::spawn(listener.with_tls(protection.tls()).serve(routes, shutdown.clone()));
    tokio::spawn(reloader.clone().on_hangup(shutdown.clone())?);
    if let Some(settle) = options.watch {
        tokio::spawn(reloader.on_change(settle, shutdown.clone()));
    }
    let sharing = async {
        if let Some(member) = member {
            member.run(shutdown.clone()).await;
        }
    };
    tokio::join!(sharing, controller.run(shutdown.clone()), remote.run(shutdown.clone()));
    http.abort();
    tracing::info!("stopped");
    Ok(())
}

/// Returns the cluster member of this collector, if the collector belongs to a cluster. `http` is the address of the
/// collector's HTTP endpoints.
async fn member(
    options: &CollectorOptions,
    http: SocketAddr,
    metrics: &Scope,
) -> Result<Option<Agent>, alluvium_cluster::ClusterError> {
    match &options.cluster {
        Some(cluster) => Agent::bind(cluster.clone(), http, metrics).await.map(Some),
        None => Ok(None),
    }
}

/// Parts from which the HTTP endpoints are built.
struct Routes {
    controllers: Controllers,
    remote: Remote,
    reloader: Arc<Reloader>,
    web: Arc<CollectorWeb>,
    metrics: Scope,
    logs: LogHandle,
}

impl Routes {
    fn build(self, options: &CollectorOptions, shutdown: &Shutdown) -> axum::Router {
        let (ready, healthy, noted) = (
            self.controllers.own.clone(),
            self.controllers.clone(),
            self.controllers.clone(),
        );
        let reloader = self.reloader.clone();
        // `/debug/pprof` and `/-/support` share the profiler, because only one CPU profile can run at a time.
        let profiling = Profiling::new(shutdown.clone());
        let state = AdminState {
            metrics: self.metrics.clone(),
            ready: Arc::new(move || (!ready.ready()).then(|| "Alluvium is not ready.".to_owned())),
            healthy: Arc::new(move || {
                let ids: Vec<String> = healthy.iter().flat_map(Controller::unhealthy).collect();
                (!ids.is_empty()).then(|| format!("unhealthy components: {}", ids.join(", ")))
            }),
            note: Arc::new(move || {
                let remote = noted.remote.as_ref();
                let remote = remote.map(|remote| last_load(remote, "load of the remote configuration"));
                last_load(&noted.own, "last reload") + &remote.unwrap_or_default()
            }),
            profiling: options.enable_pprof.then(|| profiling.clone()),
            reload: Some(Arc::new(move || {
                let reloader = reloader.clone();
                Box::pin(async move { Ok(reloader.reload("http").await?) })
            })),
            support: options
                .support_bundle
                .then(|| self.support(profiling, options.flags.clone())),
        };
        let page = alluvium_admin::web::router(self.web.clone())
            .merge(alluvium_admin::live::router(live::state(&self.controllers, shutdown)));
        alluvium_admin::router(state)
            .merge(alluvium_admin::web::component_router(self.web))
            .merge(nested(page, &options.ui_path_prefix))
            .merge(alluvium_admin::collector_page::router(&options.ui_path_prefix))
    }

    fn support(&self, profiling: Profiling, flags: Vec<String>) -> Support {
        let bundle = Arc::new(SupportBundle {
            controllers: self.controllers.clone(),
            remote: self.remote.clone(),
            reloader: self.reloader.clone(),
            web: self.web.clone(),
            metrics: self.metrics.clone(),
            profiling,
            logs: self.logs.clone(),
            flags,
            started: Instant::now(),
            taking: tokio::sync::Mutex::default(),
        });
        Arc::new(move |duration| {
            let bundle = bundle.clone();
            Box::pin(async move { bundle.take(duration).await })
        })
    }
}

/// Returns a line for `/-/healthy` if the last load failed, and an empty text otherwise. All components can be healthy
/// nevertheless, because they still run the previous configuration. `subject` names the load.
fn last_load(controller: &Controller, subject: &str) -> String {
    let failed = controller.last_load_view().filter(|load| !load.success);
    failed.map_or_else(String::new, |load| {
        format!(
            "The {subject}, at {}, failed; the previous configuration stays in force.\n",
            load.time
        )
    })
}

fn node_name(options: &CollectorOptions) -> String {
    match options.node_name.as_str() {
        "" => alluvium_base::net::hostname(),
        name => name.to_owned(),
    }
}

/// Applies the `logging` block, or the command line settings if the block has its default values.
fn apply_logging(logs: &LogHandle, requested: &LoggingSettings, flags: Settings) {
    let settings = if *requested == LoggingSettings::default() {
        Ok(flags)
    } else {
        requested
            .level
            .parse()
            .and_then(|level| requested.format.parse().map(|format| Settings { level, format }))
    };
    if let Err(error) = settings.and_then(|settings| logs.apply(settings)) {
        tracing::error!(error = %error, "cannot apply the logging block");
    }
}

fn nested(routes: axum::Router, prefix: &str) -> axum::Router {
    match alluvium_admin::literal(prefix.trim_matches('/')).as_str() {
        "" => routes,
        prefix => axum::Router::new().nest(&format!("/{prefix}"), routes),
    }
}
