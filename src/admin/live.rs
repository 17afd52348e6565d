//! Routes of live debugging: data that passes through a component, the amount of data that flows between the components
//! of a module, and the state of the controller.
//!
//! In: closures that access the engine. Out: Alloy's streams `/api/v0/web/debug/{id}` and `/api/v0/web/graph`, and
//! `/api/v0/web/controller`, which Alloy does not have. Each entry of a stream ends with `|;|`. This module checks
//! parameters. It does not read entries and does not depend on components.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use serde::Deserialize;

/// Terminator of every entry of a stream.
pub const SEPARATOR: &str = "|;|";

/// Default window of flow counts in seconds; the same as in Alloy.
const DEFAULT_WINDOW: u64 = 5;
/// Longest window in seconds; the same as in Alloy.
const LONGEST_WINDOW: u64 = 60;

/// Output format of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// A line of text, as in Alloy.
    #[default]
    Text,
    Json,
}

/// Reason why a component cannot be watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such component: 404.
    Unknown(String),
    /// Live debugging is off: 500, as in Alloy.
    Disabled(String),
}

/// Stream of debug entries of a component, formatted and terminated. Arguments: id, share of entries to return (0 to
/// 1), and form.
pub(crate) type WatchStream = Arc<dyn Fn(&str, f64, Form) -> Result<BoxStream<'static, Bytes>, Refusal> + Send + Sync>;
/// Stream of flow counts of a module, with one item per window. Arguments: id of the module (empty for the root), and
/// window.
pub(crate) type FlowStream = Arc<dyn Fn(&str, Duration) -> BoxStream<'static, Bytes> + Send + Sync>;
pub(crate) type Overview = Arc<dyn Fn() -> serde_json::Value + Send + Sync>;

#[derive(Clone)]
pub struct LiveState {
    /// `/api/v0/web/debug/{id}`
    pub watch: WatchStream,
    /// `/api/v0/web/graph` and `/api/v0/web/graph/{module}`
    pub flow: FlowStream,
    /// `/api/v0/web/controller`
    pub overview: Overview,
}

/// Returns the routes for this state.
pub fn router(state: LiveState) -> Router {
    Router::new()
        .route("/api/v0/web/debug/{*id}", get(watch))
        .route("/api/v0/web/graph", get(flow))
        .route("/api/v0/web/graph/{*module}", get(flow_of_module))
        .route("/api/v0/web/controller", get(overview))
        .with_state(state)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WatchQuery {
    sample_prob: Option<String>,
    format: Option<String>,
}

#[derive(Deserialize)]
struct FlowQuery {
    window: Option<String>,
}

async fn watch(State(state): State<LiveState>, Path(id): Path<String>, Query(query): Query<WatchQuery>) -> Response {
    let probability = match query.sample_prob.as_deref().filter(|text| !text.is_empty()) {
        None => Some(1.0),
        Some(text) => text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share)),
    };
    let Some(probability) = probability else {
        return bad_request("sampleProb must be a number between 0 and 1");
    };
    let form = match query.format.as_deref() {
        None | Some("" | "text") => Form::Text,
        Some("json") => Form::Json,
        Some(_) => return bad_request("format must be text or json"),
    };
    match (state.watch)(&id, probability, form) {
        Ok(entries) => stream(entries, form),
        Err(Refusal::Unknown(reason)) => (StatusCode::NOT_FOUND, format!("{reason}\n")).into_response(),
        Err(Refusal::Disabled(reason)) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{reason}\n")).into_response(),
    }
}

async fn flow(State(state): State<LiveState>, Query(query): Query<FlowQuery>) -> Response {
    flow_counts(&state, "", &query)
}

async fn flow_of_module(
    State(state): State<LiveState>,
    Path(module): Path<String>,
    Query(query): Query<FlowQuery>,
) -> Response {
    flow_counts(&state, module.trim_end_matches('/'), &query)
}

fn flow_counts(state: &LiveState, module: &str, query: &FlowQuery) -> Response {
    let seconds = match query.window.as_deref().filter(|text| !text.is_empty()) {
        None => Some(DEFAULT_WINDOW),
        Some(text) => text
            .parse()
            .ok()
            .filter(|seconds| (1..=LONGEST_WINDOW).contains(seconds)),
    };
    match seconds {
        Some(seconds) => stream((state.flow)(module, Duration::from_secs(seconds)), Form::Json),
        None => bad_request("window must be a whole number of seconds between 1 and 60"),
    }
}

async fn overview(State(state): State<LiveState>) -> Response {
    axum::Json((state.overview)()).into_response()
}

fn bad_request(message: &str) -> Response {
    (StatusCode::BAD_REQUEST, format!("{message}\n")).into_response()
}

fn stream(items: BoxStream<'static, Bytes>, form: Form) -> Response {
    let body = Body::from_stream(items.map(Ok::<_, std::convert::Infallible>));
    let kind = match form {
        Form::Text => "text/plain; charset=utf-8",
        // The stream is not one JSON document but a series of objects with separators.
        Form::Json => "text/plain; charset=utf-8; entries=json",
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        // Disables buffering in proxies, which would delay entries.
        (
            HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        ),
        (
            HeaderName::from_static("x-content-type-options"),
            HeaderValue::from_static("nosniff"),
        ),
    ];
    (headers, body).into_response()
}
