//! Parses the common parts of queries: profile types, selectors, ids, and limits of results.
//!
//! In: fields of messages and parameters of URLs. Out: values of the query layer, or status 400 with the reason. The
//! calls of `querier.v1` and Pyroscope's plain routes share this module, so that both reject the same queries.

use crate::query::{ExemplarKind, FrameConditions, FrameFilter, GoPgo, HeatmapSource, StackQuery, TimeRange};
use crate::server::bodies::limits::ServerLimits;
use crate::server::state::shared::ServerState;
use alluvium_profile::ProfileType;
use alluvium_profile::profile_type::ProfileTypeError;
use alluvium_profile::selector::{self, Matcher};
use alluvium_wire::connect::{Code, ConnectError};
use alluvium_wire::proto::querier::HeatmapQueryType;
use alluvium_wire::proto::types;

/// Maximum number of characters of a selector in an error.
const SHOWN_CHARS: usize = 1000;
/// Maximum number of selectors, ids or names in one list of a request.
const MAX_LIST_ITEMS: usize = 1000;
/// Default number of functions of a call graph.
const CALL_GRAPH_FUNCTIONS: i64 = 100;
/// Assumed size in bytes of selectors with regular expressions. It is so large that a separate thread parses them,
/// because compiling even a short expression takes milliseconds.
const COMPILE_BYTES: usize = 1 << 20;
/// Shortest step of a time line in seconds. The times of points have a resolution of one millisecond.
const MIN_STEP: f64 = 0.001;
/// The label that holds the profile type.
pub(in crate::server) const NAME_LABEL: &str = "__name__";

/// Returns the error for a feature that this server does not have. `feature` is the end of the message.
pub(in crate::server) fn unimplemented(feature: &str) -> ConnectError {
    ConnectError::new(
        Code::Unimplemented,
        format!("not implemented by this server: {feature}"),
    )
}

/// Parses the id of a profile type.
pub(in crate::server) fn profile_type(id: &str) -> Result<ProfileType, ConnectError> {
    id.parse()
        .map_err(|error: ProfileTypeError| ConnectError::invalid(error.to_string()))
}

/// Parses the matchers of one selector in braces.
pub(in crate::server) async fn matchers(state: &ServerState, text: String) -> Result<Vec<Matcher>, ConnectError> {
    Ok(all_matchers(state, vec![text]).await?.concat())
}

/// Parses selectors that must all match. The limits of a single selector apply to all of them together.
pub(super) async fn all_matchers(state: &ServerState, texts: Vec<String>) -> Result<Vec<Vec<Matcher>>, ConnectError> {
    check_list_length("selectors", texts.len())?;
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

/// Rejects a list with more than [`MAX_LIST_ITEMS`] items. `items` names them.
pub(super) fn check_list_length(items: &str, count: usize) -> Result<(), ConnectError> {
    if count > MAX_LIST_ITEMS {
        return Err(ConnectError::invalid(format!(
            "a query may list at most {MAX_LIST_ITEMS} {items}, not {count}"
        )));
    }
    Ok(())
}

/// Returns a query for all stacks of a profile type in [start, end), in Unix milliseconds.
pub(in crate::server) async fn stack_query(
    state: &ServerState,
    profile_type_id: &str,
    selector: String,
    start: i64,
    end: i64,
) -> Result<StackQuery, ConnectError> {
    let (profile_type, matchers) = (profile_type(profile_type_id)?, matchers(state, selector).await?);
    Ok(StackQuery::new(profile_type, matchers, TimeRange::new(start, end)))
}

/// The stacks that a request selects, and what remains of them.
#[derive(Default)]
pub(super) struct StackSelection {
    /// The functions that stacks must begin with, outermost first.
    pub(super) call_site: Vec<String>,
    /// Conditions on all functions of a stack.
    pub(super) frames: FrameFilter,
    /// The options that shorten stacks for Go PGO.
    pub(super) go_pgo: Option<GoPgo>,
}

/// Checks a selector of stacks and compiles its regular expressions.
pub(super) async fn stack_selection(
    state: &ServerState,
    selector: Option<types::StackTraceSelector>,
) -> Result<StackSelection, ConnectError> {
    let Some(selector) = selector else {
        return Ok(StackSelection::default());
    };
    check_list_length("call sites", selector.call_site.len())?;
    Ok(StackSelection {
        call_site: selector.call_site.into_iter().map(|location| location.name).collect(),
        frames: frame_filter(state, selector.frame_filter.unwrap_or_default()).await?,
        go_pgo: selector.go_pgo.map(|pgo| GoPgo {
            keep_locations: pgo.keep_locations as usize,
            aggregate_callees: pgo.aggregate_callees,
        }),
    })
}

async fn frame_filter(state: &ServerState, filter: types::StackFrameFilter) -> Result<FrameFilter, ConnectError> {
    let included = FrameConditions {
        names: filter.include_function_names,
        patterns: filter.include_function_name_regexes,
    };
    let excluded = FrameConditions {
        names: filter.exclude_function_names,
        patterns: filter.exclude_function_name_regexes,
    };
    check_list_length("function names", included.names.len().max(excluded.names.len()))?;
    let cost = if included.patterns.is_empty() && excluded.patterns.is_empty() {
        0
    } else {
        COMPILE_BYTES
    };
    let compile = move || Ok(FrameFilter::new(included, excluded)?);
    state.workers.run(cost, compile).await
}

/// Rejects a step that is not a number or is too short.
pub(super) fn check_step(step: f64) -> Result<(), ConnectError> {
    if !step.is_finite() || step < MIN_STEP {
        return Err(ConnectError::invalid(format!(
            "step must be at least {MIN_STEP} seconds, not {step}"
        )));
    }
    Ok(())
}

/// Parses the maximum number of series of a response. 0 means all.
pub(super) fn series_limit(requested: Option<i64>) -> Result<usize, ConnectError> {
    usize::try_from(requested.unwrap_or(0)).map_err(|_| ConnectError::invalid("limit must not be negative"))
}

/// Returns whether a heatmap counts profiles or spans, and the kind of its exemplars.
pub(super) fn heatmap_of(
    requested: HeatmapQueryType,
    exemplars: ExemplarKind,
) -> Result<(HeatmapSource, ExemplarKind), ConnectError> {
    match (requested, exemplars) {
        (HeatmapQueryType::Unspecified, _) => Err(ConnectError::invalid(
            "query_type must be HEATMAP_QUERY_TYPE_INDIVIDUAL or HEATMAP_QUERY_TYPE_SPAN",
        )),
        (HeatmapQueryType::Individual, ExemplarKind::Span) | (HeatmapQueryType::Span, ExemplarKind::Profile) => Err(
            ConnectError::invalid("exemplar_type must be of the same kind as query_type, or none"),
        ),
        (HeatmapQueryType::Individual, _) => Ok((HeatmapSource::Profiles, exemplars)),
        (HeatmapQueryType::Span, _) => Ok((HeatmapSource::Spans, exemplars)),
    }
}

/// Converts the kind of exemplars. The default is none.
pub(super) fn exemplar_kind(requested: types::ExemplarType) -> ExemplarKind {
    match requested {
        types::ExemplarType::Unspecified | types::ExemplarType::None => ExemplarKind::None,
        types::ExemplarType::Individual => ExemplarKind::Profile,
        types::ExemplarType::Span => ExemplarKind::Span,
    }
}

/// Checks ids of `length` hexadecimal digits and converts them to lower case.
pub(super) fn hexadecimal(kind: &str, length: usize, ids: Vec<String>) -> Result<Vec<String>, ConnectError> {
    check_list_length(&format!("{kind} ids"), ids.len())?;
    for id in &ids {
        if id.len() != length || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(ConnectError::invalid(format!(
                "invalid {kind} id length or digits: `{id}` must be {length} hexadecimal digits"
            )));
        }
    }
    Ok(ids.into_iter().map(|id| id.to_ascii_lowercase()).collect())
}

