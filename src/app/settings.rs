//! The configuration in force, as keys and values of the configuration file.
//!
//! In: the options of a server. Out: the contents of `/api/v1/status/config`, and the retention periods of tenants,
//! which that route does not show. The contents have only the keys that this module lists, so they contain no secrets
//! and no names of users, tokens or tenants.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::app::serve_options::{DEFAULT_DATA, DEFAULT_LISTEN, ServeOptions};
use crate::server::{Settings, limit_values};
use crate::store::tables::bucket::{BucketOptions, Provider};
use alluvium_base::duration;

/// Returns the settings to show for a server with these options.
pub(crate) fn settings(options: &ServeOptions) -> Settings {
    let without = ServeOptions::new(DEFAULT_LISTEN, Path::new(DEFAULT_DATA));
    let tenants = options.maintenance.aging.tenants.iter();
    Settings {
        in_force: values(options),
        default: values(&without),
        retention: tenants
            .map(|(tenant, period)| (tenant.clone(), duration::format(*period)))
            .collect(),
    }
}

fn values(options: &ServeOptions) -> BTreeMap<&'static str, Value> {
    let time = |length: Duration| Value::from(duration::format(length));
    let size = |bytes: usize| Value::from(format!("{bytes}B"));
    let (limits, query, http) = (options.limits.general(), &options.query, &options.http);
    let (maintenance, aging, space) = (
        &options.maintenance,
        &options.maintenance.aging,
        &options.maintenance.space,
    );
    let bytes = |bytes: Option<u64>| Value::from(format!("{}B", bytes.unwrap_or(0)));
    let types = aging.types.iter();
    let types: BTreeMap<&str, Value> = types.map(|(kind, period)| (kind.as_str(), time(*period))).collect();
    let (host, port) = options.listen.rsplit_once(':').unwrap_or((&options.listen, ""));
    let downsample = |seconds: u64| {
        let mut steps = aging.downsample.iter();
        let step = steps.find(|step| step.interval == Duration::from_secs(seconds));
        time(step.map_or(Duration::ZERO, |step| step.after))
    };
    let mut values = BTreeMap::from([
        ("server.http_listen_address", json!(host)),
        (
            "server.http_listen_port",
            port.parse::<u16>().map_or(Value::Null, Value::from),
        ),
        ("server.memory_limit", bytes(Some(options.memory.bytes()))),
        ("api.base-url", json!(http.prefix)),
        ("multitenancy_enabled", json!(http.multi_tenant)),
        ("tenants.max", json!(options.tenants.max)),
        ("tenants.new_per_minute", json!(options.tenants.new_per_minute)),
        ("disk.stuck_after", time(options.disk.stuck_after)),
        ("disk.answer_after", time(options.disk.answer_after)),
        ("pyroscopedb.data_path", json!(options.data.display().to_string())),
        (
            "limits.ingestion_body_limit_mb",
            json!(http.limits.body_bytes as f64 / f64::from(1 << 20)),
        ),
        ("limits.retention_period", time(aging.retention)),
        ("limits.max_query_length", time(query.max_query_length)),
        (
            "limits.max_flamegraph_nodes_default",
            json!(http.limits.flamegraph_nodes),
        ),
        (
            "limits.max_flamegraph_nodes_max",
            json!(http.limits.max_flamegraph_nodes),
        ),
        ("maintenance.compaction", json!(maintenance.compaction)),
        ("maintenance.interval", time(maintenance.interval)),
        ("maintenance.vacuum_interval", time(maintenance.vacuum_interval)),
        ("maintenance.deletion_delay", time(maintenance.deletion_delay)),
        ("maintenance.cpu_share", json!(maintenance.cpu_share)),
        ("maintenance.target_file_size", json!(maintenance.policy.target_bytes)),
        ("maintenance.type_retention", json!(types)),
        ("maintenance.retention_size", bytes(space.whole)),
        (
            "maintenance.min_free_space",
            bytes(space.floor.map(|floor| floor.bytes)),
        ),
        ("maintenance.downsample_5m_after", downsample(300)),
        ("maintenance.downsample_1h_after", downsample(3600)),
        ("sql.timeout", time(query.timeout)),
        ("sql.max_memory", size(query.memory_bytes)),
        ("sql.max_query_memory", size(query.max_query_memory_bytes)),
        ("sql.max_rows", json!(query.max_rows)),
        ("sql.max_output", size(query.max_output_bytes)),
        ("sql.max_concurrent_queries", json!(query.max_concurrent_queries)),
    ]);
    values.extend(limit_values(limits));
    if let Some(postgres) = &options.postgres {
        values.insert("postgres.listen", json!(postgres.listen));
        values.insert("postgres.max_connections", json!(postgres.max_connections));
        values.insert("postgres.idle_timeout", time(postgres.idle_timeout));
    }
    if let Some(prometheus) = &http.prometheus {
        values.insert("prometheus.url", json!(prometheus.address()));
    }
    add_access(&mut values, options);
    add_bucket(&mut values, options.bucket.as_ref());
    values
}

