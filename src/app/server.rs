//! The server: store, query engine and routes on one port, with health, metrics and profiles of its own process.
//!
//! At the start, the server first opens the port, so that a taken port is reported before any data is changed. Then it
//! opens the store, which replays the log, and creates the query engine. At the stop, it first reports that it is not
//! ready, then finishes the requests in progress, and finally flushes the store. The stop takes at most five seconds.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::app::memory::{self, MemoryMetrics};
use crate::app::overrides::Overrides;
use crate::app::reload::give_back_later;
use crate::app::serve_options::ServeOptions;
use crate::app::settings::settings;
use crate::query::QueryEngine;
use crate::server::access::{Access, AccessMetrics, guard};
use crate::server::postgres::PostgresServer;
use crate::server::tls::{PortTls, Protocols};
use crate::server::{Readiness, ServerMetrics, ServerState, router};
use crate::store::maintenance::MaintenanceConfig;
use crate::store::{Store, StoreConfig, StoreError};
use alluvium_admin::AdminState;
use alluvium_admin::listen::{ListenOptions, Listener};
use alluvium_admin::profiling::Profiling;
use alluvium_base::Shutdown;
use alluvium_base::net::is_this_machine;
use alluvium_telemetry::metrics::Scope;
use alluvium_telemetry::process::ProcessMetrics;

/// Time limit for requests in progress after the signal to stop.
const REQUEST_GRACE: Duration = Duration::from_secs(2);
/// Time limit for the last flush. Profiles that are not flushed by then stay in the log, and the next start replays
/// them.
const FLUSH_GRACE: Duration = Duration::from_secs(3);

pub(crate) struct RunningServer {
    listener: Listener,
    postgres: Option<PostgresServer>,
    routes: axum::Router,
    store: Arc<Store>,
    readiness: Readiness,
    access: Access,
    prefix: String,
}

