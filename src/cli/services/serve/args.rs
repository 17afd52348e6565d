//! The flags of `alluvium serve`.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::app::disk::DiskSection;
use crate::app::serve_options::DEFAULT_DATA;
use crate::app::storage::StorageSection;
use crate::cli::common::rights::RightsArgs;
use crate::cli::services::server_flags::ServerFlags;
use alluvium_admin::browser::host_name;

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
    /// Address and port of all routes: protocols, queries and the page.
    #[arg(
        long,
        value_name = "ADDR",
        env = "ALLUVIUM_LISTEN",
        help = "Address and port of all routes: protocols, queries and the page [default: 127.0.0.1:4040]"
    )]
    pub listen: Option<String>,
    /// Additional host name under which browsers may reach the port; may be repeated.
    #[arg(long = "http.allowed-host", value_name = "HOST", value_parser = host_name)]
    pub allowed_hosts: Vec<String>,
    /// Data folder, which holds the write-ahead log and the tables.
    #[arg(
        long,
        value_name = "DIR",
        env = "ALLUVIUM_DATA",
        help = "Data folder, which holds the write-ahead log and the tables [default: ./alluvium-data]"
    )]
    pub data: Option<PathBuf>,
    /// Additional path prefix under which every route is served.
    #[arg(
        long,
        value_name = "PATH",
        help = "Additional path prefix under which every route is served [default: /profile]"
    )]
    pub prefix: Option<String>,
    /// Age at which profiles are written from memory to the tables.
    #[arg(long = "flush-age", value_name = "DURATION", default_value = "5m")]
    pub flush_age: String,
    /// Retention period of profiles; 0 for no limit.
    #[arg(
        long,
        value_name = "DURATION",
        help = "Retention period of profiles; 0 for no limit [default: 0]"
    )]
    pub retention: Option<String>,
    /// Maximum size of the tables, above which the oldest profiles are deleted.
    #[arg(
        long = "retention-size",
        value_name = "SIZE",
        help = "Maximum size of the tables, such as 50GiB; above it the oldest profiles are deleted; 0 for no \
                limit [default: 0]"
    )]
    pub retention_size: Option<String>,
    /// Minimum free space on the disk of the data folder, below which the oldest profiles are deleted.
    #[arg(
        long = "min-free-space",
        value_name = "SIZE",
        help = "Minimum free space on the disk of the data; below it the oldest profiles are deleted; 0 for no \
                limit [default: 0]"
    )]
    pub min_free_space: Option<String>,
    /// Maximum memory of the server.
    #[arg(
        long = "memory-limit",
        value_name = "SIZE",
        env = "ALLUVIUM_MEMORY_LIMIT",
        help = "Maximum memory of the server, such as 512MiB, without cached pages of files [default: half of the \
                machine's memory, or three quarters of the cgroup's limit if that is less]"
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
    #[command(flatten)]
    pub server: ServerFlags,
    /// File with limits of individual tenants, which is read again when it changes.
    #[arg(long = "runtime-config.file", value_name = "FILE")]
    pub overrides: Option<PathBuf>,
    /// Authentication: `none` turns it off; FILE lists users with hashes of their passwords, and the server accepts
    /// both these passwords and tokens.
    #[arg(long, value_name = "none|FILE", env = "ALLUVIUM_AUTH")]
    pub auth: Option<String>,
    /// Tokens file, which `alluvium token` writes. Defaults to tokens.json in the data folder.
    #[arg(long, value_name = "FILE")]
    pub tokens: Option<PathBuf>,
    /// PEM file of the port's certificate, which is read again when it changes. With this file, the port accepts only
    /// TLS.
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// PEM file of the private key that belongs to --tls-cert.
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// PEM file of the certificate authorities whose client certificates are accepted.
    #[arg(long, value_name = "FILE")]
    pub tls_client_ca: Option<PathBuf>,
    /// Read the tenant from the header X-Scope-OrgID, which is then required.
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
    /// Returns the data folder, or `None` if it depends on the configuration file.
    pub(crate) fn known_data(&self) -> Option<&Path> {
        let default = self.config.is_none().then_some(Path::new(DEFAULT_DATA));
        self.data.as_deref().or(default)
    }
}
