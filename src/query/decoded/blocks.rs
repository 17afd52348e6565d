//! Decoded sample rows of one file, profile type and series, in chunks of 15 minutes.
//!
//! A [`Block`] stores its rows in the order of the times of their profiles, in about four to six bytes per row. Sums
//! over any time range are exact.

use std::ops::Range;

use hashbrown::HashMap;

use crate::query::common::checked;
use crate::query::common::error::QueryError;
use alluvium_profile::{StackId, TimeSpan};

/// Length of the time that a block covers, in microseconds.
const CHUNK_US: i64 = 15 * 60 * 1_000_000;
/// Estimated overhead of a block and its map entries in bytes.
pub(crate) const BLOCK_BYTES: usize = 256;

/// Index of a 15-minute interval, counted from 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Chunk(pub(crate) i64);

impl Chunk {
    /// Returns the chunk that contains a time in microseconds since 1970.
    pub(crate) fn of(time_us: i64) -> Self {
        Self(time_us.div_euclid(CHUNK_US))
    }

    /// Returns the time span from this chunk to `last`, both included.
    pub(crate) fn span_to(self, last: Self) -> TimeSpan {
        let start = |chunk: i64| chunk.saturating_mul(CHUNK_US);
        TimeSpan::new(start(self.0), start(last.0.saturating_add(1)))
    }
}

/// Rows of one series and profile type within one chunk.
pub(crate) struct Block {
    stacks: Box<[StackId]>,
    /// Times of the profiles, in ascending order.
    times: Box<[i64]>,
    /// For each time, the end index of its rows.
    ends: Box<[u32]>,
    /// For each row, an index into `stacks`.
    stack_indices: StackIndices,
    values: Values,
}

enum StackIndices {
    Narrow(Box<[u16]>),
    Wide(Box<[u32]>),
}

enum Values {
    Short(i64, Box<[u16]>),
    Narrow(i64, Box<[u32]>),
    Wide(Box<[i64]>),
}

/// Collects rows of one series for blocks.
#[derive(Default)]
pub(crate) struct Builder {
    stacks: Vec<StackId>,
    index: HashMap<StackId, u32>,
    last: Option<(StackId, u32)>,
    stack_indices: Vec<u32>,
    times: Vec<i64>,
    values: Vec<i64>,
}

impl Block {
    /// Returns the number of rows within `time`.
    pub(crate) fn rows_between(&self, time: TimeSpan) -> usize {
        self.rows(time).len()
    }

    /// Adds the values of the rows within `time` to the sums by stack. Callers reuse the buffer `scratch` between
    /// calls.
    pub(crate) fn add_to(
        &self,
        time: TimeSpan,
        sums: &mut HashMap<StackId, i64>,
        scratch: &mut Vec<i64>,
    ) -> Result<(), QueryError> {
        let rows = self.rows(time);
        scratch.clear();
        scratch.resize(self.stacks.len(), 0);
        let fits = match &self.stack_indices {
            StackIndices::Narrow(stack_indices) => self.sum(
                stack_indices[rows.clone()]
                    .iter()
                    .map(|stack_index| usize::from(*stack_index)),
                rows,
                scratch,
            ),
            StackIndices::Wide(stack_indices) => self.sum(
                stack_indices[rows.clone()]
                    .iter()
                    .map(|stack_index| *stack_index as usize),
                rows,
                scratch,
            ),
        };
        if !fits {
            return Err(checked::too_large());
        }
        if sums.is_empty() {
            sums.reserve(self.stacks.len());
        }
        for (stack, value) in self.stacks.iter().zip(scratch.iter()).filter(|(_, value)| **value != 0) {
            checked::add(sums.entry(*stack).or_default(), *value)?;
        }
        Ok(())
    }

