//! `querier.v1.QuerierService`.
//!
//! In: messages. Out: queries to the engine, and its answers as messages. Limits on messages (nodes, ids, formats) are
//! checked here; the engine interprets the queries. Calls that are not listed here answer `unimplemented`.

use crate::profile::flamegraph::dot;
use crate::profile::pprof::encode;
use crate::profile::selector::{self, Matcher};
use crate::profile::{Labels, ProfileType, TenantId};
use crate::query::{Aggregation, Detail, SeriesQuery, StackQuery, TimeRange};
use crate::server::{ServerLimits, ServerState};
use crate::wire::connect::{Code, Codec, ConnectError};
use crate::wire::pprof_message::message;
use crate::wire::proto::google::Profile;
use crate::wire::proto::querier::{self, ProfileFormat, QuerierService};
use crate::wire::proto::types;
use crate::wire::push::pairs;
use crate::wire::querier::{detailed_flamegraph_message, diff_message, flamegraph_message, type_message};
use crate::wire::service::{Answer, Call, CallResult};
use crate::wire::tree_bytes::tree_bytes;

/// Maximum number of characters of a selector in an error.
const SHOWN_CHARS: usize = 1000;
/// Maximum number of selectors, ids or names in one list of a request.
const MAX_LISTED: usize = 1000;
/// Functions of a call graph when the request does not say.
const CALL_GRAPH_FUNCTIONS: i64 = 100;
/// Bytes of work that are more than the thread of a request should do.
const LARGE_WORK: usize = 1 << 20;
/// Shortest step of a time line in seconds, since the times of points are in milliseconds.
const MIN_STEP: f64 = 0.001;

/// Answers calls with the query engine.
#[derive(Clone)]
pub(super) struct Querier(pub(super) ServerState);

impl QuerierService for Querier {
    /// Without a range: all types ever seen.
    async fn profile_types(
        &self,
        call: Call<querier::ProfileTypesRequest>,
    ) -> CallResult<querier::ProfileTypesResponse> {
        let request = &call.request;
        let range = (request.start != 0 || request.end != 0).then(|| TimeRange::new(request.start, request.end));
        let found = self.0.engine.profile_types(&call.tenant, range).await?;
        let profile_types = found.iter().map(type_message).collect();
        Ok(querier::ProfileTypesResponse { profile_types }.into())
    }

    async fn label_values(&self, call: Call<types::LabelValuesRequest>) -> CallResult<types::LabelValuesResponse> {
        let (tenant, request) = (&call.tenant, call.request);
        let matchers = all_matchers(&self.0, request.matchers).await?;
        let range = TimeRange::new(request.start, request.end);
        let names = self
            .0
            .engine
            .label_values(tenant, &request.name, &matchers, range)
            .await?;
        Ok(types::LabelValuesResponse { names }.into())
    }

    async fn label_names(&self, call: Call<types::LabelNamesRequest>) -> CallResult<types::LabelNamesResponse> {
        let (tenant, request) = (&call.tenant, call.request);
        let matchers = all_matchers(&self.0, request.matchers).await?;
        let range = TimeRange::new(request.start, request.end);
        let names = self.0.engine.label_names(tenant, &matchers, range).await?;
        Ok(types::LabelNamesResponse { names }.into())
    }

    async fn series(&self, call: Call<querier::SeriesRequest>) -> CallResult<querier::SeriesResponse> {
        let (tenant, request) = (&call.tenant, call.request);
        let matchers = all_matchers(&self.0, request.matchers).await?;
        let range = TimeRange::new(request.start, request.end);
        at_most("label names", request.label_names.len())?;
        let sets = self
            .0
            .engine
            .series(tenant, &matchers, &request.label_names, range)
            .await?;
        let set = |labels: &Labels| types::Labels { labels: pairs(labels) };
        let labels_set = sets.iter().map(set).collect();
        Ok(querier::SeriesResponse { labels_set }.into())
    }

