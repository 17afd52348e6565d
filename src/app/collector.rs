//! The collector: a controller over all components, its HTTP endpoints, reload by signal and by HTTP.
//!
//! The first load must succeed; a later one that fails changes nothing and is told in the log, in the answer, and in the metrics.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::admin::{self, AdminState};
use crate::app::{USER_AGENT, live, sources};
use crate::base::net::listen_reason;
use crate::base::{BoxFuture, Shutdown};
use crate::components;
use crate::lang::Diagnostics;
use crate::pipeline::component::Stability;
use crate::pipeline::{Controller, LoggingSettings, Options};
use crate::telemetry::logs::{LogHandle, Settings};
use crate::telemetry::metrics::Scope;
use crate::telemetry::process::ProcessMetrics;
use crate::telemetry::profiling::Profiling;

/// What a collector is started with.
#[derive(Debug, Clone)]
pub struct CollectorOptions {
    /// File or folder.
    pub config_path: PathBuf,
    /// `host:port` of its endpoints.
    pub listen: String,
    /// Whether `/debug/pprof` is served.
    pub enable_pprof: bool,
    /// Prefix of its paths.
    pub ui_path_prefix: String,
    /// Folder of the components' files.
    pub storage_path: PathBuf,
    /// Least stability of what may be used.
    pub stability: Stability,
    /// How long components may take to end.
    pub shutdown_deadline: Duration,
}

/// Reads the flag's value.
pub fn parse_stability(text: &str) -> anyhow::Result<Stability> {
    match text {
        "generally-available" => Ok(Stability::GenerallyAvailable),
        "public-preview" => Ok(Stability::PublicPreview),
        "experimental" => Ok(Stability::Experimental),
        _ => bail!("unknown stability `{text}`; valid are generally-available, public-preview and experimental"),
    }
}

/// A controller over all components whose `logging` block sets `logs`. Without a block, what the command line said stays.
pub fn controller(options: &CollectorOptions, metrics: Scope, logs: LogHandle, flags: Settings) -> Controller {
    let settings = Options {
        metrics,
        user_agent: Arc::from(USER_AGENT),
        stability: options.stability,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        shutdown_deadline: options.shutdown_deadline,
        on_logging: Arc::new(move |asked: &LoggingSettings| apply_logging(&logs, asked, flags)),
        ..Options::new(&options.storage_path)
    };
    Controller::new(components::ALL, settings)
}

/// Runs a collector until `shutdown`.
pub async fn run(
    options: CollectorOptions,
    logs: LogHandle,
    flags: Settings,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    // First of all the configuration: a mistake in it must not need a free port to be seen.
    let texts = sources::read(&options.config_path)?;
    let metrics = Scope::new();
    metrics.register_collector(ProcessMetrics::new());
    let controller = controller(&options, metrics.clone(), logs, flags);
    let listener = TcpListener::bind(&options.listen)
        .await
        .map_err(|error| anyhow::anyhow!("cannot listen on {}: {}", options.listen, listen_reason(&error)))?;
    std::fs::create_dir_all(&options.storage_path)
        .with_context(|| format!("cannot create the storage folder {}", options.storage_path.display()))?;
    match controller.load(texts).await {
        Ok(warnings) => show(&warnings),
        Err(diagnostics) => {
            show(&diagnostics);
            bail!("the configuration {} has errors", options.config_path.display());
        }
    }
    tracing::info!(address = %listener.local_addr()?, config = %options.config_path.display(), "collecting");
    let state = admin_state(&controller, &options, metrics, &shutdown);
    let web = admin::live::router(live::state(&controller, &shutdown));
    let routes = nested(admin::router(state).merge(web), &options.ui_path_prefix)
        .merge(admin::collector_page::router(&options.ui_path_prefix));
    let stopped = shutdown.clone();
    let http = tokio::spawn(async move {
        axum::serve(listener, routes)
            .with_graceful_shutdown(stopped.cancelled_owned())
            .await
    });
    tokio::spawn(reload_on_hangup(
        controller.clone(),
        options.config_path.clone(),
        shutdown.clone(),
    )?);
    controller.run(shutdown).await;
    http.abort();
    tracing::info!("stopped");
    Ok(())
}

fn admin_state(controller: &Controller, options: &CollectorOptions, metrics: Scope, shutdown: &Shutdown) -> AdminState {
    let (ready, healthy, reloading, all, one) = (
        controller.clone(),
        controller.clone(),
        controller.clone(),
        controller.clone(),
        controller.clone(),
    );
    let path = options.config_path.clone();
    AdminState {
        metrics,
        ready: Arc::new(move || {
            if ready.ready() {
                Ok(())
            } else {
                Err("no configuration is loaded yet".to_owned())
            }
        }),
        healthy: Arc::new(move || match healthy.unhealthy() {
            ids if ids.is_empty() => Ok(()),
            ids => Err(format!("unhealthy components: {}", ids.join(", "))),
        }),
        profiling: options.enable_pprof.then(|| Profiling::new(shutdown.clone())),
        reload: Some(Arc::new(move || -> BoxFuture<'static, Result<(), String>> {
            let (controller, path) = (reloading.clone(), path.clone());
            Box::pin(async move { reload(&controller, &path).await })
        })),
        components: Some(Arc::new(move || to_json(&all.components()))),
        component: Some(Arc::new(move |id| {
            one.component(id).map(|component| to_json(&component))
        })),
    }
}

fn to_json(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Reads the configuration again. On an error, whose text is the answer, nothing has changed.
async fn reload(controller: &Controller, path: &Path) -> Result<(), String> {
    let texts = sources::read(path).map_err(|error| {
        tracing::error!(error = %error, "reload failed; the old configuration stays in force");
        format!("{error:#}")
    })?;
    match controller.load(texts).await {
        Ok(warnings) => {
            show(&warnings);
            tracing::info!(config = %path.display(), "reloaded");
            Ok(())
        }
        Err(diagnostics) => {
            show(&diagnostics);
            tracing::error!(
                errors = diagnostics.len(),
                "reload failed; the old configuration stays in force"
            );
            Err(diagnostics.render(false))
        }
    }
}

fn reload_on_hangup(
    controller: Controller,
    path: PathBuf,
    shutdown: Shutdown,
) -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        while let Some(Some(())) = shutdown.run_until_cancelled(hangup.recv()).await {
            // The outcome is in the log and in the metrics.
            let _ = reload(&controller, &path).await;
        }
    })
}

/// What the block asks for; what the command line said where there is no block (its defaults).
fn apply_logging(logs: &LogHandle, asked: &LoggingSettings, flags: Settings) {
    let settings = if *asked == LoggingSettings::default() {
        Ok(flags)
    } else {
        asked
            .level
            .parse()
            .and_then(|level| asked.format.parse().map(|format| Settings { level, format }))
    };
    if let Err(error) = settings.and_then(|settings| logs.apply(settings)) {
        tracing::error!(error = %error, "cannot apply the logging block");
    }
}

fn nested(routes: axum::Router, prefix: &str) -> axum::Router {
    match prefix.trim_matches('/') {
        "" => routes,
        prefix => axum::Router::new().nest(&format!("/{prefix}"), routes),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "diagnostics with excerpts are for people at a terminal"
)]
fn show(diagnostics: &Diagnostics) {
    if !diagnostics.is_empty() {
        eprint!("{}", diagnostics.render(std::io::stderr().is_terminal()));
    }
}