impl RunningServer {
    /// Opens the port and the store. [`RunningServer::run`] serves requests.
    pub(crate) async fn start(mut options: ServeOptions, metrics: &Scope, shutdown: &Shutdown) -> anyhow::Result<Self> {
        options.http.settings = Arc::new(settings(&options));
        let shares = options.memory.shares();
        let listen = ListenOptions {
            max_connections: shares.connections.count,
            max_streams: shares.connections.streams,
            window_bytes: shares.connections.window_bytes,
            grace: REQUEST_GRACE,
            allowed_hosts: options.allowed_hosts,
            ..ListenOptions::default()
        };
        let mut listener = Listener::bind(&options.listen, listen).await?;
        options.access.multi_tenant = options.http.multi_tenant;
        options.access.deletion.clone_from(&options.http.admin);
        let access = Access::new(options.access, AccessMetrics::new(metrics))?;
        check_reach(&access, listener.local_addr(), options.tls.is_some())?;
        if let Some(files) = options.tls {
            let tls = PortTls::read(files, Protocols::Http)?;
            listener = listener.with_tls(Arc::new(move || Some(tls.current().acceptor)));
        }
        if let Some(file) = options.overrides {
            let overrides = Overrides::read(file, options.limits.clone(), metrics)?;
            tokio::spawn(overrides.follow(shutdown.clone()));
        }
        let config = StoreConfig {
            flush_bytes: shares.flush_bytes,
            head_limit_bytes: shares.head_limit_bytes,
            intake_bytes: shares.intake_bytes,
            limits: options.limits,
            tenants: options.tenants,
            flush_age: options.flush_age,
            stuck_after: options.disk.stuck_after,
            answer_after: options.disk.answer_after,
            maintenance: MaintenanceConfig {
                memory_bytes: shares.maintenance_bytes,
                ..options.maintenance
            },
            clock: options.clock,
            bucket: options.bucket,
            ..StoreConfig::new(&options.data)
        };
        let scope = metrics.clone();
        let store = tokio::task::spawn_blocking(move || Store::open(config, &scope))
            .await
            .context("cannot open the store")??;
        let engine = QueryEngine::new(store.clone(), options.query)?;
        let postgres = match options.postgres {
            Some(mut options) => {
                options.access = access.clone();
                options.memory_bytes = shares.postgres_bytes;
                Some(PostgresServer::bind(options, engine.clone()).await?)
            }
            None => None,
        };
        let (caches, ended) = (engine.clone(), shutdown.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = caches.forget_unused() => {}
                () = ended.cancelled() => {}
            }
        });
        let (watched, pressure) = (engine.clone(), options.http.pressure.clone());
        let readiness = Readiness::ready();
        let state = ServerState::new(
            store.clone(),
            engine,
            options.http,
            readiness.clone(),
            ServerMetrics::new(metrics),
        );
        let listener = listener.with_unread(state.response_budget());
        let parts = {
            let (state, store, engine) = (state.clone(), store.clone(), watched.clone());
            let sessions = postgres.as_ref().map(PostgresServer::memory);
            move || {
                let own = state.memory().into_iter().chain(store.memory());
                let own = own.chain(engine.memory());
                own.chain(sessions.iter().map(|measure| measure())).collect::<Vec<_>>()
            }
        };
        let shown = (MemoryMetrics::new(metrics), parts);
        tokio::spawn(memory::watch(
            options.memory,
            watched,
            pressure,
            shown,
            shutdown.clone(),
        ));
        let prefix = state.options.prefix.clone();
        let (ready, takes, healthy) = (readiness.clone(), store.clone(), store.clone());
        let admin = alluvium_admin::router(AdminState {
            metrics: metrics.clone(),
            ready: Arc::new(move || ready.reason().or_else(|| takes.unavailable())),
            healthy: Arc::new(move || healthy.unavailable()),
            profiling: Some(Profiling::new(shutdown.clone())),
            note: Arc::new(String::new),
            reload: None,
            support: None,
        });
        Ok(Self {
            listener,
            postgres,
            routes: router(state).merge(admin),
            store,
            readiness,
            access,
            prefix,
        })
    }

    /// Adds the routes of a collector in the same process.
    pub(crate) fn add_routes(&mut self, routes: axum::Router) {
        self.routes = std::mem::take(&mut self.routes).merge(routes);
    }

    /// Returns the bound address, with the actual port.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// Returns the bound address of the PostgreSQL port, with the actual port.
    pub(crate) fn postgres_addr(&self) -> Option<SocketAddr> {
        self.postgres.as_ref().map(PostgresServer::local_addr)
    }

    /// Serves until `shutdown`, then stops in order.
    pub(crate) async fn run(self, shutdown: Shutdown) -> anyhow::Result<()> {
        let stopping = self.readiness.clone();
        let signal = shutdown.clone();
        tokio::spawn(async move {
            signal.cancelled().await;
            stopping.set_not_ready("the server is stopping");
        });
        // About half of the memory that the start has allocated is unused from now on. The task returns it to the
        // system.
        tokio::spawn(give_back_later());
        let sessions = self
            .postgres
            .map(|postgres| tokio::spawn(postgres.serve(shutdown.clone())));
        let routes = guard(self.routes, self.access, &self.prefix);
        let mut aborted = self.listener.serve(routes, shutdown).await;
        if let Some(sessions) = sessions {
            aborted += sessions.await.unwrap_or_default();
        }
        if aborted > 0 {
            tracing::warn!(
                connections = aborted,
                "requests did not finish in time and were aborted"
            );
        }
        match self.store.close(FLUSH_GRACE).await {
            Ok(()) => tracing::info!("stopped; all profiles are in the tables"),
            Err(error @ StoreError::Stuck { .. }) => {
                tracing::error!(error = %error, "stopped without the last flush; the next start replays the log");
            }
            // Nothing is lost, because the log is durable and the next start replays it.
            Err(error) => {
                tracing::warn!(error = %error, "stopped before the last flush ended; the next start replays the log");
            }
        }
        Ok(())
    }
}

/// Returns an error for a non-loopback address if authentication is neither configured nor explicitly disabled. Logs a
/// warning if authentication is disabled, or if there is no TLS.
fn check_reach(access: &Access, address: SocketAddr, has_tls: bool) -> anyhow::Result<()> {
    if is_this_machine(address.ip()) {
        return Ok(());
    }
    if access.is_open_on_purpose() {
        tracing::warn!(
            address = %address,
            "other machines can reach this port without a password, because of --auth none"
        );
    } else if !access.asks() {
        bail!(
            "other machines can reach {address}, but no authentication is configured. Choose one: make a token with \
             `alluvium token new NAME`; name a file of users with `--auth FILE`; or set `--auth none`. On 127.0.0.1 \
             none of them is needed"
        );
    } else if !has_tls {
        tracing::warn!(
            address = %address,
            "clients send passwords and tokens in the clear to this port: give it a certificate with --tls-cert and \
             --tls-key, or put a TLS proxy in front of it"
        );
    }
    Ok(())
}

/// Runs a server until `shutdown`.
pub(crate) async fn run(options: ServeOptions, shutdown: Shutdown) -> anyhow::Result<()> {
    let metrics = process_metrics();
    let data = options.data.clone();
    let server = RunningServer::start(options, &metrics, &shutdown).await?;
    tracing::info!(address = %server.local_addr(), data = %data.display(), "serving");
    if let Some(address) = server.postgres_addr() {
        tracing::info!(address = %address, "serving postgresql");
    }
    server.run(shutdown).await
}

/// Returns a registry with the metrics of the process.
pub(crate) fn process_metrics() -> Scope {
    let metrics = Scope::new();
    metrics.register_collector(ProcessMetrics::new());
    metrics
}
