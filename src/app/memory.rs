//! The memory limit of a server: one number that is divided among all parts of the server that can grow.
//!
//! In: `--memory-limit`, or the memory of the machine and the cgroup. Out: the sizes of heads, requests, responses,
//! queries and caches ([`MemoryLimit::shares`]), which are at most their defaults. [`watch`] enforces the limit. It
//! measures the memory that the process really holds, because estimates miss the overhead of the allocator, and exports
//! the memory of each part.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::app::size;
use crate::query::{QueryEngine, QueryLimits};
use crate::server::ServerLimits;
use crate::server::postgres::PostgresOptions;
use crate::store::StoreConfig;
use alluvium_admin::listen::ListenOptions;
use alluvium_base::Shutdown;
use alluvium_base::pressure::{MemoryPart, MemoryPressure};
use alluvium_telemetry::memory::release_unused_memory;
use alluvium_telemetry::metrics::Scope;
use alluvium_telemetry::process::own_memory;

/// Memory of a server without profiles: threads, tables of the program, one merge. This part of the limit is not
/// divided.
const BASE_BYTES: u64 = 48 << 20;
/// The smallest limit that a user may set.
const LEAST_BYTES: u64 = 96 << 20;
/// Memory of a typical query. The maximum number of concurrent queries is derived from it.
const QUERY_BYTES: u64 = 16 << 20;
/// Memory of a typical PostgreSQL connection. The maximum number of connections is derived from it.
const SESSION_BYTES: usize = 128 << 10;
/// Number of PostgreSQL connections that every server accepts.
const LEAST_SESSIONS: usize = 8;

/// Memory of an HTTP connection whose client has sent nothing.
const CONNECTION_BASE_BYTES: usize = 16 << 10;
/// Minimum receive window of an HTTP/2 connection: each connection starts with it (RFC 9113, 6.9.2).
const LEAST_WINDOW_BYTES: u32 = 64 << 10;
/// Memory of a connection whose client has sent as much as it can before the server reads a request.
const CONNECTION_BYTES: usize = CONNECTION_BASE_BYTES + LEAST_WINDOW_BYTES as usize;
/// Minimum number of concurrent requests on an HTTP/2 connection.
const LEAST_STREAMS: u32 = 32;

/// Time between two measurements of memory: `CALM` if the process uses less than half of the limit, otherwise `BUSY`.
const CALM: Duration = Duration::from_secs(1);
const BUSY: Duration = Duration::from_millis(250);

/// Maximum memory of a server in bytes, without cached pages of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryLimit(u64);

/// The share of the limit that each part of a server receives.
#[derive(Debug)]
pub(crate) struct Shares {
    /// See [`StoreConfig::flush_bytes`].
    pub flush_bytes: u64,
    /// See [`StoreConfig::head_limit_bytes`].
    pub head_limit_bytes: u64,
    /// See [`StoreConfig::intake_bytes`].
    pub intake_bytes: usize,
    /// See [`MaintenanceConfig::memory_bytes`](crate::store::maintenance::MaintenanceConfig::memory_bytes).
    pub maintenance_bytes: usize,
    /// See [`PostgresOptions::memory_bytes`].
    pub postgres_bytes: usize,
    /// See [`PostgresOptions::max_connections`].
    pub postgres_connections: usize,
    pub http: ServerLimits,
    pub query: QueryLimits,
    pub connections: ConnectionShares,
}

/// The share of the limit that the connections of the HTTP port receive. A connection may need 80 KiB or more for
/// unfinished headers, or for data that the client sends before the server reads it. The number of connections is
/// limited, so that all of them together stay within an eighth of the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionShares {
    /// See [`ListenOptions::max_connections`].
    pub count: usize,
    /// See [`ListenOptions::max_streams`].
    pub streams: u32,
    /// See [`ListenOptions::window_bytes`].
    pub window_bytes: u32,
}

