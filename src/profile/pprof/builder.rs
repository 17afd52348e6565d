//! Builds profiles: equal functions, binaries and code addresses are stored once.
//!
//! Texts are borrowed. Samples are stored unchanged: a caller that wants to merge equal stacks must merge them before
//! it adds samples.

use std::hash::{BuildHasher, Hash};

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use crate::pprof::model::{Function, Line, Location, Mapping, Profile, SampleLabel};

/// Builds a [`Profile`]. All indices that it returns refer to that profile.
pub struct Builder<'a> {
    profile: Profile<'a>,
    functions: Index,
    mappings: Index,
    locations: Index,
    /// Indices of the mappings that came from other profiles.
    loads: HashMap<Load<'a>, u32>,
}

/// The identity of a loaded part of a file, which does not depend on its address: number of pages, offset, and build id
/// or file. `go tool pprof` merges mappings with equal identities.
type Load<'a> = (u64, u64, &'a str);

const PAGE: u64 = 4 << 10;

impl<'a> Builder<'a> {
    /// Creates a builder. `header` is a profile with types, period and time, and with empty tables.
    pub fn new(header: Profile<'a>) -> Self {
        Self {
            profile: Profile {
                sample_starts: vec![0],
                label_starts: vec![0],
                ..header
            },
            functions: Index::default(),
            mappings: Index::default(),
            locations: Index::default(),
            loads: HashMap::new(),
        }
    }

    /// Returns the index of a function. Adds the function if it is new.
    pub fn function(&mut self, function: Function<'a>) -> u32 {
        let functions = &mut self.profile.functions;
        // Name and file are enough for the key, because functions with the same name and file rarely differ in the
        // other fields.
        let key = |function: &Function<'a>| (function.name, function.file);
        self.functions.add(functions, function, |known| *known == function, key)
    }

    /// Returns the index of a binary. Adds the binary if it is new. Its flags (functions, files, lines, inlined frames)
    /// are the union over all calls.
    pub fn mapping(&mut self, mapping: Mapping<'a>) -> u32 {
        let mappings = &mut self.profile.mappings;
        let key = |mapping: &Mapping<'a>| (mapping.file, mapping.build_id, mapping.start);
        let is_same = |known: &Mapping<'a>| {
            Mapping {
                has: mapping.has,
                ..*known
            } == mapping
        };
        let index = self.mappings.add(mappings, mapping, is_same, key);
        self.add_flags(index, mapping.has);
        index
    }

    /// Sets those flags of a binary that are true in `has`.
    pub fn add_flags(&mut self, mapping: u32, has: [bool; 4]) {
        if let Some(mapping) = self.profile.mappings.get_mut(mapping as usize) {
            mapping.has.iter_mut().zip(has).for_each(|(has, flag)| *has |= flag);
        }
    }

    /// Returns the index of a code address: its mapping ([`Location::NO_MAPPING`] for none), its address (0 if unknown)
    /// and its lines, with the lines of inlined functions first.
    pub fn location(&mut self, mapping: u32, address: u64, lines: &[Line]) -> u32 {
        let Profile {
            locations, lines: all, ..
        } = &mut self.profile;
        let location = Location {
            mapping,
            address,
            lines_start: all.len() as u32,
            lines_end: (all.len() + lines.len()) as u32,
            is_folded: false,
        };
        // The new lines are appended first, so that they are compared in place with the lines of known locations.
        all.extend_from_slice(lines);
        let lines_of = |location: &Location| &all[location.lines_start as usize..location.lines_end as usize];
        let is_same =
            |known: &Location| (known.mapping, known.address) == (mapping, address) && lines_of(known) == lines;
        let key = |location: &Location| (location.mapping, location.address, lines_of(location));
        let count = locations.len();
        let index = self.locations.add(locations, location, is_same, key);
        if locations.len() == count {
            all.truncate(location.lines_start as usize);
        }
        index
    }

    /// Returns the index of a location with only a function name.
    pub fn named(&mut self, name: &'a str) -> u32 {
        let function = self.function(Function {
            name,
            system_name: name,
            ..Function::default()
        });
        self.location(Location::NO_MAPPING, 0, &[Line { function, line: 0 }])
    }

    /// Returns the index of a binary of another profile, and the number to add to its addresses. A file that is
    /// loaded at several addresses is one binary.
    fn loaded(&mut self, mapping: Mapping<'a>) -> (u32, u64) {
        let pages = mapping.limit.wrapping_sub(mapping.start).div_ceil(PAGE);
        let name = if mapping.build_id.is_empty() {
            mapping.file
        } else {
            mapping.build_id
        };
        let load = (pages, mapping.offset, name);
        if let Some(known) = self.loads.get(&load) {
            let start = self.profile.mappings[*known as usize].start;
            let index = *known;
            self.add_flags(index, mapping.has);
            return (index, start.wrapping_sub(mapping.start));
        }
        let index = self.mapping(mapping);
        self.loads.insert(load, index);
        (index, 0)
    }

    /// Returns the indices of all locations of another profile, in its order, and adds their functions and binaries. If
    /// the file of a mapping is already known at another address, the addresses are shifted to the known mapping.
    pub(crate) fn locations_of(&mut self, profile: &Profile<'a>) -> Vec<u32> {
        let functions: Vec<u32> = profile.functions.iter().map(|one| self.function(*one)).collect();
        let mappings: Vec<(u32, u64)> = profile.mappings.iter().map(|one| self.loaded(*one)).collect();
        let mut lines: Vec<Line> = Vec::new();
        let location = |location: &Location| {
            lines.clear();
            lines.extend(profile.lines_of(location).iter().map(|line| Line {
                function: functions[line.function as usize],
                line: line.line,
            }));
            let mapping = mappings.get(location.mapping as usize).copied();
            let (mapping, shift) = mapping.unwrap_or((Location::NO_MAPPING, 0));
            self.location(mapping, location.address.wrapping_add(shift), &lines)
        };
        profile.locations.iter().map(location).collect()
    }

    /// Adds a sample with its locations (leaf first), its labels, and one value per sample type.
    pub fn sample(
        &mut self,
        stack: impl IntoIterator<Item = u32>,
        labels: impl IntoIterator<Item = SampleLabel<'a>>,
        values: &[i64],
    ) {
        let profile = &mut self.profile;
        profile.sample_locations.extend(stack);
        profile.sample_starts.push(profile.sample_locations.len() as u32);
        profile.labels.extend(labels);
        profile.label_starts.push(profile.labels.len() as u32);
        profile.values.extend_from_slice(values);
    }

    /// Returns the finished profile.
    pub fn finish(self) -> Profile<'a> {
        self.profile
    }
}

