//! `alluvium run`: runs the collector, with Alloy's flags and defaults.
//!
//! In: a command line for Alloy. Flags of supported features work. A flag of an unsupported feature is accepted with
//! its default value. With any other value, the command fails with an error that names the flag. Environment variables
//! that tune Go's runtime have no effect; if they are set, they are logged.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;

use crate::app::USER_AGENT;
use crate::app::collector::{self, CollectorOptions};
use crate::app::foreign::{Conversion, Format, Problems};
use crate::app::signals;
use crate::cli::common::flag_error::FlagError;
use crate::cli::common::rights::RightsArgs;
use crate::cli::services::cluster::ClusterArgs;
use crate::cli::services::go::{GoFlag as _, go_duration};
use alluvium_admin::browser::{AllowedHosts, host_name};
use alluvium_telemetry::logs::{LogHandle, Settings};

/// Arguments of `alluvium run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  alluvium run config/local.alloy\n\nReload with SIGHUP or `curl -X POST \
        localhost:12345/-/reload`; a failed reload changes nothing."
)]
pub struct RunArgs {
    /// Configuration file, or a folder whose configuration files are read as one configuration.
    pub path: PathBuf,
    /// Flags of the HTTP endpoints.
    #[command(flatten)]
    pub server: ServerArgs,
    /// Flags of the configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Flags of individual features.
    #[command(flatten)]
    pub feature: FeatureArgs,
    /// Folder for the collector's own files, among them the queues of `pyroscope.write`.
    #[arg(long = "storage.path", default_value = "data-alloy/", help_heading = None)]
    pub storage_path: PathBuf,
    /// Minimum stability that a component must have.
    #[arg(
        long = "stability.level", default_value = "generally-available",
        value_parser = ["generally-available", "public-preview", "experimental"], help_heading = None
    )]
    pub stability: String,
    /// Accepted for compatibility with Alloy; the collector never reports its usage.
    #[arg(long = "disable-reporting", go_bool = false, help_heading = None)]
    pub disable_reporting: bool,
    /// Priority of the process on Windows. Only `normal` is supported.
    #[arg(long = "windows.priority", default_value = "normal", help_heading = None)]
    pub windows_priority: String,
    #[command(flatten)]
    pub rights: RightsArgs,
}

/// Flags of the collector's HTTP server.
#[derive(Debug, Args)]
#[command(next_help_heading = "HTTP server")]
pub struct ServerArgs {
    /// Address of the collector's own HTTP endpoints.
    #[arg(long = "server.http.listen-addr", default_value = "127.0.0.1:12345")]
    pub listen: String,
    /// Additional host name under which browsers may reach the endpoints; may be repeated (not in Alloy).
    #[arg(long = "http.allowed-host", value_name = "HOST", value_parser = host_name)]
    pub allowed_hosts: Vec<String>,
    /// Address under which components reach the endpoints in the process, without a socket, to profile the collector
    /// itself.
    #[arg(long = "server.http.memory-addr", default_value = collector::MEMORY_ADDRESS, value_parser = host_and_port)]
    pub memory_addr: String,
    /// Path prefix of the web page and of its JSON API.
    #[arg(long = "server.http.ui-path-prefix", default_value = "/")]
    pub ui_path_prefix: String,
    /// Serve the collector's own profiles under /debug/pprof.
    #[arg(long = "server.http.enable-pprof", go_bool = true)]
    pub enable_pprof: bool,
    /// Do not serve /-/support.
    #[arg(long = "server.http.disable-support-bundle", go_bool = false)]
    pub disable_support_bundle: bool,
    /// GraphQL. Not supported: only `false` is accepted.
    #[arg(long = "server.http.enable-graphql", go_bool = false)]
    pub enable_graphql: bool,
    /// The web page of GraphQL. Not supported: only `false` is accepted.
    #[arg(long = "server.http.enable-graphql-playground", go_bool = false)]
    pub enable_graphql_playground: bool,
}

/// Flags for reading the configuration.
#[derive(Debug, Args)]
#[command(next_help_heading = "Configuration")]
pub struct ConfigArgs {
    /// Format of the configuration: `alloy`, or `conprof`, `coroot`, `kube-profefe`, `parca` or `prometheus`. If the
    /// format is not `alloy`, the configuration is converted at each load.
    #[arg(long = "config.format", default_value = "alloy")]
    pub format: String,
    /// Skip and log the parts of a configuration that cannot be converted, instead of refusing the configuration.
    #[arg(long = "config.bypass-conversion-errors", go_bool = false)]
    pub bypass_conversion_errors: bool,
    /// Arguments of the converter. `push-url=URL` sets the server that receives the profiles; it defaults to
    /// http://localhost:4040.
    #[arg(long = "config.extra-args", default_value = "")]
    pub extra_args: String,
    /// Reload automatically when the configuration on disk changes (not in Alloy).
    #[arg(long = "config.watch", go_bool = false)]
    pub watch: bool,
    /// Time without a further change before `--config.watch` reads the files.
    #[arg(long = "config.watch-settle", default_value = "500ms", value_parser = go_duration)]
    pub watch_settle: Duration,
}

/// Flags of individual features.
#[derive(Debug, Args)]
#[command(next_help_heading = "Features")]
pub struct FeatureArgs {
    /// Maximum time for components to stop.
    #[arg(long = "feature.component-shutdown-deadline", default_value = "10m", value_parser = go_duration)]
    pub shutdown_deadline: Duration,
    /// Alloy's community components. Not supported: only `false` is accepted.
    #[arg(long = "feature.community-components.enabled", go_bool = false)]
    pub community_components: bool,
    /// Direct fan-out of metrics. Not supported: only `false` is accepted.
    #[arg(long = "feature.prometheus.direct-fanout.enabled", go_bool = false)]
    pub direct_fanout: bool,
    /// Rules for the names of metrics and labels. Accepted without effect, as in Alloy.
    #[arg(
        long = "feature.prometheus.metric-validation-scheme", default_value = "legacy",
        value_parser = ["legacy", "utf-8"]
    )]
    pub metric_validation_scheme: String,
}

/// Runs the collector until SIGINT or SIGTERM.
pub(crate) async fn run(args: RunArgs, logs: LogHandle, flags: Settings) -> anyhow::Result<()> {
    check(&args)?;
    mention(&|name| std::env::var(name).ok());
    let options = CollectorOptions {
        user_agent: user_agent(std::env::var("ALLOY_DEPLOY_MODE").ok().as_deref()),
        node_name: args.cluster.name_of_this(),
        cluster: args.cluster.options(),
        flags: shown(&args),
        support_bundle: !args.server.disable_support_bundle,
        watch: args.config.watch.then_some(args.config.watch_settle),
        conversion: conversion(&args.config)?,
        config_path: args.path,
        listen: args.server.listen,
        allowed_hosts: AllowedHosts::new(args.server.allowed_hosts),
        memory_address: args.server.memory_addr,
        enable_pprof: args.server.enable_pprof,
        ui_path_prefix: args.server.ui_path_prefix,
        storage_path: args.storage_path,
        stability: collector::parse_stability(&args.stability)?,
        shutdown_deadline: args.feature.shutdown_deadline,
    };
    Box::pin(collector::run(options, logs, flags, signals::shutdown_signal()?)).await
}

/// Builds the conversion to Alloy text; `None` when the configuration is Alloy text.
fn conversion(config: &ConfigArgs) -> anyhow::Result<Option<Conversion>> {
    if config.format == "alloy" {
        return Ok(None);
    }
    let Ok(format) = config.format.parse::<Format>() else {
        bail!(
            "--config.format={}: the formats are alloy, {}",
            config.format,
            Format::names().join(", ")
        );
    };
    let problems = if config.bypass_conversion_errors {
        Problems::Note
    } else {
        Problems::Refuse
    };
    let conversion = Conversion::with_arguments(format, &config.extra_args, problems);
    conversion.context("--config.extra-args").map(Some)
}

/// Returns an error that names the flag if a flag enables an unsupported feature.
fn check(args: &RunArgs) -> anyhow::Result<()> {
    let (server, cluster, feature) = (&args.server, &args.cluster, &args.feature);
    let absent = [
        (
            server.enable_graphql,
            "server.http.enable-graphql",
            "there is no GraphQL endpoint",
        ),
        (
            server.enable_graphql_playground,
            "server.http.enable-graphql-playground",
            "there is no GraphQL endpoint",
        ),
        (
            feature.community_components,
            "feature.community-components.enabled",
            "there are no community components",
        ),
        (
            feature.direct_fanout,
            "feature.prometheus.direct-fanout.enabled",
            "components do not forward metrics",
        ),
        (
            args.windows_priority != "normal",
            "windows.priority",
            "this program does not run on Windows",
        ),
    ];
    for (is_given, name, reason) in absent {
        if is_given {
            bail!("--{name}: not supported: {reason}; leave the flag out");
        }
    }
    cluster.check()
}

/// Environment variables of Alloy that tune Go's runtime.
const OF_GO: [&str; 4] = [
    "AUTOMEMLIMIT",
    "GOMEMLIMIT",
    "PPROF_BLOCK_PROFILING_RATE",
    "PPROF_MUTEX_PROFILING_PERCENT",
];

/// Logs the variables of [`OF_GO`] that are set, because they have no effect here.
fn mention(environment: &dyn Fn(&str) -> Option<String>) {
    for variable in OF_GO.iter().filter(|name| environment(name).is_some()) {
        tracing::info!(
            variable,
            "the variable tunes the runtime of Go programs and has no effect here"
        );
    }
}

/// Returns the `User-Agent` in Alloy's format, with the deploy mode after the operating system.
fn user_agent(deploy_mode: Option<&str>) -> String {
    match deploy_mode {
        Some(mode @ ("operator" | "helm" | "docker" | "deb" | "rpm" | "brew")) => {
            format!("{USER_AGENT} ({}; {mode})", std::env::consts::OS)
        }
        _ => USER_AGENT.to_owned(),
    }
}

/// Returns the effective flags as `name=value`, for the support bundle. None of them is a secret.
fn shown(args: &RunArgs) -> Vec<String> {
    let (server, config, feature) = (&args.server, &args.config, &args.feature);
    let duration = |value: Duration| alluvium_base::duration::format(value);
    let own = vec![
        format!("config.bypass-conversion-errors={}", config.bypass_conversion_errors),
        format!("config.extra-args={}", config.extra_args),
        format!("config.format={}", config.format),
        format!("config.watch={}", config.watch),
        format!("config.watch-settle={}", duration(config.watch_settle)),
        format!("disable-reporting={}", args.disable_reporting),
        format!("feature.community-components.enabled={}", feature.community_components),
        format!(
            "feature.component-shutdown-deadline={}",
            duration(feature.shutdown_deadline)
        ),
        format!("feature.prometheus.direct-fanout.enabled={}", feature.direct_fanout),
        format!(
            "feature.prometheus.metric-validation-scheme={}",
            feature.metric_validation_scheme
        ),
        format!("server.http.disable-support-bundle={}", server.disable_support_bundle),
        format!("server.http.enable-graphql={}", server.enable_graphql),
        format!(
            "server.http.enable-graphql-playground={}",
            server.enable_graphql_playground
        ),
        format!("http.allowed-host={}", server.allowed_hosts.join(",")),
        format!("server.http.enable-pprof={}", server.enable_pprof),
        format!("server.http.listen-addr={}", server.listen),
        format!("keep-rights={}", args.rights.keep_rights),
        format!("server.http.memory-addr={}", server.memory_addr),
        format!("server.http.ui-path-prefix={}", server.ui_path_prefix),
        format!("stability.level={}", args.stability),
        format!("storage.path={}", args.storage_path.display()),
        format!("windows.priority={}", args.windows_priority),
    ];
    args.cluster.shown().into_iter().chain(own).collect()
}

fn host_and_port(text: &str) -> Result<String, FlagError> {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    match port.and_then(|(_, port)| port.parse::<u16>().ok()) {
        Some(_) => Ok(text.to_owned()),
        None => Err(FlagError::Address),
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
