//! The table of routes. Each route is served at `/` and under the prefix.
//!
//! In: a [`ServerState`]. Out: a router. If a path is not a route of the API, the router looks for a file of the page.
//! `/profile` is both the default prefix and a view of the page. The two do not conflict, because no route of the API
//! consists of the prefix alone.

use std::collections::HashSet;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use http::header::{ACCEPT, ALLOW, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request};

use crate::server::calls::grpc;
use crate::server::calls::observe::observe;
use crate::server::routes::delete::delete;
use crate::server::routes::ingest::ingest;
use crate::server::routes::sql::sql;
use crate::server::routes::{adhoc, otlp, profefe, prometheus, render, services, status};
use crate::server::state::shared::ServerState;
use alluvium_wire::connect::{Code, ConnectError};
use alluvium_wire::grpc::Protocol;
use alluvium_wire::otlp::HTTP_ROUTE;
use alluvium_wire::sql::SQL_ROUTE;

/// Builds a router with all routes of the server.
pub fn router(state: ServerState) -> Router {
    let mut router = Router::new();
    let prefix = &state.options.prefix;
    // With the prefix `/pyroscope`, the route `/ingest` has the path of the separate route `/pyroscope/ingest`.
    let mut used_paths = HashSet::new();
    for (path, methods) in table(&state) {
        for path in [format!("{prefix}{path}"), path] {
            if used_paths.insert(path.clone()) {
                router = router.route(&path, methods.clone());
            }
        }
    }
    router
        .fallback(page)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(state.clone(), observe))
        .with_state(state)
}

fn table(state: &ServerState) -> Vec<(String, MethodRouter<ServerState>)> {
    let mut table: Vec<(String, MethodRouter<ServerState>)> = vec![
        ("/ingest".to_owned(), post(ingest)),
        ("/pyroscope/ingest".to_owned(), post(ingest)),
        (format!("/{HTTP_ROUTE}"), post(otlp::export)),
        (format!("/{SQL_ROUTE}"), post(sql)),
        ("/ready".to_owned(), get(status::ready)),
        ("/api/v1/status/buildinfo".to_owned(), get(status::buildinfo)),
        ("/api/v1/status/config".to_owned(), get(status::config)),
        ("/api/v1/status/config/default".to_owned(), get(status::default_config)),
        ("/api/v1/status/config/diff".to_owned(), get(status::config_difference)),
        ("/api/v1/status/storage".to_owned(), get(status::storage)),
        ("/api/v1/status/senders".to_owned(), get(status::senders)),
        ("/api/v1/tenant_limits".to_owned(), get(status::tenant_limits)),
        ("/flush".to_owned(), post(status::flush)),
        ("/api/v1/admin/delete".to_owned(), post(delete)),
        ("/api/v1/adhoc".to_owned(), post(adhoc::show)),
        (prometheus::PATH.to_owned(), get(prometheus::query_range)),
    ];
    table.extend(render::routes());
    table.extend(profefe::routes());
    table.extend(services::routes(state));
    table
}

async fn wrong_method(request: Request<Body>) -> Response {
    let allowed = if request.method() == Method::POST {
        "GET"
    } else {
        "POST"
    };
    let mut response = ConnectError::new(
        Code::Unimplemented,
        format!("method {} is not allowed here, use {allowed}", request.method()),
    )
    .with_status(405)
    .into_response();
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// Handles paths that are not routes of the API. The response is a file of the page or the error `not_found`. For an
/// unknown call of a service, the error is `unimplemented`, as Connect requires.
async fn page(State(state): State<ServerState>, request: Request<Body>) -> Response {
    let full_path = request.uri().path();
    let path = full_path
        .strip_prefix(state.options.prefix.as_str())
        .and_then(|rest| rest.strip_prefix('/'))
        .unwrap_or_else(|| full_path.trim_start_matches('/'));
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        if let Some(response) = state.page.get(path, request.headers()) {
            return response;
        }
        // A browser receives the page, which shows that the view does not exist. A program receives an error that it
        // can parse.
        if is_browser_navigation(request.headers()) && !path.contains('/') {
            return state.page.not_found(request.headers());
        }
    }
    let protocol = Protocol::of(request.headers());
    let is_call = path.split_once('/').is_some_and(|(service, _)| service.contains(".v1"));
    if request.method() == Method::POST && (is_call || protocol != Protocol::Connect) {
        let message = format!("`{path}` is not implemented by this server");
        let error = ConnectError::new(Code::Unimplemented, message);
        return match protocol {
            Protocol::Connect => error.into_response(),
            Protocol::Grpc | Protocol::GrpcWeb => grpc::refusal(&error),
        };
    }
    let mut response = ConnectError::new(Code::NotFound, format!("there is nothing at `{full_path}`")).into_response();
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Returns true for browser navigation, which requests HTML. Programs, and browsers that load resources of a page, do
/// not request HTML.
fn is_browser_navigation(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|kinds| kinds.contains("text/html"))
}
