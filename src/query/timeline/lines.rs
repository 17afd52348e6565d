//! Time series: totals of `profiles`, aggregated into steps and grouped by labels. Samples are read only if the query
//! selects stacks by their functions, or if its exemplars are spans.
//!
//! In: [`SeriesQuery`]. Out: points at the right edge of their step ([`Steps`]), and their exemplars.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryReservation;
use hashbrown::HashMap;

use crate::query::common::blocking;
use crate::query::common::blocking::Cancellation;
use crate::query::common::checked;
use crate::query::common::error::QueryError;
use crate::query::common::types::{Aggregation, ExemplarKind, SeriesPoints, SeriesQuery};
use crate::query::decoded::context::Context;
use crate::query::decoded::labels::SeriesLabels;
use crate::query::decoded::totals::SelectedRuns;
use crate::query::series::selection;
use crate::query::stacks::call_site;
use crate::query::stacks::call_site::ValuesBelow;
use crate::query::timeline::exemplars;
use crate::query::timeline::exemplars::{Candidate, keep_greater};
use crate::query::timeline::label_sets::RepeatedRows;
use crate::query::timeline::spans;
use crate::query::timeline::spans::SpanSums;
use crate::query::timeline::steps::{Groups, Steps};
use crate::store::tables::snapshot::ScanFilter;
use alluvium_base::BoxFuture;

/// Maximum number of points of a result. A step of a millisecond over a month must not exhaust the memory.
const MAX_POINTS: usize = 1_000_000;
/// Memory of a point in the map and in the result, in bytes.
const POINT_BYTES: usize = 128;
/// Memory in bytes of a line: its map of points without the points, and its entry in the result.
const LINE_BYTES: usize = 320;
/// Memory in bytes of the candidate of a point, with a share of the empty slots of the map.
const CANDIDATE_BYTES: usize = 128;

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    sum: i64,
    /// Number of rows of `profiles`.
    count: u64,
}

/// The line and the step of a point.
type PointKey = (u32, i64);

/// The best candidate for the exemplar of each point.
type BestCandidates = HashMap<PointKey, Option<Candidate>>;

pub(crate) fn select(
    context: Arc<Context>,
    query: SeriesQuery,
) -> BoxFuture<'static, Result<Vec<SeriesPoints>, QueryError>> {
    Box::pin(async move {
        let steps = Steps::new(query.range, query.step)?;
        let needs_labels = !query.matchers.is_empty()
            || !query.group_by.is_empty()
            || query.exemplars != ExemplarKind::None
            || query.aggregation == Aggregation::Average;
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
            series: selection::select(labels.clone(), query.profile_type.clone(), query.matchers.clone()).await?,
            ..ScanFilter::default()
        };
        let mut samples = filter.clone();
        let mut values_below = None;
        if !query.call_site.is_empty() || !query.frames.is_empty() {
            let (below, frames) = (query.call_site.clone(), query.frames.clone());
            samples.stacks = Some(call_site::selected_stacks(&context, &filter, below, frames).await?);
            values_below = Some(call_site::values(&context, &samples).await?);
        }
        let selected = Arc::new(context.totals(filter.clone()).await?);
        let spans = match query.exemplars {
            ExemplarKind::Span => Some(spans::sums(&context, &samples).await?),
            ExemplarKind::None | ExemplarKind::Profile => None,
        };
        let of_groups = context.runtime.reservation("lines of series");
        let memory = context.runtime.reservation("points of time lines");
        let (known, kind, aggregation) = (labels.clone(), query.exemplars, query.aggregation);
        let (group_by, profile_type) = (query.group_by.clone(), query.profile_type.clone());
        let groups =
            blocking::run(move |cancellation| Groups::new(&known, &group_by, &profile_type, of_groups, cancellation));
        let groups = Arc::new(groups.await?);
        let repeated = match aggregation {
            Aggregation::Sum => RepeatedRows::default(),
            Aggregation::Average => {
                let lines = (groups.clone(), steps);
                RepeatedRows::load(&context, &filter, selected.clone(), labels.clone(), lines).await?
            }
        };
        let answered = blocking::run(move |cancellation| {
            let counting = PointCounter {
                groups,
                repeated,
                steps,
                lines: BTreeMap::new(),
                points: 0,
                candidates: BestCandidates::new(),
                memory,
            };
            counting.run(&selected, values_below, spans.as_ref(), &query, cancellation)
        });
        let LinesWithCandidates {
            mut lines,
            candidates: best,
            _memory,
        } = answered.await?;
        if kind != ExemplarKind::None {
            add_exemplars(&context, &filter, labels, best, steps, &mut lines).await?;
        }
        Ok(lines.into_iter().map(|(_, line)| line).collect())
    })
}

/// Lines, each with its number.
type Lines = Vec<(u32, SeriesPoints)>;

/// Lines without exemplars, and the candidates for their points. Their memory is charged to the query until this value
/// is dropped.
struct LinesWithCandidates {
    lines: Lines,
    candidates: BestCandidates,
    _memory: MemoryReservation,
}

struct PointCounter {
    groups: Arc<Groups>,
    /// Rows that an average must not count.
    repeated: RepeatedRows,
    steps: Steps,
    lines: BTreeMap<u32, BTreeMap<i64, Cell>>,
    points: usize,
    candidates: BestCandidates,
    memory: MemoryReservation,
}

