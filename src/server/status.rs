//! Routes about the server itself: readiness, build information, configuration, flush.
//!
//! In: plain GETs and one POST. Out: text or JSON.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use serde_json::json;

use crate::server::ServerState;
use crate::server::tenant::tenant;
use crate::wire::connect::ConnectError;

/// `GET /ready`: 200 `ready`, or 503 and the reason.
pub(super) async fn ready(State(state): State<ServerState>) -> Response {
    match state.readiness.reason().or_else(|| state.store.unavailable()) {
        None => "ready\n".into_response(),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")).into_response(),
    }
}

/// `GET /api/v1/status/buildinfo`, in the format of the Prometheus route with that name.
pub(super) async fn buildinfo() -> Response {
    Json(json!({
        "status": "success",
        "data": {
            "application": "alluvium",
            "version": env!("CARGO_PKG_VERSION"),
            "revision": option_env!("ALLUVIUM_REVISION").unwrap_or(""),
            "branch": "",
            "buildUser": "",
            "buildDate": "",
            "goVersion": "",
        },
    }))
    .into_response()
}

/// `GET /api/v1/status/config`.
pub(super) async fn config(State(state): State<ServerState>) -> String {
    state.options.settings.in_force()
}

/// `GET /api/v1/status/config/default`.
pub(super) async fn default_config(State(state): State<ServerState>) -> String {
    state.options.settings.default()
}

/// `GET /api/v1/status/config/diff`.
pub(super) async fn config_difference(State(state): State<ServerState>) -> String {
    state.options.settings.difference()
}

/// `GET /api/v1/tenant_limits`.
pub(super) async fn tenant_limits(State(state): State<ServerState>, headers: HeaderMap) -> Response {
    match tenant(&headers, &state.options) {
        Ok(tenant) => {
            let own = state.store.limits(&tenant);
            Json(state.options.settings.limits(&tenant, &own)).into_response()
        }
        Err(error) => error.into_response(),
    }
}

/// `POST /flush`: returns when all profiles accepted so far are in files.
pub(super) async fn flush(State(state): State<ServerState>) -> Response {
    match state.store.flush().await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => ConnectError::from(error).into_response(),
    }
}
