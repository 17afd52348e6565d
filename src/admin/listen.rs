//! The port of the server and of the collector: HTTP/1.1 and HTTP/2 on one listener, with or without TLS. Limits apply
//! to the resources that a client may use.
//!
//! In: an address, a router, and the shutdown signal. Out: served connections. `browser` refuses the requests of
//! foreign web pages. `connections` decides which connection closes when there are too many. After the signal, the port
//! accepts no connection, requests in progress finish, and connections that remain at the deadline are closed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::RETRY_AFTER;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tower::ServiceExt as _;

use crate::arriving::Arriving;
use crate::browser::{self, AllowedHosts, ArrivedAt};
use crate::connections::{self, ConnectionSlot, Connections, Sending};
use crate::peer::Peer;
use alluvium_base::bytes::ByteBudget;
use alluvium_base::log_throttle::LogThrottle;
use alluvium_base::net::{ACCEPT_PAUSE, ACCEPT_WARNING, has_left, listen_reason};
use alluvium_base::{Shutdown, descriptors};

/// Connection preface of an HTTP/2 client (RFC 9113, section 3.4).
const HTTP2_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Read buffer of an HTTP/1.1 connection in bytes. All headers must fit into it.
const HTTP1_BUFFER_BYTES: usize = 64 << 10;

/// Pause between two checks of a connection that has sent part of the preface.
const PREFACE_PAUSE: Duration = Duration::from_millis(10);

/// The port could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {}", listen_reason(.source))]
pub struct ListenError {
    /// Address that the caller passed.
    pub address: String,
    #[source]
    pub source: std::io::Error,
}

#[derive(Debug, Clone)]
pub struct ListenOptions {
    /// Maximum number of connections, limited to half of the file descriptors. At the limit, an idle connection is
    /// closed for a new one. While all connections have a request in progress, new connections wait in the kernel's
    /// queue.
    pub max_connections: usize,
    /// Maximum number of concurrent requests on one HTTP/2 connection.
    pub max_streams: u32,
    /// Receive window of an HTTP/2 connection in bytes, for all its requests. Must be at least 64 KiB, the initial
    /// window of HTTP/2. The default is small, because a client can send this number of bytes while its body still
    /// waits for a share of the memory budget.
    pub window_bytes: u32,
    /// Receive window of one request on an HTTP/2 connection in bytes, at most 2^31 - 1. `None` means `window_bytes`.
    pub stream_window_bytes: Option<u32>,
    /// Maximum size of a frame from an HTTP/2 client in bytes, from 16384 to 16777215. `None` means 16384.
    pub max_frame_bytes: Option<u32>,
    /// Time limit for request headers; also the idle timeout of an HTTP/1.1 connection.
    pub header_timeout: Duration,
    /// Interval of keep-alive pings on an idle HTTP/2 connection.
    pub keep_alive: Duration,
    /// Timeout for the response to a keep-alive ping. Without a response, the connection is closed.
    pub keep_alive_timeout: Duration,
    /// Timeout of a TLS handshake.
    pub handshake_timeout: Duration,
    /// Maximum number of concurrent TLS handshakes; further connections wait.
    pub max_handshakes: usize,
    /// Time that requests in progress have to finish after the shutdown signal.
    pub grace: Duration,
    /// Additional host names of this port that browsers may use, besides the names of this machine.
    pub allowed_hosts: AllowedHosts,
}

/// Returns the current TLS settings, or `None` for plain text. Called for every connection.
pub type Tls = Arc<dyn Fn() -> Option<TlsAcceptor> + Send + Sync>;

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            max_connections: 4096,
            max_streams: 256,
            window_bytes: 128 << 10,
            stream_window_bytes: None,
            max_frame_bytes: None,
            header_timeout: Duration::from_mins(1),
            keep_alive: Duration::from_secs(30),
            keep_alive_timeout: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(10),
            max_handshakes: 64,
            grace: Duration::from_secs(10),
            allowed_hosts: AllowedHosts::default(),
        }
    }
}