    /// Answers as a flame graph, as a tree of bytes, as text for Graphviz or as pprof.
    async fn select_merge_stacktraces(
        &self,
        call: Call<querier::SelectMergeStacktracesRequest>,
    ) -> CallResult<querier::SelectMergeStacktracesResponse> {
        let (tenant, request) = (&call.tenant, call.request);
        let format = request.format();
        let asked = request.max_nodes;
        let max_nodes = max_nodes(asked, &self.0.options.limits)?;
        let detail = if request.frame_details {
            Detail::Files
        } else {
            Detail::Names
        };
        let query = stacktraces_query(&self.0, request).await?;
        match format {
            ProfileFormat::Unspecified | ProfileFormat::Flamegraph => {
                let flamegraph = Some(graph(&self.0, tenant, query, max_nodes, detail).await?);
                Ok(querier::SelectMergeStacktracesResponse {
                    flamegraph,
                    ..Default::default()
                }
                .into())
            }
            ProfileFormat::Pprof => {
                let profile = self.0.engine.merge_profile(tenant, query, message).await?;
                let pprof = Some(querier::PprofProfile { profile: Some(profile) });
                Ok(querier::SelectMergeStacktracesResponse {
                    pprof,
                    ..Default::default()
                }
                .into())
            }
            ProfileFormat::Tree => {
                let graph = self
                    .0
                    .engine
                    .flamegraph(tenant, query, max_nodes, Detail::Names)
                    .await?;
                let write = move || Ok(tree_bytes(&graph));
                let tree = self.0.workers.run(LARGE_WORK, write).await?.into();
                Ok(querier::SelectMergeStacktracesResponse {
                    tree,
                    ..Default::default()
                }
                .into())
            }
            ProfileFormat::Dot => {
                let (title, unit) = (query.profile_type.to_string(), query.profile_type.sample_unit.clone());
                let functions = max_functions(asked, &self.0.options.limits)?;
                let graph = self.0.engine.call_graph(tenant, query, functions).await?;
                let write = move || Ok(dot(&graph, &title, &unit));
                let dot = self.0.workers.run(LARGE_WORK, write).await?;
                Ok(querier::SelectMergeStacktracesResponse {
                    dot,
                    ..Default::default()
                }
                .into())
            }
        }
    }

    /// Older clients use this call instead of `SelectMergeStacktraces` with `span_selector`.
    async fn select_merge_span_profile(
        &self,
        call: Call<querier::SelectMergeSpanProfileRequest>,
    ) -> CallResult<querier::SelectMergeSpanProfileResponse> {
        let (tenant, request) = (&call.tenant, call.request);
        let max_nodes = max_nodes(request.max_nodes, &self.0.options.limits)?;
        if matches!(
            request.format(),
            ProfileFormat::Tree | ProfileFormat::Dot | ProfileFormat::Pprof
        ) {
            return Err(unimplemented("formats other than FLAMEGRAPH are"));
        }
        let mut query = stack_query(
            &self.0,
            &request.profile_type_id,
            request.label_selector,
            request.start,
            request.end,
        )
        .await?;
        query.span_ids = hexadecimal("span", 16, request.span_selector)?;
        if query.span_ids.is_empty() {
            return Err(ConnectError::invalid("span_selector must name at least one span"));
        }
        Ok(querier::SelectMergeSpanProfileResponse {
            flamegraph: Some(graph(&self.0, tenant, query, max_nodes, Detail::Names).await?),
            ..Default::default()
        }
        .into())
    }

    /// Answers with the merged profile. `max_nodes` has no effect, as in Pyroscope.
    async fn select_merge_profile(&self, call: Call<querier::SelectMergeProfileRequest>) -> CallResult<Profile> {
        let (tenant, request) = (&call.tenant, call.request);
        let mut query = stack_query(
            &self.0,
            &request.profile_type_id,
            request.label_selector,
            request.start,
            request.end,
        )
        .await?;
        query.call_site = call_site(request.stack_trace_selector)?;
        at_most("profile ids", request.profile_id_selector.len())?;
        query.profile_ids = request.profile_id_selector;
        query.trace_ids = hexadecimal("trace", 32, request.trace_id_selector)?;
        match call.codec {
            Codec::Json => Ok(self.0.engine.merge_profile(tenant, query, message).await?.into()),
            Codec::Proto => {
                let bytes = self.0.engine.merge_profile(tenant, query, encode).await?;
                Ok(Answer::Encoded(bytes.into()))
            }
        }
    }

