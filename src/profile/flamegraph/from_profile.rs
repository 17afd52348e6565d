//! A profile as a tree: one sample type, every sample's frames with inlined functions as frames of their own.
//!
//! Frames are interned once a location, so that a stack costs one lookup a frame. Code without a known function is named by its binary and
//! address.

use crate::profile::flamegraph::tree::{FrameId, FrameRef, Tree};
use crate::profile::pprof::{Location, Profile};

impl Tree {
    /// Adds sample type `index` of `profile`; does nothing when there is no such type.
    pub fn insert_profile(&mut self, profile: &Profile<'_>, index: usize) {
        if index >= profile.sample_types.len() {
            return;
        }
        let mut frames: Vec<(FrameId, i64)> = Vec::with_capacity(profile.lines.len());
        let mut ranges: Vec<(usize, usize)> = Vec::with_capacity(profile.locations.len());
        for location in &profile.locations {
            let start = frames.len();
            let mapping = match location.mapping {
                Location::NO_MAPPING => "",
                mapping => profile.mappings[mapping as usize].file,
            };
            for line in profile.lines_of(location) {
                let function = &profile.functions[line.function as usize];
                let frame = FrameRef {
                    function: function.display_name(),
                    file: function.file,
                    line: line.line,
                    mapping,
                };
                frames.push((self.intern(frame), line.line));
            }
            if frames.len() == start {
                let function = address_name(mapping, location.address);
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
            for &location in profile.stack(sample) {
                let (start, end) = ranges[location as usize];
                stack.extend_from_slice(&frames[start..end]);
            }
            self.insert_ids(&stack, profile.values_of(sample)[index]);
        }
    }
}

/// The name of a frame whose function is not known: `libc.so.6 0x7f10`, or the address alone outside of every binary.
pub fn address_name(mapping: &str, address: u64) -> String {
    match mapping.rsplit('/').next().unwrap_or_default() {
        "" => format!("{address:#x}"),
        binary => format!("{binary} {address:#x}"),
    }
}