    /// Adds each value to the sum of its stack in `scratch`. Returns false if a sum does not fit in 64 bits.
    fn sum(&self, stack_indices: impl Iterator<Item = usize>, rows: Range<usize>, scratch: &mut [i64]) -> bool {
        let mut fits = true;
        let mut add = |stack_index: usize, value: i64| {
            let (sum, is_too_large) = scratch[stack_index].overflowing_add(value);
            scratch[stack_index] = sum;
            fits &= !is_too_large;
        };
        match &self.values {
            Values::Short(unit, values) => {
                (stack_indices.zip(&values[rows]))
                    .for_each(|(stack_index, value)| add(stack_index, i64::from(*value) * unit));
            }
            Values::Narrow(unit, values) => {
                (stack_indices.zip(&values[rows]))
                    .for_each(|(stack_index, value)| add(stack_index, i64::from(*value) * unit));
            }
            Values::Wide(values) => {
                (stack_indices.zip(&values[rows])).for_each(|(stack_index, value)| add(stack_index, *value));
            }
        }
        fits
    }

    fn rows(&self, span: TimeSpan) -> Range<usize> {
        let bound = |time: i64| match self.times.partition_point(|profile_time| *profile_time < time) {
            0 => 0,
            before => self.ends[before - 1] as usize,
        };
        let first = bound(span.start);
        first..bound(span.end).max(first)
    }

    /// Estimates the memory of the block in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let index_bytes = match &self.stack_indices {
            StackIndices::Narrow(stack_indices) => stack_indices.len() * 2,
            StackIndices::Wide(stack_indices) => stack_indices.len() * 4,
        };
        let values = match &self.values {
            Values::Short(_, values) => values.len() * 2,
            Values::Narrow(_, values) => values.len() * 4,
            Values::Wide(values) => values.len() * 8,
        };
        BLOCK_BYTES + self.stacks.len() * 8 + self.times.len() * 12 + index_bytes + values
    }
}

impl Builder {
    /// Adds a row. Rows may be added in any order. Consecutive rows with the same stack are added fastest.
    pub(crate) fn push(&mut self, time: i64, stack: StackId, value: i64) {
        let stack_index = match self.last {
            Some((last, stack_index)) if last == stack => stack_index,
            _ => {
                let next = self.stacks.len() as u32;
                let stack_index = *self.index.entry(stack).or_insert(next);
                if stack_index == next {
                    self.stacks.push(stack);
                }
                self.last = Some((stack, stack_index));
                stack_index
            }
        };
        self.stack_indices.push(stack_index);
        self.times.push(time);
        self.values.push(value);
    }

    /// Adds the rows of another builder.
    pub(crate) fn extend(&mut self, other: &Builder) {
        for ((stack_index, time), value) in other.stack_indices.iter().zip(&other.times).zip(&other.values) {
            self.push(*time, other.stacks[*stack_index as usize], *value);
        }
    }

    /// Estimates the memory of the builder in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.times.capacity() * 20 + self.stacks.capacity() * 28
    }

    pub(crate) fn finish(self) -> Vec<(Chunk, Block)> {
        let mut times = self.times.clone();
        times.sort_unstable();
        times.dedup();
        // A counting sort by time is fast, because there are few times and many rows.
        let index: HashMap<i64, u32> = times
            .iter()
            .zip(0..)
            .map(|(time, time_index)| (*time, time_index))
            .collect();
        let time_indices: Vec<u32> = self.times.iter().map(|time| index[time]).collect();
        let mut ends = vec![0u32; times.len()];
        for time_index in &time_indices {
            ends[*time_index as usize] += 1;
        }
        let mut sum = 0;
        let mut next: Vec<u32> = Vec::with_capacity(times.len());
        for count in &mut ends {
            next.push(sum);
            sum += *count;
            *count = sum;
        }
        let mut rows = vec![(0u32, 0i64); self.stack_indices.len()];
        for ((time_index, stack_index), value) in time_indices.iter().zip(&self.stack_indices).zip(&self.values) {
            let slot = &mut next[*time_index as usize];
            rows[*slot as usize] = (*stack_index, *value);
            *slot += 1;
        }
        let mut blocks = Vec::new();
        let mut local = vec![u32::MAX; self.stacks.len()];
        let mut first = 0;
        for times in times.chunk_by(|left, right| Chunk::of(*left) == Chunk::of(*right)) {
            let last = first + times.len();
            let start = first.checked_sub(1).map_or(0, |before| ends[before] as usize);
            let rows = &rows[start..ends[last - 1] as usize];
            let block = block(&self.stacks, times, start, &ends[first..last], rows, &mut local);
            blocks.push((Chunk::of(times[0]), block));
            first = last;
        }
        blocks
    }
}

