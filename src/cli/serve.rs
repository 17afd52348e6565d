//! `alluvium serve`: runs the server. Flags win over the configuration file, the file over the defaults.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;

use crate::admin::browser::{AllowedHosts, host_name};
use crate::app::auth::{AccessFlags, access_options, tls_files};
use crate::app::config::{self, AdminSection, PostgresSection, RuntimeConfigSection, SqlSection};
use crate::app::limits::parsed;
use crate::app::maintenance::{self, MaintenanceFlags};
use crate::app::overrides::OverridesFile;
use crate::app::serve_options::{DEFAULT_DATA, DEFAULT_LISTEN, ServeOptions};
use crate::app::server;
use crate::app::signals;
use crate::app::size::bytes;
use crate::app::storage::StorageSection;
use crate::profile::{TenantError, TenantId};
use crate::query::QueryLimits;
use crate::server::postgres::{PostgresOptions, PostgresTls, PostgresUser};
use crate::server::tls::TlsFiles;
use crate::server::{AdminToken, Prometheus, ServerOptions};
use crate::store::clock::Clock;
use crate::store::{Limits, TenantLimits};

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
    pub storage: StorageSection,
}

/// Runs until SIGINT or SIGTERM.
pub(crate) async fn run(args: ServeArgs) -> anyhow::Result<()> {
    let options = options(args)?;
    server::run(options, signals::shutdown_signal()?).await
}

fn options(args: ServeArgs) -> anyhow::Result<ServeOptions> {
    let file = args
        .config
        .as_deref()
        .map(config::read)
        .transpose()?
        .unwrap_or_default();
    let listen = args.listen.unwrap_or_else(|| {
        let (host, port) = DEFAULT_LISTEN.split_once(':').unwrap_or(("127.0.0.1", "4040"));
        let host = file.server.http_listen_address.as_deref().unwrap_or(host);
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        format!(
            "{host}:{}",
            file.server
                .http_listen_port
                .map_or_else(|| port.to_owned(), |port| port.to_string())
        )
    });
    let data = args
        .data
        .or(file.storage.filesystem.dir.clone())
        .or(file.pyroscopedb.data_path);
    let bucket = args.storage.over(file.storage).bucket()?;
    let mut http = ServerOptions {
        multi_tenant: args.multi_tenant.or(file.multitenancy_enabled).unwrap_or(false),
        prometheus: prometheus(args.prometheus_url.or(file.prometheus.url))?,
        admin: admin_tokens(file.admin)?,
        ..ServerOptions::default()
    };
    if let Some(prefix) = args.prefix.or(file.api.base_url) {
        http.prefix = normal_prefix(&prefix);
    }
    if let Some(limit) = file.limits.ingestion_body_limit_mb {
        http.limits.body_bytes = (limit.max(0.0) * f64::from(1 << 20)) as usize;
        http.limits.unpacked_body_bytes = http.limits.unpacked_body_bytes.max(http.limits.body_bytes);
    }
    if let Some(nodes) = file.limits.max_flamegraph_nodes_default {
        http.limits.flamegraph_nodes = nodes;
    }
    if let Some(nodes) = file.limits.max_flamegraph_nodes_max {
        http.limits.max_flamegraph_nodes = nodes;
    }
    let limits = TenantLimits::from(file.limits.over(&Limits::default())?);
    let overrides = overrides(args.overrides, file.runtime_config)?;
    let mut query = QueryLimits::default();
    if let Some(length) = &file.limits.max_query_length {
        query.max_query_length = parsed("limits.max_query_length", length)?;
    }
    sql_limits(&file.sql, &mut query)?;
    let flags = AccessFlags {
        auth: args.auth,
        tokens: args.tokens,
        tls_cert: args.tls_cert,
        tls_key: args.tls_key,
        tls_client_ca: args.tls_client_ca,
    };
    let tls = tls_files(&flags, &file.server.http_tls_config)?;
    let postgres = postgres_options(file.postgres, args.postgres_listen, &http, tls.as_ref())?;
    let data = data.unwrap_or_else(|| PathBuf::from(DEFAULT_DATA));
    Ok(ServeOptions {
        listen,
        allowed_hosts: AllowedHosts::new(args.allowed_hosts),
        access: access_options(flags, file.auth, tls.as_ref(), &data)?,
        tls,
        data,
        flush_age: parsed("--flush-age", &args.flush_age)?,
        limits,
        overrides,
        maintenance: maintenance::settings(
            &file.maintenance,
            &file.limits,
            MaintenanceFlags {
                retention: args.retention.as_deref(),
                retention_size: args.retention_size.as_deref(),
                min_free_space: args.min_free_space.as_deref(),
                compaction: args.compaction,
            },
        )?,
        query,
        http,
        postgres,
        clock: Clock::default(),
        bucket,
    })
}

