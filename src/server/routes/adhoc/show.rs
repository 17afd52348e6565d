//! `/api/v1/adhoc`: shows a file without storing it.
//!
//! In: a file in the body, or the id of an uploaded file. Out: its profile types and the flame graph of one of them, as
//! in `querier.v1`; or the difference between stored profiles and the file. The limits of `/ingest` apply to the file.

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, Request};

use crate::query::TimeRange;
use crate::server::bodies::body::Charge;
use crate::server::bodies::sending::{EncodedResponse, respond};
use crate::server::bodies::workers::LARGE_WORK;
use crate::server::routes::adhoc::files::read_file;
use crate::server::routes::adhoc::read::{choose, open};
use crate::server::routes::ingest::now_nanos;
use crate::server::services::parameters::{max_nodes, stack_query};
use crate::server::state::shared::ServerState;
use crate::server::state::tenant::tenant;
use alluvium_base::encoding::accepts;
use alluvium_profile::TenantId;
use alluvium_profile::flamegraph::{Tree, diff};
use alluvium_wire::at_time;
use alluvium_wire::connect::{Codec, ConnectError, encode};
use alluvium_wire::ingest::{self, IngestQuery};
use alluvium_wire::querier::{detailed_flamegraph_message, diff_message};

/// The parameters of a request.
#[derive(Debug, Default, PartialEq, Eq)]
struct ShowQuery {
    /// Id of an uploaded file. Empty if the file is the body.
    id: String,
    /// Name or id of the profile type to show. Empty means the preferred type of the file.
    profile_type: String,
    max_nodes: Option<i64>,
    /// The stored profiles to compare the file with.
    baseline: Option<Baseline>,
}

/// Stored profiles of the shown type.
#[derive(Debug, PartialEq, Eq)]
struct Baseline {
    selector: String,
    range: TimeRange,
}

/// The response: the flame graph of one profile type as JSON, or the difference between the baseline and the file.
struct ShownGraph {
    types: Vec<String>,
    shown_type: String,
    field: &'static str,
    graph: Bytes,
}

/// `POST /api/v1/adhoc`: shows a file, and stores nothing of the request.
pub(in crate::server) async fn show(State(state): State<ServerState>, request: Request<Body>) -> Response {
    show_file(&state, request)
        .await
        .unwrap_or_else(IntoResponse::into_response)
}

async fn show_file(state: &ServerState, request: Request<Body>) -> Result<Response, ConnectError> {
    let (parts, body) = request.into_parts();
    let tenant = tenant(&parts.headers, &state.options)?;
    let query = ShowQuery::parse(parts.uri.query().unwrap_or_default(), now_nanos())?;
    let file_query = IngestQuery::parse("name=adhoc", now_nanos())?;
    let is_packed = |body: &[u8]| ingest::is_packed(&file_query, "", body);
    let body = state
        .intake
        .read_upload(&parts.headers, body, state.options.limits.push(), is_packed)
        .await?;
    let work = async {
        let file = match query.id.as_str() {
            "" => (body.bytes, body.charge),
            id => (read_file(state, &tenant, id).await?.1, Charge::default()),
        };
        if file.0.is_empty() {
            return Err(ConnectError::invalid(
                "the file is missing: send it as the body, or name an uploaded file by `id`",
            ));
        }
        build_graph(state, &tenant, query, file).await
    };
    let drawn = state.engine.admitted(Box::pin(work)).await?;
    encode_graph(state, &parts.headers, drawn).await
}

async fn build_graph(
    state: &ServerState,
    tenant: &TenantId,
    show_query: ShowQuery,
    file: (Bytes, Charge),
) -> Result<ShownGraph, ConnectError> {
    let nodes = max_nodes(show_query.max_nodes, &state.options.limits)?;
    let opened = open(state, tenant, file).await?;
    let types = opened.types();
    let chosen = choose(&types, Some(&show_query.profile_type))?;
    let drawn = |field: &'static str, graph: Bytes| ShownGraph {
        types: types.iter().map(ToString::to_string).collect(),
        shown_type: chosen.to_string(),
        field,
        graph,
    };
    let Some(baseline) = show_query.baseline else {
        let (tree, _memory) = opened.tree(state, chosen.clone(), Tree::by_file()).await?;
        let write = move || {
            let graph = detailed_flamegraph_message(tree.to_flamegraph(nodes));
            Ok(encode(Codec::Json, &graph))
        };
        return Ok(drawn("flamegraph", state.workers.run(LARGE_WORK, write).await?));
    };
    let TimeRange { start_ms, end_ms } = baseline.range;
    let query = stack_query(state, &chosen.to_string(), baseline.selector, start_ms, end_ms).await?;
    let (right, _memory) = opened.tree(state, chosen.clone(), Tree::by_name()).await?;
    let left = state.engine.merge_stacktraces(&tenant.clone().into(), query).await?;
    let write = move || Ok(encode(Codec::Json, &diff_message(diff(&left, &right, nodes))));
    Ok(drawn("difference", state.workers.run(LARGE_WORK, write).await?))
}

