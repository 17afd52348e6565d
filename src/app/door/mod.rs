//! The collector's door: its listener as the `http` block protects it, TLS and basic authentication, changed by a
//! reload while it is open.
//!
//! In: settings, prepared while a configuration is loaded and put in force with it. Out: the TLS in force for
//! `admin::listen`, a router that asks for the password, and a way for our own components to that router without a
//! socket. It fails closed: what cannot be prepared fails the load. Connections that are open stay as they were made;
//! the password is asked for in every request.

mod password;
#[cfg(test)]
mod tests;
mod tls;

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
use crate::lang::argument_error::ArgumentError;
use crate::pipeline::check::settings::http::HttpSettings;
use crate::pipeline::component::own_http::Answer;
use crate::pipeline::run::prepare::Apply;

use password::Auth;

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
        routes.layer(from_fn_with_state(self.clone(), check_password))
    }

    /// The TLS in force, asked for with every connection.
    pub(crate) fn tls(&self) -> Tls {
        let door = self.clone();
        Arc::new(move || door.0.read().tls.clone())
    }

    /// True when requests need a password, be it for some paths only.
    pub(crate) fn has_password(&self) -> bool {
        self.0.read().auth.is_some()
    }
}

/// Hands a request on that may pass; answers the others.
async fn check_password(State(door): State<Door>, request: Request, next: Next) -> Response {
    let auth = door.0.read().auth.clone();
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
