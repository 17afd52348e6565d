//! The table of routes: every one at `/` and once more under the prefix.
//!
//! In: a [`ServerState`]. Out: a router. What is no route of the API is looked for among the files of the page. `GET /profile` is a view of the
//! page although `/profile` is the usual prefix: the API has no route with an empty rest.

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use http::header::{ACCEPT, ALLOW, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request};

use crate::server::ServerState;
use crate::server::delete::delete;
use crate::server::ingest::ingest;
use crate::server::observe::observe;
use crate::server::push::push;
use crate::server::sql::sql;
use crate::server::{querier, status};
use crate::wire::connect::{Code, ConnectError};
use crate::wire::push::PUSH_ROUTE;
use crate::wire::querier::SERVICE;
use crate::wire::sql::SQL_ROUTE;

/// All routes of the server.
pub fn router(state: ServerState) -> Router {
    let mut router = Router::new();
    let prefix = state.options.prefix.clone();
    for (path, methods) in table() {
        router = router.route(&path, methods.clone());
        if !prefix.is_empty() {
            router = router.route(&format!("{prefix}{path}"), methods);
        }
    }
    router
        .fallback(page)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(state.clone(), observe))
        .with_state(state)
}

fn table() -> Vec<(String, MethodRouter<ServerState>)> {
    let calls: [(&str, MethodRouter<ServerState>); 9] = [
        ("ProfileTypes", post(querier::profile_types)),
        ("LabelNames", post(querier::label_names)),
        ("LabelValues", post(querier::label_values)),
        ("Series", post(querier::series)),
        ("SelectSeries", post(querier::select_series)),
        ("SelectMergeStacktraces", post(querier::merge_stacktraces)),
        ("SelectMergeSpanProfile", post(querier::merge_span_profile)),
        ("SelectMergeProfile", post(querier::merge_profile)),
        ("Diff", post(querier::diff)),
    ];
    let mut table = vec![
        (format!("/{PUSH_ROUTE}"), post(push)),
        ("/ingest".to_owned(), post(ingest)),
        ("/pyroscope/ingest".to_owned(), post(ingest)),
        (format!("/{SQL_ROUTE}"), post(sql)),
        ("/ready".to_owned(), get(status::ready)),
        ("/api/v1/status/buildinfo".to_owned(), get(status::buildinfo)),
        ("/flush".to_owned(), post(status::flush)),
        ("/api/v1/admin/delete".to_owned(), post(delete)),
    ];
    table.extend(
        calls
            .into_iter()
            .map(|(name, methods)| (format!("/{SERVICE}/{name}"), methods)),
    );
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

/// What is no route of the API: a file of the page, or nothing. An unknown call of a service is `unimplemented`, as Connect wants it.
async fn page(State(state): State<ServerState>, request: Request<Body>) -> Response {
    let whole = request.uri().path();
    let path = whole
        .strip_prefix(state.options.prefix.as_str())
        .and_then(|rest| rest.strip_prefix('/'))
        .unwrap_or_else(|| whole.trim_start_matches('/'));
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        if let Some(response) = state.page.get(path, request.headers()) {
            return response;
        }
        // A person sees the page and that there is no such view; a program gets an error that it can read.
        if is_for_a_person(request.headers()) && !path.contains('/') {
            return state.page.not_found(request.headers());
        }
    }
    let is_call = path.split_once('/').is_some_and(|(service, _)| service.contains(".v1"));
    if is_call && request.method() == Method::POST {
        return ConnectError::new(
            Code::Unimplemented,
            format!("`{path}` is not implemented by this server"),
        )
        .into_response();
    }
    let mut response = ConnectError::new(Code::NotFound, format!("there is nothing at `{whole}`")).into_response();
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Browsers that are led somewhere want HTML; what a page loads, and programs, do not say so.
fn is_for_a_person(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|kinds| kinds.contains("text/html"))
}
