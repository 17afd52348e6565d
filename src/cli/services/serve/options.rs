//! Builds the options of the server from flags and configuration file. Flags take precedence over the file, and the
//! file over the defaults.
//!
//! In: parsed flags. This module reads the configuration file and the secret files that the configuration file names.
//! Out: options, or an error that names the wrong key.

use std::path::PathBuf;

use anyhow::{Context as _, bail};

use crate::app::auth::{AccessFlags, access_options, tls_files};
use crate::app::config::{self, AdminSection, PostgresSection, RuntimeConfigSection, SqlSection, TenantsSection};
use crate::app::limits::parsed;
use crate::app::maintenance::{self, MaintenanceFlags};
use crate::app::memory::MemoryLimit;
use crate::app::overrides::OverridesFile;
use crate::app::serve_options::{DEFAULT_DATA, DEFAULT_LISTEN, ServeOptions};
use crate::app::size::bytes;
use crate::cli::services::serve::args::ServeArgs;
use crate::cli::services::server_flags::prometheus;
use crate::query::QueryLimits;
use crate::server::postgres::{PostgresOptions, PostgresTls, PostgresUser};
use crate::server::tls::TlsFiles;
use crate::server::{AdminToken, ServerOptions};
use crate::store::common::clock::Clock;
use crate::store::{Limits, TenantLimits, TenantRules};
use alluvium_admin::browser::AllowedHosts;
use alluvium_profile::{TenantError, TenantId};

/// Combines flags and configuration file into the options of a server.
pub(super) fn options(args: ServeArgs) -> anyhow::Result<ServeOptions> {
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
    let memory = match (&args.memory_limit, &file.server.memory_limit) {
        (Some(text), _) => MemoryLimit::parse("--memory-limit", text)?,
        (None, Some(text)) => MemoryLimit::parse("server.memory_limit", text)?,
        (None, None) => MemoryLimit::default(),
    };
    let shares = memory.shares();
    let mut http = ServerOptions {
        limits: shares.http,
        multi_tenant: args.multi_tenant.or(file.multitenancy_enabled).unwrap_or(false),
        prometheus: prometheus(args.server.prometheus_url.or(file.prometheus.url))?,
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
    let mut query = shares.query;
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
    let mut postgres = file.postgres;
    postgres.max_connections = postgres.max_connections.or(Some(shares.postgres_connections));
    let postgres = postgres_options(postgres, args.server.postgres_listen, &http, tls.as_ref())?;
    let multi_tenant = http.multi_tenant;
    let data = data.unwrap_or_else(|| PathBuf::from(DEFAULT_DATA));
    Ok(ServeOptions {
        listen,
        allowed_hosts: AllowedHosts::new(args.allowed_hosts),
        access: access_options(flags, file.auth, tls.as_ref(), &data)?,
        tls,
        data,
        memory,
        flush_age: parsed("--flush-age", &args.flush_age)?,
        disk: args.disk.over(file.disk)?,
        limits,
        tenants: tenant_rules(file.tenants, multi_tenant)?,
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

/// Builds the rules that decide which tenants may push.
fn tenant_rules(file: TenantsSection, multi_tenant: bool) -> anyhow::Result<TenantRules> {
    if !multi_tenant && (file.allowed.is_some() || file.max.is_some() || file.new_per_minute.is_some()) {
        bail!("tenants: only `anonymous` exists unless multitenancy_enabled is true");
    }
    let allowed = file
        .allowed
        .map(|ids| ids.iter().map(|id| id.parse()).collect::<Result<_, TenantError>>());
    let defaults = TenantRules::default();
    Ok(TenantRules {
        allowed: allowed.transpose().context("tenants.allowed")?,
        max: file.max.unwrap_or(defaults.max),
        new_per_minute: file.new_per_minute.unwrap_or(defaults.new_per_minute),
    })
}

/// Returns the overrides file and the interval at which the server reads it.
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

/// Reads the tokens that permit deletion over HTTP.
fn admin_tokens(file: AdminSection) -> anyhow::Result<Vec<AdminToken>> {
    let mut tokens: Vec<AdminToken> = Vec::new();
    for token in file.tokens {
        let name = token.name;
        let Some(text) = secret(token.token, token.token_file, "admin.tokens token_file")? else {
            bail!("admin.tokens: `{name}` needs either a token or a token_file");
        };
        let tenants = tenant_ids(&token.tenants).with_context(|| format!("admin.tokens: `{name}`"))?;
        let token = AdminToken::new(&name, &text, tenants).context("admin.tokens")?;
        tokens.push(token);
    }
    Ok(tokens)
}

/// Returns a secret from the configuration or from its own file; `None` unless exactly one of the two is given.
fn secret(text: Option<String>, file: Option<PathBuf>, key: &str) -> anyhow::Result<Option<String>> {
    match (text, file) {
        (Some(text), None) => Ok(Some(text)),
        (None, Some(path)) => {
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("cannot read {key} {}", path.display()))?;
            Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
        }
        _ => Ok(None),
    }
}

/// Parses tenant ids; an empty list means the tenant of a single-tenant server.
fn tenant_ids(texts: &[String]) -> Result<Vec<TenantId>, TenantError> {
    if texts.is_empty() {
        return Ok(vec![TenantId::anonymous()]);
    }
    texts.iter().map(|text| text.parse()).collect()
}

/// Sets the SQL limits from the file.
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
        bail!("sql: timeout, max_rows and max_concurrent_queries must be greater than 0");
    }
    Ok(())
}

/// Builds the options of the PostgreSQL port from file and flag; `None` if neither contains an address. If the port has
/// no certificate of its own, it uses the certificate of the HTTP port.
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
        Some(other) => bail!("postgres.tls.mode: unknown mode `{other}`, use require or allow"),
    };
    if files.is_none() && file.tls.mode.is_some() {
        bail!("postgres.tls.mode needs a certificate: both cert_file and key_file, or --tls-cert and --tls-key");
    }
    options.tls = files.map(|files| PostgresTls { files, required });
    for user in file.users {
        let name = user.name;
        let Some(password) = secret(user.password, user.password_file, "postgres.users password_file")? else {
            bail!("postgres.users: user `{name}` needs either a password or a password_file");
        };
        let tenants = tenant_ids(&user.tenants).with_context(|| format!("postgres.users: `{name}`"))?;
        options.users.push(PostgresUser {
            name,
            password,
            tenants,
        });
    }
    Ok(Some(options))
}

