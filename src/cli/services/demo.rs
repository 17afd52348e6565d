//! `alluvium demo`: server and collector in one process on one data folder. The demo profiles this process and other
//! targets.

use std::path::PathBuf;

use clap::Args;

use crate::app::demo::{self, DemoOptions};
use crate::app::serve_options::{DEFAULT_DATA, DEFAULT_LISTEN};
use crate::app::signals;
use crate::cli::common::rights::RightsArgs;
use crate::cli::services::server_flags::{ServerFlags, prometheus};
use alluvium_admin::browser::{AllowedHosts, host_name};
use alluvium_telemetry::logs::{LogHandle, Settings};

/// Arguments of `alluvium demo`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  alluvium demo --target localhost:9090")]
pub struct DemoArgs {
    /// Address and port of the server and its web page.
    #[arg(long, value_name = "ADDR", default_value = DEFAULT_LISTEN, env = "ALLUVIUM_LISTEN")]
    pub listen: String,
    /// Additional host name under which browsers may reach the port; may be repeated.
    #[arg(long = "http.allowed-host", value_name = "HOST", value_parser = host_name)]
    pub allowed_hosts: Vec<String>,
    /// Data folder, which holds all files of the demo.
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DATA, env = "ALLUVIUM_DATA")]
    pub data: PathBuf,
    /// Additional program to profile: a Go program, or any other program that serves /debug/pprof; may be repeated.
    #[arg(long = "target", value_name = "HOST:PORT")]
    pub targets: Vec<String>,
    #[command(flatten)]
    pub server: ServerFlags,
    /// `none`: allow a non-loopback address without authentication.
    #[arg(long, value_name = "none", value_parser = ["none"])]
    pub auth: Option<String>,
    /// Do not profile the other processes of this machine. By default the demo profiles them if the kernel permits it.
    #[arg(long)]
    pub only_self: bool,
    #[command(flatten)]
    pub rights: RightsArgs,
}

/// Runs the demo until SIGINT or SIGTERM.
pub(crate) async fn run(args: DemoArgs, logs: LogHandle, flags: Settings) -> anyhow::Result<()> {
    let options = DemoOptions {
        listen: args.listen,
        allowed_hosts: AllowedHosts::new(args.allowed_hosts),
        data: args.data,
        targets: args.targets,
        postgres: args.server.postgres_listen,
        prometheus: prometheus(args.server.prometheus_url)?,
        only_self: args.only_self,
        is_open: args.auth.is_some(),
    };
    demo::run(options, logs, flags, signals::shutdown_signal()?).await
}
