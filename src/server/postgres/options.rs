//! Options of the PostgreSQL port and errors of opening it.

use std::net::SocketAddr;
use std::time::Duration;

use crate::base::net::listen_reason;
use crate::profile::TenantId;
use crate::server::access::Access;
use crate::server::tls::{TlsError, TlsFiles};

/// A user of the PostgreSQL port.
#[derive(Clone)]
pub struct PostgresUser {
    /// Name that the client gives when it connects.
    pub name: String,
    /// Password; kept as a salted hash from the start on.
    pub password: String,
    /// Tenants that the user may read; the first is used unless the database of the connection names another.
    pub tenants: Vec<TenantId>,
}

impl std::fmt::Debug for PostgresUser {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("PostgresUser")
            .field("name", &self.name)
            .field("tenants", &self.tenants)
            .finish_non_exhaustive()
    }
}

/// TLS of the PostgreSQL port: its files, and who needs it.
#[derive(Debug, Clone)]
pub struct PostgresTls {
    /// Certificate, key and authorities of clients.
    pub files: TlsFiles,
    /// Refuse connections without TLS.
    pub required: bool,
}

/// Address, users and limits of the port.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// `host:port`; port 0 takes a free one.
    pub listen: String,
    /// Users that may connect, by SCRAM. Without them, and while `access` asks nobody, all programs on this machine may
    /// connect, and no others.
    pub users: Vec<PostgresUser>,
    /// Who else may connect: by a password or token over TLS or from this machine, or by a client certificate.
    pub access: Access,
    /// Certificate and key; without them TLS is refused.
    pub tls: Option<PostgresTls>,
    /// True for several tenants: without users, the database of the connection then names the tenant.
    pub multi_tenant: bool,
    /// Maximum number of authenticated connections; more are refused. Connections that are not authenticated do not
    /// count.
    pub max_connections: usize,
    /// Memory that all connections together may hold between messages: prepared statements, portals, large messages.
    pub memory_bytes: usize,
    /// Time after which an idle connection is closed.
    pub idle_timeout: Duration,
    /// Time to connect, to agree on TLS and to authenticate.
    pub startup_timeout: Duration,
    /// Time for running queries after the signal to stop.
    pub grace: Duration,
}

impl PostgresOptions {
    /// Default options with this address.
    pub fn new(listen: &str) -> Self {
        Self {
            listen: listen.to_owned(),
            users: Vec::new(),
            access: Access::default(),
            tls: None,
            multi_tenant: false,
            max_connections: 64,
            memory_bytes: 64 << 20,
            idle_timeout: Duration::from_mins(10),
            startup_timeout: Duration::from_secs(20),
            grace: Duration::from_secs(2),
        }
    }
}

/// Why the port could not be opened with these options.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// The address could not be bound.
    #[error("cannot listen for PostgreSQL on {address}: {}", listen_reason(.source))]
    Listen {
        /// Address as it was given.
        address: String,
        /// Error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// Certificate or key cannot be used.
    #[error("for PostgreSQL: {0}")]
    Tls(#[source] TlsError),
    /// Other machines could connect to the port without authentication.
    #[error(
        "the PostgreSQL port {0} can be reached from other machines, and nobody would be asked for a password: make a \
            token (alluvium token new), name a file of users (--auth FILE), add postgres.users to the server's \
            configuration, say --auth none, or listen on 127.0.0.1"
    )]
    NoUsers(SocketAddr),
    /// A user without a name, a password or a tenant.
    #[error("user `{0}` of the PostgreSQL port needs a name, a password and at least one tenant")]
    User(String),
}
