//! The server's configuration file: YAML with Pyroscope's keys.
//!
//! The server applies the keys that it supports, and logs a warning for each Pyroscope key that has no effect here. In
//! the sections `server`, `pyroscopedb`, `limits` and `runtime_config`, any other unknown key causes a warning too.
//! Elsewhere, an unknown key is an error, so that it does not go unnoticed. Command line flags override the file. In
//! the comments on keys, a duration is a text such as `15m`, and a size is a text such as `512MiB`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::app::auth::{AuthSection, HttpTlsSection};
use crate::app::disk::DiskSection;
use crate::app::limits::LimitsSection;
use crate::app::storage::StorageSection;

/// Contents of the configuration file; a key that is absent is `None`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ServerFile {
    /// `server:` address, certificates and memory limit of the server.
    pub server: ServerSection,
    /// `api:` path prefix of the routes.
    pub api: ApiSection,
    /// `pyroscopedb:` data folder.
    pub pyroscopedb: DatabaseSection,
    /// `storage:` location of the tables.
    pub storage: StorageSection,
    /// `limits:` limits that apply to each tenant.
    pub limits: LimitsSection,
    /// `runtime_config:` the file with limits per tenant.
    pub runtime_config: RuntimeConfigSection,
    /// `maintenance:` merging, aging and deletion of files; not a Pyroscope section.
    pub maintenance: MaintenanceSection,
    /// `sql:` limits of SQL queries.
    pub sql: SqlSection,
    /// `postgres:` the port for PostgreSQL clients.
    pub postgres: PostgresSection,
    /// `prometheus:` the server whose metrics are shown beside profiles.
    pub prometheus: PrometheusSection,
    /// `admin:` tokens for deletion over HTTP.
    pub admin: AdminSection,
    /// `auth:` authentication settings.
    pub auth: AuthSection,
    /// `tenants:` the tenants that may push profiles; not a Pyroscope section.
    pub tenants: TenantsSection,
    /// `disk:` timeouts for a disk that does not respond; not a Pyroscope section.
    pub disk: DiskSection,
    /// `multitenancy_enabled:` if true, `X-Scope-OrgID` names the tenant.
    pub multitenancy_enabled: Option<bool>,
    /// Every other top-level key.
    #[serde(flatten)]
    pub other: std::collections::BTreeMap<String, serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ServerSection {
    pub http_listen_address: Option<String>,
    pub http_listen_port: Option<u16>,
    /// Maximum memory of the server, a size; not a Pyroscope key.
    pub memory_limit: Option<String>,
    /// Certificates of the port.
    pub http_tls_config: HttpTlsSection,
    #[serde(flatten)]
    pub other: std::collections::BTreeMap<String, serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ApiSection {
    /// Additional path prefix under which every route is served.
    #[serde(rename = "base-url")]
    pub base_url: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct DatabaseSection {
    pub data_path: Option<PathBuf>,
    #[serde(flatten)]
    pub other: std::collections::BTreeMap<String, serde_json::Value>,
}

/// The tenants that may push profiles.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TenantsSection {
    /// Tenants that may push profiles; if absent, all tenants may push.
    pub allowed: Option<Vec<String>>,
    /// Maximum number of tenants with stored profiles; 0 for no limit.
    pub max: Option<usize>,
    /// Maximum number of new tenants per minute; 0 for no limit.
    pub new_per_minute: Option<usize>,
}

/// The file with limits per tenant.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RuntimeConfigSection {
    /// Path of the file; if absent, all tenants have the same limits.
    pub file: Option<PathBuf>,
    /// Time between two reads of the file, a duration.
    pub period: Option<String>,
    #[serde(flatten)]
    pub other: std::collections::BTreeMap<String, serde_json::Value>,
}

