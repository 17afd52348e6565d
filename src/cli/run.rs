//! `alluvium run`: the collector. Alloy's flags and defaults; a flag of a feature that is not there is refused by name.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use crate::app::collector::{self, CollectorOptions};
use crate::app::signals;
use crate::telemetry::logs::{LogHandle, Settings};

/// Arguments of `alluvium run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  alluvium run config/alloy-like.river\n\nReload with SIGHUP or `curl -X POST localhost:12345/-/reload`; a reload that fails changes nothing."
)]
pub struct RunArgs {
    /// Configuration file, or a folder whose *.alloy and *.river files are read as one.
    pub path: PathBuf,
    /// Address of the collector's own HTTP endpoints.
    #[arg(long = "server.http.listen-addr", default_value = "127.0.0.1:12345")]
    pub listen: String,
    /// Serve the collector's own profiles under /debug/pprof.
    #[arg(long = "server.http.enable-pprof", default_value_t = true, action = clap::ArgAction::Set)]
    pub enable_pprof: bool,
    /// Prefix of the collector's web paths.
    #[arg(long = "server.http.ui-path-prefix", default_value = "/")]
    pub ui_path_prefix: String,
    /// Folder for the collector's own files, among them the queues of `pyroscope.write`.
    #[arg(long = "storage.path", default_value = "data-alluvium/")]
    pub storage_path: PathBuf,
    /// Least stability that a component must have.
    #[arg(long = "stability.level", default_value = "generally-available", value_parser = ["generally-available", "public-preview", "experimental"])]
    pub stability: String,
    /// Accepted for Alloy's sake; nothing is ever reported.
    #[arg(long = "disable-reporting", num_args = 0..=1, default_missing_value = "true", default_value = "false")]
    pub disable_reporting: bool,
    /// Format of the configuration; only `alloy` is read.
    #[arg(long = "config.format", default_value = "alloy")]
    pub config_format: String,
    /// Clustering; a single node works as in Alloy without it, more nodes are not there yet.
    #[arg(long = "cluster.enabled", num_args = 0..=1, default_missing_value = "true", default_value = "false")]
    pub cluster_enabled: bool,
    /// How long components may take to stop, as a duration.
    #[arg(long = "feature.component-shutdown-deadline", default_value = "5s")]
    pub shutdown_deadline: String,
}

/// Runs until SIGINT or SIGTERM.
pub async fn run(args: RunArgs, logs: LogHandle, flags: Settings) -> anyhow::Result<()> {
    if args.config_format != "alloy" {
        bail!("--config.format={}: only \"alloy\" is read", args.config_format);
    }
    if args.cluster_enabled {
        bail!(
            "--cluster.enabled: clustering is not there yet; leave the flag out, `clustering` blocks behave as one node"
        );
    }
    let options = CollectorOptions {
        config_path: args.path,
        listen: args.listen,
        enable_pprof: args.enable_pprof,
        ui_path_prefix: args.ui_path_prefix,
        storage_path: args.storage_path,
        stability: collector::parse_stability(&args.stability)?,
        shutdown_deadline: crate::base::duration::parse(&args.shutdown_deadline)?,
    };
    collector::run(options, logs, flags, signals::shutdown_signal()?).await
}
