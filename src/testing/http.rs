//! HTTP servers for tests: on a free port or on a socket file, until a guard is dropped.

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite};
use url::Url;

/// Serves `router` on a free port until the returned guard is dropped. The URL has no trailing slash.
pub async fn serve(router: Router) -> (String, Server) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let task = tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(serve_connection(stream, router.clone()));
        }
    });
    (format!("http://{address}"), Server(task))
}

/// Serves `router` on a socket file until the returned guard is dropped.
pub fn serve_unix(router: Router, socket: &Path) -> Server {
    let listener = tokio::net::UnixListener::bind(socket).expect("a socket");
    Server(tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(serve_connection(stream, router.clone()));
        }
    }))
}

async fn serve_connection(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, router: Router) {
    let service = hyper_util::service::TowerToHyperService::new(router);
    let io = hyper_util::rt::TokioIo::new(stream);
    let builder = hyper_util::server::conn::auto::Builder::new(hyper_util::rt::TokioExecutor::new());
    let _ = builder.serve_connection(io, service).await;
}

/// Serves an API. `answer` receives the head and the body of a request, and returns the status and the body of the
/// response. The returned URL has no path.
pub async fn serve_api(
    answer: impl Fn(&axum::http::request::Parts, &str) -> (StatusCode, String) + Send + Sync + 'static,
) -> (Url, Server) {
    let answer = Arc::new(answer);
    let router = Router::new().fallback(move |request: axum::http::Request<axum::body::Body>| {
        let answer = answer.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = axum::body::to_bytes(body, 1 << 20).await.expect("a body");
            answer(&parts, &String::from_utf8_lossy(&body))
        }
    });
    let (url, server) = serve(router).await;
    (url.parse().expect("a URL"), server)
}

/// Stops the server when dropped.
pub struct Server(tokio::task::JoinHandle<()>);

impl Server {
    /// Returns a guard for `task`, which serves another protocol.
    pub fn of(task: tokio::task::JoinHandle<()>) -> Self {
        Self(task)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.0.abort();
    }
}
