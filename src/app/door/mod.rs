//! The collector's door: its listener as the `http` block protects it, TLS and basic authentication, changed by a reload while it is open.
//!
//! In: settings, prepared while a configuration is loaded and put in force with it; a bound socket. Out: connections that have passed the handshake, a router that asks for
//! the password, and a way for our own components to that router without a socket. It fails closed: what cannot be prepared fails the load. Connections that
//! are open stay as they were made; the password is asked for in every request.

mod password;
#[cfg(test)]
mod tests;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use bytes::Bytes;
use parking_lot::RwLock;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tower::ServiceExt as _;

use crate::base::Shutdown;
use crate::pipeline::check::settings::http::HttpSettings;
use crate::pipeline::component::ArgumentError;
use crate::pipeline::component::own_http::Answer;
use crate::pipeline::run::prepare::Apply;

use password::{Auth, ask_for_password};

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Handshakes at once; more connections wait in the kernel.
const MOST_HANDSHAKES: usize = 64;
/// Wait after a failed accept: the process has no file descriptors left, say.
const AFTER_FAILURE: Duration = Duration::from_millis(100);
/// Largest answer of our own that a component is given.
const MAX_OWN_ANSWER: usize = 64 << 20;

/// The protection in force. Clones are the same door.
#[derive(Clone, Default)]
pub(crate) struct Door(Arc<RwLock<Protection>>);

#[derive(Clone, Default)]
struct Protection {
    tls: Option<TlsAcceptor>,
    auth: Option<Arc<Auth>>,
}

impl Door {
    /// Reads what the settings name. The answer puts it in force.
    pub(crate) fn prepare(&self, settings: &HttpSettings) -> Result<Apply, ArgumentError> {
        let tls = settings.tls.as_ref().map(tls::server_config).transpose()?;
        let protection = Protection {
            tls: tls.map(TlsAcceptor::from),
            auth: settings.auth.as_ref().map(|settings| Arc::new(Auth::new(settings))),
        };
        let door = self.clone();
        Ok(Box::new(move || *door.0.write() = protection))
    }

    /// The routes behind the password.
    pub(crate) fn guard(&self, routes: Router) -> Router {
        routes.layer(from_fn_with_state(self.clone(), ask_for_password))
    }

    /// The socket as a listener of connections that have passed the handshake. One slow client holds up no other.
    pub(crate) fn listen(&self, socket: TcpListener, shutdown: Shutdown) -> Passed {
        let address = socket.local_addr();
        let (passed, connections) = mpsc::channel(1);
        tokio::spawn(accept(self.clone(), socket, passed, shutdown));
        Passed { connections, address }
    }
}

/// A component's way to the routes.
pub(crate) fn from_within(routes: Router) -> Answer {
    Arc::new(move |request: http::Request<Bytes>| {
        let routes = routes.clone();
        Box::pin(async move {
            let Ok(answer) = routes.oneshot(request.map(Body::from)).await;
            let (mut parts, body) = answer.into_parts();
            match axum::body::to_bytes(body, MAX_OWN_ANSWER).await {
                Ok(body) => http::Response::from_parts(parts, body),
                Err(error) => {
                    parts.status = StatusCode::INTERNAL_SERVER_ERROR;
                    http::Response::from_parts(parts, format!("the answer broke off: {error}\n").into())
                }
            }
        })
    })
}

/// A connection, plain or not.
type Connection = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// Connections that may be served.
pub(crate) struct Passed {
    connections: mpsc::Receiver<(Connection, SocketAddr)>,
    address: io::Result<SocketAddr>,
}

impl axum::serve::Listener for Passed {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.connections.recv().await {
            Some(connection) => connection,
            // The end: whoever serves stops by itself.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        match &self.address {
            Ok(address) => Ok(*address),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }
}

async fn accept(door: Door, socket: TcpListener, passed: mpsc::Sender<(Connection, SocketAddr)>, shutdown: Shutdown) {
    let room = Arc::new(Semaphore::new(MOST_HANDSHAKES));
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => return,
            () = passed.closed() => return,
            accepted = socket.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "a connection could not be accepted");
                tokio::time::sleep(AFTER_FAILURE).await;
                continue;
            }
        };
        let tls = door.0.read().tls.clone();
        let Some(tls) = tls else {
            if passed.send((Either::Left(stream), peer)).await.is_err() {
                return;
            }
            continue;
        };
        let Ok(permit) = room.clone().acquire_owned().await else {
            return;
        };
        let passed = passed.clone();
        tokio::spawn(async move {
            let handshake = tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await;
            drop(permit);
            match handshake {
                Ok(Ok(stream)) => _ = passed.send((Either::Right(Box::new(stream)), peer)).await,
                Ok(Err(error)) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
                Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
            }
        });
    }
}