impl MemoryLimit {
    /// Parses the value of the flag or key `name`.
    pub(crate) fn parse(name: &str, text: &str) -> anyhow::Result<Self> {
        let bytes = size::bytes(name, text)? as u64;
        if bytes < LEAST_BYTES {
            bail!(
                "{name}: `{text}` is too little memory for a server, the minimum is {}MiB",
                LEAST_BYTES >> 20
            );
        }
        Ok(Self(bytes))
    }

    /// Returns half of the machine's memory, or three quarters of the cgroup's limit if that is less.
    pub(crate) fn of_machine() -> Self {
        let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
        let own = fs::read_to_string("/proc/self/cgroup").ok();
        let cgroup = own.and_then(|own| cgroup_limit(Path::new("/sys/fs/cgroup"), &own));
        let least = [machine.map(|bytes| bytes / 2), cgroup.map(|bytes| bytes / 4 * 3)];
        let bytes = least.into_iter().flatten().min().unwrap_or(u64::MAX);
        Self(bytes.max(LEAST_BYTES))
    }

    /// Returns the whole limit in bytes.
    pub(crate) fn bytes(self) -> u64 {
        self.0
    }

    /// Divides the limit. No share is larger than its default. All shares together, without that of the HTTP
    /// connections, are at most the limit.
    pub(crate) fn shares(self) -> Shares {
        // The shares in 128ths: heads 22, profiles on the way to the heads 20, all requests 12, the largest body 12 as
        // received and 12 decompressed, responses 6, queries 18, caches between queries 16, names in merges 6,
        // PostgreSQL connections 4.
        let share = |parts: u64| self.0.saturating_sub(BASE_BYTES) / 128 * parts;
        let capped = |default: usize, parts: u64| default.min(usize::try_from(share(parts)).unwrap_or(usize::MAX));
        let store = StoreConfig::new("");
        let (http, query) = (ServerLimits::default(), QueryLimits::default());
        let postgres = PostgresOptions::new("");
        let postgres_bytes = capped(postgres.memory_bytes, 4);
        let sessions = (postgres_bytes / SESSION_BYTES).max(LEAST_SESSIONS);
        let at_once = usize::try_from(share(18) / QUERY_BYTES).unwrap_or(usize::MAX);
        Shares {
            flush_bytes: store.flush_bytes.min(share(6)),
            head_limit_bytes: store.head_limit_bytes.min(share(22)),
            intake_bytes: capped(store.intake_bytes, 20),
            maintenance_bytes: capped(store.maintenance.memory_bytes, 6),
            postgres_bytes,
            postgres_connections: postgres.max_connections.min(sessions),
            http: ServerLimits {
                body_bytes: capped(http.body_bytes, 12),
                unpacked_body_bytes: capped(http.unpacked_body_bytes, 12),
                memory_bytes: capped(http.memory_bytes, 12),
                answers_bytes: capped(http.answers_bytes, 6),
                ..http
            },
            query: QueryLimits {
                memory_bytes: capped(query.memory_bytes, 18),
                max_query_memory_bytes: capped(query.max_query_memory_bytes, 12),
                max_output_bytes: capped(query.max_output_bytes, 8),
                max_concurrent_queries: query.max_concurrent_queries.min(at_once.max(2)),
                stack_cache_bytes: capped(query.stack_cache_bytes, 6),
                series_cache_bytes: capped(query.series_cache_bytes, 3),
                block_cache_bytes: capped(query.block_cache_bytes, 4),
                totals_cache_bytes: capped(query.totals_cache_bytes, 2),
                footer_cache_bytes: capped(query.footer_cache_bytes, 1),
                ..query
            },
            connections: self.connections(),
        }
    }

    /// Returns the share of the HTTP connections. A connection needs memory even if it sends no request, so its memory
    /// belongs to no other part of the server, and this share comes in addition to the other shares. If many
    /// connections use their memory, [`watch`] drops the caches between queries more often.
    fn connections(self) -> ConnectionShares {
        let defaults = ListenOptions::default();
        let all = usize::try_from(self.0 / 8).unwrap_or(usize::MAX);
        let count = (all / CONNECTION_BYTES).min(defaults.max_connections);
        let window = u32::try_from((all / count.max(1)).saturating_sub(CONNECTION_BASE_BYTES)).unwrap_or(u32::MAX);
        let streams = u32::try_from(count / 16).unwrap_or(u32::MAX);
        ConnectionShares {
            count,
            streams: streams.clamp(LEAST_STREAMS, defaults.max_streams),
            window_bytes: window.clamp(LEAST_WINDOW_BYTES, defaults.window_bytes),
        }
    }
}