/// Maintenance of the store. Unknown keys are errors.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MaintenanceSection {
    /// If true, small files are merged.
    pub compaction: Option<bool>,
    /// Time between two searches for maintenance work, a duration.
    pub interval: Option<String>,
    /// Time between two searches for files to delete, a duration.
    pub vacuum_interval: Option<String>,
    /// CPU limit of maintenance as a share of one core, above 0 and at most 1.
    pub cpu_share: Option<f64>,
    /// Size in bytes up to which the files of a past day are merged.
    pub target_file_size: Option<u64>,
    /// Time for which files stay on disk after they were removed from their table, a duration.
    pub deletion_delay: Option<String>,
    /// `retention_period` per tenant.
    pub tenant_retention: std::collections::BTreeMap<String, TenantRetention>,
    /// `retention_period` per profile type. It overrides a tenant's period, except a tenant's period for this type.
    pub type_retention: std::collections::BTreeMap<String, String>,
    /// Total size of the tables above which the oldest profiles are deleted, in bytes or with a unit.
    pub retention_size: Option<String>,
    /// For each tenant, the size of its tables above which its oldest profiles are deleted.
    pub tenant_retention_size: std::collections::BTreeMap<String, String>,
    /// Free space on the data folder's disk below which the oldest profiles are deleted.
    pub min_free_space: Option<String>,
    /// Age after which samples are summed over five minutes, a duration.
    pub downsample_5m_after: Option<String>,
    /// Age after which samples are summed over an hour, a duration.
    pub downsample_1h_after: Option<String>,
}

/// The retention period of a tenant's profiles.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum TenantRetention {
    /// One period for all profile types, a duration.
    Period(String),
    /// A period for each profile type. The key `default` applies to types that neither this map nor `type_retention`
    /// contains.
    ByType(std::collections::BTreeMap<String, String>),
}

/// Configuration of the routes that change stored data. Pyroscope has no such keys.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AdminSection {
    pub tokens: Vec<AdminTokenSection>,
}

/// A token for deletion over HTTP.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AdminTokenSection {
    pub name: String,
    pub token: Option<String>,
    pub token_file: Option<PathBuf>,
    /// Tenants whose profiles may be deleted.
    pub tenants: Vec<String>,
}

impl std::fmt::Debug for AdminTokenSection {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("AdminTokenSection")
            .field("name", &self.name)
            .field("tenants", &self.tenants)
            .finish_non_exhaustive()
    }
}

/// Limits of SQL, over HTTP and on the PostgreSQL port. Pyroscope has no such keys.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SqlSection {
    /// Time limit of a query, a duration.
    pub timeout: Option<String>,
    /// Maximum memory of all queries together, a size.
    pub max_memory: Option<String>,
    /// Maximum memory of one query, a size.
    pub max_query_memory: Option<String>,
    /// Maximum number of rows in a response.
    pub max_rows: Option<usize>,
    /// Maximum number of bytes in a response, a size.
    pub max_output: Option<String>,
    /// Maximum number of concurrent queries.
    pub max_concurrent_queries: Option<usize>,
}

/// The Prometheus server whose metrics are shown beside profiles. Pyroscope has no such keys.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PrometheusSection {
    /// `http://HOST:PORT`, optionally with a path, user and password.
    pub url: Option<String>,
}

/// The port for PostgreSQL clients. Pyroscope has no such keys.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PostgresSection {
    /// `host:port`; if absent, the port stays closed.
    pub listen: Option<String>,
    /// Maximum number of open connections.
    pub max_connections: Option<usize>,
    /// Time after which an idle connection is closed, a duration.
    pub idle_timeout: Option<String>,
    pub tls: PostgresTlsSection,
    pub users: Vec<PostgresUserSection>,
}

/// TLS of the PostgreSQL port.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PostgresTlsSection {
    /// PEM file of the certificate chain.
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    /// `require` (connections without TLS are refused) or `allow`.
    pub mode: Option<String>,
}

/// A user of the PostgreSQL port.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PostgresUserSection {
    pub name: String,
    pub password: Option<String>,
    /// File with the password.
    pub password_file: Option<PathBuf>,
    /// Tenants whose profiles the user may read.
    pub tenants: Vec<String>,
}