/// Adds the authentication settings: paths of files, but none of their contents.
fn add_access(values: &mut BTreeMap<&'static str, Value>, options: &ServeOptions) {
    let path = |path: &Path| json!(path.display().to_string());
    let access = &options.access;
    let users = match &access.users {
        Some(users) => path(users),
        None if access.is_open => json!("none"),
        None => Value::Null,
    };
    values.extend([
        ("auth.users", users),
        ("auth.tokens", path(&access.tokens)),
        ("auth.open_metrics", json!(access.open_metrics)),
    ]);
    if let Some(oidc) = &access.oidc {
        values.insert("auth.oidc.issuer", json!(oidc.issuer));
        values.insert("auth.oidc.audience", json!(oidc.audience));
    }
    if let Some(tls) = &options.tls {
        values.insert("server.http_tls_config.cert_file", path(&tls.certificate));
        values.insert("server.http_tls_config.key_file", path(&tls.key));
        if let Some(authority) = &tls.client_ca {
            values.insert("server.http_tls_config.client_ca_file", path(authority));
        }
    }
}

/// Adds the location of the tables.
fn add_bucket(values: &mut BTreeMap<&'static str, Value>, bucket: Option<&BucketOptions>) {
    let Some(bucket) = bucket else {
        values.insert("storage.backend", json!("filesystem"));
        return;
    };
    let (backend, name_key, name) = match &bucket.provider {
        Provider::S3(s3) => ("s3", "storage.s3.bucket_name", &s3.bucket),
        Provider::Gcs(gcs) => ("gcs", "storage.gcs.bucket_name", &gcs.bucket),
        Provider::Azure(azure) => ("azure", "storage.azure.container_name", &azure.container),
        Provider::Custom(custom) => ("given", "storage.name", &custom.name),
    };
    values.insert("storage.backend", json!(backend));
    values.insert(name_key, json!(name));
    values.insert("storage.prefix", json!(bucket.prefix));
    values.insert("storage.cache_size", json!(bucket.cache_bytes));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::config;
    use crate::server::postgres::{PostgresOptions, PostgresUser};
    use crate::server::{AdminToken, Prometheus, ServerOptions};
    use alluvium_profile::TenantId;

    #[test]
    fn what_is_shown_is_a_configuration_without_secrets() {
        let mut options = ServeOptions::new("[::1]:4041", Path::new("/data"));
        let user = PostgresUser {
            name: "ada".to_owned(),
            password: "hidden-password".to_owned(),
            tenants: vec![TenantId::anonymous()],
        };
        options.postgres = Some(PostgresOptions {
            users: vec![user],
            ..PostgresOptions::new("127.0.0.1:5433")
        });
        options.http = ServerOptions {
            prometheus: Some(Prometheus::new("http://ada:hidden-password@metrics:9090").unwrap()),
            admin: vec![AdminToken::new("desk", "hidden-token-of-the-desk", vec![TenantId::anonymous()]).unwrap()],
            ..ServerOptions::default()
        };
        options
            .maintenance
            .aging
            .types
            .insert("memory".to_owned(), Duration::from_hours(48));
        let tenant: TenantId = "hidden-team".parse().unwrap();
        options
            .maintenance
            .aging
            .tenants
            .insert(tenant.clone(), Duration::from_hours(24));
        let shown = settings(&options);
        let mut sections: BTreeMap<&str, BTreeMap<&str, &Value>> = BTreeMap::new();
        for (key, value) in shown.in_force.iter().filter(|(key, _)| key.contains('.')) {
            let (section, name) = key.split_once('.').unwrap();
            sections.entry(section).or_default().insert(name, value);
        }
        let text = serde_json::to_string(&sections).unwrap();
        assert_eq!(shown.in_force["auth.tokens"], "/data/tokens.json");
        assert!(!text.contains("hidden") && !text.contains("ada"), "{text}");
        let file = config::parse(&text).unwrap();
        assert_eq!(file.server.http_listen_port, Some(4041));
        assert_eq!(file.limits.max_label_value_length, Some(2048));
        assert!(file.limits.other.is_empty() && file.server.other.is_empty(), "{text}");
        assert_eq!(file.maintenance.type_retention["memory"], "48h0m0s");
        assert_eq!(shown.retention[&tenant], "24h0m0s");
        let differs: Vec<&str> = shown
            .in_force
            .iter()
            .filter(|(key, value)| shown.default.get(*key) != Some(*value))
            .map(|(key, _)| *key)
            .collect();
        assert_eq!(
            differs,
            [
                "auth.tokens",
                "maintenance.type_retention",
                "postgres.idle_timeout",
                "postgres.listen",
                "postgres.max_connections",
                "prometheus.url",
                "pyroscopedb.data_path",
                "server.http_listen_address",
                "server.http_listen_port",
            ]
        );
    }
}
