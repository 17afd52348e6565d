//! Differences of cumulative profiles. Go's `memory`, `mutex` and `block` profiles count since the start of the
//! process. The allocations or waits of an interval are the newer values minus the older ones.
//!
//! A [`Delta`] is the state of one target and type. It stores the last values by a hash of stack and labels: 8 bytes
//! per stack and 8 more per cumulative type. The first profile has no difference. Values that are states (`inuse_*`)
//! are passed on unchanged. If the sum of a cumulative type is smaller than before, the process was restarted, and the
//! new values are the whole increase. If the value of a single stack decreased while the sum did not, the increase of
//! the stack is 0. Such decreases occur because Go scales and rounds sampled counts. If a decrease counted as a
//! restart, the whole past of the stack would appear as one spike.

use xxhash_rust::xxh3::Xxh3;

use crate::pprof::{Profile, SampleLabel, StackHasher, ValueType, encode};

/// The values of one target and type that are needed for the next difference.
#[derive(Debug, Default)]
pub struct Delta {
    /// Hashes of stack and labels, sorted.
    keys: Vec<u64>,
    /// Values of the cumulative types, row by row in the order of `keys`.
    values: Vec<i64>,
    /// Sum of each cumulative type.
    totals: Vec<i64>,
    /// Hash of the sample types, which detects a change.
    types: u64,
    time_nanos: i64,
    is_initialized: bool,
}