impl Default for MemoryLimit {
    fn default() -> Self {
        Self::of_machine()
    }
}

/// The label of the memory metrics.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PartLabel {
    part: &'static str,
}

/// Used memory and memory limit of each part of the server.
pub(crate) struct MemoryMetrics {
    used: Family<PartLabel, Gauge>,
    limits: Family<PartLabel, Gauge>,
}

impl MemoryMetrics {
    pub(crate) fn new(scope: &Scope) -> Self {
        let own = Self {
            used: Family::default(),
            limits: Family::default(),
        };
        scope.register(
            "alluvium_memory_used_bytes",
            "Estimated memory of each part of the server that has a memory limit",
            own.used.clone(),
        );
        scope.register(
            "alluvium_memory_limit_bytes",
            "Memory limit of each part of the server",
            own.limits.clone(),
        );
        own
    }

    fn show(&self, parts: Vec<MemoryPart>) {
        for part in parts {
            let label = PartLabel { part: part.name };
            self.used.get_or_create(&label).set(part.used as i64);
            self.limits.get_or_create(&label).set(part.limit as i64);
        }
    }
}

/// Measures the memory of this process until `shutdown`, and exports the memory of `parts` at each measurement. Above
/// 15/16 of the limit it drops the caches of the query engine. If that does not help, `pressure` reports a shortage of
/// memory until the process uses less than 7/8 of the limit.
pub(crate) async fn watch(
    limit: MemoryLimit,
    engine: QueryEngine,
    pressure: MemoryPressure,
    (metrics, parts): (MemoryMetrics, impl Fn() -> Vec<MemoryPart>),
    shutdown: Shutdown,
) {
    let MemoryLimit(limit) = limit;
    let mut used_bytes = own_memory().unwrap_or(0);
    loop {
        metrics.show(parts());
        let pause = if used_bytes < limit / 2 { CALM } else { BUSY };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shutdown.cancelled() => return,
        }
        used_bytes = own_memory().unwrap_or(0);
        if used_bytes > limit / 16 * 15 {
            engine.forget_all();
            let _ = tokio::task::spawn_blocking(release_unused_memory).await;
            used_bytes = own_memory().unwrap_or(0);
            if used_bytes > limit / 16 * 15 && pressure.set(true) {
                tracing::warn!(
                    held = used_bytes,
                    limit,
                    "memory is short: the server refuses requests until memory is free again (--memory-limit)"
                );
            }
        }
        if used_bytes < limit / 8 * 7 && pressure.set(false) {
            tracing::info!(held = used_bytes, limit, "memory is free again");
        }
    }
}

