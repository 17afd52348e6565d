//! The collector's page: the embedded files of `ui/dist/collector` and their routes.
//!
//! In: the prefix of the collector's paths. Out: a router with `/graph`, the files, and redirects from the paths of
//! Alloy's page. Debug builds read the files from the source tree at run time.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rust_embed::RustEmbed;

use crate::page::{Page, PageSource};

#[derive(RustEmbed)]
#[folder = "../../ui/dist/collector"]
#[allow_missing = true]
struct Files;

/// Characters to escape in a query value.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'/');

#[derive(Clone)]
struct Served {
    page: Arc<Page>,
    /// Prefix without a trailing slash; may be empty.
    prefix: Arc<str>,
}

/// Returns the routes of the page, each with `prefix`.
pub fn router(prefix: &str) -> Router {
    let prefix = match prefix.trim_matches('/') {
        "" => String::new(),
        prefix => format!("/{prefix}"),
    };
    // In a route, braces must be escaped, because they would start parameters.
    let route = crate::literal(&prefix);
    let page = Page::new(PageSource {
        file: Files::get,
        document: "collector.html",
        views: vec!["graph".to_owned()],
        replace: None,
    });
    let mut router = Router::new()
        .route(&format!("{route}/"), get(home))
        .route(&format!("{route}/graph"), get(file))
        .route(&format!("{route}/graph/"), get(home))
        .route(&format!("{route}/graph/{{*module}}"), get(module))
        .route(&format!("{route}/component/{{*id}}"), get(component))
        .route(&format!("{route}/favicon.svg"), get(file))
        .route(&format!("{route}/assets/{{*path}}"), get(file));
    if !prefix.is_empty() {
        router = router.route(&route, get(home));
    }
    router.with_state(Served {
        page: Arc::new(page),
        prefix: prefix.into(),
    })
}

async fn home(State(served): State<Served>) -> Redirect {
    Redirect::temporary(&format!("{}/graph", served.prefix))
}

async fn module(State(served): State<Served>, Path(module): Path<String>) -> Redirect {
    let module = utf8_percent_encode(&module, PLAIN);
    Redirect::temporary(&format!("{}/graph?v=1&module={module}", served.prefix))
}

/// Redirects Alloy's link to a component. The part of the id before the last slash is the module.
async fn component(State(served): State<Served>, Path(id): Path<String>) -> Redirect {
    let module = id.rsplit_once('/').map_or("", |(module, _)| module);
    let (module, id) = (utf8_percent_encode(module, PLAIN), utf8_percent_encode(&id, PLAIN));
    Redirect::temporary(&format!("{}/graph?v=1&module={module}&sel={id}", served.prefix))
}

async fn file(State(served): State<Served>, uri: Uri, headers: HeaderMap) -> Response {
    let path = uri.path().strip_prefix(&*served.prefix).unwrap_or_default();
    match served.page.get(path.trim_start_matches('/'), &headers) {
        Some(response) => response,
        None => (StatusCode::NOT_FOUND, format!("there is nothing at {}\n", uri.path())).into_response(),
    }
}