pub struct Listener {
    tcp: TcpListener,
    local: SocketAddr,
    options: ListenOptions,
    tls: Tls,
    unread: Option<ByteBudget>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Listener")
            .field("local", &self.local)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The stream of a connection, without or with TLS.
type Connection = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// A connection that was accepted.
struct Arrival {
    stream: TcpStream,
    /// Address of the client, or of a proxy.
    address: SocketAddr,
    local_address: ArrivedAt,
    slot: ConnectionSlot,
}

/// State that all connections of a port share.
struct Port {
    options: ListenOptions,
    tls: Tls,
    handshakes: Semaphore,
}

impl Listener {
    /// Opens `address` (`host:port`; port 0 selects a free port).
    pub async fn bind(address: &str, options: ListenOptions) -> Result<Self, ListenError> {
        let error = |source| ListenError {
            address: address.to_owned(),
            source,
        };
        let tcp = TcpListener::bind(address).await.map_err(error)?;
        let local = tcp.local_addr().map_err(error)?;
        Ok(Self {
            tcp,
            local,
            options,
            tls: Arc::new(|| None),
            unread: None,
        })
    }

    /// Creates a listener from a listening, non-blocking socket.
    pub fn of_socket(socket: std::net::TcpListener, options: ListenOptions) -> std::io::Result<Self> {
        let tcp = TcpListener::from_std(socket)?;
        Ok(Self {
            local: tcp.local_addr()?,
            tcp,
            options,
            tls: Arc::new(|| None),
            unread: None,
        })
    }

    /// Enables TLS on the port.
    #[must_use]
    pub fn with_tls(self, tls: Tls) -> Self {
        Self { tls, ..self }
    }

    /// Limits the response bytes that clients have not read yet. The budget `unread` applies to all clients together.
    #[must_use]
    pub fn with_unread(self, unread: ByteBudget) -> Self {
        Self {
            unread: Some(unread),
            ..self
        }
    }

    /// Returns the bound address with the actual port.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Serves until `shutdown`, then finishes requests in progress. Returns the number of connections that were cut
    /// off.
    pub async fn serve(self, router: Router, shutdown: Shutdown) -> usize {
        let graceful = GracefulShutdown::new();
        let slots = Connections::new(descriptors::connection_limit(self.options.max_connections), self.unread);
        let mut warning = LogThrottle::new(ACCEPT_WARNING);
        let mut connections = JoinSet::new();
        let (builder, grace) = (builder(&self.options), self.options.grace);
        let router = browser::guard(router, self.options.allowed_hosts.clone());
        let port = Arc::new(Port {
            handshakes: Semaphore::new(self.options.max_handshakes.max(1)),
            options: self.options,
            tls: self.tls,
        });
        loop {
            while connections.try_join_next().is_some() {}
            let accepted = tokio::select! {
                () = shutdown.cancelled() => break,
                accepted = self.tcp.accept() => accepted,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) if has_left(&error) => continue,
                Err(error) => {
                    if let Some(unsaid) = warning.try_log() {
                        tracing::warn!(error = %error, unsaid, "cannot accept a connection");
                    }
                    slots.give_way();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let slot = tokio::select! {
                () = shutdown.cancelled() => break,
                slot = slots.slot() => slot,
            };
            let local_address = ArrivedAt(stream.local_addr().unwrap_or(self.local));
            let arrival = Arrival {
                stream,
                address,
                local_address,
                slot,
            };
            let (port, router, builder) = (port.clone(), router.clone(), builder.clone());
            connections.spawn(port.serve(arrival, router, builder, graceful.watcher(), shutdown.clone()));
        }
        drop(self.tcp);
        let finished = async {
            graceful.shutdown().await;
            while connections.join_next().await.is_some() {}
        };
        if let Ok(()) = tokio::time::timeout(grace, finished).await {
            0
        } else {
            let cut_count = connections.len();
            tracing::warn!(
                connections = cut_count,
                "requests were cut off at the end of the grace period"
            );
            connections.shutdown().await;
            cut_count
        }
    }
}

impl Port {
    /// Serves a connection until it ends or must close.
    async fn serve(
        self: Arc<Self>,
        arrival: Arrival,
        router: Router,
        builder: auto::Builder<TokioExecutor>,
        watcher: Watcher,
        shutdown: Shutdown,
    ) {
        let Arrival {
            stream,
            address,
            local_address,
            slot,
        } = arrival;
        let result = tokio::select! {
            () = shutdown.cancelled() => return,
            () = slot.gives_way() => return,
            result = self.begin(stream) => result,
        };
        let (connection, builder) = match result {
            Ok((connection, true)) => (connection, builder.http2_only()),
            Ok((connection, false)) => (connection, builder.http1_only()),
            Err(error) => {
                tracing::debug!(error = %error, "connection failed before its first request");
                return;
            }
        };
        let (peer, requests) = (peer(&connection, address), slot.requests());
        let service = service_fn(move |mut request: http::Request<Incoming>| {
            request.extensions_mut().insert(local_address);
            request.extensions_mut().insert(peer.clone());
            let tracked_request = requests.begin();
            let request = request.map(|body| Arriving::new(body, requests.slots()));
            let answer = router.clone().oneshot(request);
            async move { answer.await.map(|response| answered(tracked_request, response)) }
        });
        let connection = builder.serve_connection(TokioIo::new(connection), service).into_owned();
        tokio::select! {
            () = slot.gives_way() => tracing::debug!(peer = %address, "connection was closed for a newer one"),
            ended = watcher.watch(connection) => {
                if let Err(error) = ended {
                    tracing::debug!(error = %error, "connection ended");
                }
            }
        }
    }

