//! The plain routes of Pyroscope for older web pages, scripts and `curl`: `/pyroscope/render`, `render-diff` and
//! `label-values`.
//!
//! In: a GET with parameters in its URL. Out: flamebearer JSON, text for Graphviz, pprof, or a JSON array. The form of
//! errors, the tenants, the slots of running queries and the limits are the same as for the calls of `querier.v1`
//! ([`responses`]).

mod parameters;
mod responses;
mod timeline;

use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use http::header::ALLOW;
use http::{HeaderMap, HeaderValue, Method};
use serde::Serialize;

use crate::server::bodies::sending::{EncodedResponse, respond};
use crate::server::routes::ingest::now_nanos;
use crate::server::routes::render::parameters::{DiffQuery, LabelQuery, RenderFormat, RenderQuery};
use crate::server::state::shared::ServerState;
use crate::server::state::tenant::tenants;
use alluvium_base::encoding::accepts;
use alluvium_profile::flamegraph::dot;
use alluvium_profile::pprof::gzip;
use alluvium_wire::connect::{Code, ConnectError};

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const PPROF: &str = "application/x-pprof";
/// Approximate size in bytes of the Graphviz text for a box or an arrow of a call graph, without its name.
const DRAWN_BYTES: usize = 128;

/// Returns the path and the handler of each route.
pub(in crate::server) fn routes() -> impl Iterator<Item = (String, MethodRouter<ServerState>)> {
    let routes = [
        ("/pyroscope/render", get(render)),
        ("/pyroscope/render-diff", get(render_diff)),
        ("/pyroscope/label-values", get(label_values)),
    ];
    // HEAD is refused, because it would be as much work as a GET. Pyroscope refuses it too.
    routes.into_iter().map(|(path, methods)| {
        (
            path.to_owned(),
            methods.head(method_not_allowed).fallback(method_not_allowed),
        )
    })
}

async fn render(State(state): State<ServerState>, headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    let response = async {
        let (tenants, query) = (tenants(&headers, &state.options)?, query.unwrap_or_default());
        let parsed = RenderQuery::parse(&query, now_nanos())?;
        match parsed.format {
            RenderFormat::Json => {
                let profile = responses::flame_graph(&state, &tenants, parsed).await?;
                let bytes = profile.bytes();
                encode_response(&state, &headers, JSON, bytes, move || json(&profile)).await
            }
            RenderFormat::Pprof => {
                let profile = responses::merged(&state, &tenants, parsed).await?;
                let length = profile.len();
                let pack = move || Ok(EncodedResponse::plain(gzip(&profile).into()));
                let written = state.write(length, pack).await?;
                respond(&state.answers, state.engine.limits().timeout, PPROF, written)
            }
            RenderFormat::Dot => {
                let calls = responses::call_graph(&state, &tenants, parsed).await?;
                let graph = &calls.graph;
                let names: usize = graph.functions.iter().map(|function| function.name.len()).sum();
                let bytes = names + (graph.functions.len() + graph.calls.len()) * DRAWN_BYTES;
                let write = move || Ok(dot(&calls.graph, &calls.title, &calls.unit).into_bytes());
                encode_response(&state, &headers, TEXT, bytes, write).await
            }
        }
    };
    response.await.unwrap_or_else(IntoResponse::into_response)
}

async fn render_diff(State(state): State<ServerState>, headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    let response = async {
        let (tenants, query) = (tenants(&headers, &state.options)?, query.unwrap_or_default());
        let parsed = DiffQuery::parse(&query, now_nanos())?;
        let profile = responses::difference(&state, &tenants, parsed).await?;
        let bytes = profile.bytes();
        encode_response(&state, &headers, JSON, bytes, move || json(&profile)).await
    };
    response.await.unwrap_or_else(IntoResponse::into_response)
}

async fn label_values(State(state): State<ServerState>, headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    let response = async {
        let (tenants, query) = (tenants(&headers, &state.options)?, query.unwrap_or_default());
        let parsed = LabelQuery::parse(&query, now_nanos())?;
        let values = responses::label_values(&state, &tenants, parsed).await?;
        let bytes = values.iter().map(|value| value.len() + 3).sum();
        encode_response(&state, &headers, JSON, bytes, move || json(&values)).await
    };
    response.await.unwrap_or_else(IntoResponse::into_response)
}

async fn method_not_allowed(method: Method) -> Response {
    let message = format!("method {method} is not allowed here, use GET");
    let error = ConnectError::new(Code::Unimplemented, message).with_status(405);
    let mut response = error.into_response();
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
    response
}

fn json(response: &impl Serialize) -> Result<Vec<u8>, ConnectError> {
    serde_json::to_vec(response)
        .map_err(|error| ConnectError::new(Code::Internal, format!("cannot write the response as JSON: {error}")))
}

/// Writes a response of about `bytes` bytes, compressed if the client accepts gzip.
async fn encode_response(
    state: &ServerState,
    headers: &HeaderMap,
    content_type: &'static str,
    bytes: usize,
    write: impl FnOnce() -> Result<Vec<u8>, ConnectError> + Send + 'static,
) -> Result<Response, ConnectError> {
    let pack = if accepts(headers, "gzip") {
        EncodedResponse::packed
    } else {
        EncodedResponse::plain
    };
    let written = state.write(bytes, move || Ok(pack(write()?.into()))).await?;
    respond(&state.answers, state.engine.limits().timeout, content_type, written)
}
