//! Flame graphs as JSON, written straight into one buffer: the same text as that of the generated code, which makes a `String` of every number first.
//!
//! A graph has some ten thousand nodes of four numbers, which protobuf's JSON form writes as texts.

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
    let mut out = Writer::new(names, levels);
    out.names("names", names);
    out.levels("levels", levels);
    out.number("total", *total);
    out.number("maxSelf", *max_self);
    out.number("leftTicks", *left_ticks);
    out.number("rightTicks", *right_ticks);
    Some(out.finish())
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
    let mut out = Writer::new(names, levels);
    out.names("names", names);
    out.levels("levels", levels);
    out.number("total", *total);
    out.number("maxSelf", *max_self);
    out.names("files", files);
    out.levels("lines", lines);
    out.names("mappings", mappings);
    out.finish()
}

/// Writes `{"flamegraph":{...}}`.
struct Writer {
    out: Vec<u8>,
    is_first: bool,
}

impl Writer {
    fn new(names: &[String], levels: &[Level]) -> Self {
        let texts: usize = names.iter().map(|name| name.len() + 3).sum();
        let numbers: usize = levels.iter().map(|level| level.values.len()).sum();
        let mut out = Vec::with_capacity(256 + texts + numbers * 9);
        out.extend_from_slice(br#"{"flamegraph":{"#);
        Self { out, is_first: true }
    }

    fn finish(mut self) -> Vec<u8> {
        self.out.extend_from_slice(b"}}");
        self.out
    }

    fn key(&mut self, key: &str) {
        if !self.is_first {
            self.out.push(b',');
        }
        self.is_first = false;
        self.text(key);
        self.out.push(b':');
    }

    /// Fields with their default value are left out.
    fn number(&mut self, key: &str, value: i64) {
        if value != 0 {
            self.key(key);
            self.quoted(value);
        }
    }

    fn names(&mut self, key: &str, names: &[String]) {
        if !names.is_empty() {
            self.key(key);
            self.list(names, |writer, name| writer.text(name));
        }
    }

    fn levels(&mut self, key: &str, levels: &[Level]) {
        if !levels.is_empty() {
            self.key(key);
            self.list(levels, |writer, level| {
                if level.values.is_empty() {
                    writer.out.extend_from_slice(b"{}");
                    return;
                }
                writer.out.extend_from_slice(br#"{"values":"#);
                writer.list(&level.values, |writer, value| writer.quoted(*value));
                writer.out.push(b'}');
            });
        }
    }

    fn list<T>(&mut self, items: &[T], each: impl Fn(&mut Self, &T)) {
        self.out.push(b'[');
        for (position, item) in items.iter().enumerate() {
            if position > 0 {
                self.out.push(b',');
            }
            each(self, item);
        }
        self.out.push(b']');
    }

    fn text(&mut self, text: &str) {
        // Writing text into a Vec cannot fail.
        let _ = serde_json::to_writer(&mut self.out, text);
    }

    /// A number as text: JSON's numbers are too short for 64 bits.
    fn quoted(&mut self, value: i64) {
        let mut digits = [0u8; 20];
        let mut at = digits.len();
        let mut rest = value.unsigned_abs();
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.out.push(b'"');
        if value < 0 {
            self.out.push(b'-');
        }
        self.out.extend_from_slice(&digits[at..]);
        self.out.push(b'"');
    }
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