    /// Waits for the first bytes of a connection, and performs the TLS handshake if TLS is on. Returns true when the
    /// client uses HTTP/2.
    async fn begin(&self, stream: TcpStream) -> std::io::Result<(Connection, bool)> {
        let _ = stream.set_nodelay(true);
        let tls = (self.tls)();
        let Some(tls) = tls else {
            let is_http2 = with_timeout(self.options.header_timeout, is_http2(&stream)).await?;
            return Ok((Either::Left(stream), is_http2));
        };
        // Waits for the first byte, so that a silent client does not occupy a handshake slot.
        with_timeout(self.options.header_timeout, stream.peek(&mut [0])).await?;
        let _permit = self.handshakes.acquire().await.map_err(std::io::Error::other)?;
        let stream = with_timeout(self.options.handshake_timeout, tls.accept(stream)).await?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok((Either::Right(Box::new(stream)), is_http2))
    }
}

/// Returns the response to a request, or 503 if clients leave too many response bytes unread.
fn answered(tracked_request: connections::Request, response: Response) -> http::Response<Sending> {
    let (parts, body) = response.into_parts();
    if let Ok(held) = tracked_request.hold(&body) {
        return http::Response::from_parts(parts, tracked_request.answer(body, held));
    }
    let refusal = (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")]).into_response();
    refusal.map(|body| tracked_request.answer(body, None))
}

/// Returns the data about the client that is attached to every request of the connection.
fn peer(connection: &Connection, address: SocketAddr) -> Peer {
    let tls = match connection {
        Either::Left(_) => None,
        Either::Right(stream) => Some(stream.get_ref().1),
    };
    let certificate = tls.and_then(|tls| tls.peer_certificates()?.first());
    Peer {
        address,
        is_secure: tls.is_some(),
        certificate: certificate.map(|certificate| certificate.as_ref().into()),
    }
}

async fn with_timeout<T>(time: Duration, work: impl Future<Output = std::io::Result<T>>) -> std::io::Result<T> {
    tokio::time::timeout(time, work).await?
}

fn builder(options: &ListenOptions) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_timeout)
        .max_buf_size(HTTP1_BUFFER_BYTES)
        .half_close(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(options.max_streams)
        .max_header_list_size(64 << 10)
        .initial_stream_window_size(options.stream_window_bytes.unwrap_or(options.window_bytes))
        .initial_connection_window_size(options.window_bytes)
        .max_frame_size(options.max_frame_bytes)
        .keep_alive_interval(options.keep_alive)
        .keep_alive_timeout(options.keep_alive_timeout);
    builder
}

/// Returns true if the connection begins with the preface of HTTP/2. hyper's own detection has no time limit; this
/// check runs under the header timeout.
async fn is_http2(stream: &TcpStream) -> std::io::Result<bool> {
    let mut start = [0u8; HTTP2_PREFACE.len()];
    loop {
        let length = stream.peek(&mut start).await?;
        if length == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if start[..length] != HTTP2_PREFACE[..length] {
            return Ok(false);
        }
        if length == HTTP2_PREFACE.len() {
            return Ok(true);
        }
        tokio::time::sleep(PREFACE_PAUSE).await;
    }
}
