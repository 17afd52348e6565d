//! Protection of the collector's port by the `http` block: TLS and basic authentication, which a reload can change
//! while the port is open.
//!
//! In: settings, prepared while a configuration loads and applied together with it. Out: the current TLS settings for
//! `admin::listen`, a router that requires the password, and a function by which our own components call that router
//! without a socket. The protection fails closed: if settings cannot be prepared, the load fails. Open connections keep
//! their TLS settings; the password is checked for every request.

mod password;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use bytes::Bytes;
use parking_lot::RwLock;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use alluvium_admin::listen::Tls;
use alluvium_components::common::serving::server_tls;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_pipeline::check::settings::http::HttpSettings;
use alluvium_pipeline::component::own_http::Handler;
use alluvium_pipeline::run::prepare::Apply;

use password::Auth;

/// Maximum size of a response that a component receives from our own endpoints, in bytes.
const MAX_OWN_ANSWER: usize = 64 << 20;

/// The protection of one port. Clones share the settings.
#[derive(Clone, Default)]
pub(crate) struct Protection(Arc<RwLock<Measures>>);

#[derive(Clone, Default)]
struct Measures {
    tls: Option<TlsAcceptor>,
    auth: Option<Arc<Auth>>,
}

impl Protection {
    /// Reads the files that the settings name. The returned function applies the settings.
    pub(crate) fn prepare(&self, settings: &HttpSettings) -> Result<Apply, ArgumentError> {
        let tls = settings.tls.as_ref().map(server_tls::server_config).transpose()?;
        let measures = Measures {
            tls: tls.map(TlsAcceptor::from),
            auth: settings.auth.as_ref().map(|settings| Arc::new(Auth::new(settings))),
        };
        let protection = self.clone();
        Ok(Box::new(move || *protection.0.write() = measures))
    }

    /// Wraps routes with the password check.
    pub(crate) fn guard(&self, routes: Router) -> Router {
        routes.layer(from_fn_with_state(self.clone(), check_password))
    }

    /// Returns a function that returns the current TLS settings. The port calls it for every new connection.
    pub(crate) fn tls(&self) -> Tls {
        let protection = self.clone();
        Arc::new(move || protection.0.read().tls.clone())
    }

    /// Returns true if requests need a password, for all paths or for some paths.
    pub(crate) fn has_password(&self) -> bool {
        self.0.read().auth.is_some()
    }
}

/// Forwards authorized requests, and refuses all other requests with status 401.
async fn check_password(State(protection): State<Protection>, request: Request, next: Next) -> Response {
    let auth = protection.0.read().auth.clone();
    match auth {
        Some(auth) if !auth.lets_in(&request) => password::unauthorized(),
        _ => next.run(request).await,
    }
}

/// Returns a function with which components call the routes without a socket.
pub(crate) fn from_within(routes: Router) -> Handler {
    Arc::new(move |request: http::Request<Bytes>| {
        let routes = routes.clone();
        Box::pin(async move {
            let Ok(answer) = routes.oneshot(request.map(Body::from)).await;
            let (mut parts, body) = answer.into_parts();
            match axum::body::to_bytes(body, MAX_OWN_ANSWER).await {
                Ok(body) => http::Response::from_parts(parts, body),
                Err(error) => {
                    parts.status = StatusCode::INTERNAL_SERVER_ERROR;
                    http::Response::from_parts(parts, format!("cannot read the response: {error}\n").into())
                }
            }
        })
    })
}
