//! The rows of a report, in the columns of `go tool pprof`.

use std::fmt::Write;

use crate::report::graph::{Edge, Graph, Samples, Trim, TrimmedGraph};
use crate::report::head::{Head, Values};
use crate::report::row_source::RowSource;
use crate::report::units::percentage;

const LINE: &str = "----------------------------------------------------------+-------------";
const COLUMNS: &str = "      flat  flat%   sum%        cum   cum%   calls calls% + context \t \t ";

/// Formats the report with one line per place.
pub(super) fn top(head: &Head, samples: &Samples<'_>, trimmed: &TrimmedGraph, trim: Trim) -> String {
    let graph = &trimmed.graph;
    let values = head.values(graph);
    let mut out = head.text(&values, trimmed, trim);
    out.push_str("      flat  flat%   sum%        cum   cum%\n");
    let inlined = inlined(graph);
    let mut sum = 0i64;
    for &source_id in &graph.order {
        let node = &graph.nodes[source_id as usize];
        sum = sum.saturating_add(node.flat);
        let _ = writeln!(
            out,
            "{:>10} {} {} {:>10} {}  {}{}",
            values.label(node.flat),
            percentage(node.flat, head.total),
            percentage(sum, head.total),
            values.label(node.cum),
            percentage(node.cum, head.total),
            samples.sources.all[source_id as usize].printed(),
            inlined[source_id as usize],
        );
    }
    out
}

/// Returns a suffix for the name of each place. It shows whether all or some calls of the place were inlined.
fn inlined(graph: &Graph) -> Vec<&'static str> {
    let mut calls = vec![(false, false); graph.nodes.len()];
    for edge in &graph.edges {
        let (inlined, others) = &mut calls[edge.callee as usize];
        *inlined |= edge.is_inlined;
        *others |= !edge.is_inlined;
    }
    let marks = calls.into_iter().map(|calls| match calls {
        (true, true) => " (partial-inline)",
        (true, false) => " (inline)",
        (false, _) => "",
    });
    marks.collect()
}

/// Formats a section for each place whose name is wanted: its callers, the place, its callees. Also returns the number
/// of sections.
pub(super) fn tree(
    head: &Head,
    samples: &Samples<'_>,
    trimmed: &TrimmedGraph,
    trim: Trim,
    is_wanted: impl Fn(&str) -> bool,
) -> (String, usize) {
    let graph = &trimmed.graph;
    let values = head.values(graph);
    let mut out = head.text(&values, trimmed, trim);
    let _ = writeln!(out, "{LINE}\n{COLUMNS}");
    let names: Vec<String> = samples.sources.all.iter().map(RowSource::printed).collect();
    let (callers, callees) = sides(graph, &names);
    let (mut sum, mut matched) = (0i64, 0);
    for &source_id in &graph.order {
        let index = source_id as usize;
        if !is_wanted(&names[index]) {
            continue;
        }
        matched += 1;
        out.push_str(LINE);
        out.push('\n');
        let node = &graph.nodes[index];
        for edge in &callers[index] {
            calls(&mut out, &values, edge, &names[edge.caller as usize], node.cum);
        }
        sum = sum.saturating_add(node.flat);
        let _ = writeln!(
            out,
            "{:>10} {} {} {:>10} {}                | {}",
            values.label(node.flat),
            percentage(node.flat, head.total),
            percentage(sum, head.total),
            values.label(node.cum),
            percentage(node.cum, head.total),
            names[index],
        );
        for edge in &callees[index] {
            calls(&mut out, &values, edge, &names[edge.callee as usize], node.cum);
        }
    }
    if !graph.order.is_empty() {
        out.push_str(LINE);
        out.push('\n');
    }
    (out, matched)
}

fn calls(out: &mut String, values: &Values<'_>, edge: &Edge, name: &str, cum: i64) {
    let weight = values.label(edge.weight);
    let inlined = if edge.is_inlined { " (inline)" } else { "" };
    let _ = writeln!(out, "{weight:>50} {} |   {name}{inlined}", percentage(edge.weight, cum));
}

/// The calls of each place.
type Sides = Vec<Vec<Edge>>;

/// Returns for each place the calls to it and the calls from it, largest first.
fn sides(graph: &Graph, names: &[String]) -> (Sides, Sides) {
    let mut edges = graph.edges.clone();
    edges.sort_by_key(|edge| {
        let [caller, callee] = [edge.caller, edge.callee].map(|source_id| &names[source_id as usize]);
        (std::cmp::Reverse(edge.weight.unsigned_abs()), caller, callee)
    });
    let (mut callers, mut callees) = (vec![Vec::new(); names.len()], vec![Vec::new(); names.len()]);
    for edge in edges {
        callers[edge.callee as usize].push(edge);
        callees[edge.caller as usize].push(edge);
    }
    (callers, callees)
}
