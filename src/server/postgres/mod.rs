//! The PostgreSQL port: accepts connections, and serves each of them with an SQL session for one tenant. `pgwire`
//! encodes and decodes the messages.
//!
//! In: options, a query engine, and the shutdown signal. Out: served connections, with limits on their number, idle
//! time and message size. Connections before and after authentication have separate limits. `query` checks and runs
//! statements. This module implements the protocol, authentication and TLS. By default, the port is disabled.

mod auth;
mod cancel;
mod command;
mod connection;
mod encode;
mod extended;
mod failure;
mod frames;
mod memory;
mod messages;
mod options;
mod parameters;
mod pending_logins;
mod port;
mod portal;
mod startup;
mod tls;
mod types;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::query::QueryEngine;
use crate::server::postgres::auth::Users;
use crate::server::postgres::cancel::Cancels;
use crate::server::postgres::memory::Memory;
use crate::server::postgres::pending_logins::PendingLogin;
use crate::server::postgres::port::PortState;
use crate::server::postgres::wire::Wire;
use alluvium_base::Shutdown;
use alluvium_base::log_throttle::LogThrottle;
use alluvium_base::net::{ACCEPT_PAUSE, ACCEPT_WARNING, has_left, is_this_machine};
use alluvium_base::pressure::MemoryPart;

pub use frames::count_messages;
pub use options::{PostgresError, PostgresOptions, PostgresTls, PostgresUser};

/// A port that is open but not yet served.
pub struct PostgresServer {
    tcp: TcpListener,
    local: SocketAddr,
    port: Arc<PortState>,
}

impl PostgresServer {
    /// Reads the certificate and the users, and then opens the port. Any unusable file or option is an error, so that
    /// the port is never served with less protection than configured.
    pub async fn bind(options: PostgresOptions, engine: QueryEngine) -> Result<Self, PostgresError> {
        let tls = options.tls.as_ref().map(tls::Tls::load).transpose()?;
        let users = Users::new(&options.users)?;
        let error = |source| PostgresError::Listen {
            address: options.listen.clone(),
            source,
        };
        let tcp = TcpListener::bind(&options.listen).await.map_err(error)?;
        let local = tcp.local_addr().map_err(error)?;
        let lets_others_in = users.is_empty() && !options.access.asks() && !options.access.is_open_on_purpose();
        if lets_others_in && !is_this_machine(local.ip()) {
            return Err(PostgresError::NoUsers(local));
        }
        let memory = Memory::new(options.memory_bytes);
        let slots = Arc::new(Semaphore::new(options.max_connections.max(1)));
        let port = PortState {
            engine,
            users,
            tls,
            options,
            cancels: Cancels::default(),
            slots,
            arrivals: Arc::default(),
            memory,
        };
        Ok(Self {
            tcp,
            local,
            port: Arc::new(port),
        })
    }

    /// Returns the bound address. If the configured port is 0, the address contains the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Returns a function that reports the memory of the connections, also while the port is served.
    pub(crate) fn memory(&self) -> impl Fn() -> MemoryPart + Send + Sync + use<> {
        let memory = self.port.memory.clone();
        move || memory.part()
    }

    /// Serves until `shutdown`, and then waits for running queries until the grace period ends. Returns the number of
    /// aborted connections.
    pub async fn serve(self, shutdown: Shutdown) -> usize {
        let mut connections = JoinSet::new();
        let mut warning = LogThrottle::new(ACCEPT_WARNING);
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
                Err(error) if has_left(&error) => {}
                Err(error) => {
                    if let Some(unsaid) = warning.try_log() {
                        tracing::warn!(error = %error, unsaid, "cannot accept a postgresql connection");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self.tcp);
        let finished = async { while connections.join_next().await.is_some() {} };
        if let Ok(()) = tokio::time::timeout(self.port.options.grace, finished).await {
            0
        } else {
            let aborted = connections.len();
            connections.shutdown().await;
            aborted
        }
    }
}

async fn serve_one(
    port: Arc<PortState>,
    stream: TcpStream,
    peer: SocketAddr,
    arrival: PendingLogin,
    shutdown: Shutdown,
) {
    let _ = stream.set_nodelay(true);
    let start = startup::start(&port, Wire::new(stream, port.memory.clone()), peer);
    let started = tokio::select! {
        () = shutdown.cancelled() => return,
        () = arrival.replaced() => {
            tracing::info!(peer = %peer, "postgresql connection closed before authentication: a newer one replaced it");
            return;
        }
        started = tokio::time::timeout(port.options.startup_timeout, start) => started,
    };
    drop(arrival);
    match started {
        Ok(Ok(Some(connection))) => Box::pin(connection.serve(shutdown)).await,
        // The client sent a cancel request, or disconnected.
        Ok(Ok(None)) => {}
        Ok(Err(error)) => tracing::info!(peer = %peer, error = %error, "postgresql connection refused"),
        Err(_) => tracing::info!(peer = %peer, "postgresql connection exceeded the startup timeout"),
    }
}