/// Returns the node limit of a request, or the default for `None` and 0. If the limit is negative or above the maximum,
/// returns an error with status 400.
pub(in crate::server) fn max_nodes(requested: Option<i64>, limits: &ServerLimits) -> Result<usize, ConnectError> {
    let (requested, max) = (requested.unwrap_or(0), limits.max_flamegraph_nodes);
    if requested < 0 {
        return Err(ConnectError::invalid(format!(
            "max flamegraph nodes limit must be set (max allowed {max})"
        )));
    }
    if requested > max {
        return Err(ConnectError::invalid(format!(
            "max flamegraph nodes limit {requested} is greater than allowed {max}"
        )));
    }
    let nodes = if requested == 0 {
        limits.flamegraph_nodes
    } else {
        requested
    };
    Ok(usize::try_from(nodes).unwrap_or_default())
}

/// Returns the function limit of a call graph, or 100 for `None` and 0. If the limit is negative or above the maximum
/// number of nodes, returns an error with status 400.
pub(in crate::server) fn max_functions(requested: Option<i64>, limits: &ServerLimits) -> Result<usize, ConnectError> {
    let default = CALL_GRAPH_FUNCTIONS.min(limits.max_flamegraph_nodes);
    max_nodes(requested.filter(|requested| *requested != 0).or(Some(default)), limits)
}

/// Parses `TYPE{...}` or its equivalent `{__name__="TYPE", ...}`. `parameter` is the name of the text in errors.
pub(in crate::server) async fn text_query(
    state: &ServerState,
    parameter: &str,
    text: &str,
    range: TimeRange,
) -> Result<StackQuery, ConnectError> {
    let named = |mut error: ConnectError| {
        error.message = format!("{parameter}: {}", error.message);
        error
    };
    let (id, selector) = text.split_at(text.find('{').unwrap_or(text.len()));
    let mut id = id.trim().to_owned();
    let selector = if selector.is_empty() { "{}" } else { selector };
    let mut matchers = matchers(state, selector.to_owned()).await.map_err(named)?;
    if id.is_empty()
        && let Some(index) = matchers.iter().position(|matcher| matcher.name() == NAME_LABEL)
    {
        let matcher = matchers.remove(index);
        // Only a matcher that accepts its own value, such as `=`, determines the type.
        if matcher.matches_value(matcher.value()) {
            matcher.value().clone_into(&mut id);
        }
    }
    if id.is_empty() {
        let message = format!("{parameter}: the profile type before the selector `{text}` is missing");
        return Err(ConnectError::invalid(message));
    }
    let profile_type = profile_type(&id).map_err(named)?;
    Ok(StackQuery::new(profile_type, matchers, range))
}
