//! `querier.v1.QuerierService`: queries of profiles, labels and series.
//!
//! In: messages. Out: queries to the engine, and its results as messages. This module checks the limits on messages
//! (nodes, ids, formats), and the engine interprets the queries. Calls that are not listed here fail with
//! `unimplemented`.

use bytes::Bytes;

use crate::query::{Aggregation, Detail, HeatmapQuery, Impact, ReadEstimate, SeriesQuery, StackQuery, TimeRange};
use crate::server::bodies::workers::LARGE_WORK;
use crate::server::services::parameters::{
    all_matchers, check_list_length, check_step, exemplar_kind, heatmap_of, hexadecimal, matchers, max_functions,
    max_nodes, profile_type, series_limit, stack_query, stack_selection, text_query, unimplemented,
};
use crate::server::services::timeline_messages::{heatmap_message, series_message};
use crate::server::state::shared::ServerState;
use alluvium_profile::flamegraph::dot;
use alluvium_profile::pprof::encode;
use alluvium_profile::{Labels, Tenants};
use alluvium_wire::connect::{Codec, ConnectError};
use alluvium_wire::pprof_message::message;
use alluvium_wire::proto::google::Profile;
use alluvium_wire::proto::querier::{self, ProfileFormat, QuerierService};
use alluvium_wire::proto::types;
use alluvium_wire::push::pairs;
use alluvium_wire::querier::{detailed_flamegraph_message, diff_message, flamegraph_message, type_message};
use alluvium_wire::service::{Answer, Call, CallResult};
use alluvium_wire::tree_bytes::tree_bytes;

/// Implements the calls with the query engine.
#[derive(Clone)]
pub(in crate::server) struct Querier(pub(in crate::server) ServerState);

impl QuerierService for Querier {
    /// Returns the profile types in a time range, or all stored profile types if the request has no range.
    async fn profile_types(
        &self,
        call: Call<querier::ProfileTypesRequest>,
    ) -> CallResult<querier::ProfileTypesResponse> {
        let request = &call.request;
        let range = (request.start != 0 || request.end != 0).then(|| TimeRange::new(request.start, request.end));
        let stored_types = self.0.engine.profile_types(&call.tenants, range).await?;
        let profile_types = stored_types.iter().map(type_message).collect();
        Ok(querier::ProfileTypesResponse { profile_types }.into())
    }

    async fn label_values(&self, call: Call<types::LabelValuesRequest>) -> CallResult<types::LabelValuesResponse> {
        let (tenants, request) = (&call.tenants, call.request);
        let matchers = all_matchers(&self.0, request.matchers).await?;
        let range = TimeRange::new(request.start, request.end);
        let names = self
            .0
            .engine
            .label_values(tenants, &request.name, &matchers, range)
            .await?;
        Ok(types::LabelValuesResponse { names }.into())
    }

    async fn label_names(&self, call: Call<types::LabelNamesRequest>) -> CallResult<types::LabelNamesResponse> {
        let (tenants, request) = (&call.tenants, call.request);
        let matchers = all_matchers(&self.0, request.matchers).await?;
        let range = TimeRange::new(request.start, request.end);
        let names = self.0.engine.label_names(tenants, &matchers, range).await?;
        Ok(types::LabelNamesResponse { names }.into())
    }

    async fn series(&self, call: Call<querier::SeriesRequest>) -> CallResult<querier::SeriesResponse> {
        let (tenants, request) = (&call.tenants, call.request);
        let matchers = all_matchers(&self.0, request.matchers).await?;
        let range = TimeRange::new(request.start, request.end);
        check_list_length("label names", request.label_names.len())?;
        let sets = self
            .0
            .engine
            .series(tenants, &matchers, &request.label_names, range)
            .await?;
        let set = |labels: &Labels| types::Labels { labels: pairs(labels) };
        let labels_set = sets.iter().map(set).collect();
        Ok(querier::SeriesResponse { labels_set }.into())
    }