    /// `stack_trace_selector` and `exemplar_type` have no effect, as in Pyroscope 2.
    async fn select_series(
        &self,
        call: Call<querier::SelectSeriesRequest>,
    ) -> CallResult<querier::SelectSeriesResponse> {
        let (tenant, request) = (&call.tenant, call.request);
        if !request.step.is_finite() || request.step < MIN_STEP {
            return Err(ConnectError::invalid(format!(
                "step must be at least {MIN_STEP} seconds, not {}",
                request.step
            )));
        }
        at_most("labels to group by", request.group_by.len())?;
        let query = SeriesQuery {
            profile_type: profile_type(&request.profile_type_id)?,
            matchers: matchers(&self.0, request.label_selector.clone()).await?,
            range: TimeRange::new(request.start, request.end),
            step: request.step,
            aggregation: match request.aggregation() {
                types::TimeSeriesAggregationType::Sum => Aggregation::Sum,
                types::TimeSeriesAggregationType::Average => Aggregation::Average,
            },
            limit: usize::try_from(request.limit.unwrap_or(0))
                .map_err(|_| ConnectError::invalid("limit must not be negative"))?,
            group_by: request.group_by,
        };
        let lines = self.0.engine.select_series(tenant, query).await?;
        let point = |(timestamp, value)| types::Point { value, timestamp };
        let series = lines.into_iter().map(|line| types::Series {
            labels: pairs(&line.labels),
            points: line.points.into_iter().map(point).collect(),
        });
        let series = series.collect();
        Ok(querier::SelectSeriesResponse { series }.into())
    }

    /// Both sides have the same type and differ in selector or range. The larger of the two node limits applies.
    async fn diff(&self, call: Call<querier::DiffRequest>) -> CallResult<querier::DiffResponse> {
        let (tenant, request) = (&call.tenant, call.request);
        let (Some(left), Some(right)) = (request.left, request.right) else {
            return Err(ConnectError::invalid("a difference needs `left` and `right`"));
        };
        let limits = &self.0.options.limits;
        let max_nodes = max_nodes(left.max_nodes, limits)?.max(max_nodes(right.max_nodes, limits)?);
        let (left, right) = (
            stacktraces_query(&self.0, left).await?,
            stacktraces_query(&self.0, right).await?,
        );
        if left.profile_type != right.profile_type {
            return Err(ConnectError::invalid(format!(
                "both sides must have one profile type, not `{}` and `{}`",
                left.profile_type, right.profile_type
            )));
        }
        let graph = self.0.engine.diff(tenant, left, right, max_nodes).await?;
        let flamegraph = Some(diff_message(graph));
        Ok(querier::DiffResponse { flamegraph }.into())
    }
}

