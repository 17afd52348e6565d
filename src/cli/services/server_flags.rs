//! Flags that `serve` and `demo` share: the PostgreSQL port, and Prometheus.

use anyhow::Context as _;
use clap::Args;

use crate::server::Prometheus;

/// Flags of a server for PostgreSQL clients and for Prometheus.
#[derive(Debug, Args)]
pub struct ServerFlags {
    /// Address and port for PostgreSQL clients (psql, drivers). Without an address, the server accepts no PostgreSQL
    /// clients.
    #[arg(long = "postgres.listen", value_name = "ADDR", env = "ALLUVIUM_POSTGRES_LISTEN")]
    pub postgres_listen: Option<String>,
    /// URL of Prometheus, or of a compatible server, whose metrics the web page shows beside profiles.
    #[arg(
        long = "prometheus-url",
        value_name = "URL",
        env = "ALLUVIUM_PROMETHEUS_URL",
        hide_env_values = true
    )]
    pub prometheus_url: Option<String>,
}

/// Returns the Prometheus server at `address`, or `None` without an address.
pub(super) fn prometheus(address: Option<String>) -> anyhow::Result<Option<Prometheus>> {
    // The address may contain a password, so the error does not show it.
    address
        .map(|address| Prometheus::new(&address))
        .transpose()
        .context("--prometheus-url")
}
