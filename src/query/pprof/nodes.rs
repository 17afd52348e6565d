//! Cuts the stacks of a pprof profile so that its call tree has about the requested number of nodes.
//!
//! In: a profile with one value per sample, and the number of nodes. Out: the same profile with shorter stacks. A part
//! of the tree that is smaller than the smallest kept node becomes a node with the name `other`. The total of the
//! profile stays the same.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use alluvium_profile::flamegraph::OTHER;
use alluvium_profile::pprof::{Function, Line, Location, Profile};

/// A node of the tree, as its parent and its location.
type Edge = (u32, u32);

/// Keeps the largest `max_nodes` nodes, and all nodes that are as large as the smallest of them.
pub(crate) fn limit(profile: &mut Profile<'_>, max_nodes: usize) {
    let mut nodes: HashMap<Edge, u32> = HashMap::new();
    let mut totals = vec![0_i64];
    for (stack, value) in samples(profile) {
        let mut node = 0;
        for location in stack.iter().rev() {
            node = *nodes.entry((node, *location)).or_insert_with(|| {
                totals.push(0);
                totals.len() as u32 - 1
            });
            let total = &mut totals[node as usize];
            *total = total.saturating_add(value.saturating_abs());
        }
    }
    if totals.len() <= max_nodes + 1 {
        return;
    }
    let mut sorted = totals[1..].to_vec();
    sorted.sort_unstable_by(|left, right| right.cmp(left));
    let min = sorted[max_nodes - 1];
    let other = other(profile);
    let mut merged: BTreeMap<Vec<u32>, i64> = BTreeMap::new();
    for (stack, value) in samples(profile) {
        let (mut node, mut kept) = (0, Vec::with_capacity(stack.len()));
        for location in stack.iter().rev() {
            node = nodes[&(node, *location)];
            if totals[node as usize] < min {
                kept.push(other);
                break;
            }
            kept.push(*location);
        }
        kept.reverse();
        let sum = merged.entry(kept).or_default();
        *sum = sum.saturating_add(value);
    }
    profile.sample_locations.clear();
    profile.sample_starts = vec![0];
    profile.label_starts = vec![0; merged.len() + 1];
    profile.values.clear();
    for (stack, value) in merged {
        profile.sample_locations.extend(stack);
        profile.sample_starts.push(profile.sample_locations.len() as u32);
        profile.values.push(value);
    }
}

/// Adds the location that replaces the removed nodes, and returns its index.
fn other(profile: &mut Profile<'_>) -> u32 {
    let (function, line) = (profile.functions.len() as u32, profile.lines.len() as u32);
    profile.functions.push(Function {
        name: OTHER,
        system_name: OTHER,
        ..Function::default()
    });
    profile.lines.push(Line { function, line: 0 });
    profile.locations.push(Location {
        mapping: Location::NO_MAPPING,
        address: 0,
        lines_start: line,
        lines_end: line + 1,
        is_folded: false,
    });
    profile.locations.len() as u32 - 1
}

/// Returns the stacks of the samples, leaf first, with their values.
fn samples<'p>(profile: &'p Profile<'_>) -> impl Iterator<Item = (&'p [u32], i64)> {
    let ranges = profile.sample_starts.windows(2);
    let stacks = ranges.map(|range| &profile.sample_locations[range[0] as usize..range[1] as usize]);
    stacks.zip(profile.values.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alluvium_profile::pprof::{Builder, ValueType};

    fn limited(samples: &[(&[&'static str], i64)], max_nodes: usize) -> Vec<(String, i64)> {
        let header = Profile {
            sample_types: vec![ValueType {
                kind: "cpu",
                unit: "ns",
            }],
            ..Profile::default()
        };
        let mut builder = Builder::new(header);
        for (stack, value) in samples {
            let stack: Vec<u32> = stack.iter().map(|name| builder.named(name)).collect();
            builder.sample(stack, [], &[*value]);
        }
        let mut profile = builder.finish();
        limit(&mut profile, max_nodes);
        let name = |location: &u32| {
            let line = profile.lines_of(&profile.locations[*location as usize])[0];
            profile.functions[line.function as usize].name
        };
        let limited_samples = super::samples(&profile);
        limited_samples
            .map(|(stack, value)| (stack.iter().map(name).collect::<Vec<_>>().join(" "), value))
            .collect()
    }

    #[test]
    fn small_parts_become_other_and_the_total_stays() {
        let samples: [(&[&str], i64); 4] = [
            (&["big", "main"], 70),
            (&["small", "main"], 3),
            (&["deep", "tiny", "main"], 2),
            (&["lone"], 1),
        ];
        let all = limited(&samples, 6);
        assert_eq!(all.len(), 4);
        let mut two = limited(&samples, 2);
        two.sort();
        let expected = [("big main", 70), ("other", 1), ("other main", 5)];
        assert_eq!(two, expected.map(|(stack, value)| (stack.to_owned(), value)));
    }
}
