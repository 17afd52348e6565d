//! The collector's JSON API in Alloy's format: `/api/v0/web/*` for pages and tools, `/api/v0/component/ID/*` for
//! requests to components.
//!
//! In: a [`Web`], so that this layer does not depend on the engine. Out: two routers, because in Alloy only the first
//! router is under `--server.http.ui-path-prefix`. The id of a component inside a module contains slashes; the last
//! slash separates the module from the component.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};

use alluvium_base::BoxFuture;

/// Maximum size of a request body for a component, 16 MiB.
const MAX_BODY_BYTES: usize = 16 << 20;

/// Response of a component to a request; `None` when the component has no HTTP endpoints.
pub type Answer = Option<BoxFuture<'static, http::Response<Bytes>>>;

/// Data that the API serves, in Alloy's format.
pub trait Web: Send + Sync + 'static {
    /// Returns the components of a module, `""` for the root; `None` when there is no such module.
    fn components(&self, module: &str) -> Option<serde_json::Value>;

    /// Returns the components of a module of the remote configuration; `None` when there is no such module.
    fn remote_components(&self, module: &str) -> Option<serde_json::Value>;

    /// Returns one component with its values; `None` when it does not exist.
    fn component(&self, id: &str) -> Option<serde_json::Value>;

    /// Returns one component of the remote configuration.
    fn remote_component(&self, id: &str) -> Option<serde_json::Value>;

    /// Returns the members of the cluster.
    fn peers(&self) -> serde_json::Value;

    /// Returns the outcome of the last load, or null before the first load.
    fn last_load(&self) -> serde_json::Value;

    /// Returns true when a component has this id.
    fn has_component(&self, id: &str) -> bool;

    /// Forwards a request to a component. The path of the request begins after the id.
    fn serve(&self, id: &str, request: http::Request<Bytes>) -> Answer;
}

type Api = State<Arc<dyn Web>>;

// `/api/v0/web/*`.
pub fn router(web: Arc<dyn Web>) -> Router {
    Router::new()
        .route("/api/v0/web/components", get(components))
        .route("/api/v0/web/components/{*id}", get(component))
        .route("/api/v0/web/modules/{*path}", get(module))
        .route("/api/v0/web/remotecfg/components", get(remote_components))
        .route("/api/v0/web/remotecfg/components/{*id}", get(remote_component))
        .route("/api/v0/web/remotecfg/modules/{*path}", get(remote_module))
        .route(
            "/api/v0/web/peers",
            get(async |State(web): Api| axum::Json(web.peers())),
        )
        .route(
            "/api/v0/web/last-load",
            get(async |State(web): Api| axum::Json(web.last_load())),
        )
        .route("/api/v0/web/goroutines/{*id}", post(goroutines))
        .with_state(web)
}

// `/api/v0/component/*`.
pub fn component_router(web: Arc<dyn Web>) -> Router {
    Router::new()
        .route("/api/v0/component/{*path}", any(serve))
        .with_state(web)
}

async fn components(State(web): Api) -> Response {
    json(web.components(""), "there is no such module")
}

async fn remote_components(State(web): Api) -> Response {
    json(web.remote_components(""), "there is no remote configuration")
}

async fn component(State(web): Api, Path(id): Path<String>) -> Response {
    json(web.component(&id), &format!("there is no component `{id}`"))
}

async fn remote_component(State(web): Api, Path(id): Path<String>) -> Response {
    json(web.remote_component(&id), &format!("there is no component `{id}`"))
}

async fn module(State(web): Api, Path(path): Path<String>) -> Response {
    module_components(&path, |module| web.components(module))
}

async fn remote_module(State(web): Api, Path(path): Path<String>) -> Response {
    module_components(&path, |module| web.remote_components(module))
}

/// Requests the goroutine dump of a target, like `POST /api/v0/component/ID/goroutines`. This route is also below the
/// path prefix of the page. Not in Alloy.
async fn goroutines(State(web): Api, Path(id): Path<String>, RawQuery(query): RawQuery) -> Response {
    let uri = format!("/goroutines?{}", query.unwrap_or_default());
    let request = match http::Request::post(uri).body(Bytes::new()) {
        Ok(request) => request,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("bad query: {error}\n")).into_response(),
    };
    match web.serve(&id, request) {
        Some(answer) => answer.await.map(Body::from),
        None => (
            StatusCode::NOT_FOUND,
            format!("there is no component `{id}` that scrapes goroutines\n"),
        )
            .into_response(),
    }
}

/// Handles `MODULE/components`. The module's id may contain slashes.
fn module_components(path: &str, components: impl Fn(&str) -> Option<serde_json::Value>) -> Response {
    match path.strip_suffix("/components") {
        Some(module) => json(components(module), &format!("there is no module `{module}`")),
        None => (StatusCode::NOT_FOUND, "there is only `/components` below a module\n").into_response(),
    }
}

fn json(value: Option<serde_json::Value>, missing: &str) -> Response {
    match value {
        Some(value) => axum::Json(value).into_response(),
        None => (StatusCode::NOT_FOUND, format!("{missing}\n")).into_response(),
    }
}

async fn serve(State(web): Api, Path(path): Path<String>, request: Request) -> Response {
    // The path begins with the id. The shortest prefix that is the id of a component is used, as in Alloy.
    let ends = path.match_indices('/').map(|(offset, _)| offset).chain([path.len()]);
    let Some(end) = ends.into_iter().find(|end| web.has_component(&path[..*end])) else {
        return (StatusCode::NOT_FOUND, format!("there is no component at `{path}`\n")).into_response();
    };
    let (id, rest) = path.split_at(end);
    let (mut parts, body) = request.into_parts();
    let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let rest = if rest.is_empty() { "/" } else { rest };
    parts.uri = match format!("{rest}{query}").parse() {
        Ok(uri) => uri,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("bad path `{rest}`: {error}\n")).into_response(),
    };
    let body = match axum::body::to_bytes(body, MAX_BODY_BYTES).await {
        Ok(body) => body,
        Err(error) => {
            let text = format!("cannot read the body (at most {MAX_BODY_BYTES} bytes): {error}\n");
            return (StatusCode::PAYLOAD_TOO_LARGE, text).into_response();
        }
    };
    match web.serve(id, http::Request::from_parts(parts, body)) {
        Some(answer) => answer.await.map(Body::from),
        None => (
            StatusCode::NOT_FOUND,
            format!("the component `{id}` has no HTTP endpoints\n"),
        )
            .into_response(),
    }
}
