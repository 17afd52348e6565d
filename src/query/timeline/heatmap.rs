//! Heatmaps: the number of profiles, or of spans in profiles, for each step and each range of values.
//!
//! In: [`HeatmapQuery`]. Out: lines, one for each group of series. A line has a slot for each step with values, and a
//! slot has a cell for each range with values. All lines share one scale of [`VALUE_RANGES`] equal ranges, so that
//! lines can be compared. A heatmap of profiles reads no samples.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryReservation;
use hashbrown::{HashMap, HashSet};

use crate::query::common::blocking;
use crate::query::common::blocking::Cancellation;
use crate::query::common::error::QueryError;
use crate::query::common::types::{
    Exemplar, ExemplarKind, HeatmapCell, HeatmapLine, HeatmapQuery, HeatmapSlot, HeatmapSource,
};
use crate::query::decoded::context::Context;
use crate::query::decoded::totals::SelectedRuns;
use crate::query::series::selection;
use crate::query::timeline::exemplars;
use crate::query::timeline::exemplars::{Candidate, keep_greater};
use crate::query::timeline::spans;
use crate::query::timeline::spans::SpanSums;
use crate::query::timeline::steps::{Groups, Steps};
use crate::store::tables::snapshot::ScanFilter;
use crate::store::tables::stats::{Bounds, extend};
use alluvium_base::BoxFuture;
use alluvium_profile::Labels;

/// Number of ranges of values.
const VALUE_RANGES: i64 = 20;
/// Maximum number of cells of a result.
const MAX_CELLS: usize = 1_000_000;
/// Memory of a cell and its entry in the map, in bytes.
const CELL_BYTES: usize = 192;

/// The line, the step and the index of the value range of a cell.
type CellKey = (u32, i64, i64);

#[derive(Debug, Default)]
struct Cell {
    count: u64,
    candidate: Option<Candidate>,
}

/// The values that are counted.
enum Values {
    Profiles(SelectedRuns),
    Spans(SpanSums),
}

/// Returns the lines of a query in the order of their labels.
pub(crate) fn select(
    context: Arc<Context>,
    query: HeatmapQuery,
) -> BoxFuture<'static, Result<Vec<HeatmapLine>, QueryError>> {
    Box::pin(async move {
        let steps = Steps::new(query.range, query.step)?;
        let labels = Arc::new(context.labels(steps.time()).await?);
        let filter = ScanFilter {
            tenants: Some(context.tenants.clone()),
            time: Some(steps.time()),
            profile_type: Some((&query.profile_type).into()),
            series: selection::select(labels.clone(), query.profile_type.clone(), query.matchers.clone()).await?,
            ..ScanFilter::default()
        };
        let values = match query.source {
            HeatmapSource::Spans => Values::Spans(spans::sums(&context, &filter).await?),
            HeatmapSource::Profiles => Values::Profiles(context.totals(filter.clone()).await?),
        };
        let memory = context.runtime.reservation("cells of a heatmap");
        let of_groups = context.runtime.reservation("lines of series");
        let (known, limit, kind) = (labels.clone(), query.limit, query.exemplars);
        let counted = blocking::run(move |cancellation| {
            let groups = Groups::new(&known, &query.group_by, &query.profile_type, of_groups, cancellation)?;
            let counting = CellCounter { groups, steps, memory };
            counting.run(&values, limit, cancellation)
        });
        let counted = counted.await?;
        let exemplars = match kind {
            ExemplarKind::None => Vec::new(),
            ExemplarKind::Profile | ExemplarKind::Span => {
                let candidates = counted.cells.values().filter_map(|cell| cell.candidate).collect();
                exemplars::load(&context, &filter, labels, candidates).await?
            }
        };
        blocking::run(move |cancellation| counted.lines(steps, exemplars, cancellation)).await
    })
}

/// The cells of a heatmap in the order of line, step and range of values.
struct CountedCells {
    cells: BTreeMap<CellKey, Cell>,
    labels: HashMap<u32, Labels>,
    scale: Scale,
    _memory: MemoryReservation,
}

impl CountedCells {
    /// Returns the lines in the order of their labels. `exemplars` contains one exemplar for each cell, in the order of
    /// the cells, or is empty.
    fn lines(
        self,
        steps: Steps,
        exemplars: Vec<Exemplar>,
        cancellation: &Cancellation,
    ) -> Result<Vec<HeatmapLine>, QueryError> {
        let mut exemplars = exemplars.into_iter();
        let starts = self.scale.starts();
        let mut lines: BTreeMap<u32, HeatmapLine> = BTreeMap::new();
        for ((group, step, row), cell) in self.cells {
            cancellation.check()?;
            let line = lines.entry(group).or_insert_with(|| HeatmapLine {
                labels: self.labels.get(&group).cloned().unwrap_or_default(),
                starts: starts.clone(),
                slots: Vec::new(),
            });
            let end_ms = steps.edge_ms(step);
            if line.slots.last().is_none_or(|slot| slot.end_ms != end_ms) {
                let cells = Vec::new();
                line.slots.push(HeatmapSlot { end_ms, cells });
            }
            if let Some(slot) = line.slots.last_mut() {
                slot.cells.push(HeatmapCell {
                    row: usize::try_from(row).unwrap_or_default(),
                    count: cell.count,
                    exemplar: exemplars.next(),
                });
            }
        }
        let mut lines: Vec<HeatmapLine> = lines.into_values().collect();
        lines.sort_by(|left, right| left.labels.cmp(&right.labels));
        Ok(lines)
    }
}

struct CellCounter {
    groups: Groups,
    steps: Steps,
    memory: MemoryReservation,
}