/// The file of overrides, and how often it is read.
fn overrides(flag: Option<PathBuf>, file: RuntimeConfigSection) -> anyhow::Result<Option<OverridesFile>> {
    let period = match &file.period {
        Some(text) => parsed("runtime_config.period", text)?,
        None => OverridesFile::PERIOD,
    };
    if period.is_zero() {
        bail!("runtime_config.period must be greater than 0");
    }
    let path = flag.or(file.file);
    Ok(path.map(|path| OverridesFile { path, period }))
}

/// The server of metrics at an address.
pub(super) fn prometheus(address: Option<String>) -> anyhow::Result<Option<Prometheus>> {
    // The address may hold a password: the error does not name it.
    address
        .map(|address| Prometheus::new(&address))
        .transpose()
        .context("--prometheus-url")
}

/// Tokens for deletion over HTTP.
fn admin_tokens(file: AdminSection) -> anyhow::Result<Vec<AdminToken>> {
    let mut tokens: Vec<AdminToken> = Vec::new();
    for token in file.tokens {
        let name = token.name;
        let text = match (token.token, token.token_file) {
            (Some(text), None) => text,
            (None, Some(path)) => std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read admin.tokens token_file {}", path.display()))?
                .trim_end_matches(['\r', '\n'])
                .to_owned(),
            _ => bail!("admin.tokens: `{name}` needs a token or a token_file"),
        };
        let tenants = tenant_ids(&token.tenants).with_context(|| format!("admin.tokens: `{name}`"))?;
        let token = AdminToken::new(&name, &text, tenants).map_err(|error| anyhow::anyhow!("admin.tokens: {error}"))?;
        tokens.push(token);
    }
    Ok(tokens)
}

/// Parses tenant ids; an empty list means the tenant of a single-tenant server.
fn tenant_ids(texts: &[String]) -> Result<Vec<TenantId>, TenantError> {
    if texts.is_empty() {
        return Ok(vec![TenantId::anonymous()]);
    }
    texts.iter().map(|text| text.parse()).collect()
}

/// Sets the limits of SQL from the file.
fn sql_limits(file: &SqlSection, limits: &mut QueryLimits) -> anyhow::Result<()> {
    if let Some(text) = &file.timeout {
        limits.timeout = parsed("sql.timeout", text)?;
    }
    let sizes = [
        (&mut limits.memory_bytes, "sql.max_memory", &file.max_memory),
        (
            &mut limits.max_query_memory_bytes,
            "sql.max_query_memory",
            &file.max_query_memory,
        ),
        (&mut limits.max_output_bytes, "sql.max_output", &file.max_output),
    ];
    for (limit, name, text) in sizes {
        if let Some(text) = text {
            *limit = bytes(name, text)?;
        }
    }
    limits.max_rows = file.max_rows.unwrap_or(limits.max_rows);
    limits.max_concurrent_queries = file.max_concurrent_queries.unwrap_or(limits.max_concurrent_queries);
    if limits.timeout.is_zero() || limits.max_concurrent_queries == 0 || limits.max_rows == 0 {
        bail!("sql: timeout, max_rows and max_concurrent_queries must be more than 0");
    }
    Ok(())
}