impl PointCounter {
    fn run(
        mut self,
        selected: &SelectedRuns,
        mut values_below: Option<ValuesBelow>,
        spans: Option<&SpanSums>,
        query: &SeriesQuery,
        cancellation: &Cancellation,
    ) -> Result<LinesWithCandidates, QueryError> {
        for run in selected.runs() {
            cancellation.check()?;
            let group = self.groups.group_of(run.series);
            // If the total of a profile for the queried type is 0, the profile adds no point. Lines without points are
            // omitted.
            let counted = run.between(selected.time()).filter(|(_, total)| *total != 0);
            for (time, total) in counted {
                let total = values_below
                    .as_mut()
                    .map_or(total, |values_below| values_below.take((run.series, time)));
                let step = self.steps.index_of(time);
                self.count(group, step, total, cancellation)?;
                if query.exemplars == ExemplarKind::Profile {
                    let candidate = Candidate {
                        value: total,
                        time,
                        series: run.series,
                        span: None,
                    };
                    keep_greater(self.candidates.entry((group, step)).or_default(), candidate);
                }
            }
        }
        for candidate in spans.into_iter().flat_map(SpanSums::candidates) {
            let key = (
                self.groups.group_of(candidate.series),
                self.steps.index_of(candidate.time),
            );
            let before = self.candidates.capacity();
            keep_greater(self.candidates.entry(key).or_default(), candidate);
            if self.candidates.capacity() != before {
                cancellation.check()?;
                self.charge()?;
            }
        }
        self.charge()?;
        let mut lines = largest_first(self.lines(query.aggregation));
        if query.limit > 0 {
            lines.truncate(query.limit);
        }
        Ok(LinesWithCandidates {
            lines,
            candidates: self.candidates,
            _memory: self.memory,
        })
    }

    /// Adds the total of a row of `profiles` to a point.
    fn count(&mut self, group: u32, step: i64, total: i64, cancellation: &Cancellation) -> Result<(), QueryError> {
        let cell = self.lines.entry(group).or_default().entry(step).or_default();
        // A stored total of `i64::MAX` may have been capped, so the sum would be too small.
        checked::add(&mut cell.sum, total)?;
        if total == i64::MAX {
            return Err(checked::too_large());
        }
        cell.count += 1;
        if cell.count == 1 {
            self.points += 1;
            cancellation.check()?;
            self.charge()?;
            if self.points > MAX_POINTS {
                return Err(QueryError::Limit(format!(
                    "the result has more than {MAX_POINTS} points; select a longer step or fewer series"
                )));
            }
        }
        Ok(())
    }

    fn charge(&self) -> Result<(), QueryError> {
        let bytes =
            self.points * POINT_BYTES + self.lines.len() * LINE_BYTES + self.candidates.capacity() * CANDIDATE_BYTES;
        Ok(self.memory.try_resize(bytes)?)
    }

    fn lines(&mut self, aggregation: Aggregation) -> Lines {
        let lines = std::mem::take(&mut self.lines).into_iter();
        let line = lines.map(|(group, cells)| {
            let points = cells.into_iter();
            let points = points.map(|(step, cell)| {
                let profiles = cell.count.saturating_sub(self.repeated.at(group, step));
                (self.steps.edge_ms(step), value(cell.sum, profiles, aggregation))
            });
            let line = SeriesPoints {
                labels: self.groups.labels(group),
                points: points.collect(),
                exemplars: BTreeMap::new(),
            };
            (group, line)
        });
        line.collect()
    }
}

/// Sorts lines by the sum of their points, the largest first, and lines of equal sums by their labels. Pyroscope has
/// the same order, and Grafana draws and lists series in the order of the response.
fn largest_first(lines: Lines) -> Lines {
    let sum = |line: &SeriesPoints| line.points.iter().map(|(_, value)| value).sum::<f64>();
    let mut with_sums: Vec<_> = lines.into_iter().map(|line| (sum(&line.1), line)).collect();
    with_sums.sort_by(|(left_sum, (_, left)), (right_sum, (_, right))| {
        right_sum
            .total_cmp(left_sum)
            .then_with(|| left.labels.cmp(&right.labels))
    });
    with_sums.into_iter().map(|(_, line)| line).collect()
}

/// Adds the exemplars to the points of the lines.
async fn add_exemplars(
    context: &Arc<Context>,
    filter: &ScanFilter,
    labels: Arc<SeriesLabels>,
    best: BestCandidates,
    steps: Steps,
    lines: &mut [(u32, SeriesPoints)],
) -> Result<(), QueryError> {
    let index: HashMap<u32, usize> = lines
        .iter()
        .enumerate()
        .map(|(line_index, (group, _))| (*group, line_index))
        .collect();
    let mut points = Vec::new();
    let mut candidates = Vec::new();
    for ((group, step), candidate) in best {
        if let (Some(line_index), Some(candidate)) = (index.get(&group), candidate) {
            points.push((*line_index, steps.edge_ms(step)));
            candidates.push(candidate);
        }
    }
    let exemplars = exemplars::load(context, filter, labels, candidates).await?;
    for ((line_index, edge), exemplar) in points.into_iter().zip(exemplars) {
        if let Some((_, line)) = lines.get_mut(line_index) {
            line.exemplars.insert(edge, exemplar);
        }
    }
    Ok(())
}

fn value(sum: i64, profiles: u64, aggregation: Aggregation) -> f64 {
    match aggregation {
        Aggregation::Sum => sum as f64,
        Aggregation::Average => sum as f64 / profiles.max(1) as f64,
    }
}
