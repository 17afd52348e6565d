//! The port of the server and of the collector: HTTP/1.1 and HTTP/2 on one listener, with TLS or without, with limits
//! on what a peer may hold.
//!
//! In: an address, a router, the shutdown signal. Out: served connections, without what foreign web pages ask for
//! (`browser`). When the signal comes no connection is accepted any more, requests in work are finished, and what is
//! left at the deadline is cut off.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tower::ServiceExt as _;

use crate::admin::browser::{self, AllowedHosts, ArrivedAt};
use crate::base::Shutdown;
use crate::base::net::listen_reason;

/// What an HTTP/2 client says first (RFC 9113, 3.4).
const HTTP2_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of an HTTP/1.1 connection that are read ahead; headers must fit.
const HTTP1_BUFFER_BYTES: usize = 64 << 10;

/// Bytes of all requests of an HTTP/2 connection that are read ahead: bodies wait outside for
/// their share of the memory.
const HTTP2_WINDOW_BYTES: u32 = 128 << 10;

/// Pause between two checks of a connection that has sent a part of the preface.
const PREFACE_PAUSE: Duration = Duration::from_millis(10);

/// Pause after a failed accept (no file descriptors left), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The port could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {}", listen_reason(.source))]
pub struct ListenError {
    /// Address as it was given.
    pub address: String,
    #[source]
    pub source: std::io::Error,
}

#[derive(Debug, Clone)]
pub struct ListenOptions {
    /// Connections at one time; more wait in the kernel's queue.
    pub max_connections: usize,
    /// Requests at one time on one HTTP/2 connection.
    pub max_streams: u32,
    /// Time for a request's headers; also the longest that an idle HTTP/1.1 connection is kept.
    pub header_timeout: Duration,
    /// An idle HTTP/2 connection is asked so often whether its peer still lives.
    pub keep_alive: Duration,
    /// Time for a TLS handshake.
    pub handshake_timeout: Duration,
    /// TLS handshakes at one time; further connections wait for their turn.
    pub max_handshakes: usize,
    /// Time for requests in work after the signal to stop.
    pub grace: Duration,
    /// Names of this port besides those of this machine.
    pub allowed_hosts: AllowedHosts,
}

/// The TLS in force, asked for with every connection; `None` for none.
pub type Tls = Arc<dyn Fn() -> Option<TlsAcceptor> + Send + Sync>;

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            max_connections: 4096,
            max_streams: 256,
            header_timeout: Duration::from_mins(1),
            keep_alive: Duration::from_secs(30),
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
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Listener")
            .field("local", &self.local)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// A connection before its first request.
type Connection = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// What all connections of a port share.
struct Port {
    options: ListenOptions,
    tls: Tls,
    handshakes: Semaphore,
}

impl Listener {
    /// Opens `address` (`host:port`; port 0 takes a free one).
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
        })
    }

    /// Serves on a socket that listens already and does not block.
    pub fn of_socket(socket: std::net::TcpListener, options: ListenOptions) -> std::io::Result<Self> {
        let tcp = TcpListener::from_std(socket)?;
        Ok(Self {
            local: tcp.local_addr()?,
            tcp,
            options,
            tls: Arc::new(|| None),
        })
    }

    /// The same port with TLS.
    #[must_use]
    pub fn with_tls(self, tls: Tls) -> Self {
        Self { tls, ..self }
    }

    /// Address with the real port.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Serves until `shutdown`, then finishes what is in work. Returns the number of connections that were cut off.
    pub async fn serve(self, router: Router, shutdown: Shutdown) -> usize {
        let graceful = GracefulShutdown::new();
        let slots = Arc::new(Semaphore::new(self.options.max_connections.max(1)));
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
            let next = async {
                let slot = slots.clone().acquire_owned().await.ok()?;
                Some((self.tcp.accept().await, slot))
            };
            let accepted = tokio::select! {
                () = shutdown.cancelled() => break,
                accepted = next => accepted,
            };
            let Some((accepted, slot)) = accepted else { break };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(error = %error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let arrived = ArrivedAt(stream.local_addr().unwrap_or(self.local));
            let service = router.clone().map_request(move |mut request: http::Request<_>| {
                request.extensions_mut().insert(arrived);
                request
            });
            let service = TowerToHyperService::new(service);
            let (builder, watcher, shutdown) = (builder.clone(), graceful.watcher(), shutdown.clone());
            let port = port.clone();
            connections.spawn(async move {
                let _slot = slot;
                let begun = tokio::select! {
                    () = shutdown.cancelled() => return,
                    begun = port.begin(stream) => begun,
                };
                let (connection, builder) = match begun {
                    Ok((connection, true)) => (connection, builder.http2_only()),
                    Ok((connection, false)) => (connection, builder.http1_only()),
                    Err(error) => {
                        tracing::debug!(error = %error, "connection did not begin");
                        return;
                    }
                };
                let connection = builder.serve_connection(TokioIo::new(connection), service).into_owned();
                if let Err(error) = watcher.watch(connection).await {
                    tracing::debug!(error = %error, "connection ended");
                }
            });
        }
        drop(self.tcp);
        let finished = async {
            graceful.shutdown().await;
            while connections.join_next().await.is_some() {}
        };
        if let Ok(()) = tokio::time::timeout(grace, finished).await {
            0
        } else {
            let cut = connections.len();
            tracing::warn!(
                connections = cut,
                "requests were cut off at the end of the grace period"
            );
            connections.shutdown().await;
            cut
        }
    }
}

impl Port {
    /// Waits for a connection to say something, and makes it secure where that is asked for. True for one that speaks
    /// HTTP/2.
    async fn begin(&self, stream: TcpStream) -> std::io::Result<(Connection, bool)> {
        let _ = stream.set_nodelay(true);
        let tls = (self.tls)();
        let Some(tls) = tls else {
            let is_http2 = in_time(self.options.header_timeout, is_http2(&stream)).await?;
            return Ok((Either::Left(stream), is_http2));
        };
        // A silent client takes no place among the handshakes.
        in_time(self.options.header_timeout, stream.peek(&mut [0])).await?;
        let _place = self.handshakes.acquire().await.map_err(std::io::Error::other)?;
        let stream = in_time(self.options.handshake_timeout, tls.accept(stream)).await?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok((Either::Right(Box::new(stream)), is_http2))
    }
}

async fn in_time<T>(time: Duration, work: impl Future<Output = std::io::Result<T>>) -> std::io::Result<T> {
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
        .initial_stream_window_size(HTTP2_WINDOW_BYTES)
        .initial_connection_window_size(HTTP2_WINDOW_BYTES)
        .keep_alive_interval(options.keep_alive)
        .keep_alive_timeout(options.keep_alive);
    builder
}

/// Peeks at the first bytes. hyper's own detection has no time limit; this one runs under the
/// header timeout.
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