    /// Returns a flame graph, an encoded tree, text for Graphviz, or pprof.
    async fn select_merge_stacktraces(
        &self,
        call: Call<querier::SelectMergeStacktracesRequest>,
    ) -> CallResult<querier::SelectMergeStacktracesResponse> {
        let (tenants, request) = (&call.tenants, call.request);
        let format = request.format();
        let requested = request.max_nodes;
        let max_nodes = max_nodes(requested, &self.0.options.limits)?;
        let detail = if request.frame_details {
            Detail::Files
        } else {
            Detail::Names
        };
        let mut query = stacktraces_query(&self.0, request).await?;
        // Programs read a pprof profile, so it is complete unless the request limits it with `max_nodes`.
        query.pprof_nodes = requested.filter(|requested| *requested != 0).map_or(0, |_| max_nodes);
        let mut response = querier::SelectMergeStacktracesResponse::default();
        match format {
            ProfileFormat::Unspecified | ProfileFormat::Flamegraph => {
                response.flamegraph = Some(graph(&self.0, tenants, query, max_nodes, detail).await?);
            }
            ProfileFormat::Tree => response.tree = tree(&self.0, tenants, query, max_nodes).await?,
            ProfileFormat::Pprof => {
                query.numeric_labels = self.0.numeric_labels(tenants);
                let profile = self.0.engine.merge_profile(tenants, query, message).await?;
                response.pprof = Some(querier::PprofProfile { profile: Some(profile) });
            }
            ProfileFormat::Dot => {
                let (title, unit) = (query.profile_type.to_string(), query.profile_type.sample_unit.clone());
                let functions = max_functions(requested, &self.0.options.limits)?;
                let graph = self.0.engine.call_graph(tenants, query, functions).await?;
                let write = move || Ok(dot(&graph, &title, &unit));
                response.dot = self.0.workers.run(LARGE_WORK, write).await?;
            }
        }
        Ok(response.into())
    }