impl CellCounter {
    /// Counts the values of the `limit` lines with the largest sums (0 for all lines).
    fn run(self, values: &Values, limit: usize, cancellation: &Cancellation) -> Result<CountedCells, QueryError> {
        let kept = self.largest(values, limit);
        let is_kept = |group| kept.as_ref().is_none_or(|kept| kept.contains(&group));
        let mut bounds = None;
        values.for_each(&mut |value| {
            if is_kept(self.groups.group_of(value.series)) {
                extend(&mut bounds, [value.value]);
            }
            Ok(())
        })?;
        let scale = Scale::new(bounds);
        let mut cells: BTreeMap<CellKey, Cell> = BTreeMap::new();
        let mut labels = HashMap::new();
        values.for_each(&mut |value| {
            let group = self.groups.group_of(value.series);
            if !is_kept(group) {
                return Ok(());
            }
            let cell_key = (group, self.steps.index_of(value.time), scale.row_of(value.value));
            let cell = cells.entry(cell_key).or_default();
            cell.count += 1;
            keep_greater(&mut cell.candidate, value);
            if cell.count == 1 {
                cancellation.check()?;
                self.memory.try_resize(cells.len() * CELL_BYTES)?;
                labels.entry(group).or_insert_with(|| self.groups.labels(group));
                if cells.len() > MAX_CELLS {
                    return Err(QueryError::Limit(format!(
                        "the result has more than {MAX_CELLS} cells; select a longer step or fewer series"
                    )));
                }
            }
            Ok(())
        })?;
        Ok(CountedCells {
            cells,
            labels,
            scale,
            _memory: self.memory,
        })
    }

    /// Returns the `limit` lines with the largest sums; `None` for all lines.
    fn largest(&self, values: &Values, limit: usize) -> Option<HashSet<u32>> {
        if limit == 0 {
            return None;
        }
        let mut sums: HashMap<u32, i128> = HashMap::new();
        let add = &mut |value: Candidate| {
            let sum = sums.entry(self.groups.group_of(value.series)).or_default();
            *sum += i128::from(value.value);
            Ok::<_, QueryError>(())
        };
        // The closure never fails.
        let _ = values.for_each(add);
        let mut sums: Vec<(u32, i128)> = sums.into_iter().collect();
        sums.sort_unstable_by_key(|(group, sum)| (std::cmp::Reverse(*sum), *group));
        Some(sums.into_iter().take(limit).map(|(group, _)| group).collect())
    }
}

impl Values {
    /// Calls `take` with each value as a candidate for the exemplar of its cell. Skips profiles whose total for the
    /// queried type is 0.
    fn for_each(&self, take: &mut dyn FnMut(Candidate) -> Result<(), QueryError>) -> Result<(), QueryError> {
        match self {
            Self::Profiles(selected) => selected.runs().try_for_each(|run| {
                let mut counted = run.between(selected.time()).filter(|(_, value)| *value != 0);
                counted.try_for_each(|(time, value)| {
                    take(Candidate {
                        value,
                        time,
                        series: run.series,
                        span: None,
                    })
                })
            }),
            Self::Spans(sums) => sums.candidates().try_for_each(take),
        }
    }
}

/// Ranges of equal length from the smallest to the largest value.
#[derive(Debug, Clone, Copy)]
struct Scale {
    min: i64,
    length: i128,
}

impl Scale {
    fn new(bounds: Option<Bounds<i64>>) -> Self {
        let Bounds { min, max } = bounds.unwrap_or(Bounds::new(0, 0));
        let values = i128::from(max) - i128::from(min) + 1;
        // The length is rounded up so that no value is above the last range.
        let length = values.div_euclid(VALUE_RANGES.into()) + i128::from(values.rem_euclid(VALUE_RANGES.into()) != 0);
        Self { min, length }
    }

    /// Returns the index of the range that contains a value of the scale.
    fn row_of(self, value: i64) -> i64 {
        ((i128::from(value) - i128::from(self.min)) / self.length) as i64
    }

    /// Returns the smallest value of each range.
    fn starts(self) -> Arc<[i64]> {
        (0..VALUE_RANGES).map(|row| self.min_of_row(row)).collect()
    }

    /// Returns the smallest value of the range with the index `row`. The last ranges of a scale may be above the
    /// largest value.
    fn min_of_row(self, row: i64) -> i64 {
        let min = i128::from(self.min) + self.length * i128::from(row);
        i64::try_from(min).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_a_range_of_the_scale() {
        for (min, max) in [(0, 0), (0, 19), (0, 20), (-7, 1_000_003), (i64::MIN, i64::MAX), (5, 6)] {
            let scale = Scale::new(Some(Bounds::new(min, max)));
            for value in [min, min / 2 + max / 2, max] {
                let row = scale.row_of(value);
                assert!((0..VALUE_RANGES).contains(&row), "{min} {max} {value}");
                assert!(scale.min_of_row(row) <= value, "{min} {max} {value}");
                assert!(i128::from(value) < i128::from(scale.min_of_row(row)) + scale.length);
            }
            assert_eq!((scale.row_of(min), scale.min_of_row(0)), (0, min));
        }
    }

    #[test]
    fn a_scale_at_the_end_of_the_numbers_has_no_range_that_wraps_around() {
        let starts = Scale::new(Some(Bounds::new(i64::MAX - 2, i64::MAX))).starts();
        assert_eq!(starts.len(), 20);
        assert_eq!(starts[..3], [i64::MAX - 2, i64::MAX - 1, i64::MAX]);
        assert!(starts[3..].iter().all(|start| *start == i64::MAX), "{starts:?}");
    }
}
