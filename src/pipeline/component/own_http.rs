//! Access of components to the program's own HTTP endpoints, in the process and without a socket.
//!
//! In: an address that identifies the endpoints (`alloy.internal:12345`) and, later, the function that handles
//! requests. Out: responses. Components that fetch from targets use these endpoints for targets with that address.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use alluvium_base::BoxFuture;

/// Handles a request to one of the program's endpoints.
pub type Handler = Arc<dyn Fn(http::Request<Bytes>) -> BoxFuture<'static, http::Response<Bytes>> + Send + Sync>;

/// The program's endpoints. Clones share them; the default has no address.
#[derive(Clone, Default)]
pub struct OwnHttp(Arc<Endpoints>);

#[derive(Default)]
struct Endpoints {
    address: Box<str>,
    handler: OnceLock<Handler>,
}

impl OwnHttp {
    /// Creates the endpoints at this `host:port`, without a handler yet.
    pub fn new(address: &str) -> Self {
        Self(Arc::new(Endpoints {
            address: address.to_ascii_lowercase().into(),
            handler: OnceLock::new(),
        }))
    }

    /// Sets the handler; only the first call has an effect.
    pub fn set(&self, handler: Handler) {
        let _ = self.0.handler.set(handler);
    }

    /// Returns the `host:port` of the endpoints; empty if the program has no endpoints.
    pub fn address(&self) -> &str {
        &self.0.address
    }

    /// True if host and port are those of the endpoints.
    pub fn is_at(&self, host: &str, port: Option<u16>) -> bool {
        let split = self.0.address.rsplit_once(':');
        split.is_some_and(|(own_host, own_port)| {
            host.eq_ignore_ascii_case(own_host) && port.is_some_and(|port| own_port.parse() == Ok(port))
        })
    }

    /// Returns the response to a request; 503 before the handler is set.
    pub async fn send(&self, request: http::Request<Bytes>) -> http::Response<Bytes> {
        if let Some(handler) = self.0.handler.get() {
            handler(request).await
        } else {
            let mut response = http::Response::new(Bytes::from_static(b"the endpoints are not ready yet\n"));
            *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
            response
        }
    }
}
