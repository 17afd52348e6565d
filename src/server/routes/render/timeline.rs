//! The time lines of a flame graph: the step for a range, and a value for each step.
//!
//! In: a range, and points at the right edges of steps, as the query engine returns them. Out: [`Timeline`]. Steps and
//! positions of values are the same as in Pyroscope: the line starts and ends at a multiple of the step, and a step is
//! omitted if its right edge is after the end of the line.

use std::collections::BTreeMap;

use crate::query::{SeriesPoints, TimeRange};
use alluvium_wire::connect::ConnectError;
use alluvium_wire::flamebearer::Timeline;

/// Approximate number of steps of a line.
const POINTS: i64 = 1500;
/// Minimum step in seconds.
const MIN_STEP_SECONDS: i64 = 15;
/// Maximum step in seconds: a year.
const MAX_STEP_SECONDS: i64 = 31_536_000;
/// Upper bounds of the exact step in milliseconds, each with the rounded step in seconds. The exact step is the range
/// divided by [`POINTS`].
const STEP_BOUNDS: [(i64, i64); 18] = [
    (17_500, MIN_STEP_SECONDS),
    (25_000, 20),
    (45_000, 30),
    (90_000, 60),
    (210_000, 120),
    (450_000, 300),
    (750_000, 600),
    (1_050_000, 900),
    (1_500_000, 1200),
    (2_700_000, 1800),
    (5_400_000, 3600),
    (9_000_000, 7200),
    (16_200_000, 10_800),
    (32_400_000, 21_600),
    (86_400_000, 43_200),
    (604_800_000, 86_400),
    (1_814_400_000, 604_800),
    (3_628_799_999, 2_592_000),
];

/// Maximum number of values in all lines of one response. A label with many values over a long range must not exhaust
/// the memory.
const MAX_VALUES: usize = 1_000_000;

/// Returns the length of a step for a range, in seconds.
pub(super) fn step(range: TimeRange) -> i64 {
    let length = range.end_ms.saturating_sub(range.start_ms);
    let fits = |(limit, _): &&(i64, i64)| length <= limit * POINTS;
    STEP_BOUNDS
        .iter()
        .find(fits)
        .map_or(MAX_STEP_SECONDS, |(_, step)| *step)
}

/// Returns the line of a series, with 0 for steps without a point.
pub(super) fn timeline(points: &[(i64, f64)], range: TimeRange, step: i64) -> Timeline {
    let step_ms = step * 1000;
    let [start, end] = [range.start_ms, range.end_ms].map(|ms| ms - ms.rem_euclid(step_ms));
    let length = usize::try_from((end - start) / step_ms).unwrap_or(0);
    let mut samples = vec![0; length];
    for (time, value) in points {
        let index = usize::try_from((time - start).div_euclid(step_ms)).ok();
        if let Some(sample) = index.and_then(|index| samples.get_mut(index)) {
            *sample = *value as u64;
        }
    }
    Timeline {
        start_time: start / 1000,
        samples,
        duration_delta: step,
        watermarks: None,
    }
}

/// Returns the line of each value of a label. The key `*` stands for series without the label.
pub(super) fn by_label(
    series: &[SeriesPoints],
    label: &str,
    range: TimeRange,
    step: i64,
) -> Result<BTreeMap<String, Timeline>, ConnectError> {
    let steps = usize::try_from(range.end_ms.saturating_sub(range.start_ms) / (step * 1000) + 1).unwrap_or(usize::MAX);
    let values = steps.saturating_mul(series.len());
    if values > MAX_VALUES {
        return Err(ConnectError::invalid(format!(
            "groupBy: {} values of `{label}` times {steps} steps exceed the limit of {MAX_VALUES} points in a \
             response; use a label with fewer values, a narrower selector or a shorter range",
            series.len()
        )));
    }
    let line = |series: &SeriesPoints| {
        let value = series.labels.get(label).unwrap_or("*");
        (value.to_owned(), timeline(&series.points, range, step))
    };
    Ok(series.iter().map(line).collect())
}

/// Returns the line of all profiles. `series` has at most one element.
pub(super) fn of_all(series: &[SeriesPoints], range: TimeRange, step: i64) -> Timeline {
    let points = series.first().map_or(&[][..], |series| series.points.as_slice());
    timeline(points, range, step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alluvium_profile::Labels;

    const MINUTE: i64 = 60_000;

    #[test]
    fn steps_are_those_of_pyroscope() {
        for (length_ms, seconds) in [
            (0, 15),
            (MINUTE, 15),
            (60 * MINUTE, 15),
            (17_500 * POINTS, 15),
            (17_500 * POINTS + 1, 20),
            (24 * 60 * MINUTE, 60),
            (7 * 24 * 60 * MINUTE, 300),
            (30 * 24 * 60 * MINUTE, 1800),
            (365 * 24 * 60 * MINUTE, 21_600),
            (200 * 365 * 24 * 60 * MINUTE, 31_536_000),
        ] {
            assert_eq!(step(TimeRange::new(1_000, 1_000 + length_ms)), seconds, "{length_ms}");
        }
    }

    #[test]
    fn every_step_has_a_value_and_the_line_begins_at_a_multiple_of_it() {
        let range = TimeRange::new(1_700_000_012_345, 1_700_000_092_345);
        let first = range.start_ms;
        let points = [(first, 1.0), (first + 30_000, 2.5), (first + 75_000, 4.0)];
        let line = timeline(&points, range, 15);
        // The line covers the seconds 10 to 85. The step of the last point would end after second 85.
        assert_eq!(
            (line.start_time, line.samples, line.duration_delta),
            (1_700_000_010, vec![1, 0, 2, 0, 0], 15)
        );
    }

    #[test]
    fn a_range_shorter_than_a_step_and_one_before_1970_have_lines() {
        let now = 1_700_000_010_000;
        assert_eq!(
            timeline(&[(now, 1.0)], TimeRange::new(now, now), 15).samples,
            Vec::<u64>::new()
        );
        let line = timeline(&[], TimeRange::new(-20_000, 20_000), 15);
        assert_eq!((line.start_time, line.samples), (-30, vec![0; 3]));
        assert_eq!(timeline(&[(0, -1.0)], TimeRange::new(0, 15_000), 15).samples, vec![0]);
    }

    #[test]
    fn a_label_has_a_line_for_each_value_within_bounds() {
        let range = TimeRange::new(0, 30_000);
        let series = |pairs: &[(&str, &str)], value| SeriesPoints {
            labels: Labels::from_pairs(pairs.iter().copied()),
            points: vec![(15_000, value)],
            exemplars: BTreeMap::new(),
        };
        let all_series = [series(&[], 1.0), series(&[("region", "eu")], 2.0)];
        let lines = by_label(&all_series, "region", range, 15).unwrap();
        let samples: Vec<_> = lines
            .iter()
            .map(|(value, line)| (value.as_str(), line.samples.clone()))
            .collect();
        assert_eq!(samples, [("*", vec![0, 1]), ("eu", vec![0, 2])]);
        let large_list = vec![series(&[], 1.0); MAX_VALUES / 3 + 1];
        let error = by_label(&large_list, "pod", range, 15).unwrap_err();
        assert!(
            error.status == 400 && error.message.contains("333334 values of `pod`"),
            "{error}"
        );
    }
}
