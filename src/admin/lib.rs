//! The HTTP routes that the collector and the server share: the listener with its limits, the check of browser
//! requests, and routes for metrics, health, reload, the support bundle, and profiles of the own process.
//!
//! In: closures, so that this layer depends neither on the engine nor on the store. Out: one router to merge into
//! another. If the closure of a route is missing, the route does not exist. Users and probes of Alloy expect these
//! paths, status codes and texts. The API that only the collector has is in [`web`]. This module does not log requests
//! and does not authenticate.

mod arriving;
pub mod browser;
pub mod collector_page;
mod connections;
pub mod drain;
pub mod grpc;
pub mod listen;
pub mod live;
pub mod page;
pub mod peer;
mod pprof;
pub mod profiling;
mod support;
pub mod web;
pub mod zip;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::profiling::Profiling;
use alluvium_base::BoxFuture;
use alluvium_telemetry::metrics::{self, Scope};

pub use support::{Support, SupportError};

/// Checks a condition. Returns `None` if the condition holds, and otherwise the reason as a text for users.
pub type Check = Arc<dyn Fn() -> Option<String> + Send + Sync>;
/// Additional text for a healthy state; may be empty.
pub type Note = Arc<dyn Fn() -> String + Send + Sync>;
/// The reason why a reload failed. Its text contains the diagnostics.
pub type ReloadError = Box<dyn std::error::Error + Send + Sync>;
/// Reloads the configuration.
pub type Reload = Arc<dyn Fn() -> BoxFuture<'static, Result<(), ReloadError>> + Send + Sync>;

#[derive(Clone)]
pub struct AdminState {
    // `/metrics`.
    pub metrics: Scope,
    /// `/-/ready`: 200, or 503 with the reason.
    pub ready: Check,
    /// `/-/healthy`: 200, or 500 with the reason.
    pub healthy: Check,
    /// An additional line of `/-/healthy` if all components are healthy.
    pub note: Note,
    // `/debug/pprof/*`.
    pub profiling: Option<Profiling>,
    /// `/-/reload`: 200, or 400 with the diagnostics.
    pub reload: Option<Reload>,
    /// `/-/support`: a zip file.
    pub support: Option<Support>,
}

/// Returns the routes for this state.
pub fn router(state: AdminState) -> Router {
    let mut router = Router::new()
        .route("/metrics", get(metrics))
        .route("/-/ready", get(ready))
        .route("/-/healthy", get(healthy));
    if state.reload.is_some() {
        router = router.route("/-/reload", get(reload).post(reload));
    }
    if let Some(support) = state.support.clone() {
        router = router.merge(support::router(support));
    }
    let profiles = state.profiling.clone().map(pprof::router);
    let router = router.with_state(state);
    match profiles {
        Some(profiles) => router.merge(profiles),
        None => router,
    }
}

/// Escapes a path for use as a route, where braces would otherwise start parameters.
pub fn literal(path: &str) -> String {
    path.replace('{', "{{").replace('}', "}}")
}

async fn metrics(State(state): State<AdminState>) -> Response {
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], state.metrics.encode()).into_response()
}

async fn ready(State(state): State<AdminState>) -> Response {
    match (state.ready)() {
        None => "Alluvium is ready.\n".into_response(),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response(),
    }
}

async fn healthy(State(state): State<AdminState>) -> Response {
    match (state.healthy)() {
        None => format!("All components are healthy.\n{}", (state.note)()).into_response(),
        Some(reason) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{reason}\n")).into_response(),
    }
}

async fn reload(State(state): State<AdminState>) -> Response {
    let Some(reload) = state.reload else {
        return StatusCode::NOT_FOUND.into_response();
    };
    // The reload runs in a separate task, so that a caller that disconnects does not interrupt it.
    match tokio::spawn(reload()).await {
        Ok(Ok(())) => "config reloaded\n".into_response(),
        Ok(Err(error)) => (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
        Err(error) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("the reload failed: {error}\n"),
        )
            .into_response(),
    }
}

#[cfg(test)]
mod tests;
