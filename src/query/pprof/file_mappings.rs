//! Builds the mappings of an exported profile for code whose functions are unknown. The addresses of such code are
//! offsets in a file.
//!
//! In: locations whose addresses are offsets, and mappings with the file offset at which they begin. Out: mappings,
//! each with its own range of addresses, and locations with addresses in these ranges. Readers of the profile find the
//! symbols as if the files had been loaded at these addresses.

use std::collections::BTreeMap;

use alluvium_profile::pprof::{Builder, Mapping, Profile};

/// Start address of the first mapping, and the minimum gap between two mappings.
const MAPPING_GAP: u64 = 1 << 20;
const PAGE: u64 = 4 << 10;
/// Readers of a profile treat this address and all higher addresses as kernel addresses.
const END: u64 = 1 << 62;

/// The largest offset of the locations of each mapping, by the index of the mapping. The addresses of these locations
/// are offsets until [`FileMappings::assign_ranges`] runs.
#[derive(Debug, Default)]
pub(crate) struct FileMappings(BTreeMap<u32, u64>);

impl FileMappings {
    /// Adds a mapping for locations with offsets as addresses, and returns its index. The mapping has no range yet.
    pub(crate) fn mapping<'a>(&mut self, builder: &mut Builder<'a>, mapping: Mapping<'a>) -> u32 {
        let index = builder.mapping(Mapping {
            // The limit distinguishes this mapping from the mapping of the same file for code with known functions.
            limit: END,
            ..mapping
        });
        self.0.entry(index).or_default();
        index
    }

    /// Sets the ranges of the mappings and the addresses of the locations in them. If the range of a mapping does not
    /// fit below `END`, the mapping gets no range, and its locations keep their offsets. The same applies if all
    /// locations are before the offset of the mapping.
    pub(crate) fn assign_ranges(mut self, profile: &mut Profile<'_>) {
        for location in &profile.locations {
            if let Some(last) = self.0.get_mut(&location.mapping) {
                *last = location.address.max(*last);
            }
        }
        let mut start = MAPPING_GAP;
        let mut shifts = BTreeMap::new();
        for (index, last) in self.0 {
            let mapping = &mut profile.mappings[index as usize];
            mapping.limit = 0;
            let size = last.checked_sub(mapping.offset).map(|size| (size / PAGE + 1) * PAGE);
            let limit = size.and_then(|size| start.checked_add(size));
            if let Some(limit) = limit.filter(|limit| *limit < END) {
                (mapping.start, mapping.limit) = (start, limit);
                shifts.insert(index, start.wrapping_sub(mapping.offset));
                start = limit.next_multiple_of(MAPPING_GAP) + MAPPING_GAP;
            } else {
                mapping.offset = 0;
            }
        }
        for location in &mut profile.locations {
            let shift = shifts.get(&location.mapping).copied().unwrap_or(0);
            location.address = location.address.wrapping_add(shift);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_a_range_of_its_own_that_holds_its_code() {
        let mut builder = Builder::new(Profile::default());
        let mut files = FileMappings::default();
        let plain = builder.mapping(Mapping {
            file: "a",
            ..Mapping::default()
        });
        let huge = i64::MAX as u64;
        let code = [
            ("a", 0x1010),
            ("a", 0x3fff),
            ("b", 0x1010),
            ("b", 0x7_0000),
            ("c", 16),
            ("c", huge),
        ];
        for (file, offset) in code {
            let mapped = Mapping {
                file,
                offset: if file == "c" { 0 } else { 0x1000 },
                ..Mapping::default()
            };
            let mapping = files.mapping(&mut builder, mapped);
            builder.location(mapping, offset, &[]);
        }
        builder.location(plain, 0x1010, &[]);
        let mut profile = builder.finish();
        files.assign_ranges(&mut profile);
        let ranges: Vec<_> = profile
            .mappings
            .iter()
            .map(|mapping| (mapping.file, mapping.start, mapping.limit))
            .collect();
        assert_eq!(
            ranges,
            [
                ("a", 0, 0),
                ("a", 0x10_0000, 0x10_3000),
                ("b", 0x30_0000, 0x37_0000),
                ("c", 0, 0)
            ]
        );
        let offsets: Vec<_> = profile
            .locations
            .iter()
            .map(|location| {
                let mapping = profile.mappings[location.mapping as usize];
                (mapping.file, location.address - mapping.start + mapping.offset)
            })
            .collect();
        assert_eq!(offsets, [&code[..], &[("a", 0x1010)]].concat());
    }
}
