//! The guard, which authenticates and authorizes requests before they reach the routes of the port.
//!
//! In: a request. Out: the request with its identity and its permitted tenants, or a refusal in the protocol of the
//! request. Handlers read the tenants from the header `X-Scope-OrgID`. The guard checks each tenant in the header. If
//! the header is missing and the identity has exactly one tenant, the guard sets the header. The guard does not check
//! requests that match no route, such as requests for the files of the web page. These files contain no user data.

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue};

use crate::server::access::decide::Access;
use crate::server::access::identity::Right;
use crate::server::access::refusal::Refusal;
use crate::server::access::rules::{Need, need};
use crate::server::access::{audit, login};
use alluvium_admin::drain::drain;
use alluvium_admin::grpc::failure;
use alluvium_admin::peer::Peer;
use alluvium_profile::Tenants;
use alluvium_wire::call::TENANT_HEADER;
use alluvium_wire::connect::ConnectError;
use alluvium_wire::grpc::Protocol;

/// The challenge of a response with status 401. It does not offer `Basic`, because browsers would then show their own
/// login dialog. Clients with a user and a password send them without a challenge.
const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"alluvium\"");

#[derive(Clone)]
struct Guard {
    access: Access,
    /// The path prefix of the routes, without a trailing `/`.
    prefix: String,
}

/// Puts the guard in front of routes at `/` and under `prefix`, and adds the routes for login and logout.
pub fn guard(routes: Router, access: Access, prefix: &str) -> Router {
    let prefix = prefix.trim_end_matches('/').to_owned();
    let mut routes = routes.merge(login::routes(access.clone(), ""));
    if !prefix.is_empty() {
        routes = routes.merge(login::routes(access.clone(), &prefix));
    }
    routes.layer(from_fn_with_state(Guard { access, prefix }, check))
}

async fn check(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let Some(route) = route(&request, &guard.prefix) else {
        return next.run(request).await;
    };
    let need = need(request.method(), &route);
    if guard.access.is_free(need, &route) {
        return next.run(request).await;
    }
    let is_admin = matches!(need, Need::Right(Right::Admin) | Need::Server(Right::Admin));
    let peer = request.extensions().get::<Peer>().cloned();
    let identity = match guard.access.identify(request.headers(), peer.as_ref()).await {
        Ok(identity) => identity,
        Err(refusal) => {
            if is_admin {
                audit::refused(None, &route, peer.as_ref(), refusal.reason());
            }
            return refuse(&guard.access, refusal, request).await;
        }
    };
    let allowed = guard.access.allow(&identity, need);
    let allowed = allowed.and_then(|()| match need {
        Need::Right(_) => guard.access.tenants(&identity, request.headers()),
        _ => Ok(None),
    });
    match allowed {
        Ok(Some(tenants)) => set_tenants(request.headers_mut(), &tenants),
        Ok(None) => {}
        Err(refusal) => {
            if is_admin {
                audit::refused(Some(&identity), &route, peer.as_ref(), refusal.reason());
            }
            return refuse(&guard.access, refusal, request).await;
        }
    }
    let tenant = is_admin.then(|| tenant_of(request.headers()));
    request.extensions_mut().insert(identity.clone());
    let response = next.run(request).await;
    if let Some(tenant) = tenant {
        audit::call(&identity, &route, &tenant, peer.as_ref(), response.status().as_u16());
    }
    response
}

/// Returns the template of the route without the prefix. `None` for files of the page and for unknown paths.
fn route(request: &Request, prefix: &str) -> Option<String> {
    let path = request.extensions().get::<MatchedPath>()?.as_str();
    let rest = path.strip_prefix(prefix).filter(|rest| rest.starts_with('/'));
    Some(rest.unwrap_or(path).to_owned())
}

fn tenant_of(headers: &HeaderMap) -> String {
    let value = headers.get(TENANT_HEADER).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

fn set_tenants(headers: &mut HeaderMap, tenants: &Tenants) {
    if let Ok(value) = HeaderValue::from_str(&tenants.to_string()) {
        headers.insert(TENANT_HEADER, value);
    }
}

/// Counts the refusal, drains the body of the request, and returns the response.
async fn refuse(access: &Access, refusal: Refusal, request: Request) -> Response {
    let refusal = access.refused(refusal);
    tracing::debug!(path = request.uri().path(), reason = refusal.reason(), "access refused");
    let protocol = Protocol::of(request.headers());
    drain(&mut request.into_body().into_data_stream()).await;
    answer(&refusal, protocol)
}

/// Returns the refusal as a response of the protocol.
pub(super) fn answer(refusal: &Refusal, protocol: Protocol) -> Response {
    let error = ConnectError::from(refusal);
    let mut response = match protocol {
        Protocol::Connect => error.clone().into_response(),
        Protocol::Grpc | Protocol::GrpcWeb => failure(error.code.grpc_number(), &error.message, &[]),
    };
    if protocol == Protocol::GrpcWeb {
        let kind = HeaderValue::from_static("application/grpc-web+proto");
        response.headers_mut().insert(CONTENT_TYPE, kind);
    }
    if error.status == 401 && protocol == Protocol::Connect {
        response.headers_mut().insert(WWW_AUTHENTICATE, CHALLENGE);
    }
    response
}