impl std::fmt::Debug for PostgresUserSection {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("PostgresUserSection")
            .field("name", &self.name)
            .field("tenants", &self.tenants)
            .finish_non_exhaustive()
    }
}

/// Top-level keys of Pyroscope that have no effect here. They are accepted with a warning.
const WITHOUT_MEANING: &[&str] = &[
    "adaptive_placement",
    "admin_server",
    "analytics",
    "architecture_storage",
    "compaction_worker",
    "compactor",
    "distributor",
    "embedded_grafana",
    "frontend",
    "frontend_worker",
    "ingester",
    "memberlist",
    "metastore",
    "overrides_exporter",
    "querier",
    "query_backend",
    "query_scheduler",
    "segment_writer",
    "self_profiling",
    "show_banner",
    "shutdown_delay",
    "store_gateway",
    "symbolizer",
    "target",
    "tenant_settings",
    "tracing",
];

/// Reads the file at `path`.
pub(crate) fn read(path: &Path) -> anyhow::Result<ServerFile> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read the configuration {}", path.display()))?;
    parse(&text).with_context(|| format!("cannot use the configuration {}", path.display()))
}

/// Parses the text of a file. An empty text is an empty configuration.
pub(crate) fn parse(text: &str) -> anyhow::Result<ServerFile> {
    if text
        .lines()
        .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#') || line.trim() == "---")
    {
        return Ok(ServerFile::default());
    }
    let file: ServerFile = serde_saphyr::from_str(text).map_err(|error| anyhow::anyhow!("{error}"))?;
    for key in file.other.keys() {
        if !WITHOUT_MEANING.contains(&key.as_str()) {
            bail!(
                "unknown key `{key}`; valid are server, api, pyroscopedb, storage, limits, runtime_config, \
                 maintenance, sql, postgres, prometheus, admin, auth, tenants, disk and multitenancy_enabled \
                 (other keys of Pyroscope are ignored with a warning)"
            );
        }
        tracing::warn!(key, "configuration key has no effect and is ignored");
    }
    let ignored = [
        ("server", &file.server.other),
        ("server.http_tls_config", &file.server.http_tls_config.other),
        ("pyroscopedb", &file.pyroscopedb.other),
        ("limits", &file.limits.other),
        ("runtime_config", &file.runtime_config.other),
    ];
    for (section, keys) in ignored {
        for key in keys.keys() {
            tracing::warn!(section, key, "configuration key has no effect and is ignored");
        }
    }
    for key in file.storage.without_meaning() {
        tracing::warn!(key, "configuration key has no effect and is ignored");
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_pyroscope_are_read() {
        let file = parse(
            "server:\n  http_listen_port: 4041\nlimits:\n  max_profile_size_bytes: 1000\npyroscopedb:\
            \n  data_path: /tmp/x\ntarget: all\n",
        )
        .unwrap();
        assert_eq!(file.server.http_listen_port, Some(4041));
        assert_eq!(file.limits.max_profile_size_bytes, Some(1000));
        assert_eq!(file.pyroscopedb.data_path.as_deref(), Some(Path::new("/tmp/x")));
    }

    #[test]
    fn an_empty_file_is_an_empty_configuration() {
        assert!(parse("# nothing\n").unwrap().limits.max_profile_size_bytes.is_none());
    }

    #[test]
    fn sections_may_have_any_number_of_lines_of_comment() {
        let comments = "  # one_key: 1\n\n".repeat(500);
        let text = format!("api:\n{comments}server:\n{comments}limits:\n{comments}  max_profile_size_bytes: 1000\n");
        assert_eq!(parse(&text).unwrap().limits.max_profile_size_bytes, Some(1000));
    }

    #[test]
    fn a_misspelt_key_is_refused() {
        assert!(parse("limitz: {}\n").unwrap_err().to_string().contains("limitz"));
    }
}