/// Returns the prefix with a leading `/` and without a trailing `/`. For `/`, returns an empty text.
fn normal_prefix(prefix: &str) -> String {
    let trimmed = prefix.trim_matches('/');
    if trimmed.is_empty() {
        String::new()
    } else {
        format!("/{trimmed}")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        serve: ServeArgs,
    }

    #[test]
    fn the_folder_of_the_data_is_known_unless_a_file_may_name_it() {
        let data_folder = |flags: &[&str]| {
            let args = Line::parse_from([&["serve"], flags].concat()).serve;
            args.known_data().map(Path::to_owned)
        };
        assert_eq!(data_folder(&[]), Some(DEFAULT_DATA.into()));
        assert_eq!(data_folder(&["--config", "server.yaml"]), None);
        assert_eq!(
            data_folder(&["--config", "server.yaml", "--data", "x"]),
            Some("x".into())
        );
    }

    #[test]
    fn prefixes_are_brought_into_one_form() {
        assert_eq!(normal_prefix("/"), "");
        assert_eq!(normal_prefix("profile/"), "/profile");
        assert_eq!(normal_prefix("/a/b"), "/a/b");
    }

    #[test]
    fn one_number_for_memory_is_divided_and_what_is_said_of_a_part_wins() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("server.yaml");
        let text = "server: {memory_limit: 1GiB}\nsql: {max_memory: 700MiB}\nlimits: {ingestion_body_limit_mb: 100}\n";
        std::fs::write(&file, text).unwrap();
        let options_with = |flags: &[&str]| {
            let words = [&["serve", "--config", file.to_str().unwrap()], flags].concat();
            options(Line::parse_from(words).serve)
        };
        let from_file = options_with(&[]).unwrap();
        assert_eq!(from_file.memory.bytes(), 1 << 30);
        assert_eq!(from_file.query.memory_bytes, 700 << 20);
        assert_eq!(from_file.http.limits.body_bytes, 100 << 20);
        let from_flag = options_with(&["--memory-limit", "128MiB"]).unwrap();
        assert!(from_flag.query.block_cache_bytes < from_file.query.block_cache_bytes);
        let error = options_with(&["--memory-limit", "1MiB"]).unwrap_err().to_string();
        assert!(error.contains("--memory-limit"), "{error}");
    }

    #[test]
    fn rules_for_tenants_need_tenants() {
        let section = |text: &str| config::parse(text).unwrap().tenants;
        let rules = tenant_rules(section("tenants: {max: 3, allowed: [shop]}"), true).unwrap();
        assert_eq!((rules.max, rules.allowed.unwrap().len()), (3, 1));
        assert!(tenant_rules(section("tenants: {max: 3}"), false).is_err());
        assert!(tenant_rules(section("tenants: {allowed: ['a|b']}"), true).is_err());
        assert!(tenant_rules(section(""), false).unwrap().allowed.is_none());
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
        let postgres_error = |text: &str| {
            let file = config::parse(text).unwrap();
            let address = Some("127.0.0.1:0".to_owned());
            postgres_options(file.postgres, address, &ServerOptions::default(), None)
                .unwrap_err()
                .to_string()
        };
        assert!(postgres_error("postgres:\n  tls:\n    cert_file: a.pem\n").contains("both"));
        assert!(
            postgres_error("postgres:\n  tls:\n    cert_file: a\n    key_file: b\n    mode: maybe\n").contains("maybe")
        );
        assert!(postgres_error("postgres:\n  users:\n    - name: ada\n").contains("password"));
        let admin = |text: &str| admin_tokens(config::parse(text).unwrap().admin);
        let tokens = "admin:\n  tokens:\n    - name: ops\n";
        let ops = admin(&format!("{tokens}      token: 0123456789abcdef\n")).unwrap();
        assert_eq!(
            (ops[0].name.as_str(), ops[0].tenants.as_slice()),
            ("ops", [TenantId::anonymous()].as_slice())
        );
        for (line, word) in [
            ("tenants: [a]", "needs either a token"),
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
