//! The protection of the collector's port as the `http` block sets it: TLS and basic authentication, changed by a
//! reload while it is open.
//!
//! In: settings, prepared while a configuration is loaded and put in force with it. Out: the TLS in force for
//! `admin::listen`, a router that asks for the password, and a way for our own components to that router without a
//! socket. It fails closed: what cannot be prepared fails the load. Connections that are open stay as they were made;
//! the password is asked for in every request.

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

use crate::admin::listen::Tls;
use crate::components::common::server_tls;
use crate::lang::argument_error::ArgumentError;
use crate::pipeline::check::settings::http::HttpSettings;
use crate::pipeline::component::own_http::Answer;
use crate::pipeline::run::prepare::Apply;

use password::Auth;

/// Largest answer of our own that a component is given.
const MAX_OWN_ANSWER: usize = 64 << 20;

/// The protection of one port. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Protection(Arc<RwLock<Measures>>);

#[derive(Clone, Default)]
struct Measures {
    tls: Option<TlsAcceptor>,
    auth: Option<Arc<Auth>>,
}

impl Protection {
    /// Reads what the settings name. The answer puts it in force.
    pub(crate) fn prepare(&self, settings: &HttpSettings) -> Result<Apply, ArgumentError> {
        let tls = settings.tls.as_ref().map(server_tls::server_config).transpose()?;
        let measures = Measures {
            tls: tls.map(TlsAcceptor::from),
            auth: settings.auth.as_ref().map(|settings| Arc::new(Auth::new(settings))),
        };
        let protection = self.clone();
        Ok(Box::new(move || *protection.0.write() = measures))
    }

    /// The routes behind the password.
    pub(crate) fn guard(&self, routes: Router) -> Router {
        routes.layer(from_fn_with_state(self.clone(), check_password))
    }

    /// The TLS in force, asked for with every connection.
    pub(crate) fn tls(&self) -> Tls {
        let protection = self.clone();
        Arc::new(move || protection.0.read().tls.clone())
    }

    /// True when requests need a password, be it for some paths only.
    pub(crate) fn has_password(&self) -> bool {
        self.0.read().auth.is_some()
    }
}

/// Hands a request on that may pass; answers the others.
async fn check_password(State(protection): State<Protection>, request: Request, next: Next) -> Response {
    let auth = protection.0.read().auth.clone();
    match auth {
        Some(auth) if !auth.lets_in(&request) => password::unauthorized(),
        _ => next.run(request).await,
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
