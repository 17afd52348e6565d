//! `alluvium demo`: server and collector in one process on one data folder. The demo profiles this process and other
//! targets.

use std::path::PathBuf;

use clap::Args;

use crate::app::demo::{self, DemoOptions};
use crate::app::serve_options::{DEFAULT_DATA, DEFAULT_LISTEN};
use crate::app::signals;
use crate::cli::common::rights::RightsArgs;
use crate::cli::services::serve::prometheus;
use alluvium_admin::browser::{AllowedHosts, host_name};
use alluvium_telemetry::logs::{LogHandle, Settings};

/// Arguments of `alluvium demo`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  alluvium demo --target localhost:9090")]
pub struct DemoArgs {
    /// Address and port of the server and its page.
    #[arg(long, value_name = "ADDR", default_value = DEFAULT_LISTEN, env = "ALLUVIUM_LISTEN")]
    pub listen: String,
    /// Additional host name under which browsers may reach the port; may be repeated.
    #[arg(long = "http.allowed-host", value_name = "HOST", value_parser = host_name)]
    pub allowed_hosts: Vec<String>,
    /// Data folder, which holds all files of the demo.
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DATA, env = "ALLUVIUM_DATA")]
    pub data: PathBuf,
    /// Go program, or any other program that serves /debug/pprof, to profile as well; may be repeated.
    #[arg(long = "target", value_name = "HOST:PORT")]
    pub targets: Vec<String>,
    /// Address and port for PostgreSQL clients (psql, drivers). Without an address, the server accepts no PostgreSQL
    /// clients.
    #[arg(long = "postgres.listen", value_name = "ADDR", env = "ALLUVIUM_POSTGRES_LISTEN")]
    pub postgres_listen: Option<String>,
    /// URL of Prometheus, or of a compatible server, whose metrics the page shows beside profiles.
    #[arg(
        long = "prometheus-url",
        value_name = "URL",
        env = "ALLUVIUM_PROMETHEUS_URL",
        hide_env_values = true
    )]
    pub prometheus_url: Option<String>,
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
        postgres: args.postgres_listen,
        prometheus: prometheus(args.prometheus_url)?,
        only_self: args.only_self,
        is_open: args.auth.is_some(),
    };
    demo::run(options, logs, flags, signals::shutdown_signal()?).await
}