    /// Returns the merged stacks of spans. Older clients use this call instead of `SelectMergeStacktraces` with
    /// `span_selector`.
    async fn select_merge_span_profile(
        &self,
        call: Call<querier::SelectMergeSpanProfileRequest>,
    ) -> CallResult<querier::SelectMergeSpanProfileResponse> {
        let (tenants, request) = (&call.tenants, call.request);
        let max_nodes = max_nodes(request.max_nodes, &self.0.options.limits)?;
        let format = request.format();
        if matches!(format, ProfileFormat::Dot | ProfileFormat::Pprof) {
            return Err(unimplemented(
                "the formats DOT and PPROF, because the response of this call has no field for them",
            ));
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
        let mut response = querier::SelectMergeSpanProfileResponse::default();
        if format == ProfileFormat::Tree {
            response.tree = tree(&self.0, tenants, query, max_nodes).await?;
        } else {
            response.flamegraph = Some(graph(&self.0, tenants, query, max_nodes, Detail::Names).await?);
        }
        Ok(response.into())
    }

    /// Returns the merged profile. If `max_nodes` is set, the profile has about that many nodes.
    async fn select_merge_profile(&self, call: Call<querier::SelectMergeProfileRequest>) -> CallResult<Profile> {
        let (tenants, request) = (&call.tenants, call.request);
        let mut query = stack_query(
            &self.0,
            &request.profile_type_id,
            request.label_selector,
            request.start,
            request.end,
        )
        .await?;
        if request.max_nodes.is_some_and(|requested| requested != 0) {
            query.pprof_nodes = max_nodes(request.max_nodes, &self.0.options.limits)?;
        }
        let selectors = Selectors {
            stack: request.stack_trace_selector,
            profile_ids: request.profile_id_selector,
            span_ids: Vec::new(),
            trace_ids: request.trace_id_selector,
        };
        selectors.apply_to(&self.0, &mut query).await?;
        query.numeric_labels = self.0.numeric_labels(tenants);
        match call.codec {
            Codec::Json => Ok(self.0.engine.merge_profile(tenants, query, message).await?.into()),
            Codec::Proto => {
                let bytes = self.0.engine.merge_profile(tenants, query, encode).await?;
                Ok(Answer::Encoded(bytes.into()))
            }
        }
    }

    /// Returns time lines. Only the stacks that the call site and the frame filter of `stack_trace_selector` select
    /// count. `go_pgo` is ignored, because it shortens stacks and does not change their values.
    async fn select_series(
        &self,
        call: Call<querier::SelectSeriesRequest>,
    ) -> CallResult<querier::SelectSeriesResponse> {
        let (tenants, request) = (&call.tenants, call.request);
        check_step(request.step)?;
        check_list_length("labels to group by", request.group_by.len())?;
        let stacks = stack_selection(&self.0, request.stack_trace_selector.clone()).await?;
        let query = SeriesQuery {
            profile_type: profile_type(&request.profile_type_id)?,
            matchers: matchers(&self.0, request.label_selector.clone()).await?,
            range: TimeRange::new(request.start, request.end),
            call_site: stacks.call_site,
            frames: stacks.frames,
            step: request.step,
            aggregation: match request.aggregation() {
                types::TimeSeriesAggregationType::Sum => Aggregation::Sum,
                types::TimeSeriesAggregationType::Average => Aggregation::Average,
            },
            limit: series_limit(request.limit)?,
            exemplars: exemplar_kind(request.exemplar_type()),
            group_by: request.group_by,
        };
        let lines = self.0.engine.select_series(tenants, query).await?;
        let series = lines.into_iter().map(series_message).collect();
        Ok(querier::SelectSeriesResponse { series }.into())
    }

    /// Returns a heatmap of profiles or spans. The exemplars of a heatmap of profiles can only be profiles, and those
    /// of a heatmap of spans can only be spans.
    async fn select_heatmap(
        &self,
        call: Call<querier::SelectHeatmapRequest>,
    ) -> CallResult<querier::SelectHeatmapResponse> {
        let (tenants, request) = (&call.tenants, call.request);
        check_step(request.step)?;
        check_list_length("labels to group by", request.group_by.len())?;
        let (source, exemplars) = heatmap_of(request.query_type(), exemplar_kind(request.exemplar_type()))?;
        let query = HeatmapQuery {
            profile_type: profile_type(&request.profile_type_id)?,
            matchers: matchers(&self.0, request.label_selector.clone()).await?,
            range: TimeRange::new(request.start, request.end),
            step: request.step,
            source,
            exemplars,
            limit: series_limit(request.limit)?,
            group_by: request.group_by,
        };
        let lines = self.0.engine.select_heatmap(tenants, query).await?;
        let series = lines.into_iter().map(heatmap_message).collect();
        Ok(querier::SelectHeatmapResponse { series }.into())
    }

    /// Returns the difference between two sides. Both must have the same profile type, and may differ in selector and
    /// range. The larger of the two node limits applies.
    async fn diff(&self, call: Call<querier::DiffRequest>) -> CallResult<querier::DiffResponse> {
        let (tenants, request) = (&call.tenants, call.request);
        let (Some(left), Some(right)) = (request.left, request.right) else {
            return Err(ConnectError::invalid("a diff requires `left` and `right`"));
        };
        let limits = &self.0.options.limits;
        let max_nodes = max_nodes(left.max_nodes, limits)?.max(max_nodes(right.max_nodes, limits)?);
        let (left, right) = (
            stacktraces_query(&self.0, left).await?,
            stacktraces_query(&self.0, right).await?,
        );
        if left.profile_type != right.profile_type {
            return Err(ConnectError::invalid(format!(
                "both sides must have the same profile type, not `{}` and `{}`",
                left.profile_type, right.profile_type
            )));
        }
        let graph = self.0.engine.diff(tenants, left, right, max_nodes).await?;
        let flamegraph = Some(diff_message(graph));
        Ok(querier::DiffResponse { flamegraph }.into())
    }

    /// Returns the times of the oldest and the newest profile, from the statistics of files and from the heads.
    async fn get_profile_stats(
        &self,
        call: Call<types::GetProfileStatsRequest>,
    ) -> CallResult<types::GetProfileStatsResponse> {
        let times = self.0.engine.profile_times(&call.tenants).await?;
        let (oldest, newest) = times.map_or((0, 0), |times| (times.min, times.max));
        Ok(types::GetProfileStatsResponse {
            data_ingested: times.is_some(),
            oldest_profile_time: oldest.div_euclid(1000),
            newest_profile_time: newest.div_euclid(1000),
        }
        .into())
    }

    /// Returns an estimate of the data that the query would read. The data itself is not read.
    async fn analyze_query(
        &self,
        call: Call<querier::AnalyzeQueryRequest>,
    ) -> CallResult<querier::AnalyzeQueryResponse> {
        let (tenants, request) = (&call.tenants, call.request);
        let range = TimeRange::new(request.start, request.end);
        let query = text_query(&self.0, "query", &request.query, range).await?;
        let impact = self.0.engine.impact(tenants, query).await?;
        Ok(impact_message(&impact).into())
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
        return Err(unimplemented("asynchronous queries"));
    }
    let mut query = stack_query(
        state,
        &request.profile_type_id,
        request.label_selector,
        request.start,
        request.end,
    )
    .await?;
    let selectors = Selectors {
        stack: request.stack_trace_selector,
        profile_ids: request.profile_id_selector,
        span_ids: request.span_selector,
        trace_ids: request.trace_id_selector,
    };
    selectors.apply_to(state, &mut query).await?;
    Ok(query)
}

/// The selectors of a request for merged profiles, besides the label selector.
struct Selectors {
    stack: Option<types::StackTraceSelector>,
    profile_ids: Vec<String>,
    span_ids: Vec<String>,
    trace_ids: Vec<String>,
}

impl Selectors {
    /// Checks the selectors and restricts `query` to the stacks that they select.
    async fn apply_to(self, state: &ServerState, query: &mut StackQuery) -> Result<(), ConnectError> {
        let stacks = stack_selection(state, self.stack).await?;
        (query.call_site, query.frames, query.go_pgo) = (stacks.call_site, stacks.frames, stacks.go_pgo);
        check_list_length("profile ids", self.profile_ids.len())?;
        query.profile_ids = self.profile_ids;
        query.span_ids = hexadecimal("span", 16, self.span_ids)?;
        query.trace_ids = hexadecimal("trace", 32, self.trace_ids)?;
        if !query.span_ids.is_empty() && !query.trace_ids.is_empty() {
            return Err(ConnectError::invalid("span and trace selectors cannot be combined"));
        }
        Ok(())
    }
}

/// Returns a flame graph as a message. With [`Detail::Names`], the name alone identifies a function.
async fn graph(
    state: &ServerState,
    tenants: &Tenants,
    query: StackQuery,
    max_nodes: usize,
    detail: Detail,
) -> Result<querier::FlameGraph, ConnectError> {
    let graph = state.engine.flamegraph(tenants, query, max_nodes, detail).await?;
    Ok(match detail {
        Detail::Names => flamegraph_message(graph),
        Detail::Files => detailed_flamegraph_message(graph),
    })
}

/// Returns a flame graph by function name as an encoded tree.
async fn tree(
    state: &ServerState,
    tenants: &Tenants,
    query: StackQuery,
    max_nodes: usize,
) -> Result<Bytes, ConnectError> {
    let graph = state
        .engine
        .flamegraph(tenants, query, max_nodes, Detail::Names)
        .await?;
    let write = move || Ok(tree_bytes(&graph));
    Ok(state.workers.run(LARGE_WORK, write).await?.into())
}

/// Converts the impact of a query to a message. The heads are one query scope, and the tables are another.
fn impact_message(impact: &Impact) -> querier::AnalyzeQueryResponse {
    let scope = |name: &str, reading: &ReadEstimate| querier::QueryScope {
        component_type: name.to_owned(),
        component_count: 1,
        block_count: reading.blocks,
        series_count: reading.series,
        profile_count: reading.profiles,
        sample_count: reading.samples,
        index_bytes: reading.index_bytes,
        profile_bytes: reading.sample_bytes,
        symbol_bytes: reading.symbol_bytes,
    };
    querier::AnalyzeQueryResponse {
        query_scopes: vec![scope("head", &impact.heads), scope("tables", &impact.files)],
        query_impact: Some(querier::QueryImpact {
            total_bytes_in_time_range: impact.files.bytes(),
            total_queried_series: impact.series,
            // Each profile is stored in only one place.
            deduplication_needed: false,
        }),
    }
}
