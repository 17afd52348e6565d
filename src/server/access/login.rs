//! Login, logout and the session of the page.
//!
//! In: a user and a password, or a token alone, as JSON. Out: a cookie with a random id. Scripts cannot read the
//! cookie, and browsers send it only to this site. `admin::browser` refuses requests of other sites before they reach
//! these routes.

use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, SET_COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::server::access::audit;
use crate::server::access::credentials::{COOKIE_NAME, session};
use crate::server::access::decide::Access;
use crate::server::access::refusal::Refusal;
use crate::server::access::sessions::LENGTH;
use alluvium_admin::peer::Peer;
use alluvium_wire::connect::ConnectError;

/// Maximum size of a login body. A token of an issuer may have several kilobytes.
const MAX_BODY_BYTES: usize = 32 << 10;

/// Timeout for reading a body.
const BODY_TIME: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    #[serde(default)]
    user: String,
    password: String,
}

/// Returns the routes below a prefix.
pub(super) fn routes(access: Access, prefix: &str) -> Router {
    Router::new()
        .route(&format!("{prefix}/api/v1/login"), post(login))
        .route(&format!("{prefix}/api/v1/logout"), post(logout))
        .route(&format!("{prefix}/api/v1/session"), get(show))
        .with_state(access)
}

/// `POST /api/v1/login`: returns status 204 with a cookie, or an error.
async fn login(State(access): State<Access>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let peer = parts.extensions.get::<Peer>();
    let body = tokio::time::timeout(BODY_TIME, to_bytes(body, MAX_BODY_BYTES)).await;
    let Some(Login { user, password }) = body
        .ok()
        .and_then(Result::ok)
        .filter(|_| is_json(&parts.headers))
        .and_then(|body| serde_json::from_slice(&body).ok())
    else {
        let message = "send `{\"user\": ..., \"password\": ...}` as application/json; for a token, omit the user";
        return ConnectError::invalid(message).into_response();
    };
    let address = peer.map(|peer| peer.address.ip());
    if !access.asks() {
        return ConnectError::invalid("this server requires no login").into_response();
    }
    match access.prove(&user, &password, address).await {
        Ok(proven) => {
            audit::login(&proven.identity, peer);
            let length = proven.length.min(LENGTH);
            let id = access.sessions().begin(proven.proof, length);
            with_cookie(&parts.headers, peer, &id, length)
        }
        Err(refusal) => {
            audit::login_refused(peer, refusal.reason());
            ConnectError::from(&access.refused(refusal)).into_response()
        }
    }
}

/// `POST /api/v1/logout`: ends the session of the cookie, if there is one.
async fn logout(State(access): State<Access>, request: Request) -> Response {
    if let Some(id) = session(request.headers()) {
        access.sessions().end(&id);
    }
    with_cookie(request.headers(), request.extensions().get(), "", Duration::ZERO)
}

/// `GET /api/v1/session`: returns whether callers must authenticate, and the identity of this caller.
async fn show(State(access): State<Access>, request: Request) -> Response {
    let peer = request.extensions().get::<Peer>();
    let identity = match access.identify(request.headers(), peer).await {
        Ok(identity) if identity.is_proven => json!({
            "name": &*identity.name,
            "roles": identity.rights.roles(),
            "tenants": identity.tenants.ids(),
        }),
        Ok(_) | Err(Refusal::Missing) => Value::Null,
        Err(refusal) => return ConnectError::from(&access.refused(refusal)).into_response(),
    };
    let by_cookie = session(request.headers()).is_some() && !identity.is_null();
    let answer = json!({ "asks": access.asks(), "identity": identity, "logged_in": by_cookie });
    ([(CACHE_CONTROL, "no-store")], axum::Json(answer)).into_response()
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| {
        kind.split(';')
            .next()
            .is_some_and(|kind| kind.trim() == "application/json")
    })
}

fn with_cookie(headers: &HeaderMap, peer: Option<&Peer>, id: &str, length: Duration) -> Response {
    let by_proxy = headers.get("x-forwarded-proto").is_some_and(|scheme| scheme == "https");
    let secure = if by_proxy || peer.is_some_and(|peer| peer.is_secure) {
        "; Secure"
    } else {
        ""
    };
    let age = length.as_secs();
    let cookie = format!("{COOKIE_NAME}={id}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{secure}");
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Ok(mut value) = HeaderValue::from_str(&cookie) {
        value.set_sensitive(true);
        response.headers_mut().insert(SET_COOKIE, value);
    }
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
