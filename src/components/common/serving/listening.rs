//! A component's own port: the socket, and the settings for serving it.
//!
//! In: an address and settings. Out: a socket that survives updates as long as its address stays the same, and a
//! listener on the socket for each set of arguments. This module spawns no tasks.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;

use crate::common::serving::server_tls::server_config;
use alluvium_admin::listen::{ListenOptions, Listener};
use alluvium_base::net::listen_reason;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_pipeline::check::settings::http::TlsSettings;
use alluvium_pipeline::component::ComponentError;

/// Maximum number of concurrent connections if the configuration sets no limit.
const MAX_CONNECTIONS: usize = 65_536;

/// Maximum number of concurrent requests on a connection if the configuration sets no limit.
const MAX_STREAMS: u32 = 100;

/// Address and settings of a port, from the arguments of a component.
pub(crate) struct PortSettings<'a> {
    /// Name of the block with these arguments, for errors.
    pub block: &'static str,
    /// Host to listen on; empty for all addresses.
    pub host: &'a str,
    /// Port to listen on; 0 for any free port.
    pub port: u16,
    /// Certificates, or an error in their arguments; `None` for plain text.
    pub tls: Option<Result<TlsSettings, ArgumentError>>,
    /// Maximum number of concurrent connections. 0 and `None` mean [`MAX_CONNECTIONS`].
    pub max_connections: Option<usize>,
    /// Maximum number of concurrent requests on a connection. 0 means [`MAX_STREAMS`].
    pub max_streams: u64,
    /// Idle timeout of a connection without a request.
    pub idle: Duration,
    /// Sizes and pings of HTTP/2 connections.
    pub http2: Http2Settings,
}

/// Sizes and pings of HTTP/2 connections. `None` means the default of the listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Http2Settings {
    /// Receive window of a connection in bytes, from 65535 to 2^31 - 1.
    pub connection_window: Option<u32>,
    /// Receive window of a request in bytes, at most 2^31 - 1.
    pub stream_window: Option<u32>,
    /// Maximum size of a received frame in bytes, from 16384 to 16777215.
    pub max_frame: Option<u32>,
    /// Interval of the pings that the server sends.
    pub ping_interval: Option<Duration>,
    /// Timeout for the response to a ping.
    pub ping_timeout: Option<Duration>,
}

/// A listening socket, with its settings.
pub(crate) struct OpenPort {
    socket: TcpListener,
    local: SocketAddr,
    /// The requested address: `host:port`.
    address: String,
    options: ListenOptions,
    tls: Option<Arc<ServerConfig>>,
}

impl OpenPort {
    /// Opens the port, or uses the socket of `before` if the address is the same. Reads certificates.
    pub(crate) fn open(settings: PortSettings<'_>, before: Option<&Self>) -> Result<Self, ComponentError> {
        let tls = settings.tls.map(|tls| tls.and_then(|tls| server_config(&tls)));
        let tls = tls
            .transpose()
            .map_err(|error| ComponentError(format!("{}.{error}", settings.block)))?;
        let address = match settings.host {
            "" => format!("[::]:{}", settings.port),
            host => format!("{host}:{}", settings.port),
        };
        let socket = match before {
            Some(before) if before.address == address => before.socket.try_clone(),
            _ => bind(&address, settings.host, settings.port),
        };
        let opened = socket.and_then(|socket| {
            socket.set_nonblocking(true)?;
            Ok((socket.local_addr()?, socket))
        });
        let (local, socket) =
            opened.map_err(|error| ComponentError(format!("cannot listen on {address}: {}", listen_reason(&error))))?;
        let (http2, defaults) = (settings.http2, ListenOptions::default());
        let options = ListenOptions {
            max_connections: match settings.max_connections {
                Some(limit) if limit > 0 => limit,
                _ => MAX_CONNECTIONS,
            },
            max_streams: match u32::try_from(settings.max_streams).unwrap_or(u32::MAX) {
                0 => MAX_STREAMS,
                limit => limit,
            },
            header_timeout: settings.idle,
            window_bytes: http2.connection_window.unwrap_or(defaults.window_bytes),
            stream_window_bytes: http2.stream_window.or(Some(defaults.window_bytes)),
            max_frame_bytes: http2.max_frame,
            keep_alive: http2.ping_interval.unwrap_or(defaults.keep_alive),
            keep_alive_timeout: http2.ping_timeout.unwrap_or(defaults.keep_alive_timeout),
            ..defaults
        };
        Ok(Self {
            socket,
            local,
            address,
            options,
            tls,
        })
    }

    /// Returns the address, with the port that is actually used.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Returns a listener on the socket. After a stop of the listener, its requests may take `grace` to finish.
    pub(crate) fn listener(&self, grace: Duration) -> Result<Listener, ComponentError> {
        let options = ListenOptions {
            grace,
            ..self.options.clone()
        };
        let socket = self.socket.try_clone();
        let listener = socket.and_then(|socket| Listener::of_socket(socket, options));
        let listener = listener.map_err(|error| ComponentError(format!("cannot serve on the port: {error}")))?;
        let tls = self.tls.clone().map(TlsAcceptor::from);
        Ok(listener.with_tls(Arc::new(move || tls.clone())))
    }
}

/// Binds the socket. On a machine without IPv6, "all addresses" means all IPv4 addresses.
fn bind(address: &str, host: &str, port: u16) -> std::io::Result<TcpListener> {
    match TcpListener::bind(address) {
        Err(_) if host.is_empty() => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)),
        bound => bound,
    }
}