/// Returns the indices of the sample types that count from the start of the process, for a profile called `name`:
/// `alloc_objects` and `alloc_space` of `memory`, `contentions` and `delay` of `mutex` and `block`, and none for
/// other names.
pub fn cumulative_types(name: &str, sample_types: &[ValueType<'_>]) -> Vec<usize> {
    let type_names: &[&str] = match name {
        "memory" => &["alloc_objects", "alloc_space"],
        "mutex" | "block" => &["contentions", "delay"],
        _ => &[],
    };
    let is_counted = |index: &usize| type_names.contains(&sample_types[*index].kind);
    (0..sample_types.len()).filter(is_counted).collect()
}

impl Delta {
    /// Creates the state before the first profile.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the increase from the previous cumulative profile to this one, as uncompressed pprof. Returns `None` for
    /// the first profile, and for the first profile after a change of the sample types. `cumulative` contains the
    /// indices that [`cumulative_types`] returns.
    pub fn next(&mut self, profile: &Profile<'_>, cumulative: &[usize]) -> Option<Vec<u8>> {
        let current = Self::read(profile, cumulative);
        let previous = std::mem::replace(self, current.delta);
        if !previous.is_initialized || previous.types != self.types {
            return None;
        }
        let restarted: Vec<bool> = self
            .totals
            .iter()
            .zip(&previous.totals)
            .map(|(new, old)| new < old)
            .collect();
        let restarted = restarted.contains(&true);

        let mut difference = profile.clone();
        let width = profile.sample_types.len();
        // Only the first sample of each stack gets an increase, so that a stack that occurs twice in a profile is not
        // counted twice.
        for row in difference.values.chunks_exact_mut(width) {
            for &index in cumulative {
                row[index] = 0;
            }
        }
        let column_count = cumulative.len();
        let mut old = 0;
        for (position, (key, first_sample)) in self.keys.iter().zip(current.first_samples).enumerate() {
            while previous.keys.get(old).is_some_and(|old_key| old_key < key) {
                old += 1;
            }
            let known = !restarted && previous.keys.get(old) == Some(key);
            let row = &mut difference.values[first_sample as usize * width..];
            for (column, &index) in cumulative.iter().enumerate() {
                let new_value = self.values[position * column_count + column];
                let old_value = if known {
                    previous.values[old * column_count + column]
                } else {
                    0
                };
                row[index] = new_value.saturating_sub(old_value).max(0);
            }
        }
        let nonzero: Vec<bool> = difference
            .values
            .chunks_exact(width)
            .map(|row| row.iter().any(|value| *value != 0))
            .collect();
        difference.retain_samples(|sample| nonzero[sample]);
        difference.drop_unused();
        let elapsed = profile.time_nanos.saturating_sub(previous.time_nanos);
        if previous.time_nanos > 0 && elapsed > 0 {
            difference.duration_nanos = elapsed;
        }
        Some(encode(&difference))
    }

    fn read(profile: &Profile<'_>, cumulative: &[usize]) -> Current {
        let hasher = StackHasher::new(profile);
        let mut scratch = Vec::new();
        let mut samples: Vec<(u64, u32)> = (0..profile.sample_count())
            .map(|sample| {
                let stack = hasher.stack(profile.stack(sample), &mut scratch);
                (key(stack, profile.labels_of(sample)), sample as u32)
            })
            .collect();
        // The samples are sorted by key, and samples with equal keys by index. The first sample of a stack gets the
        // increase.
        samples.sort_unstable();
        let key_count = samples.chunk_by(|left, right| left.0 == right.0).count();
        let mut delta = Delta {
            keys: Vec::with_capacity(key_count),
            values: Vec::with_capacity(key_count * cumulative.len()),
            totals: vec![0; cumulative.len()],
            types: hash_types(profile),
            time_nanos: profile.time_nanos,
            is_initialized: true,
        };
        let mut first_samples = Vec::with_capacity(key_count);
        for group in samples.chunk_by(|left, right| left.0 == right.0) {
            let [(key, first), ..] = *group else { continue };
            delta.keys.push(key);
            first_samples.push(first);
            for (total, &index) in delta.totals.iter_mut().zip(cumulative) {
                let values = group
                    .iter()
                    .map(|(_, sample)| profile.values_of(*sample as usize)[index]);
                let sum = values.fold(0i64, i64::saturating_add);
                delta.values.push(sum);
                *total = total.saturating_add(sum);
            }
        }
        Current { delta, first_samples }
    }
}

/// The state of the current profile, and the index of the first sample of each key.
struct Current {
    delta: Delta,
    first_samples: Vec<u32>,
}

fn key(stack: u64, labels: &[SampleLabel<'_>]) -> u64 {
    if labels.is_empty() {
        return stack;
    }
    // The order of labels within a sample has no meaning.
    labels.iter().map(hash_label).fold(stack, u64::wrapping_add)
}

fn hash_label(label: &SampleLabel<'_>) -> u64 {
    let mut hasher = Xxh3::new();
    let mut text = |text: &str| {
        hasher.update(text.as_bytes());
        hasher.update(&[0xff]);
    };
    match *label {
        SampleLabel::Text(key, value) => {
            text(key);
            text(value);
        }
        SampleLabel::Number(key, value, unit) => {
            text(key);
            text(unit);
            hasher.update(&value.to_le_bytes());
        }
    }
    hasher.digest()
}

fn hash_types(profile: &Profile<'_>) -> u64 {
    let mut hasher = Xxh3::new();
    for value_type in &profile.sample_types {
        hasher.update(value_type.kind.as_bytes());
        hasher.update(&[0xff]);
        hasher.update(value_type.unit.as_bytes());
        hasher.update(&[0xff]);
    }
    hasher.digest()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pprof::{Function, Line, Location, decode};

    const TYPES: [&str; 4] = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"];

    /// Creates a heap profile. Each sample is a function index, a block size, and values.
    fn heap(time_s: i64, samples: &[(u32, i64, [i64; 4])]) -> Profile<'static> {
        const NAMES: [&str; 3] = ["a", "b", "c"];
        let mut profile = Profile {
            sample_types: TYPES.map(|kind| ValueType { kind, unit: "x" }).to_vec(),
            time_nanos: time_s * 1_000_000_000,
            sample_starts: vec![0],
            label_starts: vec![0],
            ..Profile::default()
        };
        for (index, name) in NAMES.into_iter().enumerate() {
            let index = index as u32;
            profile.functions.push(Function {
                name,
                ..Function::default()
            });
            profile.lines.push(Line {
                function: index,
                line: 1,
            });
            profile.locations.push(Location {
                mapping: Location::NO_MAPPING,
                lines_start: index,
                lines_end: index + 1,
                ..Location::default()
            });
        }
        for (location, size, values) in samples {
            profile.sample_locations.push(*location);
            profile.sample_starts.push(profile.sample_locations.len() as u32);
            profile.values.extend(values);
            profile.labels.push(SampleLabel::Number("bytes", *size, "bytes"));
            profile.label_starts.push(profile.labels.len() as u32);
        }
        profile
    }

    /// Returns function name, block size and values of the samples of a difference.
    fn rows(bytes: &[u8]) -> Vec<(String, i64, Vec<i64>)> {
        let profile = decode(bytes).unwrap();
        (0..profile.sample_count())
            .map(|sample| {
                let location = &profile.locations[profile.stack(sample)[0] as usize];
                let function = profile.lines_of(location)[0].function;
                let SampleLabel::Number(_, size, _) = profile.labels_of(sample)[0] else {
                    panic!("label")
                };
                let name = profile.functions[function as usize].name.to_owned();
                (name, size, profile.values_of(sample).to_vec())
            })
            .collect()
    }

    fn next(delta: &mut Delta, profile: &Profile<'_>) -> Option<Vec<u8>> {
        let cumulative = cumulative_types("memory", &profile.sample_types);
        delta.next(profile, &cumulative)
    }

    #[test]
    fn counted_types_are_subtracted_by_stack_and_labels_and_states_stay() {
        let mut delta = Delta::new();
        let first = heap(
            100,
            &[(0, 8, [10, 80, 1, 8]), (0, 16, [5, 80, 0, 0]), (1, 8, [1, 8, 1, 8])],
        );
        assert_eq!(next(&mut delta, &first), None);
        let second = heap(
            115,
            &[
                (1, 8, [1, 8, 1, 8]),
                (0, 16, [7, 112, 0, 0]),
                (0, 8, [10, 80, 0, 0]),
                (2, 8, [3, 24, 3, 24]),
            ],
        );
        let difference = next(&mut delta, &second).unwrap();
        assert_eq!(
            rows(&difference),
            [
                ("b".to_owned(), 8, vec![0, 0, 1, 8]),
                ("a".to_owned(), 16, vec![2, 32, 0, 0]),
                ("c".to_owned(), 8, vec![3, 24, 3, 24]),
            ]
        );
        assert_eq!(decode(&difference).unwrap().duration_nanos, 15_000_000_000);
        // If nothing happened, states remain and cumulative types are 0.
        assert_eq!(rows(&next(&mut delta, &second).unwrap()).len(), 2);
    }

    #[test]
    fn after_a_restart_the_new_values_are_the_increase() {
        let mut delta = Delta::new();
        next(
            &mut delta,
            &heap(100, &[(0, 8, [100, 800, 0, 0]), (1, 8, [1, 8, 0, 0])]),
        );
        let restarted = heap(115, &[(0, 8, [10, 80, 0, 0]), (1, 8, [5, 40, 0, 0])]);
        assert_eq!(
            rows(&next(&mut delta, &restarted).unwrap()),
            [
                ("a".to_owned(), 8, vec![10, 80, 0, 0]),
                ("b".to_owned(), 8, vec![5, 40, 0, 0])
            ]
        );
    }

    #[test]
    fn one_stack_that_went_down_is_no_restart() {
        let mut delta = Delta::new();
        next(
            &mut delta,
            &heap(100, &[(0, 8, [100, 800, 0, 0]), (1, 8, [10, 80, 0, 0])]),
        );
        let after = heap(115, &[(0, 8, [99, 799, 0, 0]), (1, 8, [12, 96, 0, 0])]);
        assert_eq!(
            rows(&next(&mut delta, &after).unwrap()),
            [("b".to_owned(), 8, vec![2, 16, 0, 0])]
        );
    }

    #[test]
    fn a_stack_that_occurs_twice_is_counted_once() {
        let mut delta = Delta::new();
        let twice = |value| heap(100, &[(0, 8, [value, 8, 0, 0]), (0, 8, [value, 8, 2, 2])]);
        next(&mut delta, &twice(1));
        assert_eq!(
            rows(&next(&mut delta, &twice(4)).unwrap()),
            [
                ("a".to_owned(), 8, vec![6, 0, 0, 0]),
                ("a".to_owned(), 8, vec![0, 0, 2, 2])
            ]
        );
    }

    #[test]
    fn a_change_of_the_sample_types_starts_again() {
        let mut delta = Delta::new();
        let first = heap(100, &[(0, 8, [1, 1, 1, 1])]);
        next(&mut delta, &first);
        let mut other = first.clone();
        other.sample_types[0].unit = "y";
        assert_eq!(next(&mut delta, &other), None);
        assert!(next(&mut delta, &other).is_some());
    }

    #[test]
    fn only_known_profiles_have_counted_types() {
        let types = |kinds: &[&'static str]| {
            kinds
                .iter()
                .map(|kind| ValueType { kind, unit: "" })
                .collect::<Vec<_>>()
        };
        assert_eq!(cumulative_types("memory", &types(&TYPES)), [0, 1]);
        assert_eq!(cumulative_types("mutex", &types(&["contentions", "delay"])), [0, 1]);
        assert!(cumulative_types("process_cpu", &types(&["samples", "cpu"])).is_empty());
    }
}
