//! The flags of `alluvium serve`.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::admin::browser::host_name;
use crate::app::disk::DiskSection;
use crate::app::serve_options::DEFAULT_DATA;
use crate::app::storage::StorageSection;
use crate::cli::common::rights::RightsArgs;

/// Arguments of `alluvium serve`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  alluvium serve --data /var/lib/alluvium\n  alluvium token new me --role admin --data \
                        /var/lib/alluvium && alluvium serve --listen 0.0.0.0:4040 --data /var/lib/alluvium"
)]
pub struct ServeArgs {
    /// YAML configuration with Pyroscope's keys (`limits`, `server`, `storage`, `pyroscopedb`, `multitenancy_enabled`).
    #[arg(long, visible_alias = "config.file", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address and port for everything: protocols, questions, the page.
    #[arg(
        long,
        value_name = "ADDR",
        env = "ALLUVIUM_LISTEN",
        help = "Address and port for everything: protocols, questions, the page [default: 127.0.0.1:4040]"
    )]
    pub listen: Option<String>,
    /// A further name under which browsers may reach the port; may be given several times.
    #[arg(long = "http.allowed-host", value_name = "HOST", value_parser = host_name)]
    pub allowed_hosts: Vec<String>,
    /// Folder of the log and the tables.
    #[arg(
        long,
        value_name = "DIR",
        env = "ALLUVIUM_DATA",
        help = "Folder of the log and the tables [default: ./alluvium-data]"
    )]
    pub data: Option<PathBuf>,
    /// Path prefix under which every route answers once more.
    #[arg(
        long,
        value_name = "PATH",
        help = "Path prefix under which every route answers once more [default: /profile]"
    )]
    pub prefix: Option<String>,
    /// Profiles so old are written from memory to the tables.
    #[arg(long = "flush-age", value_name = "DURATION", default_value = "5m")]
    pub flush_age: String,
    /// Profiles are kept so long; 0 for ever.
    #[arg(
        long,
        value_name = "DURATION",
        help = "Profiles are kept so long; 0 for ever [default: 0]"
    )]
    pub retention: Option<String>,
    /// The oldest profiles go when the tables take more than this.
    #[arg(
        long = "retention-size",
        value_name = "SIZE",
        help = "The oldest profiles go when the tables take more than this, such as 50GiB; 0 for never [default: 0]"
    )]
    pub retention_size: Option<String>,
    /// The oldest profiles go when less than this is free on the disk of the data folder.
    #[arg(
        long = "min-free-space",
        value_name = "SIZE",
        help = "The oldest profiles go when less than this is free on the disk of the data; 0 for never [default: 0]"
    )]
    pub min_free_space: Option<String>,
    /// Most memory that the server takes.
    #[arg(
        long = "memory-limit",
        value_name = "SIZE",
        env = "ALLUVIUM_MEMORY_LIMIT",
        help = "Most memory that the server takes, such as 512MiB, without pages of files [default: half of the \
                machine's, or three quarters of the cgroup's]"
    )]
    pub memory_limit: Option<String>,
    /// Merge small files into large ones in the background.
    #[arg(
        long,
        num_args = 0..=1,
        default_missing_value = "true",
        value_name = "BOOL",
        help = "Merge small files into large ones in the background [default: true]"
    )]
    pub compaction: Option<bool>,
    /// Address and port for PostgreSQL clients (psql, drivers); without it there is no such port.
    #[arg(long = "postgres.listen", value_name = "ADDR", env = "ALLUVIUM_POSTGRES_LISTEN")]
    pub postgres_listen: Option<String>,
    /// A server of metrics (Prometheus, or one that answers as it does) to show beside profiles.
    #[arg(
        long = "prometheus-url",
        value_name = "URL",
        env = "ALLUVIUM_PROMETHEUS_URL",
        hide_env_values = true
    )]
    pub prometheus_url: Option<String>,
    /// File with limits of single tenants, read again when it changes.
    #[arg(long = "runtime-config.file", value_name = "FILE")]
    pub overrides: Option<PathBuf>,
    /// Who may come in: `none` asks nobody; a file has users with hashes of passwords. Tokens are taken besides.
    #[arg(long, value_name = "none|FILE", env = "ALLUVIUM_AUTH")]
    pub auth: Option<String>,
    /// File of tokens, by default tokens.json in the data folder; `alluvium token` writes it.
    #[arg(long, value_name = "FILE")]
    pub tokens: Option<PathBuf>,
    /// PEM file of the certificate of the port, read again when it changes; with it the port speaks TLS only.
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// PEM file of the certificate's key.
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// PEM file of the authorities whose client certificates are taken.
    #[arg(long, value_name = "FILE")]
    pub tls_client_ca: Option<PathBuf>,
    /// Take the tenant from X-Scope-OrgID.
    #[arg(long = "auth.multitenancy-enabled", num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub multi_tenant: Option<bool>,
    #[command(flatten)]
    pub disk: DiskSection,
    #[command(flatten)]
    pub storage: StorageSection,
    #[command(flatten)]
    pub rights: RightsArgs,
}

impl ServeArgs {
    /// The folder of the data, unless a file may name another one.
    pub(crate) fn known_data(&self) -> Option<&Path> {
        let default = self.config.is_none().then_some(Path::new(DEFAULT_DATA));
        self.data.as_deref().or(default)
    }
}
