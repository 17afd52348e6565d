//! Options of a server: all settings of flags and of the configuration file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::app::disk::DiskLimits;
use crate::app::memory::MemoryLimit;
use crate::app::overrides::OverridesFile;
use crate::query::QueryLimits;
use crate::server::ServerOptions;
use crate::server::access::AccessOptions;
use crate::server::postgres::PostgresOptions;
use crate::server::tls::TlsFiles;
use crate::store::common::clock::Clock;
use crate::store::maintenance::MaintenanceConfig;
use crate::store::tables::bucket::BucketOptions;
use crate::store::{TenantLimits, TenantRules};
use alluvium_admin::browser::AllowedHosts;

/// Default address of the server.
pub(crate) const DEFAULT_LISTEN: &str = "127.0.0.1:4040";
/// Default data folder of the server.
pub(crate) const DEFAULT_DATA: &str = "./alluvium-data";

/// Options of a server, from flags and the configuration file.
#[derive(Debug, Clone)]
pub(crate) struct ServeOptions {
    /// Address of the HTTP port, `host:port`.
    pub listen: String,
    /// Additional host names by which browsers may address the port. The names of this machine are always allowed.
    pub allowed_hosts: AllowedHosts,
    pub data: PathBuf,
    /// The memory limit. The sizes in `http` and `query` are derived from it. When the server starts, it also derives
    /// the sizes of the store from this limit.
    pub memory: MemoryLimit,
    /// A head is flushed when its first profile reaches this age.
    pub flush_age: Duration,
    /// Timeouts for a disk that does not respond.
    pub disk: DiskLimits,
    pub limits: TenantLimits,
    /// The tenants that may push profiles.
    pub tenants: TenantRules,
    /// The file with limits per tenant, if there is one.
    pub overrides: Option<OverridesFile>,
    /// Merging, retention and deletion of files.
    pub maintenance: MaintenanceConfig,
    pub query: QueryLimits,
    pub http: ServerOptions,
    pub access: AccessOptions,
    /// Certificates of the port; `None` for plain HTTP.
    pub tls: Option<TlsFiles>,
    /// The PostgreSQL port, if there is one.
    pub postgres: Option<PostgresOptions>,
    /// Source of the current time for the store.
    pub clock: Clock,
    /// The bucket that holds the tables; `None` for local files.
    pub bucket: Option<BucketOptions>,
}

impl ServeOptions {
    /// Returns the options of a server without any configuration.
    pub(crate) fn new(listen: &str, data: &Path) -> Self {
        let memory = MemoryLimit::default();
        let shares = memory.shares();
        Self {
            listen: listen.to_owned(),
            allowed_hosts: AllowedHosts::default(),
            data: data.to_owned(),
            memory,
            flush_age: Duration::from_mins(5),
            disk: DiskLimits::default(),
            limits: TenantLimits::default(),
            tenants: TenantRules::default(),
            overrides: None,
            maintenance: MaintenanceConfig::default(),
            query: shares.query,
            http: ServerOptions {
                limits: shares.http,
                ..ServerOptions::default()
            },
            access: AccessOptions::new(data),
            tls: None,
            postgres: None,
            clock: Clock::default(),
            bucket: None,
        }
    }
}
