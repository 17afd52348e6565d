//! Makes profiles smaller: drops samples, and then locations and functions that are no longer in use.
//!
//! Mappings are kept, because they are few, and because the first mapping names the program.

use crate::pprof::model::{Line, Location, Profile};

/// The new index of a dropped row, in a table that maps old indices to new ones.
const DROPPED_INDEX: u32 = u32::MAX;

impl Profile<'_> {
    /// Keeps the samples for which `keep(index)` returns true, and drops the others.
    pub fn retain_samples(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let width = self.sample_types.len();
        let (mut samples, mut locations, mut labels) = (0, 0, 0);
        for sample in 0..self.sample_count() {
            let stack = self.sample_starts[sample] as usize..self.sample_starts[sample + 1] as usize;
            let own_labels = self.label_starts[sample] as usize..self.label_starts[sample + 1] as usize;
            if !keep(sample) {
                continue;
            }
            // Kept rows move to the front in place. Only the start of row `samples` is written, because its end is the
            // start of the next row.
            self.sample_starts[samples] = locations as u32;
            self.label_starts[samples] = labels as u32;
            self.values
                .copy_within(sample * width..(sample + 1) * width, samples * width);
            let (stack_length, label_count) = (stack.len(), own_labels.len());
            self.sample_locations.copy_within(stack, locations);
            self.labels.copy_within(own_labels, labels);
            samples += 1;
            locations += stack_length;
            labels += label_count;
        }
        self.values.truncate(samples * width);
        self.sample_locations.truncate(locations);
        self.labels.truncate(labels);
        self.sample_starts.truncate(samples);
        self.label_starts.truncate(samples);
        self.sample_starts.push(locations as u32);
        self.label_starts.push(labels as u32);
    }

    /// Drops locations without samples, and functions without locations.
    pub fn drop_unused(&mut self) {
        let mut location_indices = vec![DROPPED_INDEX; self.locations.len()];
        for &location in &self.sample_locations {
            location_indices[location as usize] = 0;
        }
        let mut function_indices = vec![DROPPED_INDEX; self.functions.len()];
        let mut lines: Vec<Line> = Vec::new();
        let mut locations: Vec<Location> = Vec::new();
        for (location, index) in self.locations.iter().zip(&mut location_indices) {
            if *index == DROPPED_INDEX {
                continue;
            }
            *index = locations.len() as u32;
            let lines_start = lines.len() as u32;
            for line in &self.lines[location.lines_start as usize..location.lines_end as usize] {
                function_indices[line.function as usize] = 0;
                lines.push(*line);
            }
            locations.push(Location {
                lines_start,
                lines_end: lines.len() as u32,
                ..*location
            });
        }
        let mut functions = Vec::new();
        for (function, index) in self.functions.iter().zip(&mut function_indices) {
            if *index != DROPPED_INDEX {
                *index = functions.len() as u32;
                functions.push(*function);
            }
        }
        for line in &mut lines {
            line.function = function_indices[line.function as usize];
        }
        for location in &mut self.sample_locations {
            *location = location_indices[*location as usize];
        }
        self.locations = locations;
        self.lines = lines;
        self.functions = functions;
    }
}

#[cfg(test)]
mod tests {
    use crate::pprof::{decode, encode, stack_ids};
    use crate::synthetic::{Names, Shape, cpu_profile};

    #[test]
    fn what_is_kept_is_the_same_as_before() {
        let names = Names::new(200);
        let shape = Shape {
            functions: 200,
            samples: 50,
            depth: 9,
            labelled_every: 3,
        };
        let before = cpu_profile(&names, shape, 5);
        let mut after = before.clone();
        after.retain_samples(|sample| sample % 4 == 1);
        after.drop_unused();
        assert!(after.functions.len() < before.functions.len());
        let kept: Vec<usize> = (0..50).filter(|sample| sample % 4 == 1).collect();
        assert_eq!(after.sample_count(), kept.len());
        let (ids_before, ids_after) = (stack_ids(&before), stack_ids(&after));
        for (new, old) in kept.into_iter().enumerate() {
            assert_eq!(ids_after[new], ids_before[old]);
            assert_eq!(after.values_of(new), before.values_of(old));
            assert_eq!(after.labels_of(new), before.labels_of(old));
        }
        assert_eq!(decode(&encode(&after)).unwrap(), after);
        after.retain_samples(|_| false);
        after.drop_unused();
        assert_eq!((after.sample_count(), after.functions.len()), (0, 0));
    }
}