fn block(
    stacks: &[StackId],
    times: &[i64],
    start: usize,
    ends: &[u32],
    rows: &[(u32, i64)],
    local: &mut [u32],
) -> Block {
    let mut own_stacks = Vec::new();
    let stack_indices: Vec<u32> = rows
        .iter()
        .map(|(stack_index, _)| {
            let slot = &mut local[*stack_index as usize];
            if *slot == u32::MAX {
                *slot = own_stacks.len() as u32;
                own_stacks.push(stacks[*stack_index as usize]);
            }
            *slot
        })
        .collect();
    for (stack_index, _) in rows {
        local[*stack_index as usize] = u32::MAX;
    }
    Block {
        stack_indices: if u16::try_from(own_stacks.len()).is_ok() {
            StackIndices::Narrow(stack_indices.iter().map(|stack_index| *stack_index as u16).collect())
        } else {
            StackIndices::Wide(stack_indices.into_boxed_slice())
        },
        stacks: own_stacks.into_boxed_slice(),
        times: times.into(),
        ends: ends.iter().map(|end| end - start as u32).collect(),
        values: values(rows),
    }
}

/// Encodes values in the smallest number of bytes that can hold them.
fn values(rows: &[(u32, i64)]) -> Values {
    let values = || rows.iter().map(|(_, value)| *value);
    // CPU times are multiples of the sampling period, so the common divisor is stored once.
    let unit = values().fold(0i64, |unit, value| match unit {
        0 => divisor(unit, value),
        unit if value % unit == 0 => unit,
        unit => divisor(unit, value),
    });
    let unit = unit.max(1);
    let (min, max) = values().fold((0, 0), |(min, max), value| (value.min(min), value.max(max)));
    match max / unit {
        max if min >= 0 && max <= i64::from(u16::MAX) => {
            Values::Short(unit, values().map(|value| (value / unit) as u16).collect())
        }
        max if min >= 0 && max <= i64::from(u32::MAX) => {
            Values::Narrow(unit, values().map(|value| (value / unit) as u32).collect())
        }
        _ => Values::Wide(values().collect()),
    }
}

/// Returns the greatest common divisor by Euclid's algorithm.
fn divisor(mut left: i64, mut right: i64) -> i64 {
    while right != 0 {
        (left, right) = (right, left.checked_rem(right).unwrap_or(0));
    }
    left.saturating_abs()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn sums(blocks: &[(Chunk, Block)], time: TimeSpan) -> Option<BTreeMap<i64, i64>> {
        let (mut sums, mut scratch) = (HashMap::new(), Vec::new());
        for (_, block) in blocks {
            block.add_to(time, &mut sums, &mut scratch).ok()?;
        }
        Some(sums.into_iter().map(|(stack, value)| (stack.0, value)).collect())
    }

    proptest! {
        #[test]
        fn blocks_sum_as_the_rows_do(
            rows in prop::collection::vec(
                (
                    0i64..40,
                    0i64..9,
                    prop_oneof![5 => 1i64..5, 5 => 0i64..70_000, 5 => Just(30_000_000_000), 1 => Just(i64::MAX)],
                ),
                1..200,
            ),
            start in 0i64..40, length in 0i64..40
        ) {
            let minute = 120_000_000;
            let mut builder = Builder::default();
            let mut other = Builder::default();
            for (index, (time, stack, value)) in rows.iter().enumerate() {
                let to = if index % 3 == 0 { &mut other } else { &mut builder };
                to.push(time * minute, StackId(*stack), *value);
            }
            builder.extend(&other);
            let blocks = builder.finish();
            for (chunk, block) in &blocks {
                prop_assert!(block.times.iter().all(|time| Chunk::of(*time) == *chunk));
            }
            let time = TimeSpan::new(start * minute, (start + length) * minute);
            let mut expected: BTreeMap<i64, i128> = BTreeMap::new();
            for (_, stack, value) in rows.iter().filter(|row| (start..start + length).contains(&row.0)) {
                *expected.entry(*stack).or_default() += i128::from(*value);
            }
            // No value is negative, so a part of a sum fits if the whole sum fits.
            let expected = expected.into_iter().map(|(stack, sum)| Some((stack, i64::try_from(sum).ok()?)));
            prop_assert_eq!(sums(&blocks, time), expected.collect());
        }
    }
}
