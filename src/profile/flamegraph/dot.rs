//! A call graph as Graphviz text: one box per function, one arrow per call.
//!
//! In: a [`CallGraph`]. Out: one `digraph`, or nothing if there are no functions. Boxes show own value and total in
//! readable form. The larger the share of the own value, the larger the box. The attributes `own`, `total` and
//! `value`, which Graphviz ignores, contain the exact numbers for programs. All names are escaped.

use std::fmt::Write;

use crate::flamegraph::call_graph::CallGraph;
use crate::format;

/// Font size of a function without own value, in points.
const SMALLEST_FONT: f64 = 8.0;
/// Points added to the font size of a function if its own value is the whole total.
const FONT_RANGE: f64 = 16.0;
/// Width of the arrow of a call with a negligible value, in points.
const MIN_ARROW_WIDTH: f64 = 1.0;
/// Points added to the width of the arrow of a call with the whole total.
const WIDTH_RANGE: f64 = 4.0;

/// Formats a graph with a title. `unit` is the unit of the values, as in a profile type.
pub fn dot(graph: &CallGraph, title: &str, unit: &str) -> String {
    let mut out = String::new();
    if graph.functions.is_empty() {
        return out;
    }
    let value = |value| format!("{} ({})", format::value(value, unit), format::share(value, graph.total));
    // Writing into a String cannot fail.
    let _ = write!(
        out,
        "digraph calls {{\nlabel=\"{}\\n{} of {} functions, total {}\"\nlabelloc=t\n\
         node [shape=box style=filled fillcolor=\"#f4f5f7\"]\n",
        escape(title),
        graph.functions.len(),
        graph.function_count,
        escape(&format::value(graph.total, unit)),
    );
    for (index, function) in graph.functions.iter().enumerate() {
        let font = SMALLEST_FONT + FONT_RANGE * share(function.own, graph.total).sqrt();
        let name = escape(&function.name);
        let _ = writeln!(
            out,
            "n{index} [label=\"{name}\\n{}\\nof {}\" fontsize={font:.1} own={} total={}]",
            escape(&value(function.own)),
            escape(&value(function.total)),
            function.own,
            function.total,
        );
    }
    for call in &graph.calls {
        let share = share(call.value, graph.total);
        let _ = writeln!(
            out,
            "n{} -> n{} [label=\" {}\" weight={:.0} penwidth={:.1}{} value={}]",
            call.caller,
            call.callee,
            escape(&format::value(call.value, unit)),
            1.0 + 99.0 * share,
            MIN_ARROW_WIDTH + WIDTH_RANGE * share,
            if call.is_indirect { " style=dashed" } else { "" },
            call.value,
        );
    }
    out.push_str("}\n");
    out
}

/// Returns `part` as a share of `total`, from 0 to 1.
fn share(part: i64, total: i64) -> f64 {
    (part as f64 / total.max(1) as f64).clamp(0.0, 1.0)
}

/// Escapes a text for a quoted label, in which a backslash starts an escape and `&` starts an HTML entity.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '&' => out.push_str("&amp;"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flamegraph::{FrameRef, Tree};

    fn drawn(stacks: &[(&[&str], i64)], max_functions: usize) -> String {
        let mut tree = Tree::by_name();
        for (stack, value) in stacks {
            let frames = stack.iter().rev().map(|function| FrameRef {
                function,
                ..FrameRef::default()
            });
            tree.insert(frames, *value);
        }
        dot(&tree.call_graph(max_functions), "cpu", "nanoseconds")
    }

    #[test]
    fn a_graph_has_a_box_a_function_and_an_arrow_a_call() {
        let text = drawn(&[(&["main", "work"], 1_500_000_000), (&["main"], 500_000_000)], 0);
        assert_eq!(
            text,
            "digraph calls {\nlabel=\"cpu\\n2 of 2 functions, total 2 s\"\nlabelloc=t\n\
             node [shape=box style=filled fillcolor=\"#f4f5f7\"]\n\
             n0 [label=\"main\\n500 ms (25.00%)\\nof 2 s (100%)\" fontsize=16.0 own=500000000 total=2000000000]\n\
             n1 [label=\"work\\n1.5 s (75.00%)\\nof 1.5 s (75.00%)\" fontsize=21.9 own=1500000000 total=1500000000]\n\
             n0 -> n1 [label=\" 1.5 s\" weight=75 penwidth=4.0 value=1500000000]\n}\n"
        );
    }

    #[test]
    fn names_cannot_break_out_of_their_label() {
        let text = drawn(&[(&["a\" shape=none]\nn9 -> \\N&lt;\u{0}"], 1)], 0);
        let line = text.lines().find(|line| line.starts_with("n0 [")).unwrap();
        assert!(
            line.starts_with("n0 [label=\"a\\\" shape=none]\\nn9 -> \\\\N&amp;lt;\u{fffd}\\n"),
            "{line}"
        );
        assert_eq!(text.lines().count(), 6);
    }

    #[test]
    fn a_limit_leaves_the_largest_and_draws_what_skips_others_dashed() {
        let text = drawn(&[(&["main", "small", "big"], 5), (&["big"], 9)], 2);
        assert!(text.contains("2 of 3 functions") && !text.contains("small"), "{text}");
        assert!(
            text.contains("n1 -> n0 [label=\" 5 ns\"") && text.contains(" style=dashed value=5]"),
            "{text}"
        );
    }

    #[test]
    fn nothing_is_drawn_of_no_stacks() {
        assert_eq!(drawn(&[], 0), "");
    }
}
