//! Computes the responses of Pyroscope's plain routes. The parent module handles HTTP.
//!
//! In: parsed parameters. Out: results of the query engine. Each request occupies one of the slots for running queries.
//! Selectors, node limits and their errors are the same as in `querier.v1`.

use crate::query::{Detail, ExemplarKind, FrameFilter, SeriesQuery, StackQuery, TimeRange};
use crate::server::routes::render::parameters::{DiffQuery, LabelQuery, RenderQuery, Side};
use crate::server::routes::render::timeline::{by_label, of_all, step};
use crate::server::services::parameters::{NAME_LABEL, max_functions, max_nodes, text_query};
use crate::server::state::shared::ServerState;
use alluvium_profile::Tenants;
use alluvium_profile::flamegraph::CallGraph;
use alluvium_profile::pprof::encode;
use alluvium_wire::connect::ConnectError;
use alluvium_wire::flamebearer::FlamebearerProfile;

/// A call graph, with its profile type as title and the unit of its values.
pub(super) struct Calls {
    pub graph: CallGraph,
    pub title: String,
    pub unit: String,
}

/// Returns the flame graph of a request with its time lines.
pub(super) async fn flame_graph(
    state: &ServerState,
    tenants: &Tenants,
    parameters: RenderQuery,
) -> Result<FlamebearerProfile, ConnectError> {
    let work = async {
        let nodes = max_nodes(parameters.max_nodes, &state.options.limits)?;
        let query = stack_query(state, parameters.side).await?;
        let (profile_type, range) = (query.profile_type.clone(), query.range);
        let step = step(range);
        let lines = |group_by: Option<&String>, aggregation| {
            let query = SeriesQuery {
                profile_type: query.profile_type.clone(),
                matchers: query.matchers.clone(),
                range,
                call_site: Vec::new(),
                frames: FrameFilter::default(),
                step: step as f64,
                group_by: group_by.into_iter().cloned().collect(),
                aggregation,
                limit: 0,
                exemplars: ExemplarKind::None,
            };
            state.engine.select_series(tenants, query)
        };
        let all = lines(None, parameters.aggregation).await?;
        let groups = match &parameters.group_by {
            Some(label) => {
                let series = lines(Some(label), parameters.aggregation).await?;
                Some(by_label(&series, label, range, step)?)
            }
            None => None,
        };
        let graph = state.engine.flamegraph(tenants, query, nodes, Detail::Names).await?;
        let mut profile = FlamebearerProfile::single(graph, &profile_type);
        profile.timeline = Some(of_all(&all, range, step));
        profile.groups = groups;
        Ok(profile)
    };
    state.engine.admitted(Box::pin(work)).await
}

/// Returns the merged profile of a request as pprof.
pub(super) async fn merged(
    state: &ServerState,
    tenants: &Tenants,
    parameters: RenderQuery,
) -> Result<Vec<u8>, ConnectError> {
    let work = async {
        let query = stack_query(state, parameters.side).await?;
        Ok(state.engine.merge_profile(tenants, query, encode).await?)
    };
    state.engine.admitted(Box::pin(work)).await
}

/// Returns the call graph of a request.
pub(super) async fn call_graph(
    state: &ServerState,
    tenants: &Tenants,
    parameters: RenderQuery,
) -> Result<Calls, ConnectError> {
    let work = async {
        let functions = max_functions(parameters.max_nodes, &state.options.limits)?;
        let query = stack_query(state, parameters.side).await?;
        let profile_type = query.profile_type.clone();
        let graph = state.engine.call_graph(tenants, query, functions).await?;
        Ok(Calls {
            graph,
            title: profile_type.to_string(),
            unit: profile_type.sample_unit,
        })
    };
    state.engine.admitted(Box::pin(work)).await
}

/// Returns the difference between the left and the right side. Both must have the same profile type.
pub(super) async fn difference(
    state: &ServerState,
    tenants: &Tenants,
    query: DiffQuery,
) -> Result<FlamebearerProfile, ConnectError> {
    let work = async {
        let nodes = max_nodes(query.max_nodes, &state.options.limits)?;
        let (left, right) = (
            stack_query(state, query.left).await?,
            stack_query(state, query.right).await?,
        );
        if left.profile_type != right.profile_type {
            return Err(ConnectError::invalid(format!(
                "both sides must have the same profile type, not `{}` and `{}`",
                left.profile_type, right.profile_type
            )));
        }
        let profile_type = left.profile_type.clone();
        let graph = state.engine.diff(tenants, left, right, nodes).await?;
        Ok(FlamebearerProfile::double(graph, &profile_type))
    };
    state.engine.admitted(Box::pin(work)).await
}

/// Returns the values of a label, sorted. The values of `__name__` are the profile types. If the request has no times,
/// the result covers all time. If the length of queries is limited, a
/// request without times for any label except `__name__` covers only the maximum length that ends now.
pub(super) async fn label_values(
    state: &ServerState,
    tenants: &Tenants,
    query: LabelQuery,
) -> Result<Vec<String>, ConnectError> {
    let work = async {
        let range = label_range(state, &query);
        if query.label == NAME_LABEL {
            let is_limited = query.from_ms.is_some() || query.until_ms.is_some();
            let types = state.engine.profile_types(tenants, is_limited.then_some(range)).await?;
            return Ok(types.iter().map(ToString::to_string).collect());
        }
        Ok(state.engine.label_values(tenants, &query.label, &[], range).await?)
    };
    state.engine.admitted(Box::pin(work)).await
}

fn label_range(state: &ServerState, query: &LabelQuery) -> TimeRange {
    let longest = state.engine.limits().max_query_length;
    let TimeRange { start_ms, end_ms } = TimeRange::ALL;
    if longest.is_zero() {
        return TimeRange::new(query.from_ms.unwrap_or(start_ms), query.until_ms.unwrap_or(end_ms));
    }
    let longest = i64::try_from(longest.as_millis()).unwrap_or(i64::MAX);
    let now = chrono::Utc::now().timestamp_millis();
    let end = query.until_ms.unwrap_or(now);
    TimeRange::new(query.from_ms.unwrap_or(end.saturating_sub(longest)), end)
}

async fn stack_query(state: &ServerState, side: Side) -> Result<StackQuery, ConnectError> {
    text_query(state, side.parameter, &side.text, side.range).await
}
