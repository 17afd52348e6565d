//! The API of profefe under `/api/0/`: accepts profiles as pprof, and returns profiles, services and versions.
//!
//! In: requests of profefe's agents, of `kprofefe`, scripts and `go tool pprof`. Out: pprof, or JSON objects with the
//! fields that profefe wraps around each body (the envelope). `wire::profefe` parses the requests and defines the
//! responses. Tenants, slots of running queries and limits are the same as on all routes.

mod accept;
mod merge;
mod responses;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get};
use http::header::{ALLOW, CONTENT_DISPOSITION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::json;

use crate::server::bodies::sending::{EncodedResponse, respond};
use crate::server::routes::profefe::merge::MergedProfile;
use crate::server::services::about::{VERSION, revision};
use crate::server::state::shared::ServerState;
use crate::server::state::tenant::tenants;
use alluvium_base::encoding::accepts;
use alluvium_wire::connect::{Code, ConnectError};
use alluvium_wire::profefe::{Envelope, ProfileSelection, Refusal};

/// Path of the route for profiles by id, without the ids.
const PROFILES: &str = "/api/0/profiles/";

/// Approximate size of an item of a list as JSON, in bytes.
const ITEM_BYTES: usize = 256;

/// Returns the path and the handler of each route.
pub(in crate::server) fn routes() -> impl Iterator<Item = (String, MethodRouter<ServerState>)> {
    // HEAD is refused, because it would be as much work as a GET.
    let only = |methods: MethodRouter<ServerState>| methods.head(wrong_method).fallback(wrong_method);
    let routes = [
        ("/api/0/profiles", only(get(find).post(accept))),
        ("/api/0/profiles/merge", only(get(merge_of_range))),
        (PROFILES, only(get(merge_of_ids))),
        ("/api/0/profiles/{*ids}", only(get(merge_of_ids))),
        ("/api/0/services", only(get(services))),
        ("/api/0/version", only(get(version))),
        ("/api/0/{*path}", any(nothing)),
    ];
    routes.into_iter().map(|(path, methods)| (path.to_owned(), methods))
}

async fn accept(State(state): State<ServerState>, request: Request<Body>) -> Response {
    let answer = async { json_of(&state, &HeaderMap::new(), 1, accept::accept(&state, request).await?).await };
    answer.await.unwrap_or_else(refuse)
}

async fn find(State(state): State<ServerState>, headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    let answer = async {
        let tenants = tenants(&headers, &state.options)?;
        let requested = ProfileSelection::parse(&query.unwrap_or_default())?;
        let profiles = responses::find(&state, &tenants, requested).await?;
        if profiles.is_empty() {
            return Err(Refusal::nothing());
        }
        json_of(&state, &headers, profiles.len(), profiles).await
    };
    answer.await.unwrap_or_else(refuse)
}

async fn merge_of_range(State(state): State<ServerState>, headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    let answer = async {
        let tenants = tenants(&headers, &state.options)?;
        let requested = ProfileSelection::parse_merge(&query.unwrap_or_default())?;
        pprof_of(&state, merge::of_range(&state, &tenants, requested).await?)
    };
    answer.await.unwrap_or_else(refuse)
}

async fn merge_of_ids(State(state): State<ServerState>, headers: HeaderMap, uri: Uri) -> Response {
    let answer = async {
        let tenants = tenants(&headers, &state.options)?;
        pprof_of(&state, merge::of_ids(&state, &tenants, ids_of(uri.path())?).await?)
    };
    answer.await.unwrap_or_else(refuse)
}

/// Reads the ids at the end of a path. The ids are separated by `+`. An id may contain a slash.
fn ids_of(path: &str) -> Result<Vec<String>, Refusal> {
    let ids = path.split_once(PROFILES).map_or("", |(_, ids)| ids);
    let decoded = ids.split('+').map(|id| match id {
        "" => Err(Refusal::bad("a profile id is missing")),
        id => Ok(percent_decode_str(id).decode_utf8_lossy().into_owned()),
    });
    decoded.collect()
}

async fn services(State(state): State<ServerState>, headers: HeaderMap) -> Response {
    let answer = async {
        let tenants = tenants(&headers, &state.options)?;
        let service_names = responses::services(&state, &tenants).await?;
        if service_names.is_empty() {
            return Err(Refusal::nothing());
        }
        json_of(&state, &headers, service_names.len(), service_names).await
    };
    answer.await.unwrap_or_else(refuse)
}

async fn version(State(state): State<ServerState>, headers: HeaderMap) -> Response {
    let body = json!({
        "version": VERSION,
        "commit": revision(),
        "build_time": "",
        "go_version": "",
    });
    json_of(&state, &headers, 1, body).await.unwrap_or_else(refuse)
}

async fn nothing() -> Response {
    refuse(Refusal::nothing())
}

async fn wrong_method(method: Method, uri: Uri) -> Response {
    let allowed = if uri.path().ends_with("/api/0/profiles") {
        "GET, POST"
    } else {
        "GET"
    };
    let mut response = refuse(Refusal {
        status: 405,
        message: format!("method {method} is not allowed here, use {allowed}"),
    });
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// Returns a JSON response with the body in the envelope. `items` is the approximate number of items in the body.
async fn json_of(
    state: &ServerState,
    headers: &HeaderMap,
    items: usize,
    body: impl Serialize + Send + 'static,
) -> Result<Response, Refusal> {
    let pack = if accepts(headers, "gzip") {
        EncodedResponse::packed
    } else {
        EncodedResponse::plain
    };
    let write = move || {
        let json = serde_json::to_vec(&Envelope::new(body));
        let json = json.map_err(|error| {
            ConnectError::new(Code::Internal, format!("cannot write the response as JSON: {error}"))
        })?;
        Ok(pack(json.into()))
    };
    let written = state.write(items.saturating_mul(ITEM_BYTES), write).await?;
    let time = state.engine.limits().timeout;
    Ok(respond(&state.answers, time, "application/json", written)?)
}

fn pprof_of(state: &ServerState, merged: MergedProfile) -> Result<Response, Refusal> {
    let time = state.engine.limits().timeout;
    let written = EncodedResponse::plain(merged.pprof.into());
    let mut response = respond(&state.answers, time, "application/octet-stream", written)?;
    let name = format!("attachment; filename=\"{}\"", merged.word.word);
    if let Ok(name) = HeaderValue::from_str(&name) {
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

fn refuse(refusal: Refusal) -> Response {
    let Refusal { status, message } = &refusal;
    if *status >= 500 {
        tracing::warn!(status, error = message, "request failed");
    } else {
        tracing::debug!(status, error = message, "request refused");
    }
    let code = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (code, refusal.to_json()).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if matches!(code, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stand_at_the_end_of_a_path_with_a_plus_between_them() {
        let ids = |path: &str| ids_of(path).map_err(|refusal| refusal.status);
        assert_eq!(ids("/api/0/profiles/a"), Ok(vec!["a".to_owned()]));
        let several = ids("/profile/api/0/profiles/P0.shop/1/b%2Cv=1+c%2Bd");
        assert_eq!(several, Ok(vec!["P0.shop/1/b,v=1".to_owned(), "c+d".to_owned()]));
        for path in ["/api/0/profiles/", "/api/0/profiles/a++b", "/api/0/profiles/+a"] {
            assert_eq!(ids(path), Err(400), "{path}");
        }
    }
}