/// Options of the PostgreSQL port from file and flag; `None` when neither gives an address. Without a certificate of
/// its own it has that of the HTTP port.
fn postgres_options(
    file: PostgresSection,
    flag: Option<String>,
    http: &ServerOptions,
    tls: Option<&TlsFiles>,
) -> anyhow::Result<Option<PostgresOptions>> {
    let Some(listen) = flag.or(file.listen) else {
        return Ok(None);
    };
    let mut options = PostgresOptions::new(&listen);
    options.multi_tenant = http.multi_tenant;
    options.max_connections = file.max_connections.unwrap_or(options.max_connections);
    if let Some(text) = &file.idle_timeout {
        options.idle_timeout = parsed("postgres.idle_timeout", text)?;
    }
    let files = match (file.tls.cert_file, file.tls.key_file) {
        (Some(certificate), Some(key)) => Some(TlsFiles {
            certificate,
            key,
            client_ca: tls.and_then(|tls| tls.client_ca.clone()),
        }),
        (None, None) => tls.cloned(),
        _ => bail!("postgres.tls needs both cert_file and key_file"),
    };
    let required = match file.tls.mode.as_deref() {
        None | Some("require") => true,
        Some("allow") => false,
        Some(other) => bail!("postgres.tls.mode: `{other}` is no mode, use require or allow"),
    };
    if files.is_none() && file.tls.mode.is_some() {
        bail!("postgres.tls.mode needs a certificate: both cert_file and key_file, or --tls-cert and --tls-key");
    }
    options.tls = files.map(|files| PostgresTls { files, required });
    for user in file.users {
        let password = match (user.password, user.password_file) {
            (Some(password), None) => password,
            (None, Some(path)) => std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read postgres.users password_file {}", path.display()))?
                .trim_end_matches(['\r', '\n'])
                .to_owned(),
            _ => bail!(
                "postgres.users: user `{}` needs a password or a password_file",
                user.name
            ),
        };
        let tenants = tenant_ids(&user.tenants).with_context(|| format!("postgres.users: `{}`", user.name))?;
        options.users.push(PostgresUser {
            name: user.name,
            password,
            tenants,
        });
    }
    Ok(Some(options))
}

/// A prefix with a leading `/` and no trailing one; empty for `/`.
fn normal_prefix(prefix: &str) -> String {
    let trimmed = prefix.trim_matches('/');
    if trimmed.is_empty() {
        String::new()
    } else {
        format!("/{trimmed}")
    }
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod over_time;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn prefixes_are_brought_into_one_form() {
        assert_eq!(normal_prefix("/"), "");
        assert_eq!(normal_prefix("profile/"), "/profile");
        assert_eq!(normal_prefix("/a/b"), "/a/b");
    }

    #[test]
    fn limits_and_the_postgresql_port_are_read_from_the_file() {
        let file = config::parse(
            "sql:\n  timeout: 5s\n  max_query_memory: 64MiB\n  max_rows: 10\npostgres:\n  listen: 127.0.0.1:0\n  users:\
             \n    - name: ada\n      password: x\n      tenants: [one]\n",
        )
        .unwrap();
        let mut limits = QueryLimits::default();
        sql_limits(&file.sql, &mut limits).unwrap();
        assert_eq!((limits.timeout, limits.max_rows), (Duration::from_secs(5), 10));
        assert_eq!(limits.max_query_memory_bytes, 64 << 20);
        let several = ServerOptions {
            multi_tenant: true,
            ..ServerOptions::default()
        };
        let options = postgres_options(file.postgres, None, &several, None).unwrap().unwrap();
        assert_eq!(options.users[0].tenants, ["one".parse().unwrap()]);
        assert!(options.tls.is_none() && options.multi_tenant);
        let wrong = |text: &str| {
            let file = config::parse(text).unwrap();
            let address = Some("127.0.0.1:0".to_owned());
            postgres_options(file.postgres, address, &ServerOptions::default(), None)
                .unwrap_err()
                .to_string()
        };
        assert!(wrong("postgres:\n  tls:\n    cert_file: a.pem\n").contains("both"));
        assert!(wrong("postgres:\n  tls:\n    cert_file: a\n    key_file: b\n    mode: maybe\n").contains("maybe"));
        assert!(wrong("postgres:\n  users:\n    - name: ada\n").contains("password"));
        let admin = |text: &str| admin_tokens(config::parse(text).unwrap().admin);
        let tokens = "admin:\n  tokens:\n    - name: ops\n";
        let found = admin(&format!("{tokens}      token: 0123456789abcdef\n")).unwrap();
        assert_eq!(
            (found[0].name.as_str(), found[0].tenants.as_slice()),
            ("ops", [TenantId::anonymous()].as_slice())
        );
        for (line, word) in [
            ("tenants: [a]", "needs a token"),
            ("token: short", "at least 16"),
            ("token_file: /missing/token", "cannot read"),
            ("token: 0123456789abcdef\n      tenants: [a/b]", "a/b"),
        ] {
            let error = format!("{:#}", admin(&format!("{tokens}      {line}\n")).unwrap_err());
            assert!(
                error.contains(word) && !error.contains("0123456789abcdef"),
                "{line}: {error}"
            );
        }
        assert!(config::parse("sql:\n  max_row: 5\n").is_err());
    }
}
