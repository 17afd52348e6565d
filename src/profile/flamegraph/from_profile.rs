//! Adds a profile to a tree: one sample type, with inlined functions as separate frames.
//!
//! Frames are interned once per location, so that a stack costs one lookup per frame. Code without a known function
//! gets the name of its binary and its address.

use hashbrown::HashMap;

use crate::flamegraph::tree::{FrameId, FrameRef, Tree};
use crate::pprof::{Location, Profile};

/// Maximum number of frames of a stack that are kept, counted from the root. Real stacks are much shorter. Without a
/// limit, a small profile whose stacks repeat a location with many lines could cause any amount of work.
const MAX_FRAMES: usize = 1 << 16;

impl Tree {
    /// Adds the sample type `index` of `profile`. Does nothing if there is no such type.
    pub fn insert_profile(&mut self, profile: &Profile<'_>, index: usize) {
        if index >= profile.sample_types.len() {
            return;
        }
        let mut frames: Vec<(FrameId, i64)> = Vec::with_capacity(profile.lines.len());
        let mut ranges: Vec<(usize, usize)> = Vec::with_capacity(profile.locations.len());
        // A function may have many lines and a long name, so it is interned only once.
        let mut known: HashMap<(u32, u32), FrameId> = HashMap::new();
        for location in &profile.locations {
            let start = frames.len();
            let mapping = match location.mapping {
                Location::NO_MAPPING => "",
                mapping => profile.mappings[mapping as usize].file,
            };
            for line in profile.lines_of(location) {
                let function = &profile.functions[line.function as usize];
                let frame = *known.entry((line.function, location.mapping)).or_insert_with(|| {
                    self.intern(FrameRef {
                        function: function.display_name(),
                        file: function.file,
                        line: line.line,
                        mapping,
                    })
                });
                frames.push((frame, line.line));
            }
            if frames.len() == start {
                let function = address_name(mapping, profile.code_of(location).number());
                let frame = FrameRef {
                    function: &function,
                    mapping,
                    ..FrameRef::default()
                };
                frames.push((self.intern(frame), 0));
            }
            ranges.push((start, frames.len()));
        }
        let mut stack = Vec::new();
        for sample in 0..profile.sample_count() {
            stack.clear();
            // The stack is built root first, so that the limit cuts the leaf side.
            for &location in profile.stack(sample).iter().rev() {
                let (start, end) = ranges[location as usize];
                let room = MAX_FRAMES - stack.len();
                stack.extend(frames[start..end].iter().rev().take(room));
            }
            stack.reverse();
            self.insert_ids(&stack, profile.values_of(sample)[index]);
        }
    }
}

/// Returns the name of a frame without a known function: `libc.so.6 0x7f10`, or only the address if the binary is
/// unknown.
pub fn address_name(mapping: &str, address: u64) -> String {
    match mapping.rsplit('/').next().unwrap_or_default() {
        "" => format!("{address:#x}"),
        binary => format!("{binary} {address:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pprof::{Function, Line, ValueType};

    #[test]
    fn inlined_functions_are_frames_and_unknown_code_has_an_address() {
        let profile = Profile {
            sample_types: vec![ValueType::default()],
            functions: ["inlined", "outer", "main"]
                .map(|name| Function {
                    name,
                    ..Function::default()
                })
                .to_vec(),
            lines: (0..3).map(|function| Line { function, line: 1 }).collect(),
            locations: [(0, 2, 0x10), (2, 3, 0x20), (3, 3, 0x30)]
                .map(|(lines_start, lines_end, address)| Location {
                    mapping: Location::NO_MAPPING,
                    address,
                    lines_start,
                    lines_end,
                    is_folded: false,
                })
                .to_vec(),
            sample_locations: vec![0, 1, 2],
            sample_starts: vec![0, 3],
            label_starts: vec![0, 0],
            values: vec![5],
            ..Profile::default()
        };
        let mut tree = Tree::by_file();
        tree.insert_profile(&profile, 0);
        tree.insert_profile(&profile, 1);
        let graph = tree.to_flamegraph(0);
        assert_eq!(graph.names, ["total", "0x30", "main", "outer", "inlined"]);
        assert_eq!((graph.total, graph.levels.len()), (5, 5));
        assert_eq!(address_name("/usr/lib/libc.so.6", 0x7f10), "libc.so.6 0x7f10");
    }

    #[test]
    fn a_stack_that_repeats_a_long_location_is_cut_at_the_leaf() {
        let lines = 1000;
        let profile = Profile {
            sample_types: vec![ValueType::default()],
            functions: vec![Function::default()],
            lines: vec![Line::default(); lines],
            locations: vec![Location {
                mapping: Location::NO_MAPPING,
                lines_end: lines as u32,
                ..Location::default()
            }],
            sample_locations: vec![0; 1_000_000],
            sample_starts: vec![0, 1_000_000],
            label_starts: vec![0, 0],
            values: vec![1],
            ..Profile::default()
        };
        let mut tree = Tree::by_name();
        tree.insert_profile(&profile, 0);
        assert_eq!(tree.len(), MAX_FRAMES);
    }
}
