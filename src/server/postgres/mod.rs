//! The PostgreSQL port: our own accept loop over the messages of `pgwire`, one SQL session a connection, each bound to a tenant.
//!
//! In: options, a query engine, the shutdown signal. Out: served connections, bounded in number, in idle time and in
//! the size of what they send. Those of strangers and those of users are counted apart. Statements are checked and run
//! by `query`; here are protocol, authentication and TLS. Off unless a port is given.

mod arrivals;
mod auth;
mod cancel;
mod command;
mod connection;
mod encode;
mod extended;
mod failure;
mod parameters;
mod startup;
mod tls;
mod types;
mod wire;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::base::Shutdown;
use crate::base::net::{is_this_machine, listen_reason};
use crate::query::QueryEngine;
use crate::server::postgres::arrivals::{Arrival, Arrivals};
use crate::server::postgres::auth::Users;
use crate::server::postgres::cancel::Cancels;
use crate::server::postgres::wire::Wire;

/// Pause after a failed accept (no file descriptors left), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A user of the port.
#[derive(Clone)]
pub struct PostgresUser {
    /// Name.
    pub name: String,
    /// Password; kept as a salted hash from the start on.
    pub password: String,
    /// Tenants that the user may read; the first unless the database of the connection names another.
    pub tenants: Vec<String>,
}

impl std::fmt::Debug for PostgresUser {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("PostgresUser")
            .field("name", &self.name)
            .field("tenants", &self.tenants)
            .finish_non_exhaustive()
    }
}

/// Certificate and key.
#[derive(Debug, Clone)]
pub struct PostgresTls {
    /// PEM file of the certificate, those of its issuers after it.
    pub certificate: PathBuf,
    /// PEM file of its key.
    pub key: PathBuf,
    /// Refuse connections without TLS.
    pub required: bool,
}

/// How the port is run.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// `host:port`; port 0 takes a free one.
    pub listen: String,
    /// Who may connect. Without anybody, everybody on this machine may and nobody else.
    pub users: Vec<PostgresUser>,
    /// TLS, if any.
    pub tls: Option<PostgresTls>,
    /// Tenants are told apart: without users, the database of the connection names one.
    pub multi_tenant: bool,
    /// Connections of users at one time; more are refused. One that has not proven who it is takes no place of these.
    pub max_connections: usize,
    /// A connection that asks nothing for so long is closed.
    pub idle_timeout: Duration,
    /// Time to connect, to agree on TLS and to authenticate.
    pub startup_timeout: Duration,
    /// Time for queries in work after the signal to stop.
    pub grace: Duration,
}

impl PostgresOptions {
    /// Options for an address, nothing else said.
    pub fn new(listen: &str) -> Self {
        Self {
            listen: listen.to_owned(),
            users: Vec::new(),
            tls: None,
            multi_tenant: false,
            max_connections: 64,
            idle_timeout: Duration::from_secs(600),
            startup_timeout: Duration::from_secs(20),
            grace: Duration::from_secs(2),
        }
    }
}

/// The port could not be opened as it was asked for. Nothing is served then.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// The address cannot be had.
    #[error("cannot listen for PostgreSQL on {address}: {}", listen_reason(.source))]
    Listen {
        /// Address as it was given.
        address: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Certificate or key cannot be used.
    #[error("cannot use the certificate of the PostgreSQL port, {path}: {reason}")]
    Tls {
        /// Which file.
        path: String,
        /// Why.
        reason: String,
    },
    /// The port would be open to other machines without anybody having to say who they are.
    #[error(
        "the PostgreSQL port {0} can be reached from other machines, and there are no users: add postgres.users to the server's configuration, or listen on 127.0.0.1"
    )]
    NoUsers(SocketAddr),
    /// A user without a name, a password or a tenant.
    #[error("user `{0}` of the PostgreSQL port needs a name, a password and at least one tenant")]
    User(String),
}

/// The open port.
pub struct PostgresServer {
    tcp: TcpListener,
    local: SocketAddr,
    port: Arc<Port>,
}

/// What all connections share.
struct Port {
    engine: QueryEngine,
    users: Users,
    tls: Option<tls::Tls>,
    options: PostgresOptions,
    cancels: Cancels,
    slots: Arc<Semaphore>,
    arrivals: Arc<Arrivals>,
}

impl PostgresServer {
    /// Reads certificate and users, then opens the port. Whatever cannot be used is an error: nothing is served with less than was asked for.
    pub async fn bind(options: PostgresOptions, engine: QueryEngine) -> Result<Self, PostgresError> {
        let tls = options.tls.as_ref().map(tls::Tls::load).transpose()?;
        let users = Users::new(&options.users)?;
        let error = |source| PostgresError::Listen {
            address: options.listen.clone(),
            source,
        };
        let tcp = TcpListener::bind(&options.listen).await.map_err(error)?;
        let local = tcp.local_addr().map_err(error)?;
        if users.is_empty() && !is_this_machine(local.ip()) {
            return Err(PostgresError::NoUsers(local));
        }
        let slots = Arc::new(Semaphore::new(options.max_connections.max(1)));
        let port = Port {
            engine,
            users,
            tls,
            options,
            cancels: Cancels::default(),
            slots,
            arrivals: Arc::default(),
        };
        Ok(Self {
            tcp,
            local,
            port: Arc::new(port),
        })
    }

    /// Address with the real port.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Serves until `shutdown`, then lets queries in work end. Returns the number of connections that were cut off.
    pub async fn serve(self, shutdown: Shutdown) -> usize {
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let accepted = tokio::select! {
                () = shutdown.cancelled() => break,
                accepted = self.tcp.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let (port, shutdown) = (self.port.clone(), shutdown.clone());
                    let arrival = port.arrivals.begin();
                    connections.spawn(Box::pin(serve_one(port, stream, peer, arrival, shutdown)));
                }
                Err(error) => {
                    tracing::warn!(error = %error, "cannot accept a postgresql connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self.tcp);
        let finished = async { while connections.join_next().await.is_some() {} };
        match tokio::time::timeout(self.port.options.grace, finished).await {
            Ok(()) => 0,
            Err(_) => {
                let cut = connections.len();
                connections.shutdown().await;
                cut
            }
        }
    }
}

async fn serve_one(port: Arc<Port>, stream: TcpStream, peer: SocketAddr, arrival: Arrival, shutdown: Shutdown) {
    let _ = stream.set_nodelay(true);
    let started = tokio::select! {
        () = shutdown.cancelled() => return,
        () = arrival.gives_way() => {
            tracing::info!(peer = %peer, "postgresql connection gave way to newer ones before it had authenticated");
            return;
        }
        started = tokio::time::timeout(port.options.startup_timeout, startup::start(&port, Wire::new(stream), peer)) => started,
    };
    drop(arrival);
    match started {
        Ok(Ok(Some(connection))) => Box::pin(connection.serve(shutdown)).await,
        // A cancel request, or a peer that went away.
        Ok(Ok(None)) => {}
        Ok(Err(error)) => tracing::info!(peer = %peer, error = %error, "postgresql connection refused"),
        Err(_) => tracing::info!(peer = %peer, "postgresql connection took too long to begin"),
    }
}
