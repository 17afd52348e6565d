//! Converts querier.v1 messages to plain values and back, and provides a client.
//!
//! In: flame graphs, labels and profile types of the crate `alluvium_profile`. Out: messages. The module also converts
//! messages back. The query engine interprets the requests; `proto/querier/v1/querier.proto` lists the calls.

use bytes::Bytes;

use crate::call::{CallError, Caller};
use crate::proto::types::LabelPair;
use crate::proto::{querier, types};
use alluvium_profile::flamegraph::{DiffGraph, FlameGraph};
use alluvium_profile::{Labels, ProfileType};

/// Name of the service; a route is `querier.v1.QuerierService/` followed by the name of the call.
pub const SERVICE: &str = "querier.v1.QuerierService";

/// Converts a profile type to a message.
pub fn type_message(profile_type: &ProfileType) -> types::ProfileType {
    types::ProfileType {
        id: profile_type.to_string(),
        name: profile_type.name.clone(),
        sample_type: profile_type.sample_type.clone(),
        sample_unit: profile_type.sample_unit.clone(),
        period_type: profile_type.period_type.clone(),
        period_unit: profile_type.period_unit.clone(),
    }
}

/// Converts labels from messages.
pub fn labels(pairs: Vec<LabelPair>) -> Labels {
    Labels::from_pairs(pairs.into_iter().map(|pair| (pair.name, pair.value)))
}

/// Converts a flame graph to a message with exactly Pyroscope's fields.
pub fn flamegraph_message(graph: FlameGraph) -> querier::FlameGraph {
    querier::FlameGraph {
        names: graph.names,
        levels: levels(graph.levels),
        total: graph.total,
        max_self: graph.max_self,
        ..querier::FlameGraph::default()
    }
}

/// Converts a flame graph to a message with files, binaries and lines.
pub fn detailed_flamegraph_message(mut graph: FlameGraph) -> querier::FlameGraph {
    let files = std::mem::take(&mut graph.files);
    let mappings = std::mem::take(&mut graph.mappings);
    let lines = levels(std::mem::take(&mut graph.lines));
    querier::FlameGraph {
        files,
        lines,
        mappings,
        ..flamegraph_message(graph)
    }
}

fn levels(levels: Vec<Vec<i64>>) -> Vec<querier::Level> {
    levels.into_iter().map(|values| querier::Level { values }).collect()
}

/// Converts a difference to a message.
pub fn diff_message(graph: DiffGraph) -> querier::FlameGraphDiff {
    querier::FlameGraphDiff {
        names: graph.names,
        levels: levels(graph.levels),
        total: graph.total,
        max_self: graph.max_self,
        left_ticks: graph.left_ticks,
        right_ticks: graph.right_ticks,
    }
}

/// Converts a flame graph from a message. Data that the server did not send (files, binaries, lines) is empty.
pub fn flamegraph(message: querier::FlameGraph) -> FlameGraph {
    let values = |levels: Vec<querier::Level>| levels.into_iter().map(|level| level.values).collect();
    let mut graph = FlameGraph {
        names: message.names,
        levels: values(message.levels),
        total: message.total,
        max_self: message.max_self,
        files: message.files,
        mappings: message.mappings,
        lines: values(message.lines),
    };
    graph.files.resize(graph.names.len(), String::new());
    graph.mappings.resize(graph.names.len(), String::new());
    graph.lines.resize(graph.levels.len(), Vec::new());
    for (lines, level) in graph.lines.iter_mut().zip(&graph.levels) {
        lines.resize(level.len() / 4, 0);
    }
    graph
}

/// Profiles of a request: a type, a selector in braces, and the range from `start_ms` up to, not including, `end_ms`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Five-part id of the profile type.
    pub profile_type: String,
    /// Selector such as `{service_name="x"}`; `{}` selects everything.
    pub selector: String,
    /// First millisecond of the range, in Unix time.
    pub start_ms: i64,
    /// First millisecond after the range, in Unix time.
    pub end_ms: i64,
}

/// A time line in a server's response.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeLine {
    /// Labels by which the series are grouped.
    pub labels: Labels,
    /// Points: Unix time in milliseconds, and value.
    pub points: Vec<(i64, f64)>,
}

/// A client of a querier.v1 server.
#[derive(Clone, Debug)]
pub struct QuerierClient {
    caller: Caller,
}

impl QuerierClient {
    /// Creates a client of the server that `caller` calls.
    pub fn new(caller: Caller) -> Self {
        Self { caller }
    }

    /// Returns the profile types that occur in a range.
    pub async fn profile_types(&self, start_ms: i64, end_ms: i64) -> Result<Vec<ProfileType>, CallError> {
        let request = querier::ProfileTypesRequest {
            start: start_ms,
            end: end_ms,
        };
        let answer: querier::ProfileTypesResponse = self.call("ProfileTypes", &request).await?;
        Ok(answer
            .profile_types
            .iter()
            .filter_map(|profile_type| profile_type.id.parse().ok())
            .collect())
    }

    /// Returns the label names in a range, of the series that match all `matchers` (selectors in braces).
    pub async fn label_names(
        &self,
        matchers: Vec<String>,
        start_ms: i64,
        end_ms: i64,
    ) -> Result<Vec<String>, CallError> {
        let request = types::LabelNamesRequest {
            matchers,
            start: start_ms,
            end: end_ms,
        };
        let answer: types::LabelNamesResponse = self.call("LabelNames", &request).await?;
        Ok(answer.names)
    }

