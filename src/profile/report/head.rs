//! The lines before the rows of a report. They describe the profile, and the share of its values that the report shows.

use chrono::DateTime;

use crate::pprof::Profile;
use crate::report::graph::{Graph, Trim, TrimmedGraph};
use crate::report::options::Options;
use crate::report::paths::base_name;
use crate::report::units;

/// Maximum number of bytes that are shown of a condition, such as `focus=main`.
const CONDITION_BYTES: usize = 80;

/// Description of the profile, and the units of its values.
pub(super) struct Head {
    lines: Vec<String>,
    conditions: Vec<String>,
    duration_nanos: i64,
    /// Sum of the absolute values of all samples.
    pub total: i64,
    /// Unit of the values in the profile.
    unit: String,
    /// Unit of the values in the report; `None` for a unit that suits the smallest value.
    requested_unit: Option<String>,
}

impl Head {
    pub(super) fn new(profile: &Profile<'_>, value: usize, options: &Options) -> Self {
        let kind = profile.sample_types.get(value).copied().unwrap_or_default();
        let mut lines = Vec::new();
        if let Some(mapping) = profile.mappings.first() {
            if !mapping.file.is_empty() {
                lines.push(format!("File: {}", base_name(mapping.file)));
            }
            if !mapping.build_id.is_empty() {
                lines.push(format!("Build ID: {}", mapping.build_id));
            }
        }
        let comments = profile.comments.iter().filter(|comment| !comment.starts_with('#'));
        lines.extend(comments.map(|comment| (*comment).to_owned()));
        if !kind.kind.is_empty() {
            lines.push(format!("Type: {}", kind.kind));
        }
        if profile.time_nanos != 0 {
            let time = DateTime::from_timestamp_nanos(profile.time_nanos);
            lines.push(format!("Time: {}", time.format("%Y-%m-%d %H:%M:%S UTC")));
        }
        Self {
            lines,
            conditions: options.focus.named(),
            duration_nanos: profile.duration_nanos,
            total: total(profile, value),
            unit: kind.unit.to_owned(),
            requested_unit: options.unit.clone(),
        }
    }

    /// Returns the format of values in a report of this graph.
    pub(super) fn values(&self, graph: &Graph) -> Values<'_> {
        let written = match self.requested_unit.as_deref().unwrap_or(units::MINIMUM) {
            units::MINIMUM if !graph.order.is_empty() => self.suitable_unit(graph),
            unit => unit.to_owned(),
        };
        Values {
            unit: &self.unit,
            written,
        }
    }

    /// Returns the unit that suits the smallest value, or a larger unit if the total is far larger.
    fn suitable_unit(&self, graph: &Graph) -> String {
        let nodes = graph
            .order
            .iter()
            .filter_map(|source_id| graph.nodes.get(*source_id as usize));
        let values = nodes.map(|node| match node.flat.saturating_abs() {
            0 => node.cum.saturating_abs(),
            flat => flat,
        });
        let smallest = values.filter(|value| *value > 0).min().unwrap_or(self.total);
        let unit_of = |value: i64| units::scale(value, &self.unit, units::MINIMUM).1;
        let times_100 = smallest.saturating_mul(100);
        let unit = if unit_of(smallest) != unit_of(self.total) && times_100 < self.total {
            unit_of(times_100)
        } else {
            unit_of(smallest)
        };
        if unit.is_empty() {
            self.unit.clone()
        } else {
            unit.to_owned()
        }
    }

    /// Returns the lines of the head, each with its line end.
    pub(super) fn text(&self, values: &Values<'_>, trimmed: &TrimmedGraph, trim: Trim) -> String {
        let mut lines = self.lines.clone();
        if self.duration_nanos != 0 {
            let (nanos, unit) = units::scale(self.total, &self.unit, "nanoseconds");
            let share = if unit == "ns" && nanos != 0.0 {
                format!("({})", units::percentage(nanos as i64, self.duration_nanos))
            } else {
                String::new()
            };
            let duration = units::auto_label(self.duration_nanos, "nanoseconds");
            let total = values.label(self.total);
            lines.push(format!("Duration: {duration}, Total samples = {total} {share}"));
        }
        if !self.conditions.is_empty() {
            lines.push("Active filters:".to_owned());
            lines.extend(self.conditions.iter().map(|condition| {
                let end = condition.floor_char_boundary(CONDITION_BYTES);
                let ellipsis = if end < condition.len() { "\u{2026}" } else { "" };
                format!("   {}{ellipsis}", &condition[..end])
            }));
        }
        let shown = trimmed.graph.flat();
        lines.push(format!(
            "Showing nodes accounting for {}, {} of {} total",
            values.label(shown),
            units::percentage(shown, self.total).trim(),
            values.label(self.total)
        ));
        let count = trimmed.graph.order.len();
        if self.total != 0 {
            if trimmed.dropped > 0 {
                let nodes = if trimmed.dropped > 1 { "nodes" } else { "node" };
                let cutoff = ((self.total as f64 * trim.node_fraction) as i64).saturating_abs();
                let cutoff = values.label(cutoff);
                lines.push(format!("Dropped {} {nodes} (cum <= {cutoff})", trimmed.dropped));
            }
            if count > 0 && count < trimmed.candidates {
                lines.push(format!("Showing top {count} nodes out of {}", trimmed.candidates));
            }
        }
        lines.join("\n") + "\n"
    }
}

/// Returns the sum of the absolute values of all samples.
pub(super) fn total(profile: &Profile<'_>, value: usize) -> i64 {
    let values = (0..profile.sample_count()).filter_map(|sample| profile.values_of(sample).get(value));
    values.fold(0, |total, value| total.saturating_add(value.saturating_abs()))
}

/// The format of the values of a report.
pub(super) struct Values<'a> {
    unit: &'a str,
    written: String,
}

impl Values<'_> {
    pub(super) fn label(&self, value: i64) -> String {
        units::label(value, self.unit, &self.written)
    }
}
