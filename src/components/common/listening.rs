//! A component's own port: the socket, and how it is served.
//!
//! In: the `http` block. Out: a socket that survives updates as long as its address stays, and a listener on it for
//! each set of arguments. Nothing is spawned here.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;

use crate::admin::listen::{ListenOptions, Listener};
use crate::base::net::listen_reason;
use crate::components::common::server::HttpServer;
use crate::components::common::server_tls::server_config;
use crate::pipeline::component::ComponentError;

/// Connections at one time where the configuration sets no limit.
const MAX_CONNECTIONS: usize = 65_536;

/// A listening socket, with the arguments that it was opened with.
pub(crate) struct OpenPort {
    socket: TcpListener,
    local: SocketAddr,
    arguments: HttpServer,
    tls: Option<Arc<ServerConfig>>,
}

impl OpenPort {
    /// Opens the port, or takes over the socket of `before` when the address is the same. Reads certificates.
    pub(crate) fn open(arguments: &HttpServer, before: Option<&Self>) -> Result<Self, ComponentError> {
        let tls = arguments
            .tls
            .as_ref()
            .map(|tls| tls.settings().and_then(|tls| server_config(&tls)));
        let tls = tls
            .transpose()
            .map_err(|error| ComponentError(format!("http.{error}")))?;
        let address = address(arguments);
        let socket = match before {
            Some(before) if self::address(&before.arguments) == address => before.socket.try_clone(),
            _ => bind(&address, arguments),
        };
        let opened = socket.and_then(|socket| {
            socket.set_nonblocking(true)?;
            Ok((socket.local_addr()?, socket))
        });
        let (local, socket) =
            opened.map_err(|error| ComponentError(format!("cannot listen on {address}: {}", listen_reason(&error))))?;
        Ok(Self {
            socket,
            local,
            arguments: arguments.clone(),
            tls,
        })
    }

    /// What it was opened with.
    pub(crate) fn arguments(&self) -> &HttpServer {
        &self.arguments
    }

    /// The address, with the port that is really in use.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// A listener on the socket. When it is stopped, its requests may take `grace` to finish.
    pub(crate) fn listener(&self, grace: Duration) -> std::io::Result<Listener> {
        let arguments = &self.arguments;
        let options = ListenOptions {
            max_connections: match usize::try_from(arguments.listen.conn_limit) {
                Ok(limit) if limit > 0 => limit,
                _ => MAX_CONNECTIONS,
            },
            max_streams: u32::try_from(arguments.http2.max_concurrent_streams).unwrap_or(u32::MAX),
            header_timeout: arguments.server_idle_timeout,
            grace,
            ..ListenOptions::default()
        };
        let listener = Listener::of_socket(self.socket.try_clone()?, options)?;
        let tls = self.tls.clone().map(TlsAcceptor::from);
        Ok(listener.with_tls(Arc::new(move || tls.clone())))
    }
}

/// Binds the socket. A machine without IPv6 has only the IPv4 form of "all addresses".
fn bind(address: &str, arguments: &HttpServer) -> std::io::Result<TcpListener> {
    match TcpListener::bind(address) {
        Err(_) if arguments.listen.listen_address.is_empty() => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, arguments.listen_port.0))
        }
        bound => bound,
    }
}

/// `host:port`; no host is all addresses.
fn address(arguments: &HttpServer) -> String {
    let host = match &*arguments.listen.listen_address {
        "" => "[::]",
        host => host,
    };
    format!("{host}:{}", arguments.listen_port.0)
}
