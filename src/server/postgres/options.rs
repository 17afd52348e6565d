//! Options of the PostgreSQL port, and the errors of opening it.

use std::net::SocketAddr;
use std::time::Duration;

use crate::server::access::Access;
use crate::server::tls::{TlsError, TlsFiles};
use alluvium_base::net::listen_reason;
use alluvium_profile::TenantId;

/// A user of the PostgreSQL port.
#[derive(Clone)]
pub struct PostgresUser {
    /// User name that the client sends when it connects.
    pub name: String,
    /// Password. After the start, the port keeps only a salted hash of the password.
    pub password: String,
    /// Tenants that the user may read. The first one is used unless the database of the connection names another.
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

/// TLS of the PostgreSQL port: its files, and whether TLS is required.
#[derive(Debug, Clone)]
pub struct PostgresTls {
    /// Certificate, key, and authorities for client certificates.
    pub files: TlsFiles,
    /// If true, connections without TLS are refused.
    pub required: bool,
}

/// Address, users and limits of the port.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// `host:port`. The port 0 means any free port.
    pub listen: String,
    /// Users that may connect with SCRAM. If there are none and `access` requires no authentication, every program on
    /// this machine may connect. Other machines may then connect only if authentication is disabled explicitly.
    pub users: Vec<PostgresUser>,
    /// Authenticates all other users by a client certificate, a password or a token. A password or token is accepted
    /// only over TLS or from this machine.
    pub access: Access,
    /// The TLS files, and whether TLS is required. If not set, the port refuses TLS.
    pub tls: Option<PostgresTls>,
    /// True on a server with several tenants. The name of the database then selects the tenant. If the configured user
    /// or the identity has a list of tenants, the tenant must be in this list. Otherwise, any tenant is allowed.
    pub multi_tenant: bool,
    /// Maximum number of authenticated connections. Further connections are refused. Connections that are not
    /// authenticated do not count.
    pub max_connections: usize,
    /// Memory that all connections together may hold between messages: prepared statements, portals, large messages.
    pub memory_bytes: usize,
    /// Time after which an idle connection is closed.
    pub idle_timeout: Duration,
    /// Timeout for the startup of a connection: the TLS handshake, the startup message and authentication.
    pub startup_timeout: Duration,
    /// Maximum time for which the port waits for running queries after the shutdown signal.
    pub grace: Duration,
}

impl PostgresOptions {
    /// Returns the default options for this address.
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

/// Error when the port cannot be opened with the given options.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// The address could not be bound.
    #[error("cannot listen for PostgreSQL on {address}: {}", listen_reason(.source))]
    Listen {
        /// The configured address.
        address: String,
        /// Error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The certificate or the key is not usable.
    #[error("PostgreSQL port: {0}")]
    Tls(#[source] TlsError),
    /// Other machines could connect to the port without authentication.
    #[error(
        "the PostgreSQL port {0} is reachable from other machines, but requires no authentication: create a \
            token (alluvium token new), name a users file (--auth FILE), add postgres.users to the server's \
            configuration, set --auth none, or listen on 127.0.0.1"
    )]
    NoUsers(SocketAddr),
    /// A user has no name, no password or no tenant.
    #[error("user `{0}` of the PostgreSQL port needs a name, a password and at least one tenant")]
    User(String),
}
