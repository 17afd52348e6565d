//! Maps times to steps and series to lines, for time series and heatmaps.
//!
//! In: the range, step and labels of a query. Out: the step of a time, and the line of a series. A step excludes its
//! left edge and includes its right edge. Results name a step by its right edge. The first step ends at the start of
//! the range, so nearly all of it lies before the range, as in Pyroscope. Times are rounded down to whole milliseconds,
//! the resolution of ranges. Therefore, the first step includes the whole millisecond in which the range starts.

use datafusion::execution::memory_pool::MemoryReservation;
use hashbrown::HashMap;

use crate::query::common::blocking::Cancellation;
use crate::query::common::error::QueryError;
use crate::query::common::types::TimeRange;
use crate::query::series::selection::{SERIES_PER_CHARGE, Synthetic};
use alluvium_profile::{Labels, ProfileType, SeriesId, TimeSpan};

/// Microseconds in a millisecond.
const MILLISECOND_US: i64 = 1000;

/// Maximum length of a step in seconds, ten thousand years. This is longer than any range.
const MAX_STEP: f64 = 315_576_000_000.0;

/// The steps of a range, all of one length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Steps {
    range: TimeRange,
    step_us: i64,
}

impl Steps {
    /// Creates steps of `seconds` seconds. Fails if the length is less than a millisecond or more than [`MAX_STEP`].
    pub(crate) fn new(range: TimeRange, seconds: f64) -> Result<Self, QueryError> {
        let step_ms = seconds * 1000.0;
        if !step_ms.is_finite() || step_ms < 1.0 {
            return Err(QueryError::invalid("step must be at least one millisecond"));
        }
        if seconds > MAX_STEP {
            return Err(QueryError::invalid(format!(
                "step must be at most {MAX_STEP} seconds, not {seconds}"
            )));
        }
        let step_us = (step_ms.round() * 1000.0) as i64;
        Ok(Self { range, step_us })
    }

    /// Returns the time span of all steps. It begins one millisecond after the left edge of the first step, because a
    /// step excludes the whole millisecond of its left edge.
    pub(crate) fn time(self) -> TimeSpan {
        let TimeSpan { start, end } = self.range.micros();
        TimeSpan::new(start.saturating_sub(self.step_us).saturating_add(MILLISECOND_US), end)
    }

    /// Returns the number of the step that contains `time` (in microseconds since 1970). The first step is 0.
    pub(crate) fn index_of(self, time: i64) -> i64 {
        let rounded_time = time.saturating_sub(time.rem_euclid(MILLISECOND_US));
        steps_after(self.range.micros().start, rounded_time, self.step_us)
    }

    /// Returns the right edge of a step in milliseconds since 1970.
    pub(crate) fn edge_ms(self, step: i64) -> i64 {
        let step_ms = self.step_us / 1000;
        self.range.start_ms.saturating_add(step.saturating_mul(step_ms))
    }
}

/// Returns the number of steps from `start` to the right edge of the step that contains `time`.
fn steps_after(start: i64, time: i64, step: i64) -> i64 {
    let distance = time.saturating_sub(start);
    let full_steps = distance.div_euclid(step);
    full_steps + i64::from(distance.rem_euclid(step) != 0)
}

/// Maps series to lines. Line 0 has no labels.
pub(crate) struct Groups {
    by_series: HashMap<SeriesId, u32>,
    labels: Vec<Labels>,
    memory: MemoryReservation,
}

/// Memory of a line with its labels and its entry in the index, in bytes.
const GROUP_BYTES: usize = 256;
/// Memory in bytes of a series in the map from series to lines, with a share of the map's empty slots.
const SERIES_BYTES: usize = 32;

impl Groups {
    /// Creates a line for each combination of values of the labels `group_by`. The memory of the lines is charged to
    /// `memory`.
    pub(crate) fn new(
        labels: &HashMap<SeriesId, Labels>,
        group_by: &[String],
        profile_type: &ProfileType,
        memory: MemoryReservation,
        cancellation: &Cancellation,
    ) -> Result<Self, QueryError> {
        let mut groups = Self {
            by_series: HashMap::new(),
            labels: vec![Labels::default()],
            memory,
        };
        if group_by.is_empty() {
            return Ok(groups);
        }
        let synthetic = group_by.iter().any(|name| name.starts_with("__"));
        let synthetic = synthetic.then(|| Synthetic::of(profile_type));
        let mut index: HashMap<Labels, u32> = HashMap::from([(Labels::default(), 0)]);
        for (id, labels) in labels {
            let is_grouped = |name: &str| group_by.iter().any(|grouping| grouping == name);
            let key = match &synthetic {
                Some(synthetic) => synthetic.with(labels).filtered(is_grouped),
                None => labels.filtered(is_grouped),
            };
            let group = *index.entry(key).or_insert_with_key(|key| {
                groups.labels.push(key.clone());
                (groups.labels.len() - 1) as u32
            });
            groups.by_series.insert(*id, group);
            if groups.by_series.len().is_multiple_of(SERIES_PER_CHARGE) {
                cancellation.check()?;
                groups.charge()?;
            }
        }
        groups.charge()?;
        Ok(groups)
    }

    fn charge(&self) -> Result<(), QueryError> {
        let bytes = self.labels.len() * GROUP_BYTES + self.by_series.len() * SERIES_BYTES;
        Ok(self.memory.try_resize(bytes)?)
    }

    /// Returns the line of a series; 0 for an unknown series.
    pub(crate) fn group_of(&self, series: SeriesId) -> u32 {
        self.by_series.get(&series).copied().unwrap_or(0)
    }

    /// Returns the labels of a line.
    pub(crate) fn labels(&self, group: u32) -> Labels {
        self.labels.get(group as usize).cloned().unwrap_or_default()
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

    #[test]
    fn steps_at_the_ends_of_time_do_not_overflow() {
        let TimeRange { start_ms, end_ms } = TimeRange::ALL;
        for seconds in [0.001, 1.0, MAX_STEP] {
            let steps = Steps::new(TimeRange::ALL, seconds).unwrap();
            for time_ms in [start_ms, 0, 1_700_000_000_000, end_ms - 1] {
                let edge = steps.edge_ms(steps.index_of(time_ms * 1000));
                let distance = i128::from(edge) - i128::from(time_ms);
                assert!(
                    (0..=(seconds * 1000.0) as i128).contains(&distance),
                    "{seconds} {time_ms}: {edge}"
                );
            }
        }
    }

    #[test]
    fn the_times_of_all_steps_are_in_steps_from_the_first_on() {
        let steps = Steps::new(TimeRange::new(1000, 4000), 1.0).unwrap();
        let TimeSpan { start, end } = steps.time();
        assert_eq!((steps.index_of(start), steps.edge_ms(0)), (0, 1000));
        assert_eq!(
            (steps.index_of(start - 1), steps.index_of(end - 1), steps.edge_ms(3)),
            (-1, 3, 4000)
        );
        // The sender's time has a higher resolution than the time of the query.
        let edge = steps.range.micros().start;
        assert_eq!(
            [edge - 1, edge, edge + 999, edge + 1000].map(|time| steps.index_of(time)),
            [0, 0, 0, 1]
        );
        for seconds in [0.0, 0.0004, -1.0, f64::NAN, f64::INFINITY, 1e12, f64::MAX] {
            assert!(Steps::new(TimeRange::new(0, 1), seconds).is_err(), "{seconds}");
        }
    }
}