async fn stacktraces_query(
    state: &ServerState,
    request: querier::SelectMergeStacktracesRequest,
) -> Result<StackQuery, ConnectError> {
    if request
        .r#async
        .is_some_and(|request| request.r#type() == querier::AsyncQueryType::Force)
    {
        return Err(unimplemented("asynchronous queries are"));
    }
    let mut query = stack_query(
        state,
        &request.profile_type_id,
        request.label_selector,
        request.start,
        request.end,
    )
    .await?;
    query.call_site = call_site(request.stack_trace_selector)?;
    at_most("profile ids", request.profile_id_selector.len())?;
    query.profile_ids = request.profile_id_selector;
    query.span_ids = hexadecimal("span", 16, request.span_selector)?;
    query.trace_ids = hexadecimal("trace", 32, request.trace_id_selector)?;
    if !query.span_ids.is_empty() && !query.trace_ids.is_empty() {
        return Err(ConnectError::invalid("span and trace selectors cannot be combined"));
    }
    Ok(query)
}

fn unimplemented(what: &str) -> ConnectError {
    ConnectError::new(Code::Unimplemented, format!("{what} not implemented by this server"))
}

pub(super) fn profile_type(id: &str) -> Result<ProfileType, ConnectError> {
    id.parse()
        .map_err(|error: crate::profile::profile_type::ProfileTypeError| ConnectError::invalid(error.to_string()))
}

/// A regular expression counts as this many bytes of work: it takes milliseconds to compile, however short it is.
const COMPILE_BYTES: usize = 1 << 20;

/// Parses the matchers of one selector in braces.
pub(super) async fn matchers(state: &ServerState, text: String) -> Result<Vec<Matcher>, ConnectError> {
    Ok(all_matchers(state, vec![text]).await?.concat())
}

/// Parses selectors that must all match. The limits of one selector apply to them together.
async fn all_matchers(state: &ServerState, texts: Vec<String>) -> Result<Vec<Vec<Matcher>>, ConnectError> {
    at_most("selectors", texts.len())?;
    let bytes = texts.iter().map(String::len).sum();
    let cost = if texts.iter().any(|text| text.contains('~')) {
        COMPILE_BYTES
    } else {
        bytes
    };
    let read = move || {
        selector::check_bytes(bytes).map_err(|error| ConnectError::invalid(error.to_string()))?;
        let mut all = Vec::with_capacity(texts.len());
        let mut count = 0;
        for text in texts {
            let matchers = selector::parse(&text).map_err(|error| {
                let shown: String = text.chars().take(SHOWN_CHARS).collect();
                ConnectError::invalid(format!("label selector `{shown}`: {error}"))
            })?;
            count += matchers.len();
            selector::check_count(count).map_err(|error| ConnectError::invalid(error.to_string()))?;
            all.push(matchers);
        }
        Ok(all)
    };
    state.workers.run(cost, read).await
}

/// Refuses lists that are longer than any query needs.
fn at_most(what: &str, count: usize) -> Result<(), ConnectError> {
    if count > MAX_LISTED {
        return Err(ConnectError::invalid(format!(
            "a question may name {MAX_LISTED} {what}, not {count}"
        )));
    }
    Ok(())
}

async fn stack_query(
    state: &ServerState,
    profile_type_id: &str,
    selector: String,
    start: i64,
    end: i64,
) -> Result<StackQuery, ConnectError> {
    let (profile_type, matchers) = (profile_type(profile_type_id)?, matchers(state, selector).await?);
    Ok(StackQuery::new(profile_type, matchers, TimeRange::new(start, end)))
}

fn call_site(selector: Option<types::StackTraceSelector>) -> Result<Vec<String>, ConnectError> {
    let Some(selector) = selector else {
        return Ok(Vec::new());
    };
    if selector.go_pgo.is_some() {
        return Err(unimplemented("the stack trace selector go_pgo is"));
    }
    at_most("call sites", selector.call_site.len())?;
    Ok(selector.call_site.into_iter().map(|location| location.name).collect())
}

fn hexadecimal(what: &str, length: usize, ids: Vec<String>) -> Result<Vec<String>, ConnectError> {
    at_most(&format!("{what} ids"), ids.len())?;
    for id in &ids {
        if id.len() != length || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(ConnectError::invalid(format!(
                "invalid {what} id length or digits: `{id}` must be {length} hexadecimal digits"
            )));
        }
    }
    Ok(ids.into_iter().map(|id| id.to_ascii_lowercase()).collect())
}

/// The node limit of a request: the default for `None` and 0, an error (400) above the maximum.
pub(super) fn max_nodes(asked: Option<i64>, limits: &ServerLimits) -> Result<usize, ConnectError> {
    let (asked, max) = (asked.unwrap_or(0), limits.max_flamegraph_nodes);
    if asked < 0 {
        return Err(ConnectError::invalid(format!(
            "max flamegraph nodes limit must be set (max allowed {max})"
        )));
    }
    if asked > max {
        return Err(ConnectError::invalid(format!(
            "max flamegraph nodes limit {asked} is greater than allowed {max}"
        )));
    }
    let nodes = if asked == 0 { limits.flamegraph_nodes } else { asked };
    Ok(usize::try_from(nodes).unwrap_or_default())
}

/// The function limit of a call graph: a hundred for `None` and 0, an error (400) above the maximum of nodes.
pub(super) fn max_functions(asked: Option<i64>, limits: &ServerLimits) -> Result<usize, ConnectError> {
    let default = CALL_GRAPH_FUNCTIONS.min(limits.max_flamegraph_nodes);
    max_nodes(asked.filter(|asked| *asked != 0).or(Some(default)), limits)
}

/// Converts a flame graph to a message. Without `frame_details` functions are identified by name only.
async fn graph(
    state: &ServerState,
    tenant: &TenantId,
    query: StackQuery,
    max_nodes: usize,
    detail: Detail,
) -> Result<querier::FlameGraph, ConnectError> {
    let graph = state.engine.flamegraph(tenant, query, max_nodes, detail).await?;
    Ok(match detail {
        Detail::Names => flamegraph_message(graph),
        Detail::Files => detailed_flamegraph_message(graph),
    })
}