/// Returns `MemTotal` of `/proc/meminfo` in bytes.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// Returns the smallest limit of the process' cgroup and its ancestors, in bytes. `own` is the text of
/// `/proc/self/cgroup`, and `mount` is the mount point of cgroups. Version 1 has a separate hierarchy for memory, and
/// version 2 has one hierarchy for all resources (cgroups(7)).
fn cgroup_limit(mount: &Path, own: &str) -> Option<u64> {
    let hierarchies = || own.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let first = hierarchies().find(|(kinds, _)| kinds.split(',').any(|kind| kind == "memory"));
    let second = || hierarchies().find(|(kinds, _)| kinds.is_empty());
    let (root, path, file) = match first {
        Some((_, path)) => (mount.join("memory"), path, "memory.limit_in_bytes"),
        None => (mount.to_owned(), second()?.1, "memory.max"),
    };
    let folder = root.join(path.trim_start_matches('/'));
    let limits = folder
        .ancestors()
        .take_while(|folder| folder.starts_with(&root))
        .filter_map(|folder| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok());
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(shares: &Shares) -> u64 {
        let (http, query) = (&shares.http, &shares.query);
        let others = [
            shares.intake_bytes,
            shares.maintenance_bytes,
            shares.postgres_bytes,
            http.memory_bytes,
            http.body_bytes,
            http.unpacked_body_bytes,
            http.answers_bytes,
            query.memory_bytes,
            query.stack_cache_bytes,
            query.series_cache_bytes,
            query.block_cache_bytes,
            query.totals_cache_bytes,
            query.footer_cache_bytes,
        ];
        shares.head_limit_bytes + others.iter().sum::<usize>() as u64
    }

    #[test]
    fn all_parts_together_are_within_every_limit() {
        for mib in [96, 128, 256, 1024, 4096] {
            let limit = MemoryLimit::parse("x", &format!("{mib}MiB")).unwrap();
            let total_bytes = BASE_BYTES + sum(&limit.shares());
            assert!(
                total_bytes <= limit.bytes() && total_bytes > limit.bytes() / 3,
                "{mib} MiB: {total_bytes}"
            );
        }
    }

    #[test]
    fn much_memory_changes_no_default() {
        let shares = MemoryLimit(64 << 30).shares();
        let postgres = PostgresOptions::new("");
        let listen = ListenOptions::default();
        let connections = ConnectionShares {
            count: listen.max_connections,
            streams: listen.max_streams,
            window_bytes: listen.window_bytes,
        };
        assert_eq!(shares.connections, connections);
        assert_eq!(shares.postgres_bytes, postgres.memory_bytes);
        assert_eq!(shares.postgres_connections, postgres.max_connections);
        assert_eq!(shares.flush_bytes, StoreConfig::new("").flush_bytes);
        assert_eq!(format!("{:?}", shares.http), format!("{:?}", ServerLimits::default()));
        assert_eq!(format!("{:?}", shares.query), format!("{:?}", QueryLimits::default()));
    }

    #[test]
    fn connections_with_all_that_they_may_send_ahead_are_within_an_eighth_of_the_limit() {
        for mib in [96, 128, 1024, 2048, 3072, 4096, 16 << 10] {
            let limit = MemoryLimit::parse("x", &format!("{mib}MiB")).unwrap();
            let ConnectionShares {
                count,
                streams,
                window_bytes,
            } = limit.connections();
            let connection_bytes = CONNECTION_BASE_BYTES as u64 + u64::from(window_bytes);
            assert!(count as u64 * connection_bytes <= limit.bytes() / 8, "{mib} MiB");
            assert!(count >= 150 && streams >= 32 && window_bytes >= 64 << 10, "{mib} MiB");
        }
    }

    #[test]
    fn too_little_is_refused() {
        let error = MemoryLimit::parse("--memory-limit", "64MiB").unwrap_err().to_string();
        assert!(error.contains("the minimum is 96MiB"), "{error}");
    }

    #[test]
    fn the_least_limit_of_a_cgroup_and_those_above_it_counts() {
        let mount = tempfile::tempdir().unwrap();
        let inner = mount.path().join("pods/one");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        assert_eq!(cgroup_limit(mount.path(), "0::/pods/one\n"), None);
        fs::write(mount.path().join("pods/memory.max"), "1000\n").unwrap();
        assert_eq!(cgroup_limit(mount.path(), "0::/pods/one\n"), Some(1000));
        fs::write(inner.join("memory.max"), "700\n").unwrap();
        assert_eq!(cgroup_limit(mount.path(), "0::/pods/one\n"), Some(700));
        let first = mount.path().join("memory/pods");
        fs::create_dir_all(&first).unwrap();
        fs::write(first.join("memory.limit_in_bytes"), "500\n").unwrap();
        assert_eq!(cgroup_limit(mount.path(), "4:cpu,memory:/pods\n0::/\n"), Some(500));
        assert_eq!(cgroup_limit(mount.path(), "nonsense"), None);
    }

    #[test]
    fn the_memory_of_the_machine_is_read() {
        assert_eq!(total("MemFree: 1 kB\nMemTotal:       2048 kB\n"), Some(2 << 20));
        assert!(MemoryLimit::of_machine().bytes() < u64::MAX);
    }
}