    /// Returns the values of one label in a range, of the series that match all `matchers`.
    pub async fn label_values(
        &self,
        name: &str,
        matchers: Vec<String>,
        start_ms: i64,
        end_ms: i64,
    ) -> Result<Vec<String>, CallError> {
        let request = types::LabelValuesRequest {
            name: name.to_owned(),
            matchers,
            start: start_ms,
            end: end_ms,
        };
        let answer: types::LabelValuesResponse = self.call("LabelValues", &request).await?;
        Ok(answer.names)
    }

    /// Returns the label sets in a range. If `label_names` is not empty, the sets contain only these labels.
    pub async fn series(
        &self,
        matchers: Vec<String>,
        label_names: Vec<String>,
        start_ms: i64,
        end_ms: i64,
    ) -> Result<Vec<Labels>, CallError> {
        let request = querier::SeriesRequest {
            matchers,
            label_names,
            start: start_ms,
            end: end_ms,
        };
        let answer: querier::SeriesResponse = self.call("Series", &request).await?;
        Ok(answer.labels_set.into_iter().map(|set| labels(set.labels)).collect())
    }

    /// Returns one time line for each combination of the labels `group_by`, with a point every `step_seconds`.
    pub async fn select_series(
        &self,
        selection: Selection,
        group_by: Vec<String>,
        step_seconds: f64,
    ) -> Result<Vec<TimeLine>, CallError> {
        let request = querier::SelectSeriesRequest {
            profile_type_id: selection.profile_type,
            label_selector: selection.selector,
            start: selection.start_ms,
            end: selection.end_ms,
            group_by,
            step: step_seconds,
            ..querier::SelectSeriesRequest::default()
        };
        let answer: querier::SelectSeriesResponse = self.call("SelectSeries", &request).await?;
        Ok(answer
            .series
            .into_iter()
            .map(|series| TimeLine {
                labels: labels(series.labels),
                points: series
                    .points
                    .iter()
                    .map(|point| (point.timestamp, point.value))
                    .collect(),
            })
            .collect())
    }

    /// Returns the flame graph with about `max_nodes` nodes. If `max_nodes` is 0, the server uses its default number.
    /// The graph has files and lines if the server supports them.
    pub async fn merge_stacktraces(&self, selection: Selection, max_nodes: i64) -> Result<FlameGraph, CallError> {
        let request = querier::SelectMergeStacktracesRequest {
            profile_type_id: selection.profile_type,
            label_selector: selection.selector,
            start: selection.start_ms,
            end: selection.end_ms,
            max_nodes: Some(max_nodes),
            frame_details: true,
            ..querier::SelectMergeStacktracesRequest::default()
        };
        let answer: querier::SelectMergeStacktracesResponse = self.call("SelectMergeStacktraces", &request).await?;
        Ok(flamegraph(answer.flamegraph.unwrap_or_default()))
    }

    /// Returns the merged profile as an uncompressed pprof.
    pub async fn merge_profile(&self, selection: Selection) -> Result<Bytes, CallError> {
        self.merge_selected(selection, None).await
    }

    /// Returns the merged profile in the form that Go's compiler needs. The server keeps the `keep_locations` locations
    /// at the leaf of each stack (0 for all). If `aggregate_callees` is set, the server merges leaf frames that differ
    /// only in the line.
    pub async fn merge_for_pgo(&self, selection: Selection, pgo: types::GoPgo) -> Result<Bytes, CallError> {
        let selector = types::StackTraceSelector {
            go_pgo: Some(pgo),
            ..types::StackTraceSelector::default()
        };
        self.merge_selected(selection, Some(selector)).await
    }

    async fn merge_selected(
        &self,
        selection: Selection,
        stack_trace_selector: Option<types::StackTraceSelector>,
    ) -> Result<Bytes, CallError> {
        let request = querier::SelectMergeProfileRequest {
            stack_trace_selector,
            profile_type_id: selection.profile_type,
            label_selector: selection.selector,
            start: selection.start_ms,
            end: selection.end_ms,
            ..querier::SelectMergeProfileRequest::default()
        };
        let body = prost::Message::encode_to_vec(&request).into();
        self.caller.call_raw(&route("SelectMergeProfile"), body).await
    }

    async fn call<Request, Answer>(&self, name: &str, request: &Request) -> Result<Answer, CallError>
    where
        Request: prost::Message,
        Answer: prost::Message + Default,
    {
        self.caller.call(&route(name), request).await
    }
}

fn route(name: &str) -> String {
    format!("{SERVICE}/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flame_graph_survives_the_round_trip_and_details_are_opt_in() {
        let graph = FlameGraph {
            names: vec!["total".to_owned(), "main".to_owned()],
            levels: vec![vec![0, 5, 0, 0], vec![0, 5, 5, 1]],
            total: 5,
            max_self: 5,
            files: vec![String::new(), "main.go".to_owned()],
            mappings: vec![String::new(), "app".to_owned()],
            lines: vec![vec![0], vec![12]],
        };
        assert_eq!(flamegraph(detailed_flamegraph_message(graph.clone())), graph);
        let plain = flamegraph_message(graph.clone());
        assert!(plain.files.is_empty() && plain.lines.is_empty() && plain.mappings.is_empty());
        let back = flamegraph(plain);
        assert_eq!((back.lines, back.files.len()), (vec![vec![0], vec![0]], 2));
    }
}
