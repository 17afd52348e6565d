//! HTTP routes that the collector and the server share: metrics, health, reload, profiles of ourselves, the components.
//!
//! In: a handful of closures, so that this layer knows neither the engine nor the store. Out: one router, to be merged into another; a route whose closure is
//! absent is absent. Paths, status codes and texts are those that Alloy's users and probes expect. Does not listen, log requests or
//! authenticate.

pub mod collector_page;
pub mod live;
pub mod page;
mod pprof;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::base::BoxFuture;
use crate::telemetry::metrics::{self, Scope};
use crate::telemetry::profiling::Profiling;

/// Says whether something is as it should be: `Ok` or the reason, a text for people.
pub type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;
/// Reads the configuration again: `Err` has the diagnostics.
pub type Reload = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;
/// All components.
pub type Components = Arc<dyn Fn() -> serde_json::Value + Send + Sync>;
/// One component by its id; `None` when there is none.
pub type Component = Arc<dyn Fn(&str) -> Option<serde_json::Value> + Send + Sync>;

/// What the routes need.
#[derive(Clone)]
pub struct AdminState {
    /// `/metrics`.
    pub metrics: Scope,
    /// `/-/ready`: 200, or 503 with the reason.
    pub ready: Check,
    /// `/-/healthy`: 200, or 500 with the reason.
    pub healthy: Check,
    /// `/debug/pprof/*`.
    pub profiling: Option<Profiling>,
    /// `/-/reload`: 200, or 400 with the diagnostics.
    pub reload: Option<Reload>,
    /// `/api/v0/web/components`.
    pub components: Option<Components>,
    /// `/api/v0/web/components/{id}`.
    pub component: Option<Component>,
}

/// The routes for this state.
pub fn router(state: AdminState) -> Router {
    let mut router = Router::new()
        .route("/metrics", get(metrics))
        .route("/-/ready", get(ready))
        .route("/-/healthy", get(healthy));
    if state.reload.is_some() {
        router = router.route("/-/reload", get(reload).post(reload));
    }
    if state.components.is_some() {
        router = router.route("/api/v0/web/components", get(components));
    }
    if state.component.is_some() {
        // An id of a component inside a module has slashes.
        router = router.route("/api/v0/web/components/{*id}", get(component));
    }
    let profiles = state.profiling.clone().map(pprof::router);
    let router = router.with_state(state);
    match profiles {
        Some(profiles) => router.merge(profiles),
        None => router,
    }
}

async fn metrics(State(state): State<AdminState>) -> Response {
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], state.metrics.encode()).into_response()
}

async fn ready(State(state): State<AdminState>) -> Response {
    match (state.ready)() {
        Ok(()) => "Alluvium is ready.\n".into_response(),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response(),
    }
}

async fn healthy(State(state): State<AdminState>) -> Response {
    match (state.healthy)() {
        Ok(()) => "All components are healthy.\n".into_response(),
        Err(reason) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{reason}\n")).into_response(),
    }
}

async fn reload(State(state): State<AdminState>) -> Response {
    let Some(reload) = state.reload else {
        return StatusCode::NOT_FOUND.into_response();
    };
    // On a task of its own: a caller that hangs up does not stop a reload half way.
    match tokio::spawn(reload()).await {
        Ok(Ok(())) => "config reloaded\n".into_response(),
        Ok(Err(diagnostics)) => (StatusCode::BAD_REQUEST, format!("{diagnostics}\n")).into_response(),
        Err(error) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("the reload failed: {error}\n"),
        )
            .into_response(),
    }
}

async fn components(State(state): State<AdminState>) -> Response {
    match state.components {
        Some(components) => axum::Json(components()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn component(State(state): State<AdminState>, Path(id): Path<String>) -> Response {
    match state.component.and_then(|component| component(&id)) {
        Some(found) => axum::Json(found).into_response(),
        None => (StatusCode::NOT_FOUND, format!("there is no component `{id}`\n")).into_response(),
    }
}

#[cfg(test)]
mod tests;
