//! Time lines: totals of `profiles` aggregated into steps, grouped by labels. No samples are read.
//!
//! In: [`SeriesQuery`]. Out: points at the right edge of their step: the point at `t` covers the profiles in
//! `(t - step, t]`. The first point is at the start of the range, so that it includes profiles of one step before the
//! range, as in Pyroscope.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::base::BoxFuture;
use crate::profile::{Labels, SeriesId, TimeSpan};
use crate::query::context::Context;
use crate::query::series::Synthetic;
use crate::query::{Aggregation, QueryError, SeriesPoints, SeriesQuery, series};
use crate::store::snapshot::ScanFilter;

/// Maximum number of points of an answer: a step of a millisecond over a month must not exhaust the memory.
const MAX_POINTS: usize = 1_000_000;

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    sum: i64,
    count: u64,
}

pub(crate) fn select(
    context: Arc<Context>,
    query: SeriesQuery,
) -> BoxFuture<'static, Result<Vec<SeriesPoints>, QueryError>> {
    Box::pin(async move {
        let step_ms = query.step * 1000.0;
        if !step_ms.is_finite() || step_ms < 1.0 {
            return Err(QueryError::invalid("step must be at least one millisecond"));
        }
        let step_us = (step_ms.round() * 1000.0) as i64;
        let TimeSpan { start, end } = query.range.micros();
        // Starts after start - step: the left edge does not belong to the first step.
        let time = TimeSpan::new(start.saturating_sub(step_us).saturating_add(1), end);
        let needs_labels = !query.matchers.is_empty() || !query.group_by.is_empty();
        let labels = if needs_labels {
            context.labels(time).await?
        } else {
            HashMap::new()
        };
        let labels = Arc::new(labels);
        let filter = ScanFilter {
            tenant: Some(context.tenant.clone()),
            time: Some(time),
            profile_type: Some((&query.profile_type).into()),
            series: series::select(labels.clone(), query.profile_type.clone(), query.matchers.clone()).await?,
            ..ScanFilter::default()
        };
        let groups = Groups::new(&labels, &query);
        let chosen = context.totals(filter).await?;
        let mut lines: BTreeMap<u32, BTreeMap<i64, Cell>> = BTreeMap::new();
        let mut points = 0;
        for run in chosen.runs() {
            let group = groups.by_series.get(&run.series).copied().unwrap_or(0);
            let mut profiles = run.between(chosen.time()).peekable();
            // Lines without points are omitted.
            if profiles.peek().is_none() {
                continue;
            }
            let line = lines.entry(group).or_default();
            let before = line.len();
            for (time, total) in profiles {
                let cell = line.entry(steps_after(start, time, step_us)).or_default();
                cell.sum = cell.sum.saturating_add(total);
                cell.count += 1;
            }
            points += line.len() - before;
            if points > MAX_POINTS {
                return Err(QueryError::Limit(format!(
                    "the answer has more than {MAX_POINTS} points; take a longer step or fewer series"
                )));
            }
        }
        let step_ms = step_us / 1000;
        let edge = |steps: i64| query.range.start_ms.saturating_add(steps.saturating_mul(step_ms));
        let mut answer: Vec<SeriesPoints> = lines
            .into_iter()
            .map(|(group, cells)| SeriesPoints {
                labels: groups.labels[group as usize].clone(),
                points: cells
                    .into_iter()
                    .map(|(steps, cell)| (edge(steps), value(cell, query.aggregation)))
                    .collect(),
            })
            .collect();
        if query.limit > 0 && answer.len() > query.limit {
            let total = |line: &SeriesPoints| line.points.iter().map(|(_, value)| value).sum::<f64>();
            answer.sort_by(|left, right| total(right).total_cmp(&total(left)));
            answer.truncate(query.limit);
        }
        answer.sort_by(|left, right| left.labels.cmp(&right.labels));
        Ok(answer)
    })
}

/// Maps series to lines. Line 0 has no labels.
struct Groups {
    by_series: HashMap<SeriesId, u32>,
    labels: Vec<Labels>,
}

impl Groups {
    fn new(labels: &HashMap<SeriesId, Labels>, query: &SeriesQuery) -> Self {
        let mut groups = Self {
            by_series: HashMap::new(),
            labels: vec![Labels::default()],
        };
        if query.group_by.is_empty() {
            return groups;
        }
        let synthetic = query.group_by.iter().any(|name| name.starts_with("__"));
        let synthetic = synthetic.then(|| Synthetic::of(&query.profile_type));
        let mut index: HashMap<Labels, u32> = HashMap::from([(Labels::default(), 0)]);
        for (id, labels) in labels {
            let wanted = |name: &str| query.group_by.iter().any(|by| by == name);
            let key = match &synthetic {
                Some(synthetic) => synthetic.with(labels).filtered(wanted),
                None => labels.filtered(wanted),
            };
            let group = *index.entry(key).or_insert_with_key(|key| {
                groups.labels.push(key.clone());
                (groups.labels.len() - 1) as u32
            });
            groups.by_series.insert(*id, group);
        }
        groups
    }
}

/// The number of steps from `start` to the right edge of the step that contains `time`.
fn steps_after(start: i64, time: i64, step: i64) -> i64 {
    let distance = time.saturating_sub(start);
    let whole = distance.div_euclid(step);
    whole + i64::from(distance.rem_euclid(step) != 0)
}

fn value(cell: Cell, aggregation: Aggregation) -> f64 {
    match aggregation {
        Aggregation::Sum => cell.sum as f64,
        Aggregation::Average => cell.sum as f64 / cell.count.max(1) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_holds_its_right_edge_and_not_its_left() {
        assert_eq!(steps_after(100, 100, 15), 0);
        assert_eq!(steps_after(100, 86, 15), 0);
        assert_eq!(steps_after(100, 101, 15), 1);
        assert_eq!(steps_after(100, 115, 15), 1);
        assert_eq!(steps_after(100, 116, 15), 2);
    }
}
