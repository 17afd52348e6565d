//! Small graphs for tests.

use crate::cli::readers::tui::graph::Graph;
use crate::cli::readers::tui::picture::Picture;
use alluvium_testing::tree;

/// Builds the graph of stacks such as `main;work`, which begin with the outermost call.
pub(super) fn graph(stacks: &[(&str, i64)]) -> Graph {
    Graph::of(&tree(stacks).to_flamegraph(0))
}

/// Returns the first frame with this name.
pub(super) fn frame(graph: &Graph, name: &str) -> usize {
    let mut frames = 0..graph.len();
    frames.find(|frame| graph.name(*frame).text == name).unwrap()
}

/// Builds a picture of these stacks, in nanoseconds.
pub(super) fn picture(stacks: &[(&str, i64)]) -> Picture {
    Picture {
        graph: graph(stacks),
        kind: "process_cpu:cpu:nanoseconds:cpu:nanoseconds".to_owned(),
        unit: "nanoseconds".to_owned(),
        time: "2026-01-31T10:00:00Z to 2026-01-31T11:00:00Z".to_owned(),
    }
}
