//! Time lines: totals of `profiles` aggregated into steps, grouped by labels. Samples are read only for values below a
//! call site, and where spans stand for the points.
//!
//! In: [`SeriesQuery`]. Out: points at the right edge of their step ([`Steps`]), and what stands for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::base::BoxFuture;
use crate::query::context::Context;
use crate::query::exemplars::{self, Candidate, prefer};
use crate::query::labels::SeriesLabels;
use crate::query::steps::{Groups, Steps};
use crate::query::{
    Aggregation, ExemplarKind, QueryError, SeriesPoints, SeriesQuery, call_site, checked, series, spans,
};
use crate::store::snapshot::ScanFilter;

/// Maximum number of points of an answer: a step of a millisecond over a month must not exhaust the memory.
const MAX_POINTS: usize = 1_000_000;

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    sum: i64,
    count: u64,
}

/// Line and step of a point.
type Place = (u32, i64);

/// What may stand for points.
type Best = HashMap<Place, Option<Candidate>>;

/// Memory of an entry, with its share of the empty slots.
const BEST_BYTES: usize = 128;

pub(crate) fn select(
    context: Arc<Context>,
    query: SeriesQuery,
) -> BoxFuture<'static, Result<Vec<SeriesPoints>, QueryError>> {
    Box::pin(async move {
        let steps = Steps::new(query.range, query.step)?;
        let needs_labels =
            !query.matchers.is_empty() || !query.group_by.is_empty() || query.exemplars != ExemplarKind::None;
        let labels = if needs_labels {
            context.labels(steps.time()).await?
        } else {
            SeriesLabels::default()
        };
        let labels = Arc::new(labels);
        let filter = ScanFilter {
            tenants: Some(context.tenants.clone()),
            time: Some(steps.time()),
            profile_type: Some((&query.profile_type).into()),
            series: series::select(labels.clone(), query.profile_type.clone(), query.matchers.clone()).await?,
            ..ScanFilter::default()
        };
        let groups = Groups::new(&labels, &query.group_by, &query.profile_type);
        let mut samples = filter.clone();
        let mut below = None;
        if !query.call_site.is_empty() {
            samples.stacks = Some(call_site::stacks_below(&context, &filter, query.call_site.clone()).await?);
            below = Some(call_site::values(&context, &samples).await?);
        }
        let chosen = context.totals(filter.clone()).await?;
        let mut best = Best::new();
        let best_memory = context.runtime.reservation("exemplars of points");
        let mut lines: BTreeMap<u32, BTreeMap<i64, Cell>> = BTreeMap::new();
        let mut points = 0;
        for run in chosen.runs() {
            let group = groups.of(run.series);
            // A profile in which nothing of the type was counted is no point, and lines without points are omitted.
            let counted = run.between(chosen.time()).filter(|(_, total)| *total != 0);
            let mut profiles = counted.peekable();
            if profiles.peek().is_none() {
                continue;
            }
            let line = lines.entry(group).or_default();
            let before = line.len();
            for (time, total) in profiles {
                let total = below.as_mut().map_or(total, |below| below.take((run.series, time)));
                let step = steps.of(time);
                let cell = line.entry(step).or_default();
                // A total that was cut when it was stored is the largest number.
                checked::add(&mut cell.sum, total)?;
                if total == i64::MAX {
                    return Err(checked::too_large());
                }
                cell.count += 1;
                if query.exemplars == ExemplarKind::Profile {
                    let candidate = Candidate {
                        value: total,
                        time,
                        series: run.series,
                        span: None,
                    };
                    prefer(best.entry((group, step)).or_default(), candidate);
                }
            }
            best_memory.try_resize(best.capacity() * BEST_BYTES)?;
            points += line.len() - before;
            if points > MAX_POINTS {
                return Err(QueryError::Limit(format!(
                    "the answer has more than {MAX_POINTS} points; take a longer step or fewer series"
                )));
            }
        }
        if query.exemplars == ExemplarKind::Span {
            let found = spans::sums(&context, &samples).await?;
            for candidate in found.candidates() {
                let place = (groups.of(candidate.series), steps.of(candidate.time));
                prefer(best.entry(place).or_default(), candidate);
            }
            best_memory.try_resize(best.capacity() * BEST_BYTES)?;
        }
        let mut answer: Vec<(u32, SeriesPoints)> = lines
            .into_iter()
            .map(|(group, cells)| {
                let points = cells.into_iter();
                let line = SeriesPoints {
                    labels: groups.labels(group),
                    points: points
                        .map(|(step, cell)| (steps.edge_ms(step), value(cell, query.aggregation)))
                        .collect(),
                    exemplars: BTreeMap::new(),
                };
                (group, line)
            })
            .collect();
        if query.limit > 0 && answer.len() > query.limit {
            let total = |line: &SeriesPoints| line.points.iter().map(|(_, value)| value).sum::<f64>();
            answer.sort_by(|(_, left), (_, right)| total(right).total_cmp(&total(left)));
            answer.truncate(query.limit);
        }
        if query.exemplars != ExemplarKind::None {
            add_exemplars(&context, &filter, labels, best, steps, &mut answer).await?;
        }
        let mut answer: Vec<SeriesPoints> = answer.into_iter().map(|(_, line)| line).collect();
        answer.sort_by(|left, right| left.labels.cmp(&right.labels));
        Ok(answer)
    })
}

/// Gives the points of the lines their exemplars.
async fn add_exemplars(
    context: &Arc<Context>,
    filter: &ScanFilter,
    labels: Arc<SeriesLabels>,
    best: Best,
    steps: Steps,
    lines: &mut [(u32, SeriesPoints)],
) -> Result<(), QueryError> {
    let index: HashMap<u32, usize> = lines.iter().enumerate().map(|(at, (group, _))| (*group, at)).collect();
    let mut places = Vec::new();
    let mut candidates = Vec::new();
    for ((group, step), candidate) in best {
        if let (Some(at), Some(candidate)) = (index.get(&group), candidate) {
            places.push((*at, steps.edge_ms(step)));
            candidates.push(candidate);
        }
    }
    let exemplars = exemplars::of(context, filter, labels, candidates).await?;
    for ((at, edge), exemplar) in places.into_iter().zip(exemplars) {
        if let Some((_, line)) = lines.get_mut(at) {
            line.exemplars.insert(edge, exemplar);
        }
    }
    Ok(())
}

fn value(cell: Cell, aggregation: Aggregation) -> f64 {
    match aggregation {
        Aggregation::Sum => cell.sum as f64,
        Aggregation::Average => cell.sum as f64 / cell.count.max(1) as f64,
    }
}