/// Finds the rows of a table by their contents.
#[derive(Default)]
struct Index {
    rows: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Index {
    /// Returns the index of the row for which `is_same` returns true. If there is none, appends `row`. Equal rows
    /// must have equal keys.
    fn add<T, Key: Hash>(
        &mut self,
        rows: &mut Vec<T>,
        row: T,
        is_same: impl Fn(&T) -> bool,
        key: impl Fn(&T) -> Key,
    ) -> u32 {
        let hash = |row: &T| self.hasher.hash_one(key(row));
        let entry = self.rows.entry(
            hash(&row),
            |index| is_same(&rows[*index as usize]),
            |index| hash(&rows[*index as usize]),
        );
        match entry {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(slot) => {
                let index = rows.len() as u32;
                slot.insert(index);
                rows.push(row);
                index
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pprof::{ValueType, decode, encode};

    #[test]
    fn what_is_equal_stands_in_the_profile_once() {
        let mut builder = Builder::new(Profile {
            sample_types: vec![ValueType {
                kind: "cpu",
                unit: "nanoseconds",
            }],
            ..Profile::default()
        });
        let work = |name| Function {
            name,
            file: "work.rs",
            ..Function::default()
        };
        let program = |has| Mapping {
            file: "/bin/program",
            build_id: "00ff",
            has,
            ..Mapping::default()
        };
        for (line, value) in [(7, 1), (8, 2), (7, 3)] {
            let mapping = builder.mapping(program([true, line == 8, false, false]));
            let lines = [("inlined", 1), ("outer", line)].map(|(name, line)| Line {
                function: builder.function(work(name)),
                line,
            });
            let leaf = builder.location(mapping, 0x10, &lines);
            let root = builder.named("main");
            let labels = (value == 3).then_some(SampleLabel::Number("pid", 5, ""));
            builder.sample([leaf, root], labels, &[value]);
        }
        let profile = builder.finish();
        assert_eq!(
            (profile.functions.len(), profile.locations.len(), profile.lines.len()),
            (3, 3, 5)
        );
        assert_eq!(profile.mappings, [program([true, true, false, false])]);
        assert_eq!(
            [0, 1, 2].map(|sample| profile.stack(sample).to_vec()),
            [[0, 1], [2, 1], [0, 1]]
        );
        assert_eq!([0, 2].map(|sample| profile.labels_of(sample).len()), [0, 1]);
        assert_eq!(decode(&encode(&profile)).unwrap(), profile);
    }
}
