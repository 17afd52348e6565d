//! Flame graphs as JSON, written straight into one buffer: the same text as that of the generated code, which makes a `String` of every number first.
//!
//! A graph has some ten thousand nodes of four numbers, which protobuf's JSON form writes as texts.

use crate::wire::json_writer::Writer;
use crate::wire::proto::querier::{
    DiffResponse, FlameGraph, FlameGraphDiff, Level, SelectMergeSpanProfileResponse, SelectMergeStacktracesResponse,
};

/// The JSON form of an answer that holds a flame graph and nothing else; `None` when it holds more.
pub fn stacktraces(answer: &SelectMergeStacktracesResponse) -> Option<Vec<u8>> {
    let SelectMergeStacktracesResponse {
        flamegraph,
        tree,
        dot,
        r#async,
        pprof,
    } = answer;
    if !tree.is_empty() || !dot.is_empty() || r#async.is_some() || pprof.is_some() {
        return None;
    }
    Some(graph(flamegraph.as_ref()?))
}

/// The JSON form of an answer that holds a flame graph and nothing else; `None` when it holds more.
pub fn span_profile(answer: &SelectMergeSpanProfileResponse) -> Option<Vec<u8>> {
    if !answer.tree.is_empty() {
        return None;
    }
    Some(graph(answer.flamegraph.as_ref()?))
}

/// The JSON form of a difference; `None` for an empty answer.
pub fn diff(answer: &DiffResponse) -> Option<Vec<u8>> {
    let FlameGraphDiff {
        names,
        levels,
        total,
        max_self,
        left_ticks,
        right_ticks,
    } = answer.flamegraph.as_ref()?;
    let mut out = writer(names, levels);
    out.texts("names", names);
    write_levels(&mut out, "levels", levels);
    out.number("total", *total);
    out.number("maxSelf", *max_self);
    out.number("leftTicks", *left_ticks);
    out.number("rightTicks", *right_ticks);
    Some(finish(out))
}

fn graph(graph: &FlameGraph) -> Vec<u8> {
    let FlameGraph {
        names,
        levels,
        total,
        max_self,
        files,
        lines,
        mappings,
    } = graph;
    let mut out = writer(names, levels);
    out.texts("names", names);
    write_levels(&mut out, "levels", levels);
    out.number("total", *total);
    out.number("maxSelf", *max_self);
    out.texts("files", files);
    write_levels(&mut out, "lines", lines);
    out.texts("mappings", mappings);
    finish(out)
}

/// A writer in the message of `{"flamegraph":{...}}`.
fn writer(names: &[String], levels: &[Level]) -> Writer {
    let texts: usize = names.iter().map(|name| name.len() + 3).sum();
    let numbers: usize = levels.iter().map(|level| level.values.len()).sum();
    let mut out = Writer::with_capacity(256 + texts + numbers * 9);
    out.begin();
    out.key("flamegraph");
    out.begin();
    out
}

fn finish(mut out: Writer) -> Vec<u8> {
    out.end();
    out.end();
    out.into_bytes()
}

fn write_levels(out: &mut Writer, key: &str, levels: &[Level]) {
    out.messages(key, levels, |out, level| out.numbers("values", &level.values));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::proto::querier::PprofProfile;

    fn levels() -> impl Strategy<Value = Vec<Level>> {
        let level = prop::collection::vec(prop_oneof![any::<i64>(), Just(0), 0i64..9], 0..9);
        prop::collection::vec(level.prop_map(|values| Level { values }), 0..4)
    }

    proptest! {
        #[test]
        fn the_text_is_that_of_the_generated_code(
            names in prop::collection::vec(any::<String>(), 0..5), levels in levels(), total: i64, max_self in 0i64..2,
            files in prop::collection::vec(".{0,3}", 0..3), lines in levels(),
        ) {
            let difference = DiffResponse {
                flamegraph: Some(FlameGraphDiff {
                    names: names.clone(), levels: levels.clone(), total, max_self, left_ticks: max_self, right_ticks: total,
                }),
            };
            prop_assert_eq!(diff(&difference), serde_json::to_vec(&difference).ok());
            let graph = FlameGraph { names, levels, total, max_self, mappings: files.clone(), files, lines };
            let answer = SelectMergeSpanProfileResponse { flamegraph: Some(graph.clone()), ..Default::default() };
            prop_assert_eq!(span_profile(&answer), serde_json::to_vec(&answer).ok());
            let answer = SelectMergeStacktracesResponse { flamegraph: Some(graph), ..Default::default() };
            prop_assert_eq!(stacktraces(&answer), serde_json::to_vec(&answer).ok());
        }
    }

    #[test]
    fn an_answer_with_more_than_a_graph_is_left_to_the_generated_code() {
        let answer = SelectMergeStacktracesResponse {
            flamegraph: Some(FlameGraph::default()),
            pprof: Some(PprofProfile { profile: None }),
            ..Default::default()
        };
        assert_eq!(stacktraces(&answer), None);
        assert_eq!(stacktraces(&SelectMergeStacktracesResponse::default()), None);
    }
}