/// Returns the response, compressed if the client accepts gzip.
async fn encode_graph(state: &ServerState, headers: &HeaderMap, drawn: ShownGraph) -> Result<Response, ConnectError> {
    let pack = if accepts(headers, "gzip") {
        EncodedResponse::packed
    } else {
        EncodedResponse::plain
    };
    let length = drawn.graph.len();
    let write = move || Ok(pack(drawn.json().into()));
    let written = state.write(length, write).await?;
    respond(
        &state.answers,
        state.engine.limits().timeout,
        "application/json",
        written,
    )
}

impl ShownGraph {
    fn json(&self) -> Vec<u8> {
        let types = serde_json::json!({ "profileTypes": self.types, "profileType": self.shown_type }).to_string();
        let start = types.strip_suffix('}').unwrap_or(&types);
        [
            start.as_bytes(),
            b",\"",
            self.field.as_bytes(),
            b"\":",
            &self.graph,
            b"}",
        ]
        .concat()
    }
}

impl ShowQuery {
    /// Parses the query part of a URL. As for `/pyroscope/render`, the first of several parameters with the same name
    /// applies.
    fn parse(query: &str, now_nanos: i64) -> Result<Self, ConnectError> {
        let pairs: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let get = |name: &str| {
            let pair = pairs.iter().find(|(key, _)| key == name);
            pair.map_or("", |(_, value)| value.as_str())
        };
        let time_ms = |name: &str| {
            let nanos = at_time::read(name, get(name), now_nanos)?;
            Ok::<i64, ConnectError>(nanos.div_euclid(1_000_000))
        };
        let baseline = match get("baseline").trim() {
            "" => None,
            selector => Some(Baseline {
                selector: selector.to_owned(),
                range: TimeRange::new(time_ms("from")?, time_ms("until")?),
            }),
        };
        let max_nodes = match get("maxNodes") {
            "" => None,
            text => Some(
                text.parse()
                    .map_err(|_| ConnectError::invalid(format!("maxNodes: `{text}` is not a number of nodes")))?,
            ),
        };
        Ok(Self {
            id: get("id").to_owned(),
            profile_type: get("type").to_owned(),
            max_nodes,
            baseline,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_names_a_type_and_perhaps_a_baseline() {
        let read = |query: &str| ShowQuery::parse(query, 0);
        assert_eq!(read("").unwrap(), ShowQuery::default());
        let selector = "%7Bservice_name=%22shop%22%7D";
        let requested = read(&format!(
            "type=cpu&maxNodes=64&baseline={selector}&from=1700000000000&until=1700000060000"
        ));
        let expected = ShowQuery {
            id: String::new(),
            profile_type: "cpu".to_owned(),
            max_nodes: Some(64),
            baseline: Some(Baseline {
                selector: "{service_name=\"shop\"}".to_owned(),
                range: TimeRange::new(1_700_000_000_000, 1_700_000_060_000),
            }),
        };
        assert_eq!(requested.unwrap(), expected);
        for query in ["maxNodes=many", "baseline=%7B%7D&from=yesterday-ish"] {
            assert_eq!(read(query).unwrap_err().status, 400, "{query}");
        }
    }

    #[test]
    fn an_answer_is_one_json_object() {
        let drawn = ShownGraph {
            types: vec!["a:b:c::".to_owned()],
            shown_type: "a:b:c::".to_owned(),
            field: "flamegraph",
            graph: Bytes::from_static(b"{\"names\":[\"}\"]}"),
        };
        let read: serde_json::Value = serde_json::from_slice(&drawn.json()).unwrap();
        assert_eq!(read["profileType"], "a:b:c::");
        assert_eq!(read["flamegraph"]["names"][0], "}");
    }
}
