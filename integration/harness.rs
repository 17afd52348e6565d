//! A server in this process for tests: real sockets on 127.0.0.1 and real routes. Dropping the value shuts everything
//! down.
//!
//! In: a store (a mock or a real one). Out: a base URL and a client. Many test modules use this server.

use std::sync::Arc;

use alluvium::query::{QueryEngine, QueryLimits};
use alluvium::server::access::{Access, AccessMetrics, AccessOptions, guard};
use alluvium::server::tls::{PortTls, Protocols, TlsFiles};
use alluvium::server::{ProfileStore, Readiness, ServerMetrics, ServerOptions, ServerState, router};
use alluvium::store::tables::snapshot::{Snapshot, SnapshotSource};
use alluvium_admin::listen::{ListenOptions, Listener};
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_profile::sink::{ProfileSink, Receiver};
use alluvium_profile::{RawProfile, RefusedProfile, SinkError, TenantId, Tenants};
use alluvium_telemetry::metrics::Scope;
use alluvium_wire::call::Caller;
use alluvium_wire::push::PushClient;
use alluvium_wire::querier::QuerierClient;

pub(crate) use crate::program::client;

pub(crate) struct TestServer {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    /// A client without proxies.
    pub client: reqwest::Client,
    // Readiness that `/ready` reports.
    pub readiness: Readiness,
    pub metrics: Scope,
    shutdown: Shutdown,
    task: Option<tokio::task::JoinHandle<usize>>,
}

pub(crate) struct Nothing;

impl SnapshotSource for Nothing {
    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::default()
    }
}

/// A store that accepts all profiles and discards them.
pub(crate) struct Nowhere;

impl ProfileStore for Nowhere {
    fn sink(self: Arc<Self>, _tenant: &TenantId) -> Receiver {
        self
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), SinkError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl ProfileSink for Nowhere {
    fn append(&self, _profiles: Vec<RawProfile>) -> BoxFuture<'_, Vec<RefusedProfile>> {
        Box::pin(std::future::ready(Vec::new()))
    }
}

/// Parses a tenant id, which must be valid.
pub(crate) fn tenant(id: &str) -> TenantId {
    id.parse().unwrap()
}

/// Parses tenant ids, which must be valid.
pub(crate) fn tenants(ids: &str) -> Tenants {
    ids.parse().unwrap()
}

impl TestServer {
    /// Starts a server over a mock of a store, with no data to query.
    pub(crate) async fn start(store: Arc<dyn ProfileStore>, options: ServerOptions) -> Self {
        Self::start_with(store, Arc::new(Nothing), options, ListenOptions::default()).await
    }

    /// Starts a server over `store`. The server answers queries with the data of `source`.
    pub(crate) async fn start_with(
        store: Arc<dyn ProfileStore>,
        source: Arc<dyn SnapshotSource>,
        options: ServerOptions,
        listen: ListenOptions,
    ) -> Self {
        let engine = QueryEngine::new(source, QueryLimits::default()).unwrap();
        Self::start_over(store, engine, options, listen).await
    }

    /// Starts a server over `store`. `engine` answers the queries.
    pub(crate) async fn start_over(
        store: Arc<dyn ProfileStore>,
        engine: QueryEngine,
        options: ServerOptions,
        listen: ListenOptions,
    ) -> Self {
        let metrics = Scope::new();
        let readiness = Readiness::ready();
        let state = ServerState::new(store, engine, options, readiness.clone(), ServerMetrics::new(&metrics));
        let listener = Listener::bind("127.0.0.1:0", listen).await.unwrap();
        let url = format!("http://{}", listener.local_addr());
        Self::of(listener, router(state), url, metrics, readiness)
    }

    /// Starts a server with the access control of `access`. With certificates for `localhost`, it uses TLS.
    pub(crate) async fn start_guarded(
        store: Arc<dyn ProfileStore>,
        options: ServerOptions,
        mut access: AccessOptions,
        tls: Option<TlsFiles>,
    ) -> Self {
        let engine = QueryEngine::new(Arc::new(Nothing), QueryLimits::default()).unwrap();
        let (metrics, readiness) = (Scope::new(), Readiness::ready());
        access.multi_tenant = options.multi_tenant;
        let access = Access::new(access, AccessMetrics::new(&metrics)).unwrap();
        let state = ServerState::new(store, engine, options, readiness.clone(), ServerMetrics::new(&metrics));
        let prefix = state.options.prefix.clone();
        let mut listener = Listener::bind("127.0.0.1:0", ListenOptions::default()).await.unwrap();
        let mut url = format!("http://{}", listener.local_addr());
        if let Some(files) = tls {
            let tls = PortTls::read(files, Protocols::Http).unwrap();
            url = format!("https://localhost:{}", listener.local_addr().port());
            listener = listener.with_tls(Arc::new(move || Some(tls.current().acceptor)));
        }
        Self::of(listener, guard(router(state), access, &prefix), url, metrics, readiness)
    }

    /// Serves routes until the value is dropped.
    fn of(listener: Listener, routes: axum::Router, url: String, metrics: Scope, readiness: Readiness) -> Self {
        let shutdown = Shutdown::new();
        let task = tokio::spawn(listener.serve(routes, shutdown.clone()));
        Self {
            url,
            client: client(),
            readiness,
            metrics,
            shutdown,
            task: Some(task),
        }
    }

    pub(crate) fn post(&self, path: &str) -> reqwest::RequestBuilder {
        self.client.post(format!("{}{path}", self.url))
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, String) {
        let response = self.client.get(format!("{}{path}", self.url)).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    /// Returns a caller of this server under `prefix`.
    pub(crate) fn caller(&self, prefix: &str) -> Caller {
        Caller::new(self.client.clone(), format!("{}{prefix}", self.url).parse().unwrap())
    }

    // Returns a client of push.v1.
    pub(crate) fn pusher(&self) -> PushClient {
        PushClient::new(self.caller(""))
    }

    /// Returns a client of querier.v1.
    pub(crate) fn querier(&self) -> QuerierClient {
        QuerierClient::new(self.caller(""))
    }

    // Returns `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    /// Begins the shutdown of the server, but does not wait for its end.
    pub(crate) fn begin_stop(&self) {
        self.shutdown.cancel();
    }

    /// Stops the server. Returns the number of connections that had to be cut off.
    pub(crate) async fn stop(mut self) -> usize {
        self.shutdown.cancel();
        self.task.take().unwrap().await.unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}
