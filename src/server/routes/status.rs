//! Routes about the server itself: readiness, build information, configuration, stored files, senders, and flush.
//!
//! In: plain GETs and one POST. Out: text or JSON.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{NaiveDate, TimeDelta};
use http::{HeaderMap, StatusCode};
use serde_json::json;

use crate::query::Holding;
use crate::server::services::about::{VERSION, revision};
use crate::server::state::shared::ServerState;
use crate::server::state::tenant::{tenant, tenants};
use alluvium_wire::connect::ConnectError;

/// `GET /ready`: returns 200 with `ready`, or 503 with the reason.
pub(in crate::server) async fn ready(State(state): State<ServerState>) -> Response {
    match state.not_ready() {
        None => "ready\n".into_response(),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")).into_response(),
    }
}

/// `GET /api/v1/status/buildinfo`: returns build information in the format of the Prometheus route with that name.
pub(super) async fn buildinfo() -> Response {
    Json(json!({
        "status": "success",
        "data": {
            "application": "alluvium",
            "version": VERSION,
            "revision": revision(),
            "branch": "",
            "buildUser": "",
            "buildDate": "",
            "goVersion": "",
        },
    }))
    .into_response()
}

/// `GET /api/v1/status/config`: returns the configuration in force.
pub(in crate::server) async fn config(State(state): State<ServerState>) -> String {
    state.options.settings.to_yaml()
}

/// `GET /api/v1/status/config/default`: returns the default configuration.
pub(super) async fn default_config(State(state): State<ServerState>) -> String {
    state.options.settings.default()
}

/// `GET /api/v1/status/config/diff`: returns the values that differ from the defaults.
pub(super) async fn config_difference(State(state): State<ServerState>) -> String {
    state.options.settings.difference()
}

/// `GET /api/v1/tenant_limits`: returns the limits of the tenant.
pub(super) async fn tenant_limits(State(state): State<ServerState>, headers: HeaderMap) -> Response {
    match tenant(&headers, &state.options) {
        Ok(tenant) => {
            let own = state.store.limits(&tenant);
            Json(state.options.settings.limits(&tenant, &own)).into_response()
        }
        Err(error) => error.into_response(),
    }
}

/// `GET /api/v1/status/storage`: returns the number, bytes and rows of the tenants' files, by table and by day, the
/// oldest day first.
pub(super) async fn storage(State(state): State<ServerState>, headers: HeaderMap) -> Response {
    let holdings = match tenants(&headers, &state.options) {
        Ok(tenants) => state.engine.holdings(&tenants),
        Err(error) => return error.into_response(),
    };
    let row = |key: &str, name: String, holding: &Holding| {
        let Holding { files, bytes, rows } = holding;
        json!({ key: name, "files": files, "bytes": bytes, "rows": rows })
    };
    let tables = holdings
        .tables
        .iter()
        .map(|(name, holding)| row("table", (*name).to_owned(), holding));
    let date = |day: i32| NaiveDate::default() + TimeDelta::days(day.into());
    let days = holdings
        .days
        .iter()
        .map(|(day, holding)| row("day", date(*day).to_string(), holding));
    Json(json!({ "tables": tables.collect::<Vec<_>>(), "days": days.collect::<Vec<_>>() })).into_response()
}

/// `GET /api/v1/status/senders`: returns the tenants' senders since the server started, the most recent
/// one first.
pub(in crate::server) async fn senders(State(state): State<ServerState>, headers: HeaderMap) -> Response {
    match tenants(&headers, &state.options) {
        Ok(tenants) => Json(json!({ "senders": state.senders.list(&tenants) })).into_response(),
        Err(error) => error.into_response(),
    }
}

/// `POST /flush`: returns when all profiles accepted so far are in files.
pub(in crate::server) async fn flush(State(state): State<ServerState>) -> Response {
    match state.store.flush().await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => ConnectError::from(error).into_response(),
    }
}
