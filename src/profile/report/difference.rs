//! Two profiles side by side: the value of each place (such as a function) before and after, and the difference.
//!
//! In: two profiles of one unit. Out: a table like the report `top`. Shares refer to each side's own total, so that
//! time ranges of different length can be compared.

use std::fmt::Write;

use hashbrown::HashMap;

use crate::pprof::Profile;
use crate::report::graph::{Graph, Node, Order, Samples, Trim};
use crate::report::options::Options;
use crate::report::row_source::RowSources;
use crate::report::{filter, units};

/// One of the two profiles.
pub struct Side<'a> {
    /// The profile with its samples.
    pub profile: Profile<'a>,
    /// Index of the sample type.
    pub value: usize,
}

/// The values of a place on both sides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Row {
    before: Node,
    after: Node,
}

/// Two profiles side by side, by place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Names and values, largest change first.
    rows: Vec<(String, Row)>,
    before: i64,
    after: i64,
    kind: String,
    unit: String,
}

impl Difference {
    /// Compares `after` with `before`.
    pub fn new(before: Side<'_>, after: Side<'_>, options: &Options) -> Self {
        let kind = after.profile.sample_types.get(after.value).copied().unwrap_or_default();
        let (kind, unit) = (kind.kind.to_owned(), kind.unit.to_owned());
        let mut rows: HashMap<String, Row> = HashMap::new();
        let mut add = |side: Side<'_>, take: fn(&mut Row) -> &mut Node| {
            let Side { mut profile, value } = side;
            filter::drop_frames(&mut profile);
            options.focus.apply(&mut profile);
            let sources = RowSources::new(&profile, options.grouping);
            let samples = Samples {
                profile,
                value,
                sources,
            };
            let graph = Graph::trimmed(&samples, Order::Flat, Trim::NONE).graph;
            for source_id in &graph.order {
                let (node, source) = (
                    graph.nodes[*source_id as usize],
                    &samples.sources.all[*source_id as usize],
                );
                let sum = take(rows.entry(source.printed()).or_default());
                sum.flat = sum.flat.saturating_add(node.flat);
                sum.cum = sum.cum.saturating_add(node.cum);
            }
            graph.flat()
        };
        let before = add(before, |row| &mut row.before);
        let after = add(after, |row| &mut row.after);
        let mut rows: Vec<(String, Row)> = rows.into_iter().collect();
        rows.sort_by_cached_key(|(name, row)| {
            let [flat, cum] = [row.flat(), row.cum()].map(|change| std::cmp::Reverse(change.unsigned_abs()));
            match options.order {
                Order::Flat => (flat, cum, name.clone()),
                Order::Cum => (cum, flat, name.clone()),
            }
        });
        Self {
            rows,
            before,
            after,
            kind,
            unit,
        }
    }

    /// Formats the first `count` rows as text.
    pub fn text(&self, count: usize) -> String {
        let label = |value: i64| units::auto_label(value, &self.unit);
        let signed = |value: i64| match label(value) {
            text if value > 0 && text != "0" => format!("+{text}"),
            text => text,
        };
        let mut out = format!(
            "Type: {}\nBefore {}, after {}: {}\n",
            self.kind,
            label(self.before),
            label(self.after),
            signed(self.after.saturating_sub(self.before))
        );
        let shown = count.min(self.rows.len());
        if shown < self.rows.len() {
            let _ = writeln!(out, "Showing top {shown} nodes out of {}", self.rows.len());
        }
        let _ = writeln!(
            out,
            "{:>10} {:>6} {:>10} {:>6} {:>10} {:>10}",
            "before", "flat%", "after", "flat%", "flat +-", "cum +-"
        );
        for (name, row) in self.rows.iter().take(shown) {
            let _ = writeln!(
                out,
                "{:>10} {} {:>10} {} {:>10} {:>10}  {name}",
                label(row.before.flat),
                units::percentage(row.before.flat, self.before),
                label(row.after.flat),
                units::percentage(row.after.flat, self.after),
                signed(row.flat()),
                signed(row.cum()),
            );
        }
        out
    }
}

impl Row {
    fn flat(&self) -> i64 {
        self.after.flat.saturating_sub(self.before.flat)
    }

    fn cum(&self) -> i64 {
        self.after.cum.saturating_sub(self.before.cum)
    }
}
